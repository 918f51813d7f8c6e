"""Options that commands share: how budgets, keys, folders and column lists are read from arguments."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

LARGEST_SEED = 2**32 - 1  # a simulation key keeps 32 bits of its seed
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e3
NOT_PRIVATE = "NOT PRIVATE: simulation (--seed given); leave --seed out for a private release."


class UserError(ValueError):
    """A mistake of the user; the text is one sentence that says what to do."""


def positive_number(text: str) -> float:
    """argparse type: a finite number > 0, such as a privacy budget."""
    value = _number(text)
    if not (value > 0 and math.isfinite(value)) or value < sys.float_info.min:
        raise argparse.ArgumentTypeError(f"must be a finite number > 0, got {text!r}")
    return value


def budget(text: str) -> float:
    """argparse type: an epsilon for which a release exists and means something."""
    value = positive_number(text)
    if not SMALLEST_EPSILON <= value <= LARGEST_EPSILON:
        raise argparse.ArgumentTypeError(
            f"must lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}, got {text!r}: "
            "below, noise drowns everything; above, nothing is protected"
        )
    return value


def probability(text: str) -> float:
    """argparse type: a number strictly between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be strictly between 0 and 1, got {text!r}")
    return value


def count(text: str) -> int:
    """argparse type: a whole number >= 1."""
    return _whole(text, 1, "a whole number >= 1")


def seed(text: str) -> int:
    """argparse type: a seed of a simulation."""
    value = _whole(text, 0, f"a whole number from 0 to {LARGEST_SEED}")
    if value > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {LARGEST_SEED}, got {text!r}")
    return value


def names(text: str) -> list[str]:
    """argparse type: column names separated by commas (a name with a comma goes in double quotes)."""
    found = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row]
    if not found or not all(found):
        raise argparse.ArgumentTypeError(f"must be column names separated by commas, got {text!r}")
    return found


def numbers(text: str) -> list[float]:
    """argparse type: numbers separated by commas."""
    return [_number(part) for part in text.split(",")]


def positive_numbers(text: str) -> list[float]:
    """argparse type: finite numbers > 0 separated by commas."""
    return [positive_number(part) for part in text.split(",")]


def counts(text: str) -> list[int]:
    """argparse type: whole numbers >= 1 separated by commas."""
    return [count(part) for part in text.split(",")]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _whole(text: str, smallest: int, wanted: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = smallest - 1
    if value < smallest:
        raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}")
    return value


def add_data(parser: argparse.ArgumentParser) -> None:
    """DATA.csv and --schema."""
    parser.add_argument("data", metavar="DATA.csv", help="CSV file with a header line, UTF-8")
    parser.add_argument(
        "--schema", required=True, metavar="S.toml", help="public knowledge about the columns (TOML or JSON)"
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """--strict, --records and --force: who may see what the form of the file says."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="for callers who are not trusted: charge first, never refuse because of what a record holds (one line is "
        "one record, a malformed one counts as missing)",
    )
    parser.add_argument("--records", type=count, metavar="N", help="the number of records, where that is public")
    parser.add_argument(
        "--force", action="store_true", help="go on although a column does not parse (see `jaxdp check`)"
    )


def add_epsilon(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    """--epsilon, required unless a default is given."""
    note = "" if default is None else f" (default {default:g})"
    parser.add_argument(
        "--epsilon",
        type=budget,
        required=default is None,
        default=default,
        metavar="E",
        help=f"privacy budget of this run, a number > 0{note}",
    )


def add_accept_coarse_cells(parser: argparse.ArgumentParser) -> None:
    """--accept-coarse-cells, off by default."""
    parser.add_argument(
        "--accept-coarse-cells",
        action="store_true",
        help="run tests that cut Z into cells given 2 or more continuous columns too, at the price of false findings",
    )


def add_run(parser: argparse.ArgumentParser, out: str) -> None:
    """--out, --seed and --ledger."""
    add_out(parser, out)
    parser.add_argument(
        "--seed", type=seed, metavar="N", help="make the run a repeatable simulation, NOT PRIVATE (default: fresh key)"
    )
    parser.add_argument("--ledger", metavar="L.db", help="privacy ledger to charge before the data are read")


def add_out(parser: argparse.ArgumentParser, default: str) -> None:
    """--out DIR."""
    parser.add_argument("--out", default=default, metavar="DIR", help=f"folder for the results (default {default})")


def make_key(seed: int | None):
    """A fresh release key, or the simulation key of a seed."""
    if seed is None:
        from jaxdp import fresh_key

        return fresh_key()
    import jax

    return jax.random.key(seed)


def open_ledger(path: str | None, seed: int | None, epsilon: float):
    """The ledger to charge, or None; refuses to charge a simulation, and a spent one before the data file is opened."""
    if path is None:
        return None
    if seed is not None:
        raise UserError("--ledger cannot be charged by a simulation: leave out --seed or --ledger.")
    if not Path(path).is_file():
        raise UserError(f"ledger {path} does not exist: create it with `jaxdp ledger create {path} --epsilon E`.")
    from jaxdp.accounting.ledger import Ledger
    from jaxdp.core import Cost, Relation

    ledger = Ledger.open(path)
    if ledger.total.epsilon is not None:
        ledger.require(Cost(epsilon=epsilon, relation=Relation(ledger.relation)))
    return ledger


def account(ledger, data: str, folder: Path, columns: str):
    """The ledger as an account that writes down what was asked; None without a ledger."""
    if ledger is None:
        return None
    return ledger.asked(columns=_short(columns), source=_short(Path(data).name), result=_short(str(folder.resolve())))


def _short(text: str) -> str:
    text = text.encode(errors="replace").decode()
    return text if len(text) <= 200 else f"{text[:98]} ... {text[-97:]}"


def left(ledger) -> str:
    """A line of the screen that says what is left after a charge; nothing without a ledger."""
    return "" if ledger is None else f"\n  budget     {ledger.remaining} left in {ledger.path.name}"


def output_folder(path: str, names: Iterable[str] = ()) -> Path:
    """The folder, created if missing, and ready for files of these names: another's file is not overwritten.

    Called before data are read or a budget is charged.
    """
    from jaxdp.report import written

    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {path} is a file: name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".jaxdp-"):
        pass
    written.claim(folder, names)
    return folder


def write_json(path: Path, payload: Any) -> None:
    """Writes JSON that every reader accepts: an infinite number becomes the text "inf", NaN null."""
    path.write_text(json.dumps(_plain(payload), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and their scalars, of NumPy and JAX
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def progress[T](items: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """The items, with a progress bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, leave=False)


@contextlib.contextmanager
def stages(count: int) -> Iterator[Callable[[str], None]]:
    """Gives `begin(name)`, to be called as each of `count` stages begins; a bar on a terminal, silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    from tqdm import tqdm

    with tqdm(total=count, leave=False, bar_format="{bar:24} {desc}") as bar:

        def begin(name: str) -> None:
            bar.set_description_str(name)
            bar.update(1)

        yield begin

"""Options that commands share: how budgets, keys, folders and column lists are read from arguments."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxdp._base import arguments
from jaxdp._base.arguments import Names

BOLD, RED = "1", "31"  # what terminals draw, by ANSI


class UserError(ValueError):
    """A mistake of the user; the text is one sentence that says what to do."""


def reason(error: OSError) -> str:
    """What the operating system says about an error; no text of a library, which may quote data."""
    return os.strerror(error.errno).lower() if error.errno else "cannot be used"


def coloured(text: str, style: str, stream: Any = None) -> str:
    """The text in a style where the stream (default standard output) is a terminal, unless NO_COLOR is set."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{style}m{text}\033[0m"


def prefer_cpu(args: argparse.Namespace) -> None:
    """Has this process run on the CPU, also beside a GPU, unless JAX_PLATFORMS is set.

    One question compiles for longer than it runs: on a machine with a GPU it takes several times as long there
    (docs/evidence/speed.md), and JAX would take most of the GPU's memory from others meanwhile.
    """
    if getattr(args, "own_process", False) and "JAX_PLATFORMS" not in os.environ:
        os.environ["JAX_PLATFORMS"] = "cpu"
        if "jax" in sys.modules:  # it has read the variable already
            sys.modules["jax"].config.update("jax_platforms", "cpu")


def keep_programs(args: argparse.Namespace) -> None:
    """Keeps the compiled programs of this process for the next one, unless that is switched off or unsafe."""
    from jaxdp._base import kept_programs, programs

    try:
        programs.keep()
    except ValueError as error:
        print(f"jaxdp: note: {error}", file=sys.stderr)
    programs.of_this_process()
    if getattr(args, "own_process", False):
        kept_programs.begin()


def tell(args: argparse.Namespace, content: Any, screen: str) -> None:
    """Prints the screen for people, or with --json what result.json holds."""
    from jaxdp._base import json_files
    from jaxdp.report.sections import NOT_PRIVATE

    if args.json:
        print(json_files.text(content), end="")
        return
    title, _, rest = screen.partition("\n")
    rest = rest.replace(NOT_PRIVATE, coloured(NOT_PRIVATE, RED))
    print(f"{coloured(title, BOLD)}\n{rest}" if rest else title)


def own_name(method: str) -> str:
    """The name of the test that answers for this one; which it is goes to standard error for a classical name."""
    from jaxdp import catalogue

    name = catalogue.own_name(method)
    if name != method:
        note(catalogue.find(name).instead_of(method))
    return name


def note(text: str) -> None:
    """Tells something on standard error at once, above the bar of `stages` on a terminal."""
    line = f"jaxdp: {text}"
    if not sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
        return
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def columns(schema, *named: Names) -> list[str]:
    """The columns of one or more arguments; "dose, mg" is one column where the schema has one of that name.

    Errors: ValueError for a column that the schema does not describe.
    """
    found: list[str] = []
    for argument in named:
        whole = getattr(argument, "text", "")
        if set(argument) <= set(schema.names):
            found += argument
        elif whole in schema.names or difflib.get_close_matches(whole, schema.names, 1, cutoff=0.8):
            found.append(whole)
        else:
            found += argument
    for name in found:
        if name not in schema.outcomes:  # which a query takes as y alone
            schema.rule(name)
    return found


def require_known(args: argparse.Namespace) -> None:
    """Raises what schema, ledger and names of files alone say is wrong, before a command takes seconds to import JAX.

    Errors: OSError for a file that is missing (with a ledger the budget comes first, and no file is looked for),
    ValueError for a fault of the schema and for a column that it does not have; those of `open_ledger`.
    """
    if not isinstance(getattr(args, "schema", None), str):
        return
    from jaxdp.data.schema import Schema

    schema, data = Schema.load(args.schema), getattr(args, "data", None)
    if isinstance(data, str) and not getattr(args, "ledger", None) and not (set("*?[") & set(data)):
        os.lstat(data)
    for role in ("x", "y", "given", "columns"):
        named = getattr(args, role, None) or []
        for one in [named] if isinstance(named, str | Names) else named:
            columns(schema, one if isinstance(one, Names) else Names([one]))
    if getattr(args, "ledger", None):
        perhaps_paid = args.out is not None and Path(args.out).exists()  # by a run that was interrupted
        open_ledger(args.ledger, args.seed, 0.0 if perhaps_paid else getattr(args, "epsilon", None) or 0.0)


def add_data(parser: argparse.ArgumentParser) -> None:
    """DATA.csv and --schema."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="CSV file with a header line (UTF-8, also as .gz), Parquet, Arrow or Excel file; a folder or glob; or "
        "\"duckdb:select ... from 'visits/*.parquet'\"",
    )
    parser.add_argument(
        "--schema", required=True, metavar="S.toml", help="public knowledge about the columns (TOML or JSON)"
    )


def add_epsilon(parser: argparse.ArgumentParser) -> None:
    """--epsilon of what reads no data, 1 by default."""
    told = "privacy budget of this run, a number > 0 (default 1)"
    parser.add_argument("--epsilon", type=arguments.budget, default=1.0, metavar="E", help=told)


def add_run(parser: argparse.ArgumentParser, out: str) -> None:
    """--out, --overwrite, --json, --seed and --ledger."""
    parser.add_argument(
        "--out", metavar="DIR", help=f"folder for the results (default: the first free of {out}, {out}-2, ...)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the results of an earlier run in --out")
    parser.set_defaults(usual_out=out)
    add_json(parser)
    parser.add_argument(
        "--seed",
        type=arguments.seed,
        metavar="N",
        help="make the run a repeatable simulation, NOT PRIVATE (default: fresh key)",
    )
    parser.add_argument("--ledger", metavar="L.db", help="privacy ledger to charge before an answer is computed")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print the content of the result file (JSON) in place of text"
    )


def add_out(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--out", default=default, metavar="DIR", help=f"folder for the results (default {default})")


def make_key(seed: int | None):
    """A fresh release key, or the simulation key of a seed."""
    if seed is None:
        from jaxdp.randomness.keys import fresh_key

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
        raise UserError(
            f"ledger {path} does not exist: create it with `jaxdp ledger create {shlex.quote(path)} --epsilon E`."
        )
    from jaxdp.accounting.ledger import Ledger

    ledger = Ledger.open(path)
    ledger.require_epsilon(epsilon)
    return ledger


def for_the_page(args: argparse.Namespace, ledger) -> dict:
    """What the page says beside the result: the command as typed, and what is left of the budget (None: no ledger)."""
    budget = None
    if ledger is not None:
        left, granted = ledger.remaining, ledger.total
        budget = {"left": str(left), "granted": str(granted), "ledger": ledger.path.name}
        if granted.epsilon is not None:  # it may grant rho alone
            budget |= {"epsilon_left": float(left.epsilon), "epsilon_granted": float(granted.epsilon)}
    return {"command": without_folders(args.typed), "budget": budget} | (
        {} if args.seed is None else {"seed": args.seed}
    )


def without_folders(typed: str) -> str:
    """The command for a page that may be published: of a path from the root only the name, which is no one's folder."""
    words = (word.partition("=") if word.startswith("--") else ("", "", word) for word in shlex.split(typed))
    return shlex.join(
        option + sign + (Path(value).name if value.startswith(("/", "~")) else value) for option, sign, value in words
    )


@contextlib.contextmanager
def result_folder(args: argparse.Namespace, names: Iterable[str], unfinished: Sequence[str] = ()) -> Iterator[Path]:
    """The folder of a paid answer, of this run alone; no earlier answer is overwritten unless --overwrite says so.

    Without --out: the first of out/test, out/test-2, ... that holds none, nor files of an unfinished run, and to which
    no other run writes. Errors: `UserError` for a folder with results, or with another run in it.
    """
    from jaxdp.report import written

    names, taken = list(names), [*names, *unfinished]
    one_of_many = args.out is None and not args.overwrite
    further = (f"{args.usual_out}-{number}" for number in itertools.count(2)) if one_of_many else ()
    for path in itertools.chain([args.usual_out if args.out is None else args.out], further):
        if one_of_many and _holds(path, taken):
            continue
        folder = output_folder(path, names)
        with written.reserved(folder) as is_ours:
            full = not args.overwrite and _holds(folder, taken if one_of_many else names)  # perhaps since a moment ago
            if is_ours and not full:
                yield folder
                return
        if one_of_many:
            continue
        if not is_ours:
            raise UserError(f"another run writes to {folder}: wait for it, or give another folder with --out.")
        raise UserError(
            f"{folder} holds the results of an earlier run: give another folder with --out, or --overwrite to replace "
            "them."
        )


def _holds(folder: str | Path, names: list[str]) -> bool:
    """Whether an answer is there; pages are made of answers and may belong to another command."""
    return any((Path(folder) / name).exists() for name in names if not name.endswith(".html"))


def pictures() -> str:
    """A line of the screen where no picture can be drawn."""
    from jaxdp.report.figures import can_draw

    return "" if can_draw() else "\n  pictures   none without matplotlib: install jaxdp-dependence[plot]"


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


def progress[T](items: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """The items, with a progress bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, leave=False)


@contextlib.contextmanager
def stages(count: int, every: float | None = None) -> Iterator[Callable[[str], None]]:
    """Gives `begin(name)`, to be called as each of `count` stages begins; a bar on a terminal.

    every: elsewhere a line on standard error after so many seconds, None for none.
    """
    if not sys.stderr.isatty():
        told = time.monotonic()

        def line(name: str) -> None:
            nonlocal told
            if every is not None and time.monotonic() - told >= every:
                told = time.monotonic()
                print(f"jaxdp: {name}", file=sys.stderr, flush=True)

        yield line
        return
    from tqdm import tqdm

    with tqdm(total=count, leave=False, bar_format="{bar:24} {desc}") as bar:

        def on_stage(name: str) -> None:
            bar.set_description_str(name)
            bar.update(1)

        yield on_stage

"""What few records, a large budget and a missing ledger say against an answer of any kind; all of it is public."""

import contextlib
import contextvars
import math
from collections.abc import Iterable, Iterator
from typing import Any

from jaxdp._base import risk
from jaxdp._base.amounts import spent
from jaxdp.data import hashed_levels
from jaxdp.privacy import Cost
from jaxdp.randomness.keys import RELEASE
from jaxdp.spec import DEPENDENCE

FEW_RECORDS, MUCH = 50, 5.0
NO_LEDGER = (
    "No ledger recorded this spending: name one with --ledger (in Python ledger=jaxdp.Ledger.open(path); jaxdp ledger "
    "create makes it), or add up yourself what is spent on these records."
)

FILLED = (
    "{} count as empty cells, filled with a fixed value (docs/schema.md#who-sees-what): {}. Their number is not shown."
)
DEPENDENT = "where there are many, two columns can look dependent for that reason alone"
DEPARTS = "where there are many, there is a {} for that reason alone"  # of one column
UNPARSED = "Lines and cells that do not parse"
LACKING = "Lines that the file lacks of the {} records asked for, and lines and cells that do not parse,"
_filled: contextvars.ContextVar[str] = contextvars.ContextVar("filled", default="")
_ledger: contextvars.ContextVar[Any] = contextvars.ContextVar("ledger", default=None)


@contextlib.contextmanager
def filled(accepts: bool, records: int | None) -> Iterator[None]:
    """Answers inside say that what does not parse counts as empty cells, where the reading accepts it.

    records: the number that the table is filled up to, None for none.
    """
    subject = UNPARSED if records is None else LACKING.format(records)
    token = _filled.set(subject if accepts else "")
    try:
        yield
    finally:
        _filled.reset(token)


@contextlib.contextmanager
def totalled(account: Any) -> Iterator[None]:
    """Answers inside say what their ledger has spent in all, where that is much: of an account that writes into one."""
    token = _ledger.set(getattr(account, "ledger", None))
    try:
        yield
    finally:
        _ledger.reset(token)


def _spent_in_all() -> tuple[float, float]:
    """Epsilon and delta of the ledger, with this answer, which was charged before it was computed.

    Both 0 where no ledger of epsilon is written into, or it cannot be read: the answer is paid for and needs it least.
    """
    with contextlib.suppress(Exception):
        total = _ledger.get().spent
        return float(total.epsilon or 0.0), float(total.delta or 0.0)
    return 0.0, 0.0


def cautions(
    num_records: int, cost: Cost, mode: str, recorded: bool, rules: Iterable[Any] = (), finds: str = DEPENDENCE
) -> list[str]:
    """Sentences for the content of an answer. mode: of the release. recorded: whether an account was charged.

    rules: the schema's, of the columns that are asked about. finds: what is looked for in them.
    """
    found, released = hashed_levels.told(rules), mode == RELEASE
    epsilon, delta = float(cost.epsilon), float(cost.delta)
    total, total_delta = _spent_in_all()
    if _filled.get():
        found.append(FILLED.format(_filled.get(), DEPENDENT if finds == DEPENDENCE else DEPARTS.format(finds)))
    if num_records < FEW_RECORDS:
        found.append(f"Few records ({num_records}): only what is strong, or common, shows above the noise.")
    if released and MUCH < epsilon < math.inf:
        found.append(
            f"Epsilon of {spent(epsilon)} protects little: someone who knows every other record, and considers two "
            "versions of one equally likely, can identify the right one in "
            f"{risk.of_100(risk.best_guess(epsilon))} of 100 cases."
        )
    elif released and MUCH < total < math.inf:
        found.append(
            f"The ledger has spent epsilon {spent(total)} in all, which protects little: after all of its "
            "answers, someone who knows every other record, and considers two versions of one equally likely, can "
            f"identify the right one in {risk.of_100(risk.best_guess(total, total_delta))} of 100 cases."
        )
    if released and delta * num_records >= 1.0:
        found.append(
            f"A delta of {spent(delta)} is one in {num_records} records or more. So large a delta "
            "does not exclude that some record is published as it is. Choose one far below, such as 1e-6 "
            "(docs/epsilon.md)."
        )
    return [*found, NO_LEDGER] if released and not recorded else found

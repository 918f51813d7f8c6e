"""`jaxdp.Session`: a table, what is publicly known about it, a budget, and the queries asked so far."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Unpack

from jaxdp import charge
from jaxdp._base import amounts, check
from jaxdp._base.display import NOT_PRIVATE, Compact, Readable, Rows, listed, printable
from jaxdp._base.keywords import complete
from jaxdp._base.printed import printed
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting.filters import PureFilter
from jaxdp.accounting.ledger import BudgetExhausted, LedgerError
from jaxdp.accounting.ledger_file import UNIT
from jaxdp.accounting.shared import Uncopied
from jaxdp.ask import coefficients, pairs
from jaxdp.ask import describe as descriptions
from jaxdp.ask import graph as graphs
from jaxdp.ask import independence as tests
from jaxdp.ask.answer import Answer
from jaxdp.ask.calls import READING, SHARED, SessionOptions
from jaxdp.ask.coefficients import Coefficients
from jaxdp.ask.describe import Description
from jaxdp.ask.pair_answers import PairAnswers
from jaxdp.ask.reading import Table
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import budget
from jaxdp.core import Cost
from jaxdp.discovery.graph import Graph
from jaxdp.randomness import keys

ROUNDING = 1.0 - 2.0**-48  # shares are rounded down, so that their sum stays within the total


@dataclasses.dataclass(frozen=True, repr=False)
class Asked(Compact):
    """One query of a session: its columns, what answered, what it cost, and the answer in words."""

    columns: str
    method: str
    epsilon: float
    answer: str


class Charged(Protocol):
    """An answer with what it cost."""

    @property
    def method(self) -> str: ...

    @property
    def cost(self) -> Cost: ...


class Session(Readable, Uncopied):
    """Several queries about one table within one budget.

        session = jaxdp.Session(frame, schema="trial.toml", epsilon=1.0, queries=3)
        session.test(x="dose", y="response", given="age")        # a third of epsilon 1
        session.test(x="dose", y="clinic")
        print(session.left)

    table, schema (or bounds and levels), strict, records, force, missing, rows, memory, keep_sums: as in `jaxdp.test`.
    epsilon, delta: the total budget, kept in this object; or ledger: a `jaxdp.Ledger`, kept on disk. One of the two.
    queries: how many queries share the budget equally; without it every query names its epsilon.
    key: None draws a fresh release key for every query; jax.random.key(seed) makes a simulation, NOT PRIVATE.
    Copies share the budget, pickling raises. Printed, it shows columns and budget, never a record.
    Privacy: the sums of epsilon and delta over all queries, however they are chosen, stay within the budget; the
    query that would exceed it raises `BudgetExhausted` and learns nothing.
    """

    @table_call(SessionOptions)
    def __init__(self, table: Any, **how: Unpack[SessionOptions]):
        own = complete(SessionOptions, how)
        epsilon, queries, ledger, key = own["epsilon"], own["queries"], own["ledger"], own["key"]
        known: dict[str, Any] = {name: value for name, value in how.items() if name in {*SHARED} - {"ledger", "key"}}
        if (epsilon is None) == (ledger is None):
            raise ValueError("give epsilon=1.0, the total budget of all queries, or ledger=, one of them.")
        if ledger is not None:
            charge.require_account(ledger)
        if ledger is not None and own["delta"]:
            raise ValueError(
                f"delta = {own['delta']:g} is of the budget that the session keeps, with epsilon=; a ledger has its "
                "own: leave delta out, or give it to the queries that take one."
            )
        if key is not None and keys.admit(key) == keys.RELEASE:
            raise ValueError("a release key works once; leave key out, and every query draws its own.")
        if key is not None and ledger is not None:
            raise ValueError("a simulation (key=jax.random.key(seed)) can't be charged to a ledger; leave one out.")
        self.schema = Table.of(table, **known).schema
        self.asked: Rows[Asked] = Rows()
        self._table, self._key, self._ledger = table, key, ledger
        self._purse = None if epsilon is None else _Purse(budget(epsilon), own["delta"])
        self._reading = {name: value for name, value in how.items() if name in READING}
        self._share = None if queries is None else _share(self._total_epsilon(), queries, in_units=ledger is not None)
        self._lock, self._numbers = threading.Lock(), set[int]()  # of the simulated queries that have drawn

    @property
    def spent(self) -> Any:
        """What the queries cost so far."""
        return self._purse.spent if self._purse else self._ledger.spent

    @property
    def left(self) -> Any:
        """What is left of the budget."""
        return self._purse.left if self._purse else self._ledger.remaining

    def test(
        self, x: str | Sequence[str], y: str | Sequence[str] = (), given: str | Sequence[str] = (), **how: Any
    ) -> Answer:
        """Is X independent of Y given Z? As `jaxdp.test`; epsilon= unless the session has `queries`."""
        found = self._ask(tests.test, how, x=x, y=y, given=given)
        asked = " ~ ".join(_joined(part) for part in (x, y) if part) + (f" | {_joined(given)}" if given else "")
        return self._note(found, asked, found.content["answer"])

    def test_pairs(
        self, columns: Sequence[str] | None = None, given: str | Sequence[str] = (), **how: Any
    ) -> PairAnswers:
        """Which pairs are dependent given Z? As `jaxdp.test_pairs`; epsilon= unless the session has `queries`."""
        found = self._ask(pairs.test_pairs, how, columns=columns, given=given)
        asked = f"all pairs of {len(found.content['columns'])} columns" + (f" | {_joined(given)}" if given else "")
        return self._note(found, asked, found.content["answer"])

    def discover(self, columns: Sequence[str] | None = None, **how: Any) -> Graph:
        """The graph of the columns. As `jaxdp.discover`; epsilon= unless the session has `queries`."""
        found = self._ask(graphs.discover, how, columns=columns)
        count = len(found.directed) + len(found.undirected)
        edges = "1 edge" if count == 1 else f"{count} edges"
        return self._note(found, f"graph of {len(found.names)} columns", edges)

    def describe(self, columns: Sequence[str] | None = None, **how: Any) -> Description:
        """What the columns hold. As `jaxdp.describe`; epsilon= unless the session has `queries`."""
        found = self._ask(descriptions.describe, how, columns=columns)
        return self._note(found, f"description of {len(found.columns)} columns", found.content["answer"])

    def mic(self, x: str | None = None, y: str | None = None, **how: Any) -> Coefficients:
        """How strongly are x and y related, or all pairs? As `jaxdp.mic`; epsilon= unless there are `queries`."""
        found = self._ask(coefficients.mic, how, x=x, y=y)
        return self._note(found, f"MIC of {listed(found.names)}", found.content["answer"])

    def plan(self, x: str, y: str, given: str | Sequence[str] = (), **how: Any) -> Any:
        """Records, budget, effect or power for these columns, free of cost. As `jaxdp.plan`."""
        from jaxdp.plan.call import plan

        return plan(schema=self.schema, x=x, y=y, given=given, **how)

    def _ask[T](self, call: Callable[..., T], how: dict[str, Any], **asked: Any) -> T:
        """The answer of one call, with what every query of this session is asked with."""
        for name in SHARED:
            if name in how and name not in READING:
                raise TypeError(f"{name} belongs to the session: give it to jaxdp.Session.")
        if how.get("epsilon") is None and self._share is None:
            raise ValueError("say what this query may cost, epsilon=..., or make the session with queries=3.")
        account = self._purse or self._ledger
        share = {} if how.get("epsilon") is not None else {"epsilon": self._share}
        with self._own_key() as key:
            common = {**self._reading, **how, **share, "schema": self.schema, "ledger": account, "key": key}
            return call(self._table, **asked, **common)

    @contextlib.contextmanager
    def _own_key(self) -> Iterator[Any]:
        """A key for one query; of a simulation the first that no other has, in this thread or another."""
        if self._key is None:
            yield None
            return
        import jax

        with self._lock:
            number = next(number for number in itertools.count() if number not in self._numbers)
            self._numbers.add(number)
        try:
            yield jax.random.fold_in(self._key, number)
        except BaseException:
            self._numbers.discard(number)  # the next query draws what this one would have
            raise

    def _note[T: Charged](self, found: T, columns: str, answer: str) -> T:
        self.asked.append(Asked(columns, found.method, float(found.cost.epsilon), answer))
        return found

    def _total_epsilon(self) -> float:
        total = self._purse.total if self._purse else self._ledger.remaining.epsilon
        if total is None:
            raise ValueError("this ledger grants rho, which is not divided here: leave queries out.")
        return float(total)

    def _amounts_shown(self) -> dict[str, str]:
        try:
            return {"spent": str(self.spent), "left": str(self.left)}
        except (LedgerError, OSError) as error:
            return {"unreadable": str(error)}

    def _display(self) -> tuple[str, dict[str, Any]]:
        names = list(map(printable, self.schema.names))
        values = {
            "columns": f"{len(names)}: {listed(names)}",
            **self._amounts_shown(),
            "asked": listed(f"{row.columns}: {row.answer.rstrip('.')}" for row in self.asked) or "nothing yet",
        }
        return f"session ({NOT_PRIVATE})" if self._key is not None else "session", values


class _Purse:
    """A budget in memory as an account: releases and simulations are charged alike."""

    statement = "session.spent"

    def __init__(self, epsilon: float, delta: float):
        self.total, self.delta = epsilon, delta
        self._filter = PureFilter(epsilon=epsilon, delta=delta)

    @property
    def spent(self) -> str:
        return _amounts(amounts.spent, self._filter.spent.epsilon, self._filter.spent.delta)

    @property
    def left(self) -> str:
        spent = self._filter.spent
        return _amounts(amounts.left, self.total - float(spent.epsilon), self.delta - float(spent.delta))

    def require(self, cost: Cost) -> None:
        if not self._filter.admits(cost):
            raise BudgetExhausted(
                f"budget exhausted: {cost} asked and {self.left} left of this session; nothing was charged and "
                "nothing released."
            )

    def charge(self, method: str, cost: Cost, key: Any) -> None:
        self.require(cost)
        self._filter.spend(cost)


def _amounts(told: Callable[[Any], str], epsilon: Any, delta: Any) -> str:
    epsilon, delta = float(epsilon), float(delta)
    epsilon = 0.0 if abs(epsilon) < 1e-12 else epsilon
    return f"epsilon={told(epsilon)}" + (f", delta={told(delta)}" if delta > 0 else "")


def _share(total: float, queries: Any, in_units: bool) -> float:
    """What each query may cost; in_units: of a ledger, which rounds every charge up to its units."""
    if isinstance(queries, bool) or not isinstance(queries, int):
        raise TypeError(f"queries must be a whole number >= 1, got {printed(queries)}.")
    check.at_least(1, queries=queries)
    share = math.floor(as_fraction(total) * UNIT / queries) / UNIT if in_units else total / queries
    return share * ROUNDING


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ", ".join(names)

"""What every adapter shares: a query is paid for once, before the data are read, and remembered."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import operator
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from jaxdp import charge
from jaxdp._base import check, p_values
from jaxdp._base.amounts import spent
from jaxdp._base.display import NOT_PRIVATE, Compact, Readable, Rows, listed, printable, titled
from jaxdp._base.printed import printed_name
from jaxdp.accounting.filters import PureFilter
from jaxdp.accounting.ledger import BudgetExhausted, Ledger
from jaxdp.accounting.shared import Uncopied
from jaxdp.catalogue import require_any_pair, spec_of, wants_scores
from jaxdp.core import Cost, method_of, run
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.answerable import domain_of, largest_order, refusal, refused, unfit
from jaxdp.discovery.engine.skeleton import last_order
from jaxdp.randomness import keys
from jaxdp.randomness.host import ON_HOST, require_host

RAISE, DEPENDENT, INDEPENDENT = "raise", "dependent", "independent"
POLICIES = {DEPENDENT: 0.0, INDEPENDENT: 1.0}
SPENT, UNTAKEN = "since the budget was spent", "since the test does not take {}"  # why the policy answered

Query = tuple[int, int, tuple[int, ...]]


@dataclasses.dataclass(frozen=True, repr=False)
class Spend(Compact):
    """One paid query: when, what, its cost, and the sum of all epsilons so far."""

    time: str
    test: str
    pair: tuple[str, str]
    given: tuple[str, ...]
    epsilon: float
    rho: float
    total_epsilon: float
    p_value: float
    mode: str


class PrivateQueries(Readable, Uncopied):
    """Conditional-independence queries for other libraries: p-values of a private test, under one budget.

    test: any private test, your own included; one run answers one query. data: `Records`, the pair of
    `Schema.read_table`, or an array (n, d) with `levels=` (and `names=`): a column of k levels holds codes
    0, ..., k - 1, and one of levels 0 numbers scaled by public bounds to [-1, 1]; what lies outside is moved inside,
    and where more than a hundredth of a column does, a warning tells the owner.
    epsilon: total budget, by summation; or budget: any filter of `jaxdp.accounting` for adaptively chosen
    releases. ledger: charged for every query as well (releases only).
    key: None draws a fresh release key per query; a built-in key makes a simulation (not private).
    exhausted: chosen now, hence free: "raise" `BudgetExhausted`, or answer "dependent" (p-value 0) or
    "independent" (p-value 1) from then on.
    max_given: the largest conditioning set that will be asked about (default: all other columns). Queries that the
    test does not fit or refuses for its coarse cells, and larger sets than max_given, are answered by `exhausted` too,
    free; with "raise", which would end a search in its middle, the object refuses now if a set up to max_given is
    refused. A test that fits no pair without such a set, such as `BandGCM`, may be asked given one. `unasked` lists the
    answers of `exhausted`, and printing the object counts them.
    A query, its mirror and its conditioning set in any order are one query: repeats are free and equal.
    Copies share the budget, pickling raises, threads may ask together.
    Privacy: the whole interaction keeps the budget's guarantee, however the queries are chosen.
    """

    def __init__(
        self,
        test,
        data,
        *,
        epsilon: float | None = None,
        budget=None,
        ledger: Ledger | None = None,
        key=None,
        exhausted: str = RAISE,
        max_given: int | None = None,
        levels: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
    ):
        if (epsilon is None) == (budget is None):
            raise ValueError("give epsilon=2.0, the total budget of all queries, or budget=, a filter; one of them.")
        require_host("PrivateQueries", *jax.tree.leaves((data, epsilon, key)), way_out=ON_HOST)
        require_any_pair(test)
        if ledger is not None:
            charge.require_account(ledger)
        check.one_of((RAISE, DEPENDENT, INDEPENDENT), exhausted=exhausted)
        self.records = as_records(data, levels, names)
        self.names = self.records.names
        self.test, self.ledger = test, ledger
        self.max_given = last_order(len(self.names), max_given)
        self._largest = largest_order(test, self.records, self.max_given)
        if exhausted == RAISE:
            self._require_pairs()
        if exhausted == RAISE and self._largest < self.max_given:
            way_out = f'give max_given={self._largest} if no larger set is asked about, exhausted="dependent"'
            raise refusal(test, self.records, self._largest, way_out)
        self.rows: Rows[Spend] = Rows()
        self._key, self._exhausted = key, exhausted
        if key is not None and keys.admit(key) == keys.RELEASE:
            raise ValueError("a release key works once; leave key out, and every query draws its own.")
        if key is not None and ledger is not None:
            raise ValueError("a simulation (key=jax.random.key(seed)) can't be charged to a ledger; leave one out.")
        self.budget = PureFilter(epsilon=epsilon) if epsilon is not None else budget
        self._lock = threading.Lock()
        self._answers: dict[Query, float] = {}
        self._unasked: dict[Query, str] = {}

    @property
    def spent(self) -> Cost:
        """Sum of the costs so far."""
        return self.budget.spent

    @property
    def guarantee(self) -> Cost:
        """What the whole interaction costs, however it goes."""
        return self.budget.guarantee

    @property
    def unasked(self) -> Mapping[Query, str]:
        """The queries (i, j, given) that `exhausted` answered, none of them from the data, each with the reason."""
        return MappingProxyType(self._unasked)

    def told_unasked(self, asked: Iterable[Query] | None = None) -> str:
        """How many of these queries, or of all so far, the policy answered, and why, as a sentence; "" where none."""
        queries = list(self._answers if asked is None else asked)
        reasons = collections.Counter(self._unasked[query] for query in queries if query in self._unasked)
        if not reasons:
            return ""
        count = reasons.total()
        why = [
            f"{f'{number} ' if len(reasons) > 1 else ''}{reason.format('it' if number == 1 else 'them')}"
            for reason, number in reasons.items()
        ]
        told = "query was" if len(queries) == 1 else "queries was" if count == 1 else "queries were"
        so = "it counts" if count == 1 else "they count"
        return (
            f"{count} of {len(queries)} {told} not asked of the data, {' and '.join(why)}: {so} as {self._exhausted}."
        )

    @property
    def mode(self) -> str:
        """release or simulation."""
        return keys.RELEASE if self._key is None else keys.SIMULATION

    def _display(self) -> tuple[str, dict[str, Any]]:
        return titled(f"queries to {method_of(self.test)}", self.mode), {
            "paid": f"{len(self.rows)} queries",
            "spent": str(self.spent),
            "guarantee": str(self.guarantee),
            "columns": listed(map(printable, self.names)),
            "exhausted": self._exhausted,
        } | ({"note": told} if (told := self.told_unasked()) else {})

    def log(self) -> str:
        """What was asked and paid, one line for each query; noisy and public values only."""
        if not self.rows:
            return self.told_unasked() or "nothing asked yet"
        queries = [_asked(row) for row in self.rows]
        width = max(map(len, queries))
        lines = [
            f"{place:>4}  {row.time[:19]}  {asked:{width}}  {p_values.describe(row.p_value):<12}  {_paid(row)}"
            for place, (row, asked) in enumerate(zip(self.rows, queries, strict=True), 1)
        ]
        note = f"{len(self.rows)} queries to {method_of(self.test)}, {self.spent}"
        lines.append(f"{note}; {NOT_PRIVATE}" if self.mode == keys.SIMULATION else note)
        return "\n".join(filter(None, [*lines, self.told_unasked()]))

    def p_value(self, i: int, j: int, given: Sequence[int] = ()) -> float:
        """The released p-value; i, j and given are positions of columns.

        Errors: ValueError for columns that overlap or do not exist, TypeError for no whole numbers, `BudgetExhausted`.
        """
        query = self._canonical(i, j, given)
        with self._lock:
            if query not in self._answers:
                self._answers[query] = self._ask(query)
            return self._answers[query]

    def by_name(self, x: str, y: str, given: str | Sequence[str] = ()) -> float:
        """`p_value` by names of columns; given may be one of them."""
        given = (given,) if isinstance(given, str) else given
        for asked in ([x], [y], given):
            for place, name in enumerate(asked):
                if name not in self.names:
                    told = printed_name(asked, place, self.names)
                    raise ValueError(f"column {told} is not among {', '.join(self.names)}.")
        position = self.names.index
        return self.p_value(position(x), position(y), [position(name) for name in given])

    def _canonical(self, i, j, given) -> tuple[int, int, tuple[int, ...]]:
        i, j = sorted((_position(i), _position(j)))
        rest = tuple(sorted(set(map(_position, given))))
        if i == j or {i, j} & set(rest) or not all(0 <= k < len(self.names) for k in (i, j, *rest)):
            raise ValueError(f"a query needs different columns out of {len(self.names)}, got {(i, j, rest)}.")
        return i, j, rest

    def _require_pairs(self) -> None:
        """Raises ValueError for a test that fits some pairs of these columns alone and not others."""
        spec, columns = spec_of(self.test), self.records.accepted_as
        pair = unfit(spec, columns, 0)
        pairs = itertools.combinations(range(len(columns)), 2)
        if pair and any(spec.accepts(domain_of(columns, i, j, ())) for i, j in pairs):
            raise ValueError(refused(self.test, self.records, *pair))

    def _ask(self, query) -> float:
        if self._key is None:
            keys.require_releasable()
        require_host("PrivateQueries", way_out=ON_HOST)
        i, j, given = query
        if len(given) > self._largest:
            if self._exhausted == RAISE:
                raise ValueError(f"a query given {len(given)} columns, but max_given={self._largest} was declared.")
            return self._by_policy(query, UNTAKEN)
        unfitting = refused(self.test, self.records, i, j, given)
        if unfitting:
            if self._exhausted == RAISE:
                raise ValueError(unfitting)
            return self._by_policy(query, UNTAKEN)
        data = self.records.query(i, j, given, scores=wants_scores(self.test))
        key = keys.fresh_key() if self._key is None else jax.random.fold_in(self._key, len(self.rows))
        account = self.budget if self.ledger is None else charge.Several(self.ledger, self.budget)
        try:
            with jax.enable_x64(True):  # as a release does; in float32 p-values below 1e-38 are 0
                result = run(self.test, key, data, ledger=account)
        except BudgetExhausted:
            if self._exhausted == RAISE:
                raise
            return self._by_policy(query, SPENT)
        p_value = p_values.floored(float(result.p_value))
        self.rows.append(
            Spend(
                time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                test=method_of(self.test),
                pair=(self.names[i], self.names[j]),
                given=tuple(self.names[k] for k in given),
                epsilon=float(result.cost.epsilon),
                rho=float(result.cost.rho),
                total_epsilon=float(self.budget.spent.epsilon),
                p_value=p_value,
                mode=result.mode,
            )
        )
        return p_value

    def _by_policy(self, query: Query, reason: str) -> float:
        self._unasked[query] = reason
        return POLICIES[self._exhausted]


def _position(column: Any) -> int:
    """The column as an int. Errors: TypeError for what is no whole number, such as a name."""
    try:
        if not isinstance(column, bool | np.bool):
            return operator.index(column)
    except TypeError:
        pass
    if isinstance(column, float | np.floating) and float(column).is_integer():
        return int(column)  # R, and tables of numbers, have no other whole numbers
    raise TypeError(
        f"a column is its position, a whole number from 0, got {type(column).__name__}; by_name takes names."
    )


def _asked(row: Spend) -> str:
    """The query in words; names of columns are public, and are shown without control characters."""
    x, y = map(printable, row.pair)
    return f"{x} and {y}" + (f" given {', '.join(map(printable, row.given))}" if row.given else "")


def _paid(row: Spend) -> str:
    if row.epsilon == float("inf"):
        return f"rho {spent(row.rho)}"
    return f"epsilon {spent(row.epsilon)}, {spent(row.total_epsilon)} so far"

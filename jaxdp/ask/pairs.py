"""`jaxdp.test_pairs`: which pairs of columns are dependent (given Z)? All pairs of a table under one budget."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Unpack

import jax
import numpy as np

from jaxdp import catalogue, charge
from jaxdp._base import check, p_values
from jaxdp._base.amounts import spent
from jaxdp._base.arguments import MIN_EPSILON, USUAL_DELTA
from jaxdp._base.display import duration, listing
from jaxdp._base.keywords import complete
from jaxdp.ask import pairs_plan, reading
from jaxdp.ask.answer import epsilon_shown
from jaxdp.ask.calls import ADJUSTMENTS, PairsOptions
from jaxdp.ask.cautions import cautions
from jaxdp.ask.effects import effect_is, in_own_units, without_z
from jaxdp.ask.independence import Query, require_size
from jaxdp.ask.level_rules import level_rule_of_all, with_flags
from jaxdp.ask.pair_answers import COLUMNS, PairAnswers
from jaxdp.ask.pairs_plan import (
    JOINT,
    FeatureColumns,
    TableInChunks,
    admitted_delta,
    is_said,
    require_columns,
    require_laws,
    require_pair,
    require_reachable,
    with_more_draws,
)
from jaxdp.ask.reading import Selection, Table
from jaxdp.ask.table_answer import versions
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget
from jaxdp.core import Cost
from jaxdp.data import conditioning, streamed
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data, Domain
from jaxdp.data.schema import Schema
from jaxdp.independence.tables import cramers_v
from jaxdp.privacy import Claim
from jaxdp.report.sections import describe_doubts
from jaxdp.spec import DECISION

WORTH_A_DELTA = 0.97  # of the effect without delta, from which on a delta finds clearly less
ENDS, ONE_SIDED = "ends", "one-sided"
ENDS_TOLD = (
    "low and high of a pair, in pairs.csv and result.json, are the ends of a 95 % interval of its effect, each pair by "
    "itself: they are not widened for the number of pairs."
)
ONE_SIDED_TOLD = (
    "Of a Cramer's V low alone is found: V is at least low with 95 % confidence, and high is 1 whatever the records."
)
NOT_GIVEN = f"not given: {cramers_v.RARE}"  # in place of what the effect is
RARE_TOLD = (
    f"Of pairs whose effect_is is {NOT_GIVEN!r}, no Cramer's V is given: beside the noise of this release their rarest "
    "classes have too few records together. Levels that are merged, more records or a larger epsilon would help; "
    f'--method {JOINT} --set classes=2 (in Python method="{JOINT}", fields={{"classes": 2}}) gives phi of two classes '
    "each."
)
TURNS_TIMED = 5  # pairs after which the time that the rest will take is told


@dataclasses.dataclass(frozen=True)
class PairsQuery(TableQuery[PairAnswers]):
    """All pairs of columns of a schema, the test of each, one budget; `PairsQuery.of` checks and completes them.

    asked: one query for each pair, in the order of the columns, each with its share of epsilon.
    delta: of one joint release, which may then have Gaussian noise; 0 for pure epsilon-DP.
    """

    form: ClassVar = PairAnswers
    keywords: ClassVar = PairsOptions

    schema: Schema
    columns: tuple[str, ...]
    given: tuple[str, ...]
    epsilon: float
    adjust: str
    level: float
    asked: tuple[Query, ...]
    delta: float = 0.0

    @classmethod
    def of(cls, schema: Schema, /, **how: Unpack[PairsOptions]) -> PairsQuery:
        """The query: one joint release of three columns and more without Z, else each pair with the test that fits it.

        A method, a kind of dependence or a setting leads to tests of single pairs.
        Errors: ValueError that names the pair, for columns and tests that do not fit, before a table is opened.
        """
        own = complete(PairsOptions, how)
        adjust, method, level, law = own["adjust"], own["method"], own["level"], own["law"]
        check.one_of(tuple(ADJUSTMENTS), adjust=adjust)
        check.in_range(0.0, 1.0, level=level)
        whole = budget(own["epsilon"])
        given = tuple(schema.named("given", own["given"]))
        schema = schema.conditioned_on(given)
        rest = [name for name in schema.names if name not in given]
        names = tuple(rest if own["columns"] is None else schema.named("columns", own["columns"]))
        require_columns(names, given)
        pairs = list(itertools.combinations(names, 2))
        of_all = ("columns", "adjust", "delta")
        each: dict[str, Any] = {name: value for name, value in how.items() if name not in of_all} | {"given": given}
        settings = [value for name, value in each.items() if name not in ("epsilon", "level")]
        if method is None and len(pairs) > 1 and not any(map(is_said, settings)):
            method = JOINT
        delta = admitted_delta(own["delta"], method)
        share = check.share(whole, Fraction(1, len(pairs)))
        if share < MIN_EPSILON:
            raise ValueError(f"epsilon {spent(whole)} over {len(pairs)} pairs is next to nothing: name fewer columns.")
        each |= {"epsilon": share, "method": method}
        if method and catalogue.find(method).spec.publishes == DECISION:
            each["level"] = level / len(pairs)  # a decision has no p-value to adjust; each is made at its share
        laws = {x: law.get(x) if isinstance(law, Mapping) else law for x in names}
        queries = [Query.of(schema, **each | {"x": x, "y": y, "law": laws[x]}) for x, y in pairs]
        require_laws(law, names, queries[0].entry)
        queries = [with_more_draws(query, level / len(pairs)) for query in queries]
        for query in {query.entry.name: query for query in queries}.values() if adjust == "holm" else ():
            require_reachable(query, level / len(pairs), len(pairs), "pairs")
        if method == JOINT and given:
            raise ValueError(f"{JOINT} does not condition: leave given out, or the method.")
        for query in queries if method != JOINT else []:
            require_pair(query)
        return cls(schema, names, given, whole, adjust, level, tuple(queries), delta)

    @property
    def parts(self) -> int:  # type: ignore[override]
        """The pairs."""
        return len(self.asked)

    @property
    def joint(self) -> bool:
        """Whether one release of `PairContrasts` answers."""
        return self.asked[0].entry.name == JOINT

    @property
    def methods(self) -> list[str]:
        """Names of the tests that answer, each once."""
        return list(dict.fromkeys(query.entry.name for query in self.asked))

    @property
    def short(self) -> str:
        """The query in one line, for ledgers."""
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"all pairs of {', '.join(self.columns)}{given}"

    @property
    def sentence(self) -> str:
        """The query in words."""
        given = f" given {listing(self.given)}" if self.given else ""
        names, pairs = listing(self.columns), len(self.asked)
        return f"{f'Are {names}' if pairs == 1 else f'Which of the {pairs} pairs of {names} are'} dependent{given}?"

    def require_key(self, key: Any) -> None:
        """As of each pair."""
        for query in self.asked:
            query.require_key(key)

    def selection(self, table: Table) -> Selection:
        """All columns and Z."""
        of_moments = any(query.entry.spec.of_moments for query in self.asked)
        return Selection(table, (*self.columns, *self.given), self.given, of_moments=of_moments)

    def loader(self, selection: Selection, key: Any) -> tuple[PairsQuery, Callable[..., Any]]:
        """Records in memory, or the table in chunks, for every stage of every release."""
        rows, how = selection.rows_in_chunks(), selection.table.reading
        if rows is None:

            def load(source: Any, **told: Any) -> np.ndarray:
                return self.schema.read_table(
                    source, self.columns, given=self.given, shuffled=reading.is_release(key), **told
                )[0]

            return self, load
        way: dict[str, Any] = {"memory": how.limit, "strict": how.strict, "records": how.records}
        table = TableInChunks(self.schema, selection.names, selection.table.source, rows=rows, **way)
        if not self.joint:
            self._require_sums(table, rows)
        kept = selection.kept()

        def load_chunks(source: Any, **told: Any) -> TableInChunks:
            columns = streamed.AllColumns(self.schema, table.names)
            chosen = streamed.choose(source, self.schema, table.names, **told, hidden=reading.is_release(key))
            if chosen is not None:
                return dataclasses.replace(table, table=source, rows=chosen.num_records, chosen=chosen, kept=kept)
            known = streamed.load(source, columns=columns, memory=how.limit, force=how.force, **told)
            return dataclasses.replace(table, table=source, rows=known.num_records, kept=kept)

        return self, load_chunks

    def _require_sums(self, table: TableInChunks, rows: int) -> None:
        """Raises ValueError for a pair whose test has no sums."""
        from jaxdp.core import require_sums

        data = [self._data(query, table) for query in self.asked]
        tests = [_built(query, one.shapes, rows) for query, one in zip(self.asked, data, strict=True)]
        together = self._together(tests, table, rows)
        if together is not None:
            require_sums(together[0], together[1].shapes)
        else:
            for query, test, one in zip(self.asked, tests, data, strict=True):
                try:
                    require_sums(test, one.shapes)
                except ValueError as error:
                    raise ValueError(f"{query.x[0]} and {query.y[0]}: {error}") from None

    def answer(
        self,
        data: Any,
        key: Any,
        account: Any,
        on_stage: Callable[[str], None],
        *,
        on_estimate: Callable[[str], None] | None = None,
        **more: Any,
    ) -> PairAnswers:
        """By one release of all pairs, or by one of each, whose costs add up.

        on_estimate: called before the charge with about how long the pairs will take, in words.
        """

        from jaxdp.core import cost_of, run
        from jaxdp.independence import pair_by_pair

        rows = data.rows if isinstance(data, TableInChunks) else data.shape[0]
        if not isinstance(data, TableInChunks):
            query = self._of_records(rows)
            if query is not self:
                data = self._hour_by_hour(data, rows)
                return query.answer(data, key, account, on_stage, on_estimate=on_estimate, **more)
        for entry in {query.entry.name: query.entry for query in self.asked}.values():
            require_size(entry, rows)
        with jax.enable_x64(True):  # a release computes in float64 anyway; one simulation may as well
            each: list = [] if self.joint else [self._data(query, data) for query in self.asked]
            tests = [_built(query, one, rows) for query, one in zip(self.asked, each, strict=not self.joint)]
            stopped = "a run that is stopped loses its answers, not its charge"
            on_stage(f"testing {len(self.asked)} pairs of {rows} rows; {stopped}")
            together = self._jointly(data, rows) if self.joint else self._together(tests, data, rows)
            # in strict mode the pairs are charged in a first turn and answered in a second one
            told = None
            if on_estimate is not None and not isinstance(account, charge.Paid):
                told = self._foretold(rows, on_estimate)
            # public, and slow for many pairs: before the time is told and before anything is charged
            power = functools.cache(lambda: self._power(tests[0] if together is None else together[0], rows))
            if together is None:
                name = f"all-pairs[{', '.join(self.methods)}]"

                def prepare(stage: str) -> None:
                    on_stage(stage)
                    power()

                results, cost = pair_by_pair.run_each(
                    tests,
                    key,
                    each,
                    name=name,
                    ledger=account,
                    on_stage=_Turns(self.asked, on_stage),
                    prepare=prepare,
                    on_estimate=told,
                )
                rows_of = [self._row(*one) for one in zip(self.asked, tests, results, strict=True)]
                mode = results[0].mode
            else:
                test, joint = together
                claim = self._claim(test, joint)
                if reading.is_release(key):
                    if account is not None:
                        account.require(claim or cost_of(test, joint))
                    power()
                    if told is not None and not isinstance(joint, Chunks):
                        turns = 1 if account is None else 2  # what is charged is rehearsed once more
                        told(turns * pair_by_pair.rehearsed(test, joint, again=True))
                result = run(test, key, joint, ledger=charge.claiming(account, claim))
                cost, mode = claim or result.cost, result.mode
                tests = tests or [test] * len(self.asked)
                names = test.effect_names(self._described, rows) if self.joint else [""] * len(tests)
                rows_of = self._rows_together(result, tests, names)
            public = power()
        public["cautions"] = cautions(rows, cost, mode, account is not None, map(self.schema.rule, self.columns))
        return self._answers(rows_of, tests, cost, mode, rows, level_rule_of_all(tests, each) if each else None, public)

    def _of_records(self, rows: int) -> PairsQuery:
        """As `Query.of_records`, of every pair: all of them have the same Z."""
        queries = tuple(query.of_records(rows) for query in self.asked)
        if queries[0] is self.asked[0]:
            return self
        return dataclasses.replace(self, schema=queries[0].schema, asked=queries)

    def _hour_by_hour(self, values: np.ndarray, rows: int) -> np.ndarray:
        """Records that were read by this query, as `_of_records` conditions on them."""
        own, rules = len(self.columns), [self.schema.rule(name) for name in self.given]
        z = conditioning.values_hour_by_hour(rules, values[:, own:], conditioning.parts_of(rules, rows))
        return np.concatenate([values[:, :own], z], axis=1)

    def _data(self, query: Query, values: Any) -> Any:
        """The records of one pair, coded as its test takes them."""
        if isinstance(values, TableInChunks):
            return values.chunks(
                streamed.Columns(self.schema, query.x, query.y, self.given, query.entry.spec.columns.coded)
            )
        coded = query.entry.spec.columns.coded
        x, y = (self._side(name, values, coded) for name in (*query.x, *query.y))
        z = values[:, len(self.columns) :] if self.given else None
        described = tuple(column for name in self.given for column in conditioning.columns(self.schema.rule(name)))
        return Data(x[0], y[0], z, Domain(x[1], y[1], described))

    def _side(self, name: str, values: np.ndarray, coded: bool) -> tuple[np.ndarray, tuple]:
        rule, codes = self.schema.rule(name), values[:, self.columns.index(name)]
        return (codes, rule.code_column()) if coded else (rule.spread(codes), rule.scaled_columns())

    def _together(self, tests: list, values: Any, rows: int) -> tuple | None:
        """(the test of all pairs in one release, its data) where every pair has the same test and it knows how."""
        from jaxdp.independence.pairs import AllPairs, releases_together

        first, rules = self.asked[0], [self.schema.rule(name) for name in self.columns]
        alike = len(self.methods) == 1 and all(
            catalogue.described(test) == catalogue.described(tests[0]) for test in tests
        )
        if not alike or not releases_together(tests[0]) or any(rule.needs_indicators for rule in rules):
            return None
        columns = FeatureColumns(self.schema, self.columns, self.given, tests[0])
        data: Any = values.chunks(columns) if isinstance(values, TableInChunks) else columns.of_values(values)
        settings = dataclasses.replace(first.settings, num_records=rows, of_many=True)
        domain = self._data(first, values).domain

        def build(epsilon):
            return AllPairs(test=first.entry.build(epsilon, domain, settings, coded=first.domain))

        return catalogue.at_most(self.epsilon, build, data), data

    def _jointly(self, values: Any, rows: int) -> tuple:
        """(the test of all pairs of any kinds by one release, its data)."""
        from jaxdp.accounting.renyi import zcdp_rho
        from jaxdp.independence.tables.pair_contrasts import PairContrasts
        from jaxdp.independence.tables.pair_contrasts_power import sharper
        from jaxdp.mechanisms import Gaussian, MaxNorm

        fields = catalogue.checked_fields(PairContrasts, self.asked[0].settings.fields)
        pure = PairContrasts(epsilon=self.epsilon, **fields)
        columns = FeatureColumns(self.schema, self.columns, (), pure)
        data: Any = values.chunks(columns) if isinstance(values, TableInChunks) else columns.of_values(values)
        if self.delta:
            normal = Gaussian(zcdp_rho(self.epsilon, self.delta) * (1.0 - catalogue.ROUNDING))
            if sharper(MaxNorm(self.epsilon), normal, self._described, rows, self.level / len(self.asked)) is normal:
                return PairContrasts(mechanism=normal, **fields), data
        return catalogue.at_most(self.epsilon, lambda epsilon: PairContrasts(epsilon=epsilon, **fields), data), data

    @property
    def _described(self) -> tuple:
        """The public descriptions of the columns."""
        return tuple(column for name in self.columns for column in self.schema.rule(name).code_column())

    def _claim(self, test: Any, data: Any) -> Cost | None:
        """(epsilon, delta) of a joint release with Gaussian noise, None where its own cost is the claim."""
        from jaxdp.core import cost_of

        cost = cost_of(test, data)
        if not self.delta or math.isfinite(float(cost.epsilon)):
            return None
        return Claim(epsilon=self.epsilon, delta=self.delta, rho=cost.rho, relation=cost.relation)

    def _foretold(self, rows: int, tell: Callable[[str], None]) -> Callable[[float], None]:
        """Puts the time that all pairs will take into words, before they are charged."""
        what = f"{len(self.asked)} pairs of {rows} records by {listing(self.methods)}"
        done = "timed on zeros in place of the records. Nothing is spent yet."
        return lambda seconds: tell(f"{what}: about {duration(seconds)}, {done}")

    def _power(self, test: Any, rows: int) -> dict[str, Any]:
        """How small an effect would have been found in a pair, and what a delta would change: public."""
        if not self.joint:
            return pairs_plan.of_single_pairs(self.asked, rows, self.level / len(self.asked))
        return pairs_plan.of_joint_release(self, test, self._described, rows, USUAL_DELTA, WORTH_A_DELTA)

    def _row(self, query: Query, test: Any, result: Any) -> dict[str, Any]:
        """One pair by a test of its own."""
        result = in_own_units(result, query)
        statistic = np.asarray(result.statistic, float)
        sized = result.effect is not None and np.size(result.effect) == 1
        bounded = sized and result.interval is not None
        low, high = (float(np.asarray(end)) for end in result.interval) if bounded else (None, None)
        p_value = p_values.floored(float(result.p_value))
        return self._named(query) | {
            "p_value": p_value,
            "smallest_p": p_values.smallest_of(test, p_value),
            "statistic": float(statistic) if statistic.size == 1 else None,
            "effect": float(np.asarray(result.effect)) if sized else None,
            "low": low,
            "high": high,
            "effect_is": effect_is(result, query, test).partition(". ")[0] if sized else "",
        }

    def _rows_together(self, result: Any, tests: list, names: Sequence[str]) -> list[dict[str, Any]]:
        """All pairs by one release. names: of their effects."""
        values = np.asarray(result.p_value, float)
        statistic = np.asarray(result.statistic, float)
        numbers = statistic.tolist() if statistic.shape == values.shape else [None] * values.size
        sizes: list[list[float | None]] = [[None] * values.size] * 3
        if result.effect is not None and np.shape(result.effect) == values.shape:
            known = [np.asarray(part, float) for part in (result.effect, *result.interval)]
            sizes = [[None if np.isnan(number) else float(number) for number in part] for part in known]
        told = list(map(p_values.floored, values.tolist()))
        return [
            self._named(query)
            | {"p_value": value, "smallest_p": p_values.smallest_of(test, value), "statistic": number}
            | dict(zip(("effect", "low", "high"), size, strict=True))
            | {"effect_is": name if size[0] is not None else NOT_GIVEN if self.joint else ""}
            for query, test, value, number, name, *size in zip(
                self.asked, tests, told, numbers, names, *sizes, strict=True
            )
        ]

    def _named(self, query: Query) -> dict[str, Any]:
        return {"x": query.x[0], "y": query.y[0], "method": query.entry.name}

    def _effect_notes(self, rows_of: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """What the ends of the pairs' effects are, where there are any."""
        bounded = [row for row in rows_of if row["low"] is not None]
        notes = {ENDS: ENDS_TOLD} if bounded else {}
        one_sided = self.joint and any(row["effect_is"].startswith(cramers_v.NAME) for row in bounded)
        hidden = any(row["effect_is"] == NOT_GIVEN for row in rows_of)
        return (
            notes | ({ONE_SIDED: ONE_SIDED_TOLD} if one_sided else {}) | ({cramers_v.RARE: RARE_TOLD} if hidden else {})
        )

    def _answers(
        self,
        rows_of: list[dict],
        tests: list,
        cost: Cost,
        mode: str,
        rows: int,
        rule: dict | None,
        public: dict[str, Any],
    ) -> PairAnswers:

        from jaxdp import null_laws

        adjust = {"holm": null_laws.holm, "bh": null_laws.benjamini_hochberg}[self.adjust]
        with jax.enable_x64(True):
            adjusted = np.asarray(adjust(np.array([row["p_value"] for row in rows_of]))).tolist()
        for row, value in zip(rows_of, adjusted, strict=True):
            row |= {"adjusted": value, "dependence_found": bool(value <= self.level)}
        listed = [{name: row[name] for name in COLUMNS} for row in sorted(rows_of, key=lambda row: row["adjusted"])]
        found = sum(row["dependence_found"] for row in listed)
        specs = {query.entry.name: query.entry.spec for query in self.asked}
        sees = [
            f"{name}: {spec.alternatives}" if len(specs) > 1 else spec.alternatives
            for name, spec in specs.items()
            if spec.alternatives
        ]
        given = [self.schema.rule(name) for name in self.given]
        rule = with_flags(rule, conditioning.flags(given, rows, bool(found)), bool(found))
        continuous = any(column.is_continuous for column in given)
        assumptions = dict.fromkeys(spec.assumption for spec in specs.values() if continuous and spec.assumption)
        method = listing(self.methods)
        smallest = f"; the smallest adjusted p-value is {p_values.number(listed[0]['adjusted'])}" if not found else ""
        built: dict[str, dict[str, Any]] = {}
        for query, test in zip(self.asked, tests, strict=True):
            built.setdefault(query.x[0], {})[query.y[0]] = catalogue.described(test)
        simulated = public.pop("simulated", {})
        content = {
            "title": self.sentence,
            "answer": f"{found} of {len(listed)} pairs are dependent at level {self.level:g}, adjusted by "
            f"{ADJUSTMENTS[self.adjust]}{smallest}{describe_doubts(rule['flags']) if found and rule else ''}.",
            "method": method,
            "adjust": self.adjust,
            "adjusted_by": ADJUSTMENTS[self.adjust],
            "epsilon": epsilon_shown(float(cost.epsilon), self.epsilon),
            "delta": float(cost.delta),
            "relation": cost.relation.value,
            "mode": mode,
            "n": rows,
            "level": self.level,
            "columns": list(self.columns),
            "given": list(self.given),
            "conditioned_on": conditioning.described(given),
            "unit": self.schema.protects,
            "assumption": " ".join(assumptions),
            "level_rule": rule,
            "sees": without_z("; ".join(sees), self),
            "built": built,
            "versions": versions(),
            **({"taken": self.asked[0].taken} if self.asked[0].taken else {}),
            **({"effect_notes": notes} if (notes := self._effect_notes(listed)) else {}),
            **public,
        }
        return PairAnswers(listed, content, cost, mode, method, simulated)


class _Turns:
    """Tells which pair is tested, and about how long the rest takes, by the pairs that are done."""

    def __init__(self, asked: Sequence[Query], on_stage: Callable[[str], None]):
        self._asked, self._begin = asked, on_stage
        self._began: list[float] = []

    def __call__(self, place: int) -> None:
        self._began.append(time.monotonic())
        # by the median: the first pair of a kind compiles its test, the others take a small part of that time
        usual = float(np.median(np.diff(self._began))) if place else 0.0
        rest = f", about {duration(usual * (len(self._asked) - place))} left" if place >= TURNS_TIMED else ""
        self._begin(f"pair {place + 1} of {len(self._asked)}: {self._asked[place].short}{rest}")


def _built(query: Query, data: Data, rows: int) -> Any:
    """The test of one pair. Errors: ValueError that names the pair."""
    try:
        settings = dataclasses.replace(query.settings, num_records=rows, of_many=True)
        return query.entry.within(query.epsilon, data, settings, coded=query.domain)
    except ValueError as error:
        raise ValueError(f"{query.x[0]} and {query.y[0]}: {error}") from None


@table_call(PairsOptions)
def test_pairs(table: Any, **how: Unpack[PairsOptions]) -> PairAnswers:
    """Which pairs of columns are dependent (given Z)? Tests every pair at one total budget and adjusts the p-values.

        jaxdp.test_pairs(frame, columns=["dose", "response", "age"], epsilon=2.0, bounds={...}, adjust="bh")

    table, schema, bounds, levels, ledger, key, and how it is read (strict to keep_sums): as in `jaxdp.test`; in chunks
    a test that releases all pairs together reads the table once for every stage, another one for every stage of each
    pair.
    columns: whose pairs are tested, default all described ones that are not given. given: columns conditioned on.
    epsilon: budget of all pairs together. delta: without given and method, lets the joint release have Gaussian noise
    where that is smaller; the answer says what it changes. adjust: "holm" (family-wise error) or "bh" (false discovery
    rate).
    method, sees, fields, residual_scale and other settings: as in `jaxdp.test`. Without them and without given, three
    columns or more of any kinds are answered by one joint release (`PairContrasts`); else each pair gets the test that
    fits its columns.
    law: one for all columns, or a mapping of column -> law, for tests that need the law of X (the earlier column).
    level: of the adjusted p-values. A test that publishes a decision only makes each one at level / number of pairs.

    Returns `PairAnswers`: pairs, found, `table()`, `to_dict()`. It holds no record.
    Privacy: the guarantee of the tests for all pairs together, by one release where the test has a joint form, else by
    sequential composition of equal shares. Errors: as `jaxdp.test`, the pair named, before anything is charged.
    """
    return asked(PairsQuery, table, how)


test_pairs.__test__ = False  # type: ignore[attr-defined]  # no test of a test file

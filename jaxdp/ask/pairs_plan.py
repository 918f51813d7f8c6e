"""What is settled about all pairs of a table before a record is read: checks, smallest effects, columns to read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp import catalogue, null_laws
from jaxdp._base import check
from jaxdp._base.display import listing
from jaxdp._base.printed import printed_name
from jaxdp.ask import detectable
from jaxdp.ask.independence import Query
from jaxdp.data import streamed
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data
from jaxdp.data.schema import Schema
from jaxdp.spec import Options

JOINT = "pair-contrasts"  # the test of all pairs by one release, which answers where no other is asked for
MAX_DRAWS = 99_999  # of null tables for one pair
MAX_JOINT_DRAWS = 999_999  # of the joint release, which draws so many for those pairs alone whose p-values are small


def admitted_delta(delta: Any, method: str | None) -> float:
    """The delta as a float. Errors: ValueError unless it is 0 or a small probability of a joint release."""
    check.in_range(-1.0, 1.0, delta=delta)
    check.non_negative(delta=delta)
    if delta and method != JOINT:
        raise ValueError(
            f"delta goes with one joint release of all pairs ({JOINT}): leave out method, given and settings, and name "
            "three columns or more."
        )
    return float(delta)


def is_said(value: Any) -> bool:
    """Whether a setting was given; a table or an array given for one is, and is not compared with anything."""
    return not (value is None or value is False or (isinstance(value, dict | tuple) and not value))


def require_columns(names: Sequence[str], given: Sequence[str]) -> None:
    repeated = [name for name in names if name in given or list(names).count(name) > 1]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} is used twice among columns and given: name every column once.")
    if len(names) < 2:
        raise ValueError(f"all pairs need at least two columns, got {len(names)}.")


def require_laws(law: Any, names: Sequence[str], entry: catalogue.Entry) -> None:
    """Raises ValueError for a law that the test does not use, and for laws of other columns.

    entry: of any pair; without a method no pair has a test that needs a law.
    """
    if law is not None:
        entry.require_settings(Options(law=law))
    strange = [name for name in law if name not in names] if isinstance(law, Mapping) else []
    if strange:
        raise ValueError(f"law has column {printed_name(list(law), list(law).index(strange[0]), names)}, of no pair.")


def with_more_draws(query: Query, share: float) -> Query:
    """The query with so many null tables that the smallest p-value is a tenth of a pair's share of the level.

    Adjusted for many pairs, the p-value of a test that ranks itself among `num_null` tables could else never be small.
    Only tests of codes: the draws of others may be whole data sets, and cost a user minutes that were not asked for.
    """
    usual = next((field.default for field in dataclasses.fields(query.entry.cls) if field.name == "num_null"), None)
    fields = query.settings.fields
    needed = min(math.ceil(10.0 / share) - 1, MAX_DRAWS)
    if query.entry.name == JOINT:  # beyond, twice as many as the adjustment asks for: each takes its time
        needed = max(needed, min(math.ceil(2.0 / share) - 1, MAX_JOINT_DRAWS))
    if not isinstance(usual, int) or needed <= usual or "num_null" in fields or not query.entry.spec.columns.coded:
        return query
    return dataclasses.replace(
        query, settings=dataclasses.replace(query.settings, fields={**fields, "num_null": needed})
    )


def require_reachable(query: Query, share: float, count: int, what: str) -> None:
    """Raises ValueError where Holm's adjustment of so many p-values finds none, since ranks are never so small.

    query: of any of them, `with_more_draws`; share: of the level.
    """
    draws = query.settings.fields.get("num_null")
    at_most = MAX_JOINT_DRAWS if query.entry.name == JOINT else MAX_DRAWS
    if draws != at_most or query.entry.cls.gradient_free != null_laws.RANK or share * (1 + draws) >= 1.0 - 1e-9:
        return
    raise ValueError(
        f"Holm's adjustment of {count} {what} asks for a p-value of {share:.2g}, and {query.entry.name} ranks each "
        f"among at most {draws} draws, so that it is {1.0 / (1 + draws):.2g} or more: nothing could be found. "
        'Name fewer columns, adjust by the false discovery rate (--adjust bh, in Python adjust="bh"), or of numbers '
        "name a test whose p-value is a formula (partial-correlation)."
    )


def require_pair(query: Query) -> None:
    """Raises ValueError if the test cannot be asked about this pair, which it names."""
    entry = query.entry
    catalogue.require_any_pair(entry.cls)
    if query.public_columns:
        raise ValueError(
            f"{entry.name} takes {listing(query.public_columns)} as public: ask about one pair by --x, --y."
        )
    entry.require_fits(query.domain)


def of_joint_release(query: Any, test: Any, columns: tuple, rows: int, delta: float, worth: float) -> dict[str, Any]:
    """Of one release of `PairContrasts`. delta: of which is told what it would change; worth: from which share on."""
    from jaxdp.independence.tables.pair_contrasts_power import detectable_effect, named_effect

    level, classings = query.level / len(query.asked), test.classed(columns, rows)
    found = detectable_effect(test.mechanism_in_force(), classings, rows, level)
    power = (
        f"With power {detectable.POWER} {named_effect(classings)} of {found:.2g} or more would have been found in "
        f"a pair of columns with equally full classes (at level {query.level:g}/{len(query.asked)}, the strictest that "
        "the adjustment asks for); where a level or class is rare, only a larger effect, or none."
        if found < 1.0
        else "No effect, however strong, is found with power 0.8 in so few records at this budget: name fewer columns, "
        "or spend more."
    )
    if null_laws.never_so_small(test, level):
        enough = math.ceil(10.0 / level) - 1
        found, power = (
            math.inf,
            (
                f"No effect in one pair alone would have been found at level {query.level:g}/{len(query.asked)}, the "
                f"strictest that the adjustment asks for: p-values are ranks among {test.num_null} draws, "
                f"{1 / (1 + test.num_null):.2g} or more. --set num_null={enough} (in Python "
                f'fields={{"num_null": {enough}}}) would do.'
            ),
        )
    told = _told_delta(query, columns, rows, level, delta, worth)
    return {"detectable_effect": found if found < 1.0 else None, "power": f"{power} {told}"}


def _told_delta(query: Any, columns: tuple, rows: int, level: float, usual: float, worth: float) -> str:
    """What a delta changes, between two halves."""
    from jaxdp.accounting.renyi import zcdp_rho
    from jaxdp.independence.tables.pair_contrasts_power import effect_between_halves
    from jaxdp.mechanisms import Gaussian, MaxNorm

    delta = query.delta or usual
    pure = effect_between_halves(MaxNorm(query.epsilon), columns, rows, level)
    normal = effect_between_halves(Gaussian(zcdp_rho(query.epsilon, delta)), columns, rows, level)
    if normal > worth * pure:
        ending = ", so none was spent" if query.delta else ""
        return f"A delta of {delta:g} would not help: pure epsilon-DP has no more noise for these columns{ending}."
    shares = f"an effect of {normal:.3g} between halves in place of {pure:.3g}"
    if query.delta:
        return f"The delta of {delta:g} finds {shares}."
    return f"With --delta {delta:g} (in Python delta={delta:g}) it would be {shares}."


def of_single_pairs(asked: Sequence[Any], rows: int, level: float) -> dict[str, Any]:
    """Of pairs that are tested one by one, by the planner's formulas; {} where it has no plan for any.

    simulated: what `detectable.in_a_command` takes, where the sentence names a command.
    """
    from jaxdp.plan.survival import SurvivalSetting

    found = []
    for query in asked:
        setting = SurvivalSetting.of_schema(query.schema, query.x[0], query.y[0], list(query.given))
        found.append((query, setting, detectable.by_formula(query.entry.name, rows, query.epsilon, level, setting)))
    known = [effect for *_, effect in found if effect is not None]
    for query, setting, _ in found if not known else ():
        public = {"method": query.entry.name, "n": rows, "epsilon": query.epsilon, "level": level}
        public |= {"x": query.x, "y": query.y, "given": query.given}
        simulated = detectable.by_simulation(public, setting, "S.toml", detectable.PAIR)
        if simulated:
            return simulated | ({"simulated": public} if detectable.PAIR in simulated["power"] else {})
    if not known:
        return {}
    low, high = min(known), max(known)
    if math.isinf(low):
        return detectable.by_release(low, "", level) | {"detectable_effect": None}
    told = f"{low:.2g}" if high - low < 0.05 * low else f"{low:.2g} to {high:.2g}, by the pair,"
    return {
        "detectable_effect": high if math.isfinite(high) else None,
        "power": f"{detectable.with_power(level)} an effect of {told} or more would have been found (the change of Y's "
        "mean, in residual sds, per residual sd of X; by the planner for such columns).",
    }


@dataclasses.dataclass(frozen=True, repr=False)
class TableInChunks:
    """A table that is read once more for every release. rows: how many it has; a guess before it is read.

    chosen: those of them that are records, where not all are. kept: where the sums of its files are kept. records: how
    many it counts as, whatever it holds.
    """

    schema: Schema
    names: tuple[str, ...]
    table: Any
    memory: int
    strict: bool
    rows: int
    chosen: Any = None
    kept: Any = None
    records: int | None = None

    def chunks(self, columns: Any) -> Chunks:
        """Some of its columns; nothing is read yet."""
        how: dict[str, Any] = {"memory": self.memory, "strict": self.strict, "rows": self.rows, "kept": self.kept}
        return streamed.stream(self.table, columns, **how, chosen=self.chosen, records=self.records)


@dataclasses.dataclass(frozen=True)
class FeatureColumns:
    """The columns of a release of all pairs, as `jaxdp.data.streamed.Columns`. test: of one pair."""

    schema: Schema
    columns: tuple[str, ...]
    given: tuple[str, ...]
    test: Any

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *self.given)

    def of_values(self, values: np.ndarray) -> Data:
        """Coded rows (n, columns and given) as features and z."""
        from jaxdp.independence.features import Features

        features, count = self.schema.columns_of(self.columns), len(self.columns)
        given = self.schema.columns_of((), self.given)
        z = values[:, count:] if self.given else None
        return Features.admitted(self.test, values[:, :count], z, tuple(given) or None, tuple(features)).together()

    def coded(self, piece: Mapping[str, Any]) -> Data:
        """The rows of a piece."""
        return self.of_values(self.schema.coded_table(piece, self.columns, self.given))

    def shapes(self, num_records: int) -> Data:
        """The whole data, with shapes for arrays."""
        one = self.coded({name: np.zeros(1) for name in self.names})
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_records, *leaf.shape[1:]), np.float64), one)

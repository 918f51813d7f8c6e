"""Query-by-query discovery: sparse vector alone (`svt_pc`), and sieve-and-examine (`priv_pc`, Priv-PC).

Theory: docs/theory/priv_pc.md; Algorithms 1 and 2 of the paper.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import _check
from jaxdp._exact import as_fraction
from jaxdp.core import Cost, Norm, Relation, Sensitivity
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.asking import Values, until_firing
from jaxdp.discovery.counts import Counts, batches
from jaxdp.discovery.decision_query import default_query
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.session import opened
from jaxdp.discovery.skeleton import AHEAD, Question, find_skeleton
from jaxdp.discovery.spec import Levels, SearchSpec, search
from jaxdp.independence.conditional.conditional_kendall import PAPER_SENSITIVITY, paper_claim
from jaxdp.mechanisms import Laplace
from jaxdp.mechanisms.sparse_vector import SparseVector, amplified, before_amplification
from jaxdp.noise import draw, keys, tape
from jaxdp.statistics import concordance

Z = 4.0
SIEVE_SHARE = 0.5
UNIT_ROUNDOFF = 2.0**-53
_START, _PERTURB, _FOLD_IN = jax.jit(SparseVector.init_opened), jax.jit(Laplace.perturb), jax.jit(jax.random.fold_in)


TYPICAL_BOUND = 2.0  # sensitivity of a typical query, in records


def _predicted_noise(levels: Levels, epsilon: float) -> float:
    """Scale of the noise of one sparse-vector answer over the reserved pairs, in records."""
    pairs = max(1, len(levels) * (len(levels) - 1) // 2)
    share = (2.0 * pairs) ** (2.0 / 3.0)
    return TYPICAL_BOUND * 2.0 * pairs * (1.0 + share) / (share * epsilon)


@search(SearchSpec("svt_pc", "PC by one sparse vector; for many coded columns", error=_predicted_noise))
def svt_pc(
    key,
    data,
    *,
    epsilon: float,
    z: float = Z,
    max_order: int | None = None,
    raise_by: float = 0.0,
    levels=None,
    ledger=None,
) -> Graph:
    """PC by one sparse vector over all questions: exponential noise, threshold never refreshed.

    Each question is the studentised query of `decision_query` in units of its own sensitivity; one that
    fires removes its edge, so at most d(d-1)/2 can fire and the budget never runs out.
    z: threshold in null standard deviations. raise_by: lifts the threshold, in units of the sensitivity
    (`SparseVector.caution(num_queries)` avoids about all false removals and costs power).
    Privacy: epsilon-DP under replace-one; a release key draws lattice noise (docs/theory/sparse_vector.md).
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    error = rounding(records, z)
    sparse = SparseVector(epsilon=epsilon, max_firings=max(1, _num_pairs(records)), error=error)
    _require_certificate(mode, sparse)
    with opened(key, "svt_pc", sparse.cost(Relation.REPLACE_ONE), ledger) as session:
        counts, query = Counts(records), default_query(z, records.num_records)
        state = sparse.init_opened(session.key, raise_by)
        decisions: list[Decision] = []

        values = Values(counts, query.values)

        def ask(questions):
            nonlocal state
            state, answers = until_firing(sparse, state, values.of(questions))
            decisions.extend(map(_decision, questions, answers))
            return answers

        search = find_skeleton(len(records.columns), ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))


def rounding(records: Records, z: float) -> float:
    """Bound on |computed - exact| of every query in float64, from public numbers.

    At most m = min(cells, n/2) strata contribute; a term of U is rounded twice, one of V less than levels + 32
    times, and the root of V + v0 (v0 >= 4) is 1/4-Lipschitz. Queries are divided by their bounds, which are >= 1.
    """
    _check.non_negative(z=z)
    if 0 in records.levels:
        raise ValueError("tables need coded columns, but the data have continuous ones; give test=PartitionGCM(...).")
    strata = min(math.prod(records.levels), records.num_records // 2)
    roundings = (strata + max(records.levels) + 32.0) * (records.num_records + 16.0)
    return roundings * (1.0 + z / 2.0) * UNIT_ROUNDOFF


def _require_certificate(mode: str, sparse: SparseVector) -> None:
    """What would fail in a release fails before it is paid for."""
    if mode == keys.RELEASE:
        sparse.certificate()


@dataclasses.dataclass(frozen=True)
class RoundPlan:
    """Public noise scales of one round of sieve-and-examine, and what it truly costs.

    scale_threshold, scale_query, scale_examine: in units of the queries; of exponential noise in the sieve and Laplace
    noise in the examination (Laplace in both for the published noise). sieve, examine: the
    budgets behind them, 0 for the published noise.
    """

    scale_threshold: float
    scale_query: float
    scale_examine: float
    epsilon: float
    sieve: float = 0.0
    examine: float = 0.0


def corrected_round(
    epsilon: float,
    rate: float | Fraction,
    bound_subset: float,
    bound_full: float,
    sieve_share: float = SIEVE_SHARE,
) -> RoundPlan:
    """Algorithm 1 with every noise scale right: the sieve's scales use the amplified budget epsilon'.

    A share of the budget for the sieve (split 1 : 2^(2/3) between threshold and query), the rest to examine.
    """
    sieve = _check.share(epsilon, sieve_share)
    examine = _check.share(epsilon, 1 - as_fraction(sieve_share))
    base = before_amplification(sieve, rate)
    threshold = base / (1.0 + 2.0 ** (2.0 / 3.0))
    return RoundPlan(
        scale_threshold=bound_subset / threshold,
        scale_query=2.0 * bound_subset / (base - threshold),
        scale_examine=bound_full / examine,
        epsilon=epsilon,
        sieve=base,
        examine=examine,
    )


def kept_threshold(epsilon: float, rounds: int, sieve_share: float = SIEVE_SHARE) -> RoundPlan:
    """All rounds on all rows with one threshold noise: e1 + R e2 for the sieve and R examinations make epsilon.

    Examinations see the sieve through its answers alone, so given the transcript the densities factorise and the
    costs add up, interleaved as they are (docs/theory/sparse_vector.md#refreshing).
    """
    sieve = _check.share(epsilon, sieve_share)
    examine = _check.share(epsilon, (1 - as_fraction(sieve_share)) / rounds)
    threshold, query = (float(scale) for scale in _sieve(sieve, 0.0, rounds).scales())
    return RoundPlan(threshold, query, 1.0 / examine, epsilon, sieve, examine)


def published_round(epsilon: float, num_records: int, subset: int) -> RoundPlan:
    """Algorithm 2 with the sensitivity that the paper claims, and the epsilon that is true for it.

    True cost of a round: the sieve with the real sensitivity 2.09 of Definition 6, amplified, plus examine.
    """
    base = before_amplification(epsilon / 2, subset / num_records)
    threshold, query = 2.0 * paper_claim(subset) / base, 4.0 * paper_claim(subset) / base
    examine = 2.0 * paper_claim(num_records) / epsilon
    loss = PAPER_SENSITIVITY / threshold + 2.0 * PAPER_SENSITIVITY / query
    true = amplified(loss, subset / num_records) + PAPER_SENSITIVITY / examine
    return RoundPlan(threshold, query, examine, true)


def printed_round(algorithm: int, epsilon: float, rate: float) -> float:
    """True epsilon of a round as the paper prints it, where it says epsilon; rate = m/n. Exhibits, never run.

    Algorithm 1, line 4: threshold noise 2 Delta/epsilon instead of 2 Delta/epsilon'. Algorithm 2, line 15: after
    the first round the threshold noise is that of all rows, 2 Delta_n/epsilon', while the sieve's queries move
    by Delta_m = sqrt(n/m) Delta_n (docs/theory/priv_pc.md#printed-rounds). Examine at epsilon/2 in both.
    """
    _check.one_of((1, 2), algorithm=algorithm)
    base = before_amplification(epsilon / 2, rate)
    threshold_loss = epsilon / 2 if algorithm == 1 else base / (2.0 * math.sqrt(rate))
    return amplified(threshold_loss + base / 2, rate) + epsilon / 2


@search(SearchSpec("priv_pc", "Priv-PC: sieve and examine, corrected"))
def priv_pc(
    key,
    data,
    *,
    epsilon: float,
    z: float = Z,
    subset: int | None = None,
    max_rounds: int | None = None,
    tweak: float = 0.0,
    sieve_share: float = SIEVE_SHARE,
    refresh: bool = True,
    max_order: int | None = None,
    variant: str = "corrected",
    levels=None,
    ledger=None,
) -> Graph:
    """Priv-PC: a cheap sieve on a subset finds candidates for removal, each is examined on all rows.

    epsilon is the total, divided over max_rounds (default d(d-1)/2) equal rounds, reserved before the data
    are read. A round ends when the sieve fires, whatever examine says; subset and threshold noise are then
    drawn anew. When the rounds are used up the search stops with complete=False.
    subset: rows of the sieve, default all (sub-sampling saves time, never noise:
    docs/theory/priv_pc.md#rate-of-sub-sampling).
    tweak: t, by which the sieve's threshold is lower, in units of the query's sensitivity. sieve_share: of a round's
    budget, the rest examines. `jaxdp.tune.sieve_settings` chooses both from public guesses.
    refresh=False, on all rows only: the threshold noise is drawn once and the R = max_rounds rounds are one sparse
    vector, e1 + R e2 in the place of R (e1 + e2): a third of the sieve's noise at R = 20
    (docs/theory/sparse_vector.md#refreshing).
    variant="paper": Definition 6 with the claimed 4.5/sqrt(n - 1), the published noise, sub-sampling by
    `jaxdp.tune.subsample_size`; the cost shows the epsilon that is true for it
    (docs/theory/priv_pc.md#published-statistic).
    Privacy: epsilon-DP under replace-one (Theorem 1 with epsilon' in every sieve scale: docs/theory/priv_pc.md#round).
    A release key draws lattice noise and exactly uniform subsets (docs/theory/sparse_vector.md), not for
    variant="paper".
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    _check.one_of(("corrected", "paper"), variant=variant)
    _check.positive(epsilon=epsilon)
    if variant == "paper" and mode == keys.RELEASE:
        raise ValueError("variant='paper' is an exhibit with float noise: give a simulation key, jax.random.key(seed).")
    rounds = max(1, _num_pairs(records)) if max_rounds is None else max_rounds
    _check.at_least(1, max_rounds=rounds)
    _check.in_range(0.0, 1.0, sieve_share=sieve_share)
    if variant == "paper" and (sieve_share != SIEVE_SHARE or not refresh):
        raise ValueError("variant='paper' has its own split and refreshes: leave out sieve_share and refresh.")
    if not refresh and subset not in (None, records.num_records):
        raise ValueError(f"refresh=False keeps one threshold for all rows: leave out subset={subset}.")
    each = _check.share(epsilon, Fraction(1, rounds))
    plan, rate = _plan(variant, each, records.num_records, subset, sieve_share)
    kind: type[_Rounds] = _Rounds if variant == "corrected" else _PublishedRounds
    if not refresh:
        plan, kind = kept_threshold(epsilon, rounds, sieve_share), _RoundsOfOneThreshold
    total = plan.epsilon * rounds if variant == "paper" else float(epsilon)
    error = rounding(records, z)
    if plan.sieve:
        _require_certificate(mode, _sieve(plan.sieve, error, 1 if refresh else rounds))
    cost = Cost(epsilon=total, delta=0.0, rho=total**2 / 2, relation=Relation.REPLACE_ONE)
    method = "priv_pc" if variant == "corrected" else "priv_pc[paper]"
    with opened(key, method, cost, ledger) as session:
        statistic = _studentised(z) if variant == "corrected" else _definition_six(z)
        rounds_run = kind(session.key, records, plan, rate, rounds, tweak, statistic, error)
        decisions: list[Decision] = []

        def ask(questions):
            answers = rounds_run.answers(questions)
            known = [pair for pair in zip(questions, answers, strict=False) if pair[1] is not None]
            decisions.extend(_decision(question, bool(answer)) for question, answer in known)
            return answers

        search = find_skeleton(len(records.columns), ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))


def _sieve(epsilon: float, error: float, firings: int = 1) -> SparseVector:
    """The sieve of one round, or of all that share a threshold: exponential noise, split 1 : (2R)^(2/3)."""
    return SparseVector(epsilon=epsilon, max_firings=firings, error=error)


def _plan(
    variant: str, epsilon: float, num_records: int, subset: int | None, sieve_share: float
) -> tuple[RoundPlan, float | Fraction]:
    if variant == "paper" and subset is None:
        from jaxdp import tune

        subset = max(2, math.ceil(float(tune.subsample_size(num_records, epsilon))))
    subset = num_records if subset is None else subset
    _check.at_least(1, subset=subset)
    if subset > num_records:
        raise ValueError(f"subset must be at most the {num_records} records, got {subset}.")
    if variant == "paper":
        return published_round(epsilon, num_records, subset), subset / num_records
    # Queries are divided by their own bounds, so they move by at most 1 on the subset and on all rows.
    rate = Fraction(subset, num_records) if num_records else Fraction(1)
    return corrected_round(epsilon, rate, 1.0, 1.0, sieve_share), rate


def _studentised(z: float):
    return lambda rate: lambda tables, asked: default_query(z, tables.num_records, float(rate)).values(tables, asked)


def _definition_six(z: float):
    """The paper's query, z - |tau|, >= 0 where the columns look independent."""

    def values(tables, questions: Sequence[Question]) -> np.ndarray:
        result = np.zeros(len(questions))
        for positions, batch in batches(tables, questions):
            strata = concordance.strata_of_table(batch, kendall_only=True)
            result[positions] = z - np.abs(concordance.paper_statistic(strata))
        return result

    return lambda rate: values


class _Rounds:
    """The rounds of one search: the subset and noisy threshold in force, and how many rounds are left."""

    def __init__(
        self, key, records: Records, plan: RoundPlan, rate, rounds: int, tweak: float, statistic, error: float
    ):
        self._key, self._records, self._plan, self._rate = key, records, plan, rate
        self._counts, self._statistic, self._tweak, self._error = Counts(records), statistic, tweak, error
        self._left, self._drawn, self._firings = rounds, 0, 1
        self._full = self._subset = Values(self._counts, statistic(1.0))
        self._start_round()

    def answers(self, questions: Sequence[Question]) -> list[bool | None]:
        """Whether to remove the edge of each question, up to the first firing; None once every round is used up."""
        if self._left == 0:
            return [None]
        answers: list[bool | None] = [*self._sieved(self._subset.of(questions))]
        if answers[-1]:
            fired = len(answers) - 1
            # from a joint table the queries of all questions cost as much as one, and the next firings need them
            near = slice(fired, fired + 1) if self._counts.can_pad else slice(0, None)
            value = self._full.of(questions[near])[fired - (near.start or 0)]
            answers[-1] = self._examine(float(value)) >= 0.0
            self._left -= 1  # a round is paid for by the firing, also where examine says no
            if self._left:
                self._start_round()
        return answers

    def _start_round(self) -> None:
        self._draw_threshold()
        if self._rate < 1:
            size = round(self._rate * self._records.num_records)
            drawn = self._counts.subset(self._subset_key(), size, self._records)
            self._subset = Values(drawn, self._statistic(self._rate))

    def _subset_key(self):
        return self._next_key()

    def _draw_threshold(self) -> None:
        self._sieve = _sieve(self._plan.sieve, self._error, self._firings)
        start = _START if self._compiles() else SparseVector.init_opened
        self._state = start(self._sieve, self._next_key(), -self._tweak)

    def _sieved(self, values: np.ndarray) -> list[bool]:
        """Answers of the sieve up to the first True."""
        self._state, answers = until_firing(self._sieve, self._state, values)
        return answers

    def _examine(self, value: float) -> float:
        return self._laplace(self._plan.examine, value)

    def _laplace(self, epsilon: float, value: float) -> float:
        """The value, which moves by at most 1, with Laplace noise."""
        end = 16.0 * (self._records.num_records + 16.0)
        one = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, self._error, -end, end)
        perturb = _PERTURB if self._compiles() else Laplace.perturb
        return float(perturb(Laplace(epsilon), self._next_key(), jnp.asarray(value, float), one))

    def _next_key(self):
        return _FOLD_IN(self._key, self._next_number())

    def _next_number(self) -> int:
        self._drawn += 1
        return self._drawn

    def _compiles(self) -> bool:
        """A release needs its budgets concrete, and a tape every value."""
        return keys.mode_of(self._key) == keys.SIMULATION and not tape.is_open()


class _RoundsOfOneThreshold(_Rounds):
    """Rounds on all rows that share one noisy threshold: one sparse vector that may fire once a round."""

    def _draw_threshold(self) -> None:
        if self._drawn == 0:
            self._firings = self._left
            super()._draw_threshold()


class _PublishedRounds(_Rounds):
    """Rounds with the noise scales that the paper prints; simulations only."""

    def _draw_threshold(self) -> None:
        noise, self._key_of_subset = _published_draws(self._key, self._next_number())
        first, self._examination, *queries = np.asarray(noise, float).tolist()
        self._threshold, self._ahead = self._plan.scale_threshold * first, np.array(queries)

    def _subset_key(self):
        return self._key_of_subset

    def _sieved(self, values: np.ndarray) -> list[bool]:
        noise, self._ahead = self._ahead[: len(values)], self._ahead[len(values) :]
        if len(noise) < len(values):
            noise = np.asarray(_published_draws(self._key, self._next_number())[0], float)[: len(values)]
        fired = values + self._plan.scale_query * noise >= self._threshold - self._tweak
        return fired[: int(np.argmax(fired)) + 1 if fired.any() else None].tolist()

    def _examine(self, value: float) -> float:
        return value + self._plan.scale_examine * self._examination


@jax.jit
def _published_draws(key, number):
    """Laplace noise of scale 1 for one round (threshold, examination, queries ahead), and the key of its subset."""
    key_noise, key_subset = jax.random.split(jax.random.fold_in(key, number))
    return draw.laplace(key_noise, (2 + AHEAD,)), key_subset


def _num_pairs(records: Records) -> int:
    d = len(records.columns)
    return d * (d - 1) // 2


def _decision(question: Question, independent: bool) -> Decision:
    i, j, given = question
    return Decision(i, j, given, independent)

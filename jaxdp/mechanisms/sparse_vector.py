"""Sparse vector: many threshold queries, paid for by the number that fire. `init`/`step` pairs.

Theory: docs/theory/sparse_vector.md. Symbols: rho = threshold noise (budget e1, scale b1), nu =
query noise (budget e2 per yes-answer, scale b2), R = `max_above`. Queries are Delta-Lipschitz (Linf).
"""

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms.law import Law, PureBudget
from jaxdp.noise import certificate, floats, lattice
from jaxdp.noise.source import Source, require_source, source_from_key
from jaxdp.randomness import keys
from jaxdp.randomness.single_use import SingleUse


class SparseVectorState(NamedTuple):
    """What `step` carries: threshold without and with noise, the source, how many queries fired and were asked.

    In a release both thresholds are integers, in lattice steps.
    """

    center: jax.Array
    threshold: jax.Array
    source: Source
    above: jax.Array
    asked: jax.Array


class ReleasedState(SingleUse):
    """The state of a sparse vector in a release: it serves one `step` or `scan`, which returns the next.

    Its thresholds and its key stay secret; it can't be copied, pickled or carried by `lax.scan`.
    above, asked: how many queries were above the threshold and were asked so far, both public.
    """

    __slots__ = ("__sparse", "above", "asked")

    _what = "this state of a sparse vector in a release"
    _way_out = "go on with the state that the last step or scan returned"

    def __init__(self, sparse: "SparseVector", state: SparseVectorState):
        super().__init__(state)
        self.__sparse = sparse
        self.above, self.asked = state.above, state.asked

    def opened_by(self, sparse: "SparseVector", queries) -> SparseVectorState:
        """The state itself, once, for the sparse vector that made it; every public mistake leaves it unused."""
        keys.require_releasable(queries)
        if jnp.result_type(queries) != jnp.float64:
            raise TypeError(f"a release needs float64 queries, got {jnp.result_type(queries)}; don't cast them down.")
        if sparse != self.__sparse:
            raise ValueError("this state was made by a sparse vector with other settings; go on with that one.")
        return self._take()


@frozen_pytree
class SparseVector(PureBudget):
    """Answers "is the query at least the threshold?" with noise, for at most R yes-answers.

    Privacy: e1 + R e2 = epsilon-DP for queries that each move by at most `bound` between neighbours
    (docs/theory/sparse_vector.md#mechanism), any number of no-answers included; queries may depend on earlier answers.
    The cost is fixed before the first query, however few fire. Split e1 : R e2 = 1 : (2R)^(2/3), which minimises
    b1^2 + b2^2. The threshold noise is never refreshed: after each above-threshold answer that would cost R(e1 + e2).
    noise: "exponential", rho ~ Exp(bound/e1) and nu ~ Exp(2 bound/e2) with their means taken off, or
    "laplace" with the same scales (the textbook form; sd larger by sqrt(2)).
    error: bound on |computed - exact| of every query in float64; counts twice on top of `bound`.
    Numerics: simulation keys draw floats; release keys draw geometric noise on a lattice and compare integers, with
    an exact certificate that no-answers never touch (docs/theory/sparse_vector.md#theorem).
    Errors: ValueError where a release has a traced budget or bound, TypeError where its queries aren't float64.
    """

    epsilon: ArrayLike
    bound: ArrayLike = 1.0
    max_above: int = jax.tree.static(default=1)
    noise: str = jax.tree.static(default="exponential")
    error: ArrayLike = 0.0

    def __post_init__(self):
        check.positive(epsilon=self.epsilon, bound=self.bound)
        check.non_negative(error=self.error)
        check.at_least(1, max_above=self.max_above)
        check.one_of(("exponential", "laplace"), noise=self.noise)

    def budgets(self):
        """(e1, e2): threshold budget, and budget per above-threshold answer; e1 + R e2 = epsilon."""
        above_share = (2.0 * self.max_above) ** (2.0 / 3.0)
        threshold = check.budget(self.epsilon) / (1.0 + above_share)
        return threshold, threshold * above_share / self.max_above

    def scales(self):
        """(b1, b2): scales of the threshold noise and of the query noise."""
        threshold, each = self.budgets()
        reach = self.bound + 2.0 * self.error
        return reach / threshold, 2.0 * reach / each

    def init(self, key, threshold=0.0) -> SparseVectorState | ReleasedState:
        """The state before the first query: draws the threshold noise once.

        key: a typed JAX key, or `jaxdp.fresh_key()`, which is spent by it; releases run under `jax.enable_x64(True)`,
        in plain Python, and each of their states serves once.
        """
        mode = keys.admit(key, self, threshold)
        state = self.init_opened(source_from_key(key), threshold)
        return ReleasedState(self, state) if mode == keys.RELEASE else state

    def init_opened(self, source: Source, threshold=0.0) -> SparseVectorState:
        """`init` for a source that an entry point has opened."""
        own, of_queries = source.split()
        center, noisy = self._threshold(own, threshold)
        return SparseVectorState(center, noisy, of_queries, jnp.int32(0), jnp.int32(0))

    def step(self, state, query):
        """Is query >= threshold?, as (next state, answer); always False once R queries have fired.

        A simulation's works in `lax.scan`; a release uses `scan` in its place, and so does an audit with a tape.
        Errors: ValueError for a release's state that has served already, TypeError for one taken apart.
        """
        return self._asked(SparseVector.step_opened, state, query)

    def step_opened(self, state: SparseVectorState, query) -> tuple[SparseVectorState, jax.Array]:
        """`step` on a state of `init_opened`."""
        source = state.source
        ask = _SIMULATED if source.quiet().compiles else SparseVector._ask
        after, fired, key_now = ask(self, state._replace(source=source.quiet()), query)
        fired = self._noted(source, query, key_now, fired)
        return after._replace(source=source.with_noise_of(after.source), above=state.above + fired), fired

    def scan(self, state, queries):
        """`step` on each query (k,) in turn, in one compiled loop: the state after them, and the answers (k,)."""
        return self._asked(SparseVector.scan_opened, state, queries)

    def scan_opened(self, state: SparseVectorState, queries) -> tuple[SparseVectorState, jax.Array]:
        """`scan` on a state of `init_opened`."""

        def one(carried, query):
            carried, fired, _ = self._ask(carried, query)
            return carried._replace(above=carried.above + fired), fired

        source = state.source
        last, fired = jax.lax.scan(one, state._replace(source=source.quiet()), queries)
        fired = self._noted(source, queries, source.key, fired)
        after = last._replace(source=source.with_noise_of(last.source))
        return after._replace(above=state.above + jnp.sum(fired, dtype=jnp.int32)), fired

    def answers(self, key, queries, threshold=0.0):
        """All queries (k,) at once, in order, of the law of `step`: bool (k,), False after R above-threshold answers.

        One program without a loop; the queries can't depend on earlier answers.
        """
        keys.admit(key, self, queries, threshold)
        return self.answers_opened(source_from_key(key), queries, threshold)

    def answers_opened(self, source: Source, queries, threshold=0.0):
        """`answers` for a source that an entry point has opened."""
        require_source(source)
        own, of_queries = source.split()
        center, noisy = self._threshold(own, threshold)
        fired = of_queries.quiet().draw(_Answers(self, center, noisy), queries)
        fired = fired & (jnp.cumsum(fired) <= self.max_above)
        return self._noted(source, queries, of_queries.key, fired)

    def _asked(self, ask, state, queries):
        """What `ask` says of an opened state; the state of a release is opened and spent here."""
        if isinstance(state, ReleasedState):
            after, answers = ask(self, state.opened_by(self, queries), queries)
            return ReleasedState(self, after), answers
        keys.admit(state.source.quiet().key)  # the key of a release's state would serve again and again
        return ask(self, state, queries)

    def _ask(self, state: SparseVectorState, query):
        """The answer, the state but for its count of above-threshold answers, and the key used up."""
        now, later = state.source.split()
        fired = now.draw(_Answers(self, state.center, state.threshold), query)
        fired = fired & (state.above < self.max_above)
        return state._replace(source=later, asked=state.asked + 1), fired, now.key

    def plan(self) -> lattice.SparsePlan:
        """Lattice and certificate of a release, from public numbers. Errors: ValueError where no certificate holds."""
        sensitivity = Sensitivity(self.bound, Norm.LINF, Relation.REPLACE_ONE, self.error)
        return lattice.plan_sparse(sensitivity, self._exact_budgets(), self.max_above, self.noise == "laplace")

    def _exact_budgets(self):
        """`budgets` as fractions that add up to at most epsilon."""
        epsilon = certificate.exact(self.epsilon, "epsilon")
        threshold = epsilon * certificate.exact(self.budgets()[0] / check.budget(self.epsilon), "epsilon")
        return threshold, (epsilon - threshold) / self.max_above

    def _threshold(self, source: Source, threshold):
        """(center, noisy threshold); a tape holds the noisy one."""
        law, threshold = _Threshold(self), jnp.asarray(threshold, float)
        center, noisy = source.quiet().draw(law, threshold)
        return center, source.note(law, threshold, law.parameters(), source.key, noisy)

    def _noted(self, source: Source, queries, key, fired):
        """Answers go on a tape once they are capped: before that they are private."""
        law = _Answers(self)
        return source.note(law, queries, law.parameters(), key, fired)

    def centred(self, key, shape=()):
        """Float noise of scale 1 and mean 0."""
        return floats.laplace(key, shape) if self.noise == "laplace" else floats.exponential(key, shape) - 1.0

    def certificate(self):
        """Exact facts about the noise of a release with this budget (`jaxdp.noise.certificate.Certificate`).

        Errors: ValueError where no certificate holds.
        """
        return self.plan().facts

    def caution(self, num_queries: int):
        """How far to raise the threshold so that about 1/2 of one in num_queries null queries fires: b2 (ln 2Q - 1)."""
        return self.scales()[1] * (math.log(2.0 * max(num_queries, 2)) - 1.0)


_SIMULATED = jax.jit(SparseVector._ask)


@dataclasses.dataclass(frozen=True)
class _Threshold(Law):
    """The noise of the threshold: (center, noisy threshold) of a public threshold, in lattice steps in a release.

    The noisy threshold stays secret. The certificate is that of the whole sparse vector.
    """

    sparse: SparseVector

    name: ClassVar[str] = "sparse_threshold"
    norm: ClassVar[Norm] = Norm.LINF

    def float_draw(self, key, value, sensitivity=None):
        center = jnp.asarray(value, float)
        return center, center + self.sparse.scales()[0] * self.sparse.centred(key)

    def lattice_draw(self, key, value, sensitivity=None):
        plan = self.sparse.plan()
        return lattice.sparse_threshold(key, value, plan), plan.facts

    def parameters(self, sensitivity=None) -> tuple:
        return self.sparse.bound + 2.0 * self.sparse.error, *self.sparse.budgets()


@dataclasses.dataclass(frozen=True)
class _Answers(Law):
    """Whether each query, (k,) or (), with fresh noise reaches the noisy threshold; to be capped before its release."""

    sparse: SparseVector
    center: Any = None
    noisy: Any = None

    name: ClassVar[str] = "sparse_answer"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity=None):
        queries = jnp.asarray(value, float)
        return queries + self.sparse.scales()[1] * self.sparse.centred(key, queries.shape) >= self.noisy

    def lattice_draw(self, key, value, sensitivity=None):
        given = self.center, self.noisy, self.sparse.plan()
        if jnp.ndim(value) == 0:  # one small program: searches ask thousands in turn
            return (_ONE_ANSWER(key, jnp.reshape(value, (1,)), *given)[0],)
        return (lattice.sparse_answers(key, value, *given),)

    def parameters(self, sensitivity=None) -> tuple:
        return self.sparse.bound + 2.0 * self.sparse.error, self.sparse.epsilon


_ONE_ANSWER = jax.jit(lattice.sparse_answers, static_argnums=4)


def exponential_gap_tail(x, scale_threshold, scale_query):
    """P(Exp(b2) - Exp(b1) >= x) for uncentred exponential noise of means b1 (threshold), b2 (query).

    docs/theory/sparse_vector.md#gap-tails.
    """
    b1, b2 = scale_threshold, scale_query
    above = b2 / (b1 + b2) * jnp.exp(-jnp.maximum(x, 0.0) / b2)
    below = 1.0 - b1 / (b1 + b2) * jnp.exp(jnp.minimum(x, 0.0) / b1)
    return jnp.where(x >= 0, above, below)

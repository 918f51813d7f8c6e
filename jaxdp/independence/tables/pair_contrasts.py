"""PairContrasts: every pair of many columns of any kind by one joint release of sums of products of -1 and 1.

Symbols: M = released sums, T = the sums of a pair less what independence gives (docs/theory/pair_contrasts.md).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateTest, Relation, Sensitivity, Sequential
from jaxdp.data.dataset import Column
from jaxdp.independence import effect_sizes
from jaxdp.independence.tables import class_choice, cramers_v
from jaxdp.independence.tables.class_choice import HALVES, QUARTERS, ClassChoice, Classing, classing
from jaxdp.independence.tables.noisy_table import multinomial_by_binomials
from jaxdp.mechanisms import MaxNorm
from jaxdp.spec import Columns, TestSpec, one_of_each
from jaxdp.statistics import partition, sums
from jaxdp.statistics.tables import contrasts

CHOICE_SHARE = 0.15  # of the budget, for the classes of all columns (docs/theory/pair_contrasts.md#shares)
FINE_BELOW = 0.5  # of noise to sampling sd, up to which four classes are sharper than two
# A p-value above 100 over the number of null tables it is a rank among is not ranked among ten times as many: of many
# pairs few need as many tables as the adjustment asks for (docs/theory/pair_contrasts.md#draws).
FIRST_DRAWS, CLEAR = 999, 100.0
EFFECT_DRAWS = 999  # of the null, for the interval of a pair of several contrasts
STEPS = 24  # of a bisection


@frozen_pytree
class PairContrasts(PrivateTest):
    """Private test of every pair i < j of the columns of x (n, d), of any kinds, by one joint release.

    First 15 % of the budget puts each column into two classes (four where the noise is small), about equally full
    (`ClassChoice`); a few unordered levels stay apart. Then all sums over records of the contrasts of -1 and 1 between
    classes, and of their products for two columns, are released together.
    Sensitivity: choice 1 in Linf for each cut; sums 2 in Linf, 2 sqrt(`contrasts.moved`) in L2, replace-one.
    Privacy: epsilon-DP by `MaxNorm`, whose noise grows with the number of sums, M/sqrt(3) times the bound of one, or
    rho-zCDP with mechanism=Gaussian(rho), whose noise grows as the root of the pairs; adaptive composition.
    P-values, one a pair: the quadratic form of T and, for two ordered columns of several classes, its linear part,
    ranked among `num_null` tables (fewer where it is not small) drawn from the noisy margins with fresh noise of the
    same law. Given the classes each is exact up to the error of the noisy margins (measured level:
    docs/theory/pair_contrasts.md#level).
    Sees whether halves (or quarters) of columns go together; with two classes no dependence that leaves halves alone.

    classes: about how many for each column, 2 or 4; default by a public rule of n, the budget and the columns.
    reference: as in `QuantileTable`. y of the data is not read.
    """

    num_null: int = jax.tree.static(default=999)
    classes: int | None = jax.tree.static(default=None)
    reference: Any = None
    classings: Any = jax.tree.static(default=None)  # tuple of Classing, of a resolved test
    choices: Any = None

    many_columns: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="pair-contrasts",
        summary="every pair of many columns of any kind by one joint release; the default of all pairs without Z",
        columns=Columns.CODES,
        alternatives="dependence between halves of two columns, or between quarters and levels at large budgets",
        effect="phi coefficient of two halves, or Cramer's V of several classes",
        accepts=lambda domain: one_of_each(domain) and not domain.z,
        needs=("columns",),
        theory="docs/theory/pair_contrasts.md",
    )
    default_mechanism = MaxNorm
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        check.at_least(19, num_null=self.num_null)
        check.one_of((None, HALVES, QUARTERS), classes=self.classes)

    def specialize(self, shapes):
        """The choice of the classes, then the sums."""
        if self.classings is not None:
            return self
        if shapes.z is not None or len(shapes.x.shape) != 2 or shapes.x.shape[1] < 2:
            raise ValueError("PairContrasts takes x of shape (n, d), d >= 2, and no z.")
        columns = (Column(),) * shapes.x.shape[1] if shapes.domain is None else shapes.domain.x
        whole = self.mechanism_in_force()
        made = self.classed(columns, shapes.x.shape[0])
        cut = sum(one.cuts for one in made)
        reference = partition.default_reference(shapes) if self.reference is None else self.reference
        fields = {"classings": made, "reference": reference, "choices": (None,) * len(made), "epsilon": None}
        if not cut:
            return dataclasses.replace(self, mechanism=whole, **fields)
        second = dataclasses.replace(self, mechanism=whole.share(1.0 - CHOICE_SHARE), **fields)
        first = ClassChoice(mechanism=whole.share(CHOICE_SHARE), classings=made, reference=reference)
        return Sequential(first=first, second=second, then=_on_choice)

    def classed(self, columns, num_records: int) -> tuple[Classing, ...]:
        """The classes of such columns, public: about four a column where the noise allows it, else two."""
        fine, coarse = (tuple(classing(column, most) for column in columns) for most in (QUARTERS, HALVES))
        if self.classes is not None:
            return fine if self.classes == QUARTERS else coarse
        known = all(
            check.is_concrete(leaf) and np.ndim(leaf) == 0 for leaf in jax.tree.leaves(self.mechanism_in_force())
        )
        small = known and noise_ratio(self.mechanism_in_force(), fine, num_records) <= FINE_BELOW
        return fine if small else coarse

    def effect_names(self, columns, num_records: int) -> list[str]:
        """What the effect of each pair is, in the order of `interpret`: public."""
        counts = [one.classes for one in self.classed(columns, num_records)]
        pairs = [(counts[i], counts[j]) for i, j in zip(*np.triu_indices(len(counts), k=1), strict=True)]
        return [
            f"{'phi coefficient' if pair == (HALVES, HALVES) else cramers_v.NAME} of {pair[0]} by {pair[1]} classes"
            for pair in pairs
        ]

    def statistic(self, key, data):
        """The sums (M,), in the order of `contrasts.places`."""
        signs = self._signs(data)
        return self._picked(jnp.matmul(signs.T, signs, precision="highest"))

    def partial(self, chunk, num_records=None):
        """All sums of products of a chunk."""
        count = len(chunk.x) if num_records is None else num_records
        return sums.added(self, "signs", chunk, count, lambda signs: signs.astype(np.int64).T @ signs.astype(np.int64))

    def signs(self, data, num_records):
        """1 and the contrasts of every record."""
        return self._signs(data)

    def finish(self, totals):
        return self._picked(totals.astype(float))

    def _signs(self, data):
        parts = [jnp.ones((data.x.shape[0], 1), float)]
        for j, (one, choice) in enumerate(zip(self.classings, self.choices, strict=True)):
            made = jnp.asarray(contrasts.matrix(one.classes), float)
            parts.append(made[class_choice.classes_of(one, data.x[:, j], choice, self.reference)])
        return jnp.concatenate(parts, axis=1)

    def _picked(self, gram):
        rows, columns = contrasts.places(self._counts)
        return gram[rows, columns]

    @property
    def _counts(self) -> tuple[int, ...]:
        return tuple(one.classes for one in self.classings)

    def sensitivity(self, num_records):
        return sums_move(self.mechanism_in_force(), self.classings, num_records)

    def interpret(self, key, release):
        """Of each pair, (pairs,) in the order of `numpy.triu_indices`: p-value, and the quadratic form of T, which is
        about chi-squared under independence; phi of two halves with its interval, else Cramer's V with its lower end
        and 1.

        All by the same draws: a pair of halves has an interval without 0 exactly where p is at most 0.05. No interval
        (NaN) of a pair where it and the p-value would contradict each other; no V (NaN) where noise hides the rarest
        cells.
        """
        p_value, quadratic, (effect, *interval) = self._by_pair(release)
        return Interpretation(p_value, quadratic, effect, effect_sizes.agreeing(interval, p_value))

    def _by_pair(self, release):
        """`_interpreted` of every pair; pairs of one kind share a program."""
        values, counts, total = jnp.asarray(release.value, float), self._counts, 1.0 * release.num_records
        singles = np.cumsum([0, *(count - 1 for count in counts)])
        means = [values[singles[k] : singles[k + 1]] / total for k in range(len(counts))]
        number = len(counts) * (len(counts) - 1) // 2
        law = _Noise(self.mechanism_in_force(), release.sensitivity, values.size, self.num_null)
        # draws of its own for every release, and the same for its p-values and intervals: these then agree
        root = jax.random.fold_in(jax.random.key(NULL_STREAM, impl="threefry2x32"), _bits(values))
        kinds: dict[tuple, list] = {}
        place = int(singles[-1])
        for pair, (i, j) in enumerate(zip(*np.triu_indices(len(counts), k=1), strict=True)):
            size = (counts[i] - 1, counts[j] - 1)
            products = values[place : place + size[0] * size[1]].reshape(size)
            place += size[0] * size[1]
            ordered = self.classings[i].ordered and self.classings[j].ordered
            kinds.setdefault((counts[i], counts[j], ordered), []).append((pair, products, means[i], means[j]))
        found: list = [None] * number
        for kind, pairs in kinds.items():
            places, *stacked = zip(*pairs, strict=True)
            # words, not keys, go through the loop, as in `multinomial_by_binomials`
            words = jax.vmap(lambda pair: jax.random.key_data(jax.random.fold_in(root, pair)))(jnp.array(places))
            asked = tuple(jnp.stack(part) for part in stacked)

            def one(inputs, kind=kind):
                own, (products, first, second) = inputs
                key = jax.random.wrap_key_data(own, impl="threefry2x32")
                return _interpreted(_Pair(kind, total, products, first, second, law), key)

            told = jax.lax.map(one, (words, asked))
            for number_in_kind, pair in enumerate(places):
                found[pair] = jax.tree.map(lambda part, place=number_in_kind: part[place], told)
        return jax.tree.map(lambda *parts: jnp.stack(parts), *found)


PATH_STREAM = 11  # of the tables of dependent columns
NULL_STREAM = 7  # of the draws of null tables, which a fold of the released sums makes one of its own each


def _on_choice(test, query, released):
    return dataclasses.replace(test, choices=class_choice.chosen(query.classings, released.value))


def _bits(values):
    """A number that differs from release to release, from released values alone; rounding does not change it."""
    return jnp.round(jnp.sum(values)).astype(jnp.int32)


def sums_move(mechanism, classings, num_records: int) -> Sensitivity:
    """The sensitivity of all sums in the norm of the mechanism."""
    moved = contrasts.moved(tuple(one.classes for one in classings))
    bound = {Norm.LINF: 2.0, Norm.L2: 2.0 * math.sqrt(moved) * (1.0 + 2.0**-50), Norm.L1: 2.0 * moved}[mechanism.norm]
    return Sensitivity(bound, mechanism.norm, Relation.REPLACE_ONE, lower=-1.0 * num_records, upper=1.0 * num_records)


def noise_variance(mechanism, classings, num_records: int) -> float:
    """Variance of the noise of one sum."""
    bound = sums_move(mechanism, classings, num_records)
    among = contrasts.released([one.classes for one in classings])
    given = {"among": among} if isinstance(mechanism, MaxNorm) else {}
    with jax.enable_x64(True), jax.ensure_compile_time_eval():  # public numbers, also inside a compiled program
        return float(np.asarray(mechanism.variance(bound, **given)))


def noise_ratio(mechanism, classings, num_records: int) -> float:
    """Sd of the noise of a sum over that of sampling, sqrt(n)."""
    return math.sqrt(noise_variance(mechanism, classings, num_records) / num_records)


@dataclasses.dataclass(frozen=True)
class _Noise:
    """The noise of a release, for null draws. among: how many sums share it."""

    mechanism: Any
    sensitivity: Any
    among: int
    draws: int

    def variance(self):
        given = {"among": self.among} if isinstance(self.mechanism, MaxNorm) else {}
        return self.mechanism.variance(self.sensitivity, **given)

    def drawn(self, key, count: int):
        """(draws, count)."""
        given = {"among": self.among} if isinstance(self.mechanism, MaxNorm) else {}
        return self.mechanism.noise(key, self.sensitivity, (self.draws, count), **given)


@dataclasses.dataclass(frozen=True)
class _Pair:
    """The released sums of one pair. kind: classes of both, and whether both are ordered."""

    kind: tuple[int, int, bool]
    total: Any
    products: Any
    first: Any
    second: Any
    noise: _Noise

    @property
    def shares(self):
        """Noisy margins."""
        return tuple(
            contrasts.probabilities(means, count)
            for means, count in zip((self.first, self.second), self.kind[:2], strict=True)
        )

    def excess(self):
        """T (k, l)."""
        return self.products - self.total * self.first[:, None] * self.second[None, :]

    def spread(self):
        """Covariance (kl, kl) of T under independence, noise included."""
        sampling, means = [], []
        for share, count in zip(self.shares, self.kind[:2], strict=True):
            made = jnp.asarray(contrasts.matrix(count), float)
            mean = share @ made
            means.append(mean[:, None] * mean[None, :])
            sampling.append(made.T @ (share[:, None] * made) - means[-1])
        ones = [jnp.eye(count - 1) for count in self.kind[:2]]
        noise = jnp.kron(ones[0], ones[1]) + jnp.kron(ones[0], means[1]) + jnp.kron(means[0], ones[1])
        return self.total * jnp.kron(*sampling), self.noise.variance() * noise

    def null_excess(self, key):
        """T of `draws` tables of independent columns with these margins and fresh noise, (draws, k, l)."""
        key_counts, key_noise = jax.random.split(key)
        first, second = self.shares
        made = [jnp.asarray(contrasts.matrix(count), float) for count in self.kind[:2]]
        chances = jnp.ravel(first[:, None] * second[None, :])
        tables = multinomial_by_binomials(key_counts, self.total, chances, self.noise.draws)
        tables = tables.reshape(self.noise.draws, *self.kind[:2])
        rows, columns = (count - 1 for count in self.kind[:2])
        both = rows * columns
        noise = self.noise.drawn(key_noise, both + rows + columns)
        products = jnp.einsum("bij,ik,jl->bkl", tables, *made) + noise[:, :both].reshape(-1, rows, columns)
        row_means = (tables.sum(2) @ made[0] + noise[:, both : both + rows]) / self.total
        column_means = (tables.sum(1) @ made[1] + noise[:, both + rows :]) / self.total
        return products - self.total * row_means[:, :, None] * column_means[:, None, :]

    def path(self, key, draws: int) -> cramers_v.Path:
        """The laws of dependence along T, t = 1 at T itself; noisy tables of each, of the same random numbers."""
        key_counts, key_noise = jax.random.split(key)
        first, second = self.shares
        left, right = (np.linalg.inv(_basis(count)) for count in self.kind[:2])
        rows, columns = (count - 1 for count in self.kind[:2])
        both = rows * columns
        noise = dataclasses.replace(self.noise, draws=draws).drawn(key_noise, both + rows + columns)
        sums = jnp.zeros((draws, rows + 1, columns + 1))
        sums = sums.at[:, 1:, 1:].set(noise[:, :both].reshape(-1, rows, columns))
        sums = sums.at[:, 1:, 0].set(noise[:, both : both + rows]).at[:, 0, 1:].set(noise[:, both + rows :])
        departure = left.T[:, 1:] @ (self.excess() / self.total) @ right[1:]
        normals = jax.random.normal(key_counts, (draws, *self.kind[:2]))
        noise = jnp.einsum("bkl,ki,lj->bij", sums, left, right)
        product, variance = first[:, None] * second[None, :], self.cell_variance()
        sized = functools.partial(_sizes, self, variance)
        return cramers_v.Path(product, departure, self.total, variance, normals, noise, sized)

    def cell_variance(self):
        """Of the noise of a cell (k + 1, l + 1), the margins as they are."""
        left, right = ((np.linalg.inv(_basis(count))[1:] ** 2).sum(0) for count in self.kind[:2])
        return self.noise.variance() * np.outer(left, right)

    def hides(self):
        """Whether noise hides the rarest cells far more than others, as in single tables."""
        first, second = self.shares
        return cramers_v.hidden_cells(self.total * first[:, None] * second[None, :], self.cell_variance())

    def table(self):
        """The noisy table (k + 1, l + 1), in which the released sums are a basis."""
        left, right = (np.linalg.inv(_basis(count)) for count in self.kind[:2])
        means = [jnp.concatenate([jnp.ones(1), mean]) for mean in (self.first, self.second)]
        moments = (self.total * means[0][:, None] * means[1][None, :]).at[1:, 1:].set(self.products)
        return left.T @ moments @ right


def _basis(count: int) -> np.ndarray:
    """(1, C), (count, count)."""
    return np.insert(contrasts.matrix(count), 0, 1, axis=1).astype(float)


def _sizes(pair: _Pair, variance, tables):
    """No corner, and of noisy tables (m, r, c): chi-squared by their own margins; the correlation of ordered scores."""
    rows, columns = jnp.sum(tables, axis=2), jnp.sum(tables, axis=1)
    away = tables - rows[:, :, None] * columns[:, None, :] / pair.total
    expected = jnp.maximum(rows, 0.0)[:, :, None] * jnp.maximum(columns, 0.0)[:, None, :] / pair.total
    quadratic = jnp.sum(away**2 / (expected + variance[None]), axis=(1, 2))
    if not pair.kind[2]:
        return None, quadratic[None]
    scores = [contrasts.matrix(count) @ contrasts.line(count) for count in pair.kind[:2]]
    spreads = [
        jnp.maximum(part @ score**2 - (part @ score) ** 2 / pair.total, 1.0)
        for part, score in zip((rows, columns), scores, strict=True)
    ]
    linear = jnp.abs(jnp.einsum("bij,i,j->b", away, *scores)) / jnp.sqrt(spreads[0] * spreads[1])
    return None, jnp.stack([quadratic, linear])


def _forms(pair: _Pair, excess):
    """The statistics (1 or 2, draws) of T (draws, k, l): the quadratic form, and the linear one of ordered classes."""
    sampling, noise = pair.spread()
    whole = sampling + noise + 1e-9 * pair.total * jnp.eye(sampling.shape[0])
    flat = excess.reshape(excess.shape[0], -1)
    quadratic = jnp.sum(flat * jnp.linalg.solve(whole, flat.T).T, axis=1)
    if not pair.kind[2] or excess.shape[1] * excess.shape[2] == 1:
        return quadratic[None]
    weights = [jnp.asarray(contrasts.line(count), excess.dtype) for count in pair.kind[:2]]
    return jnp.stack([quadratic, jnp.abs(jnp.einsum("bkl,k,l->b", excess, *weights))])


def _interpreted(pair: _Pair, key):
    """p-value, T' V^-1 T of the release, and (estimate, low, high); all of them by the same draws."""
    return _staged(pair, key, FIRST_DRAWS)


def _staged(pair: _Pair, key, draws: int):
    """By so many draws, or by more of its own where the p-value is small for these."""
    if pair.noise.draws <= draws:
        return _among_drawn(pair, key)
    own, key_more = jax.random.split(key)
    found = _among_drawn(dataclasses.replace(pair, noise=dataclasses.replace(pair.noise, draws=draws)), own)
    more = 10 * draws + 9
    return jax.lax.cond(found[0] > CLEAR / (draws + 1), lambda: found, lambda: _staged(pair, key_more, more))


def _among_drawn(pair: _Pair, key):
    null = pair.null_excess(key)
    forms = _forms(pair, jnp.concatenate([pair.excess()[None], null]))
    halves = null.shape[1] * null.shape[2] == 1
    ends = _phi(pair, null) if halves else _cramer(pair, null, forms, jax.random.fold_in(key, PATH_STREAM))
    return null_laws.smallest_rank(forms), forms[0, 0], tuple(ends)


def _ranks(forms):
    """The share of all that reaches each statistic of the release, and below which one makes the p-value 0.05 or less.

    forms: (k, 1 + m), as `null_laws.smallest_rank` takes them.
    """
    count = forms.shape[1]
    reached = jax.vmap(lambda row: count - jnp.searchsorted(jnp.sort(row), row, side="left"))(forms)
    smallest = jnp.sort(jnp.min(reached[:, 1:], axis=0))
    return reached[:, 0] / count, smallest[max(math.floor(0.05 * count) - 1, 0)] / count


def _phi(pair: _Pair, null):
    """Phi of two halves, and the values that a test by this release would not reject.

    Of covariance c per record the variance of T is n (s^2 t^2 + 4 mu nu c - c^2) plus that of the noise, exactly for -1
    and 1; the limit is that of the p-value, in sds, so that 0 is left out exactly where that is at most 0.05.
    """
    n = pair.total
    (first,), (second,) = (2.0 * share[1:] - 1.0 for share in pair.shares)
    scale = jnp.sqrt(jnp.maximum((1.0 - first**2) * (1.0 - second**2), 1.0 / n))
    sampling, noise = (part[0, 0] for part in pair.spread())
    found = pair.excess()[0, 0]
    # the smallest |T| with a p-value of at most 0.05 by `smallest_rank`
    allowed = jnp.floor(0.05 * (null.shape[0] + 1)).astype(int)
    limit = jnp.sort(jnp.abs(null[:, 0, 0]))[null.shape[0] - jnp.maximum(allowed, 1)]
    ratio = limit**2 / (sampling + noise)
    # (T - n c)^2 <= ratio (n s^2 t^2 + 4 n mu nu c - n c^2 + noise) for c between the roots
    a = n**2 + ratio * n
    b = n * found + 2.0 * ratio * n * first * second
    c = found**2 - ratio * (sampling + noise)
    root = jnp.sqrt(jnp.maximum(b**2 - a * c, 0.0))
    ends = jnp.stack([found / n, (b - root) / a, (b + root) / a]) / scale
    return jnp.clip(ends, -1.0, 1.0)


def _cramer(pair: _Pair, null, forms, key):
    """Cramer's V less what noise and chance add to its square, its lower end at 0.05, and 1.

    The end is the V of the last law towards T of whose tables few enough reach the released one, by the limit that the
    smaller of two ranks has in the p-value: counts of rare levels vary more under a dependence than without one.
    All NaN where noise hides the rarest cells: divided by their expected counts, it would be most of V.
    """
    few = null[:EFFECT_DRAWS]
    sampling, _ = pair.spread()
    size = min(pair.kind[:2]) - 1.0
    bare = sampling * pair.total + 1e-9 * pair.total**2 * jnp.eye(sampling.shape[0])

    def square(excess):
        flat = excess.reshape(excess.shape[0], -1)
        return jnp.sum(flat * jnp.linalg.solve(bare, flat.T).T, axis=1)

    raw = square(pair.excess()[None])[0]
    estimate = jnp.sqrt(jnp.clip((raw - jnp.mean(square(few))) / size, 0.0, 1.0))
    path = pair.path(key, len(few))
    (released,) = path.statistics(pair.table()[None])

    def reached(part):
        (drawn,) = path.statistics(path.tables(part))
        return (1.0 + jnp.sum(drawn >= released, axis=1)) / (1.0 + len(few)) >= limit

    def step(ends, _):
        low, high = ends
        middle = 0.5 * (low + high)
        above = jnp.diagonal(jax.vmap(reached)(middle))
        return (jnp.where(above, low, middle), jnp.where(above, middle, high)), None

    rows = forms.shape[0]
    ranks, limit = _ranks(forms)
    (low, _), _ = jax.lax.scan(step, (jnp.zeros(rows), jnp.ones(rows)), None, STEPS)
    # 0 is left out by the tables of the p-value, where that is at most 0.05
    ends = jnp.where(ranks < limit, jnp.maximum(jax.vmap(path.size)(low), 0.5**STEPS), 0.0)
    # scores know V by the released ratio of both alone, whose error they do not count: only where chi-squared has none
    low = jnp.where(ends[0] > 0.0, ends[0], ends[-1])
    ends = jnp.stack([estimate, jnp.clip(jnp.minimum(low, estimate), 0.0, 1.0), jnp.ones_like(estimate)])
    return jnp.where(pair.hides(), jnp.nan, ends)

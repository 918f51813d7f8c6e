"""What authors subclass: queries and tests with their hooks, and the protocols of mechanisms."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.chunks import Chunks, RowsOfDraws
from jaxdp.data.person_rows import PersonRows, draws_of
from jaxdp.noise.source import Source
from jaxdp.privacy import Cost, Norm, Relation
from jaxdp.results import Interpretation, Release, bare

if TYPE_CHECKING:
    from jaxdp.spec import TestSpec


@runtime_checkable
class Mechanism(Protocol):
    """Releases a statistic with noise; built from its budget, calibrated by a sensitivity. Every mechanism offers this.

    A mechanism is a frozen pytree (`jaxdp.private_test` makes one). It is a law of noise, a `jaxdp.mechanisms.law.Law`,
    or draws by others from the source it is given, as in `jaxdp.Laplace(epsilon).perturb(source, value, sensitivity)`;
    several draws take `source.split(count)`. In a release a draw leaves a certificate; without one nothing is released.
    A class with `private = False` adds no noise, and only simulations may run it.
    """

    def perturb(self, source: Source, value, sensitivity):
        """A noisy `value`; `sensitivity` bounds its change between neighbours."""

    def cost(self, relation: Relation) -> Cost:
        """What one `perturb` costs, known without data."""
        ...

    def share(self, fraction):
        """The mechanism that a fraction of this budget buys, rounded down so that shares never add up to more.

        Needed by tests of several parts or stages, and by `jaxdp.all_pairs`.
        """


@runtime_checkable
class AdditiveMechanism(Mechanism, Protocol):
    """A mechanism that adds independent noise of a known law, so that a null can carry the same noise.

    Needed by tests whose p-value draws its null (`num_null`), such as PartitionGCM with regions.
    """

    norm: ClassVar[Norm]  # of the bounds of sensitivities that it takes

    def noise(self, key, sensitivity, shape=()):
        """Draws of the noise alone, public post-processing."""

    def scale(self, sensitivity):
        """Scale of the noise for this sensitivity."""


@runtime_checkable
class NullMechanism(AdditiveMechanism, Protocol):
    """An additive mechanism with the law of a normal statistic plus its noise, so that p-values are exact for it.

    Needed by tests of one noisy normal statistic: PartitionGCM, BandGCM, ContrastGCM, PrivateGCM, CRTNormal, the rank
    tests. `Laplace`, `Gaussian` and `Exact` offer it.
    """

    def variance(self, sensitivity):
        """Variance of the noise for this sensitivity."""

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|)."""

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for noise of this variance in sd^2, so that `null_p_value` keeps its level."""


NO_SUM = "its statistic is no sum over records"


@frozen_pytree
class PrivateQuery:
    """A statistic with a sensitivity and a mechanism. Subclasses add `statistic` and `sensitivity`.

    epsilon: budget of the default mechanism (leaf; a sweep does not recompile).
    mechanism: replaces the default mechanism. Exactly one of the two is given.
    """

    epsilon: Any = None  # ArrayLike; None when `mechanism` is given
    mechanism: Any = None

    default_mechanism: ClassVar[type | None] = None  # what `epsilon` buys where `mechanism` is not given
    spec: ClassVar[TestSpec | None] = None  # what commands read; a query without one is for Python alone
    method: ClassVar[str] = ""  # name of a query without a spec, in results and ledgers
    one_program: ClassVar[bool] = True  # False: the statistic compiles its own parts, to use all cores or show progress
    many_columns: ClassVar[bool] = False  # True: x and y may both have more columns than records
    lattice: ClassVar[float] = 0.0  # largest difference between `finish` and `statistic`, per record
    public_columns: ClassVar[tuple[str, ...]] = ()  # columns whose values, not only shapes, are public to this test
    reads_missing: ClassVar[bool] = False  # True: NaN has a meaning; else `statistic` gets finite numbers
    leaves_out_missing: ClassVar[bool] = False  # True: records whose x or y is NaN add nothing to what it finds
    uses_z: ClassVar[bool] = False  # True: the statistic conditions on `data.z`; data with a z are refused otherwise
    cuts_z: ClassVar[bool] = False  # True: columns of z are cut into cells, and too coarse ones are refused
    averages_rows: ClassVar[bool] = False  # True: the null law holds for a mean over draws of one row per person
    leaves_out_clipped_z: ClassVar[bool] = False  # True: records whose z lies outside its bounds do not count
    settled_by: ClassVar[Callable[[Any], Mapping[str, Any]] | None] = None  # values of the public column -> fields
    gradient_free: ClassVar[str] = ""  # why the p-value has no gradient in any number, in half a sentence
    enforce_rule = False  # a field of some tests; True: `validity` refuses to run where the level is lost

    # relative change of a number below which the p-value is piecewise constant: the statistic rounds values to a grid,
    # and the gradient is that of the values before rounding
    smooth_above: ClassVar[float] = 0.0

    def __post_init__(self):
        if self.epsilon is None and self.mechanism is None:
            raise ValueError(
                f"{type(self).__name__} needs a privacy budget: give epsilon=1.0 "
                "(or mechanism=jaxdp.Gaussian(rho=0.5))."
            )
        if self.epsilon is not None and self.mechanism is not None:
            raise ValueError(f"{type(self).__name__} takes epsilon= or mechanism=, not both.")
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
            if isinstance(self.epsilon, int | np.integer | np.floating):  # 1, 1.0 and np.float64(1) are one program
                object.__setattr__(self, "epsilon", float(self.epsilon))

    def mechanism_in_force(self):
        """The mechanism in force: `mechanism`, or what `epsilon` buys."""
        if self.mechanism is not None:
            return self.mechanism
        buys = type(self).default_mechanism
        if buys is None:
            raise NotImplementedError(
                f"{type(self).__name__} does not say what epsilon buys: set default_mechanism = jaxdp.Laplace, say."
            )
        return buys(epsilon=self.epsilon)

    def specialize(self, shapes) -> PrivateQuery | Sequential:
        """The query to run for data of these public shapes (`jax.ShapeDtypeStruct` leaves)."""
        return self

    def no_gradient(self, name: str) -> str:
        """Why the p-value has no gradient in the number of this name, in half a sentence; "" where it has one.

        name: a field of the test or a leaf of `jaxdp.tune`. Numbers with a reason are not tuned by gradient; for all
        others the contract compares gradients with finite differences.
        """
        return self.gradient_free

    def statistic(self, key, data):
        """Private: a pytree of arrays."""
        raise NotImplementedError

    def of_persons(self, shapes) -> PrivateQuery:
        """The query to run where a record is a person with several rows, of these public shapes."""
        return self

    def every_row(self, shapes) -> bool:
        """Whether all rows of each person count, with these public shapes; else one, drawn at random."""
        return self.averages_rows

    def statistic_of_persons(self, key, rows: PersonRows):
        """Private: the statistic of persons with several rows. The mean over draws keeps any sensitivity.

        Where another is defined, `sensitivity` must hold for it when one person is replaced with all rows.
        """
        return rows.mean(self.statistic, key)

    def sensitivity(self, num_records: int):
        """Data-free: a pytree of `Sensitivity` that the mechanism understands."""
        raise NotImplementedError

    def partial(self, chunk, num_records: int | None = None):
        """Private: the sums of a chunk of records, a pytree of int64 arrays (NumPy). Of a resolved query only.

        num_records: of all the data, public; None where the chunk is all of them. `finish(partial(data))` is the
        statistic of whole data, and what `merge` makes of any chunks of them is equal to `partial(data)`.
        """
        raise NotImplementedError

    def merge(self, sums, more):
        """The sums of the records of both: integers, so that the order of merging does not matter."""
        return jax.tree.map(np.add, sums, more)

    def finish(self, sums):
        """Private: the statistic that the sums of all records give, float64; it has the sensitivity of `statistic`."""
        raise NotImplementedError

    def partial_of_persons(self, rows: RowsOfDraws, num_persons: int) -> Any:
        """Private: the sums of a chunk of rows of persons, a pytree of integer arrays (NumPy) that `merge` adds.

        num_persons: of all chunks, public. Default: `partial` of each draw, for the mean over draws.
        """
        return [self.partial(draw, num_persons) for draw in rows.each()]

    def finish_of_persons(self, sums: Any) -> Any:
        """Private: the statistic of persons that the sums of all their rows give, as `finish`."""
        values = [jax.tree.map(jnp.asarray, self.finish(draw)) for draw in sums]
        return jax.tree.map(lambda *some: jnp.mean(jnp.stack(some).astype(float), axis=0), *values)

    def needs_all(self, shapes, of_persons: bool = False) -> str:
        """Why data of these public shapes must be read as one table, in half a sentence; "" where sums will do.

        of_persons: records are persons with several rows. The class that defines `statistic` must be the one that
        defines `finish`, or come after it: a subclass with another statistic has no sums unless it says so. Of persons,
        `statistic_of_persons` and `finish_of_persons` are meant; the mean over draws needs `finish` alone.
        """

        def place(name: str) -> int:
            return next(k for k, cls in enumerate(type(self).__mro__) if name in vars(cls))

        of_their_own = type(self).finish_of_persons is not PrivateQuery.finish_of_persons
        sums = "finish_of_persons" if of_persons and of_their_own else "finish"
        given = getattr(type(self), sums) is not getattr(PrivateQuery, sums)
        if given and of_persons and place("statistic_of_persons") < place(sums):
            return "its statistic of persons is not the one that its sums give"
        if given and place(sums) <= place("statistic"):
            return ""
        return ("" if self.spec is None else self.spec.needs_all) or NO_SUM


@frozen_pytree
class PrivateTest(PrivateQuery):
    """A private query whose release has a p-value."""

    # fields of some tests; others have none of them
    num_null = cast("int | None", None)  # draws of the null among which the p-value is a rank
    num_columns = cast("tuple[int, int, int] | None", None)  # of x, y, z: what the bounds of a resolved test depend on

    flags: ClassVar[tuple[str, ...]] = ()  # that an answer can carry, by `validity` or by `released_flags`
    no_effect: ClassVar[float] = 0.0  # the effect where x and y do not depend; its interval holds it or leaves it out

    # of all pairs of many columns together: data -> private statistic; None where `jaxdp.all_pairs` runs pair by pair
    pairwise: ClassVar[Callable[..., Any] | None] = None
    pairwise_of_sums: ClassVar[Callable[..., Any] | None] = None  # the same from the sums of all records

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "averages_rows" not in vars(cls) and vars(cls).keys() & {"statistic", "interpret", "p_value"}:
            cls.averages_rows = False  # another statistic or p-value must say so itself
        if "statistic" in vars(cls):
            of_persons = {"of_persons", "statistic_of_persons", "partial_of_persons", "finish_of_persons"}
            for name in of_persons - vars(cls).keys():
                setattr(cls, name, getattr(PrivateQuery, name))  # those of another statistic do not go with this one
        own = [name for name in ("p_value", "estimate") if getattr(cls, name) is not getattr(PrivateTest, name)]
        if own and cls.interpret is not PrivateTest.interpret:
            raise TypeError(
                f"{cls.__name__} has an interpret and a {' and an '.join(own)} of its own, which no answer would read: "
                "a test with an effect says everything in interpret (docs/abstraction.md)."
            )

    def interpret(self, key, release: Release) -> Interpretation:
        """Post-processing of the release; never reads the data. A test with an effect defines this alone.

        Of a test without one: `p_value` and `estimate`. The estimate does not depend on the key.
        """
        return Interpretation(self.p_value(key, release), self.estimate(release))

    def p_value(self, key, release: Release):
        """The p-value alone, also for an eager caller: nothing else of `interpret` is computed."""
        if type(self).interpret is PrivateTest.interpret:
            raise NotImplementedError(
                f"{type(self).__name__} has no p-value: define p_value(key, release), or interpret(key, release) for a "
                "test with an effect (docs/abstraction.md)."
            )
        return _part(self, key, bare(release), "p_value")

    def estimate(self, release: Release):
        """The released number people look at: `Result.statistic`."""
        if type(self).interpret is PrivateTest.interpret:
            return release.value
        return _part(self, jax.random.key(0), bare(release), "estimate")

    def validity(self, shapes) -> Any:
        """What is publicly known about the level for data of these shapes, a `Validity`; None: nothing is."""
        return None

    def refuse_coarse_cells(self, columns) -> None:
        """Raises `CoarseCells` if cells of these columns of z are too coarse for the level; only where `cuts_z`."""

    def axis_bins(self, data, release: Release | None = None) -> Sequence[Any]:
        """How each column of z was cut, from public numbers and the release: `AxisBins`, one a column."""
        return ()

    def settled(self, shapes, release: Release) -> Any:
        """The final stage of this test, with the values it had in this release: public."""
        query = specialize(self, shapes)
        for earlier in release.earlier:
            query = specialize(query.then(query.second, query.first, earlier), shapes)
        return query

    def released_flags(self, shapes, release: Release) -> Mapping[str, str]:
        """Doubts that the release itself raises, each with its sentence; of the test as given to `run`."""
        return {}

    def effect_notes(self, shapes, release: Release) -> Mapping[str, str]:
        """Why the release has no effect or no interval, or a wide one: names with sentences; as given to `run`."""
        return {}

    def detectable_effect(self, shapes, release: Release, level: float) -> Any:
        """The effect that a test at this level would have found with power 0.8.

        NaN where that is not known, infinity where the p-value is 1 whatever the effect, None: no answer. The test is
        as given to `run`: where it has stages, `settled` says what they released.
        """
        return None

    def one_sided(self, shapes, release: Release, effect: float) -> Any:
        """P-values of the hypotheses that the effect is at most this one, and that it is at least this one.

        By the law of the interval of `interpret` and in its units, of the test as given to `run`; None: it has none. A
        margin is for tests that define it.
        """

    def released_curves(self, shapes, release: Release, x, y) -> Mapping[str, Any]:
        """Curves that the release gives besides, as `curves` of result.json has them (`report/curves.py`); {}: none.

        Of the test as given to `run`. x, y: the schema's rules of the columns, whose names and units they are told in.
        """
        return {}

    def among(self) -> PrivateTest:
        """This test for use on many pairs that share one private choice (such as cells)."""
        return self

    def pair_p_values(self, key, release: Release):
        """The p-value of each pair, from the release of `pairwise`."""
        return self.p_value(key, release)

    def pair_statistics(self, release: Release):
        """The released number of each pair: `Result.statistic`, from the release of `pairwise`."""
        return self.estimate(release)


@frozen_pytree
class Sequential:
    """A first query whose release configures a second test: `then(second, first, released)` is public.

    Privacy: sequential (adaptive) composition, the costs add up.
    """

    first: PrivateQuery
    second: PrivateQuery
    then: Any = jax.tree.static()

    many_columns: ClassVar[bool] = False
    public_columns: ClassVar[tuple[str, ...]] = ()
    leaves_out_missing: ClassVar[bool] = False

    def specialize(self, shapes) -> Sequential:
        """Itself: its stages are resolved one after the other."""
        return self

    def of_persons(self, shapes) -> Sequential:
        """Itself: each stage is asked when it is resolved."""
        return self


def num_records(data) -> int:
    """Rows of the data: the leading axis that all leaves share."""
    data = data.shapes if isinstance(data, Chunks) else data
    lengths = {leaf.shape[0] if getattr(leaf, "shape", ()) else 0 for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1:
        raise ValueError(f"x, y and z must have the same number of rows, got {sorted(lengths)}.")
    return lengths.pop()


def method_of(test) -> str:
    """The name a result carries: that of the test's spec; a query without one is called after its class."""
    if not isinstance(test, PrivateQuery):
        return type(test).__name__
    return ("" if test.spec is None else test.spec.name) or test.method or type(test).__name__


def public_shapes(data):
    """The data with every array replaced by its shape and dtype, which are public."""
    if isinstance(data, Chunks | PersonRows):
        return data.shapes
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), data)


def specialize(test, data):
    """The concrete query for data of these public shapes (and columns that the test declares public)."""
    shapes = public_shapes(data)
    if draws_of(data):
        test = test.of_persons(shapes)
    if isinstance(data, Chunks):
        return test.specialize(shapes)
    public = {name: getattr(data, name) for name in test.public_columns}
    return test.specialize(dataclasses.replace(shapes, **public) if public else shapes)


@functools.partial(bounded_jit, static_argnames="name")
def _part(test, key, release: Release, name: str):
    # compiled, so that what the other parts would take is left out
    return getattr(test.interpret(key, release), name)

"""The one abstraction: a private test, its release, its result.

A private test is a frozen pytree with three methods, and each signature is a privacy rule:
`statistic(key, data)` is private, `sensitivity(num_records)` never reads a value, and
`p_value(key, release)` never reads the data. `release` below is the only place where a
private statistic meets noise, and nothing un-noised leaves it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import charge
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.display import NOT_PRIVATE, Compact, Readable, listed, shown, titled, unrounded
from jaxdp._base.layout import automatic_layout
from jaxdp._base.pytree import frozen_pytree
from jaxdp.charge import Account
from jaxdp.data.admit import admitted
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data
from jaxdp.data.person_rows import PersonRows
from jaxdp.noise.source import Source, source_from_key
from jaxdp.randomness import keys

if TYPE_CHECKING:
    from jaxdp.noise.certificate import Certificate
    from jaxdp.spec import TestSpec


Number = jax.Array | np.ndarray | np.floating | float  # one number, or one for each of many


class Relation(enum.Enum):
    """Which pairs of data sets are neighbours.

    REPLACE_ATTRIBUTE: one person's x is replaced; who is in which group (y) is public and stays.
    """

    REPLACE_ONE = "replace_one"
    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ATTRIBUTE = "replace_attribute"


class Norm(enum.Enum):
    """How the change of a statistic is measured."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Sensitivity(Compact):
    """How far a statistic can move between neighbours, computed without data.

    bound: the change of the exact statistic, measured in `norm`, for every pair of neighbours.
    error: bound, in the same norm, on computed - exact in float64, for every data set.
    lower, upper: public range of each coordinate; release mode clips the statistic into it.
    """

    bound: ArrayLike
    norm: Norm = jax.tree.static()
    relation: Relation = jax.tree.static()
    error: ArrayLike = 0.0
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Cost:
    """A privacy cost: pure epsilon (with delta), and rho of zero-concentrated DP where it is known.

    epsilon is infinite for a mechanism that is only rho-zCDP, and for one that is not private.
    """

    epsilon: Number
    delta: Number = 0.0
    rho: Number = jnp.inf
    relation: Relation = jax.tree.static(default=Relation.REPLACE_ONE)

    def __add__(self, other: Cost) -> Cost:
        """Sequential composition: budgets add up, under one relation only."""
        if self.relation is not other.relation:
            raise ValueError(
                f"costs under {self.relation.value} and {other.relation.value} do not add up; "
                "state both mechanisms under one relation."
            )
        return Cost(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            rho=self.rho + other.rho,
            relation=self.relation,
        )

    @classmethod
    def none(cls, relation: Relation) -> Cost:
        """The cost of releasing nothing."""
        return cls(epsilon=0.0, delta=0.0, rho=0.0, relation=relation)

    def __str__(self) -> str:
        # NumPy: inside a traced function jax.numpy would trace even what is concrete
        parts = [f"epsilon={unrounded(self.epsilon)}", f"relation={self.relation.value}"]
        if check.is_concrete(self.delta) and np.any(np.asarray(self.delta) > 0):
            parts.insert(1, f"delta={unrounded(self.delta)}")
        if not check.is_concrete(self.epsilon) or not np.any(np.isinf(np.asarray(self.epsilon))):
            return ", ".join(parts)
        if check.is_concrete(self.rho) and bool(np.all(np.isfinite(np.asarray(self.rho)))):
            return ", ".join([f"rho={unrounded(self.rho)} (zCDP)", *parts[1:]])
        return "NOT PRIVATE (epsilon=inf)"

    def __repr__(self) -> str:
        return f"Cost({self})"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Release(Readable):
    """The noisy statistic and what is public about it.

    value: pytree of noisy arrays, the only thing about the data that may leave.
    sensitivity: what the noise was calibrated to. cost: what the release cost.
    num_records: public under the replacing relations, None under ADD_OR_REMOVE_ONE.
    earlier: what the stages before this one released; their cost is included.
    certificates: exact facts about the noise of a release (lattice step, rate, epsilon), one per draw.
    """

    value: Any
    sensitivity: Any
    cost: Cost
    num_records: int | None = jax.tree.static(default=None)
    mode: str = jax.tree.static(default=keys.SIMULATION)
    earlier: tuple[Release, ...] = ()
    certificates: tuple[Certificate, ...] = jax.tree.static(default=())

    def _display(self) -> tuple[str, dict[str, Any]]:
        values = {"value": self.value, "privacy": str(self.cost), "records": self.num_records}
        laws = [certificate.law for certificate in self.certificates]
        more = {"stages": len(self.earlier) + 1, "noise": listed(dict.fromkeys(laws))}
        return titled("release", self.mode), values | {name: more[name] for name in more if more[name] not in (1, "")}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Result(Readable):
    """What a test publishes; unpacks to (statistic, p_value). Everything in it is noisy or public.

    effect: how strong the dependence is, on the scale that the test's `spec.effect` names; interval: its 95 % interval
    (low, high). Both are post-processing of the release (no further cost), and None where a test offers none.
    """

    p_value: Number
    statistic: Any
    release: Release
    cost: Cost
    effect: Any = None
    interval: Any = None
    mode: str = jax.tree.static(default=keys.SIMULATION)
    method: str = jax.tree.static(default="")

    @property
    def pvalue(self) -> Number:
        """SciPy's spelling of `p_value`."""
        return self.p_value

    def __iter__(self) -> Iterator[Any]:
        return iter((self.statistic, self.p_value))

    def __str__(self) -> str:
        note = f" {NOT_PRIVATE}" if self.mode == keys.SIMULATION else ""
        numbers = f"p_value={shown(self.p_value)} statistic={shown(self.statistic)}"
        return f"{self.method}: {numbers} [{self.cost}]{note}"

    def _display(self) -> tuple[str, dict[str, Any]]:
        numbers = {"p-value": self.p_value, "statistic": self.statistic}
        if self.effect is not None:
            numbers |= {"effect": self.effect, "interval": self.interval}
        records = getattr(self.release, "num_records", None)
        return titled(self.method or "result", self.mode), {**numbers, "privacy": str(self.cost), "records": records}


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
        del shapes
        return self

    def no_gradient(self, name: str) -> str:
        """Why the p-value has no gradient in the number of this name, in half a sentence; "" where it has one.

        name: a field of the test or a leaf of `jaxdp.tune`. Numbers with a reason are not tuned by gradient; for all
        others the contract compares gradients with finite differences.
        """
        del name
        return self.gradient_free

    def statistic(self, key, data):
        """Private: a pytree of arrays."""
        raise NotImplementedError

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

    def needs_all(self, shapes) -> str:
        """Why data of these public shapes must be read as one table, in half a sentence; "" where sums will do.

        The class that defines `statistic` must be the one that defines `finish`, or come after it: a subclass with
        another statistic has no sums unless it says so.
        """
        del shapes
        order = type(self).__mro__
        defines = {
            name: next(k for k, cls in enumerate(order) if name in vars(cls)) for name in ("statistic", "finish")
        }
        if type(self).finish is not PrivateQuery.finish and defines["finish"] <= defines["statistic"]:
            return ""
        return ("" if self.spec is None else self.spec.needs_all) or NO_SUM


NO_SUM = "its statistic is no sum over records"


class Interpretation(NamedTuple):
    """What a release says: public, at no further cost. The estimate is `Result.statistic`."""

    p_value: Any
    estimate: Any
    effect: Any = None
    interval: Any = None


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
        return _part(self, key, _bare(release), "p_value")

    def estimate(self, release: Release):
        """The released number people look at: `Result.statistic`."""
        if type(self).interpret is PrivateTest.interpret:
            return release.value
        return _part(self, jax.random.key(0), _bare(release), "estimate")

    def validity(self, shapes) -> Any:
        """What is publicly known about the level for data of these shapes, a `Validity`; None: nothing is."""
        del shapes
        return None

    def refuse_coarse_cells(self, columns) -> None:
        """Raises `CoarseCells` if cells of these columns of z are too coarse for the level; only where `cuts_z`."""

    def axis_bins(self, data, release: Release | None = None) -> Sequence[Any]:
        """How each column of z was cut, from public numbers and the release: `AxisBins`, one a column."""
        del data, release
        return ()

    def settled(self, shapes, release: Release) -> Any:
        """The final stage of this test, with the values it had in this release: public."""
        query = specialize(self, shapes)
        for earlier in release.earlier:
            query = specialize(query.then(query.second, query.first, earlier), shapes)
        return query

    def released_flags(self, shapes, release: Release) -> Mapping[str, str]:
        """Doubts that the release itself raises, each with its sentence; of the test as given to `run`."""
        del shapes, release
        return {}

    def effect_notes(self, shapes, release: Release) -> Mapping[str, str]:
        """Why the release has no effect or no interval, or a wide one: names with sentences; as given to `run`."""
        del shapes, release
        return {}

    def detectable_effect(self, shapes, release: Release) -> Any:
        """The effect that would have been found with power 0.8; NaN where noise hides its scale, None: no answer.

        The test is as given to `run`: where it has stages, `settled` says what they released.
        """
        del shapes, release
        return None

    def one_sided(self, shapes, release: Release, effect: float) -> Any:
        """P-values of the hypotheses that the effect is at most this one, and that it is at least this one.

        By the law of the interval of `interpret` and in its units, of the test as given to `run`; None: it has none. A
        margin is for tests that define it.
        """
        del shapes, release, effect

    def released_curves(self, shapes, release: Release, x, y) -> Mapping[str, Any]:
        """Curves that the release gives besides, as `curves` of result.json has them (`report/curves.py`); {}: none.

        Of the test as given to `run`. x, y: the schema's rules of the columns, whose names and units they are told in.
        """
        del shapes, release, x, y
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

    def specialize(self, shapes) -> Sequential:
        """Itself: its stages are resolved one after the other."""
        del shapes
        return self


def num_records(data) -> int:
    """Rows of the data: the leading axis that all leaves share."""
    data = data.shapes if isinstance(data, Chunks) else data
    lengths = {leaf.shape[0] if getattr(leaf, "shape", ()) else 0 for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1:
        raise ValueError(f"x, y and z must have the same number of rows, got {sorted(lengths)}.")
    return lengths.pop()


def require_query(test) -> None:
    """Raises TypeError, with the rule, for what is no query and for a class of one that is no pytree."""
    name = type(test).__name__
    if not isinstance(test, PrivateQuery | Sequential):
        raise TypeError(f"{name} is no test: a test derives from jaxdp.PrivateTest (docs/abstraction.md).")
    if jax.tree_util.all_leaves([test]):
        raise TypeError(f"{name} is no pytree: write @jaxdp.private_test above its class.")


@contextlib.contextmanager
def naming_the_rule(test) -> Iterator[None]:
    """Turns the AttributeError of a mechanism that lacks what a test reads of it into a TypeError with the rule."""
    try:
        yield
    except AttributeError as error:
        if not (hasattr(error.obj, "perturb") and hasattr(error.obj, "cost")):
            raise
        raise TypeError(
            f"{type(error.obj).__name__} has no {error.name}, which {method_of(test)} reads of its mechanism: define "
            "it as jaxdp.core.AdditiveMechanism and NullMechanism describe it, or use jaxdp.Laplace or jaxdp.Gaussian."
        ) from None


@contextlib.contextmanager
def naming_columns(test, data) -> Iterator[None]:
    """Turns the AttributeError of data without columns, such as an array, into a TypeError that says what to give."""
    try:
        yield
    except AttributeError as error:
        if isinstance(data, Data | Chunks | PersonRows) or error.name not in ("x", "y", "z", "domain"):
            raise
        read = f"{method_of(test)} reads {error.name} of its data"
        raise TypeError(f"{read}: give jaxdp.Data(x, y, z), got {type(data).__name__}.") from None


def admit(test, data):
    """The data as arrays, before anything is paid; refused by type, dtype and shape alone.

    Errors: ValueError for data in chunks where the test has no sums. TypeError for what is no test, or no pytree.
    """
    require_query(test)
    if isinstance(data, Chunks):
        admitted(data.shapes, many_columns=test.many_columns)
        require_z_is_used(test, data.shapes)
        require_sums(test, data.shapes)
        return data
    if isinstance(data, PersonRows):
        data = data.admitted(many_columns=test.many_columns)
        require_z_is_used(test, data.shapes)
        _require_averages(test)
        return data
    require_z_is_used(test, data)
    return admitted(data, many_columns=test.many_columns)


def require_z_is_used(test, data) -> None:
    """Raises ValueError if the data have a z and the test does not say that it conditions on it (`uses_z`).

    Its p-value would answer another question: whether X and Y are independent, not whether they are given Z.
    """
    if getattr(data, "z", None) is None or not isinstance(test, PrivateTest) or test.uses_z:
        return
    raise ValueError(
        f"{method_of(test)} does not use z, so it cannot tell whether x and y are independent given z: leave z out, or "
        "use a test that conditions on it, such as partition-gcm. A test of your own whose statistic conditions on z "
        "says so by uses_z = True in its class."
    )


def _require_averages(test) -> None:
    """Raises ValueError if the test may not be asked about several rows of each person."""
    if isinstance(test, Sequential):
        _require_averages(test.first)
        _require_averages(test.second)
    elif isinstance(test, PrivateTest) and not test.averages_rows:
        raise ValueError(
            f"{method_of(test)} takes one row of each person: its p-value holds for records, not for a mean over draws "
            "of rows. Give it one row per person, or use a test with averages_rows = True, such as partition-gcm."
        )


def needs_all(test, shapes) -> str:
    """Why a test, or a stage of it, must have all records at once, in half a sentence; "" where sums will do."""
    if test.public_columns:
        # what such a column settles is not known yet
        return test.needs_all(shapes) if test.settled_by else "a column of it is public and read by itself"
    query = specialize(test, shapes)
    if not isinstance(query, Sequential):
        return query.needs_all(shapes)
    return query.second.needs_all(shapes) or needs_all(query.first, shapes)


def require_sums(test, shapes) -> None:
    """Raises ValueError if the test cannot be asked about records in chunks; nothing of them is read."""
    told = needs_all(test, shapes)
    if told:
        raise ValueError(
            f"{method_of(test)} must have all records in memory: {told}. Give them as arrays, or use a test with sums, "
            "such as partition-gcm, partial-correlation or noisy-table."
        )


def public_shapes(data):
    """The data with every array replaced by its shape and dtype, which are public."""
    if isinstance(data, Chunks | PersonRows):
        return data.shapes
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), data)


def cost_of(test, data) -> Cost:
    """What a run on data of these shapes will cost, without reading a value."""
    data = admit(test, data)
    test = specialize(test, data)
    if isinstance(test, Sequential):
        return cost_of(test.first, data) + cost_of(test.second, data)
    with naming_the_rule(test):
        return test.mechanism_in_force().cost(_relation(test.sensitivity(num_records(data))))


def specialize(test, data):
    """The concrete query for data of these public shapes (and columns that the test declares public)."""
    shapes = public_shapes(data)
    if isinstance(data, Chunks):
        return test.specialize(shapes)
    public = {name: getattr(data, name) for name in test.public_columns}
    return test.specialize(dataclasses.replace(shapes, **public) if public else shapes)


def is_bound(node) -> bool:
    """Whether a node of a pytree of sensitivities is one."""
    return isinstance(node, Sensitivity)


def _of_means(sensitivity, rows: PersonRows):
    """The sensitivity of the mean over draws: the same bound, and the rounding of the mean in its error."""

    def one(part: Sensitivity) -> Sensitivity:
        if part.lower is None or part.upper is None:  # of a simulation alone, whose noise is idealised
            return part
        array = np if check.is_concrete(part.lower) and check.is_concrete(part.upper) else jnp
        largest = array.max(array.maximum(array.abs(part.lower), array.abs(part.upper)))
        return dataclasses.replace(part, error=part.error + rows.rounding(largest))

    return jax.tree.map(one, sensitivity, is_leaf=is_bound)


def _relation(sensitivity) -> Relation:
    relations = {part.relation for part in jax.tree.leaves(sensitivity, is_leaf=is_bound)}
    if len(relations) != 1:
        raise ValueError(f"one release needs one neighbouring relation, got {sorted(map(str, relations))}.")
    return relations.pop()


@automatic_layout
def release(test: Any, key: Any, data: Any) -> Release:
    """Returns the noisy statistic, the only thing about `data` that may leave."""
    mode = keys.admit(key, test, data)
    data = admit(test, data)
    with keys.precision(mode), naming_columns(test, data):
        return release_opened(test, source_from_key(key), data)


def release_opened(test, source: Source, data) -> Release:
    """`release` for a source that an entry point has opened."""
    return keys.settle(source.mode, _execute(test, source, _widened(source.mode, data))[1])


def exact_statistic(query, key, data):
    """The statistic of a resolved query before noise, as a release computes it: private.

    Its private columns are finite: NaN counts as 0, the middle of scaled bounds and the first code, and an infinity as
    the largest number of its sign. A query with `reads_missing` gets its data as they are. Of persons with several
    rows, it is the mean over the draws.
    """
    if isinstance(data, PersonRows):
        return data.mean(lambda draw: query.statistic(key, finite(query, draw)))
    return query.statistic(key, finite(query, data))


def finite(query, data):
    """The data as the statistic of a query gets them (`exact_statistic`)."""
    if query.reads_missing:
        return data
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: (
            leaf if path and getattr(path[0], "name", "") in query.public_columns else _finite_array(leaf)
        ),
        data,
    )


def _finite_array(values):
    if not jnp.issubdtype(values.dtype, jnp.inexact):
        return values
    if isinstance(values, np.ndarray):  # what is finite is not copied
        return values if np.all(np.isfinite(values)) else np.nan_to_num(values, nan=0.0)
    return jnp.nan_to_num(values, nan=0.0)


@bounded_jit
def _statistic(test, key, data):
    # compiled as one program: dozens of small ones cost an eager caller seconds
    return exact_statistic(test, key, data)


@bounded_jit
def _answer(test, key, release: Release) -> Interpretation:
    found = test.interpret(key, release)
    # A budget that was not > 0 under tracing is NaN in the cost; a decision would hide it.
    spoiled = jnp.isnan(release.cost.epsilon) | jnp.isnan(release.cost.rho)
    spoil = functools.partial(jax.tree.map, lambda number: jnp.where(spoiled, jnp.nan, number))
    return found._replace(p_value=spoil(found.p_value), effect=spoil(found.effect), interval=spoil(found.interval))


@functools.partial(bounded_jit, static_argnames="name")
def _part(test, key, release: Release, name: str):
    # compiled, so that what the other parts would take is left out
    return getattr(test.interpret(key, release), name)


def _bare(release: Release) -> Release:
    """Without certificates and earlier stages: no input of an answer, and static, so that they would recompile it."""
    return dataclasses.replace(release, certificates=(), earlier=())


def _execute(test, source: Source, data) -> tuple[Any, Release]:
    """The release, and the test with every stage resolved: both public."""
    test = specialize(test, data)
    if isinstance(test, Sequential):
        return _execute_sequential(test, source, data)
    data = data.without_names() if hasattr(data, "without_names") else data  # column names would trigger recompilation
    streamed = isinstance(data, Chunks)
    for_statistic, noise = source.split()
    count = num_records(data)
    with naming_the_rule(test):
        sensitivity = test.sensitivity(count)
    sensitivity = _of_means(sensitivity, data) if isinstance(data, PersonRows) else sensitivity
    relation = _relation(sensitivity)
    mechanism = test.mechanism_in_force()
    source.require_noise(mechanism)
    compute = _statistic if test.one_program else exact_statistic
    value = summed(test, data) if streamed else compute(test, for_statistic.key, data)
    noise = noise.collecting()
    noisy = mechanism.perturb(noise, value, sensitivity)
    noise.require_certificates(mechanism)
    return test, Release(
        value=noisy,
        sensitivity=sensitivity,
        cost=mechanism.cost(relation),
        num_records=None if relation is Relation.ADD_OR_REMOVE_ONE else count,
        mode=source.mode,
        certificates=noise.certificates,
    )


def summed(query: PrivateQuery, data: Chunks):
    """The statistic of records in chunks, by one pass over them: private."""
    # as NumPy: a process that gets the query would read float64 arrays of JAX as float32
    query = jax.tree.map(np.asarray, query)
    totals = data.total(functools.partial(_partial, query, data.num_records), query.merge)
    with jax.enable_x64(True):
        return jax.tree.map(jnp.asarray, query.finish(totals))


def _partial(query: PrivateQuery, count: int, chunk):
    return query.partial(finite(query, chunk), count)


def _widened(mode: str, data):
    return data if isinstance(data, Chunks) else keys.widen(mode, data)


def _execute_sequential(test: Sequential, source: Source, data) -> tuple[Any, Release]:
    for_first, for_second = source.split()
    query, first = _execute(test.first, for_first, data)
    resolved, second = _execute(test.then(test.second, query, first), for_second, data)
    return resolved, dataclasses.replace(second, cost=first.cost + second.cost, earlier=(first, *second.earlier))


@automatic_layout
def run(test: Any, key: Any, data: Any, *, ledger: Account | None = None) -> Result:
    """Runs a test once: release, then p-value from the release alone.

    test: any test of the package. data: `jaxdp.Data` (or what the test's statistic takes); `jaxdp.data.chunks.Chunks`
    of records that do not lie in memory, for tests that have sums.
    key: `jaxdp.fresh_key()` for a release, `jax.random.key(seed)` for a simulation (not private).
    ledger: charged before the data are read; only releases can be charged.
    Errors: ValueError or TypeError on public mistakes (shapes, keys, budgets), RuntimeError for a release inside
    `jax.jit` or another JAX transformation or under fast-math flags, all before data are read or anything is paid.
    """
    mode = keys.admit(key, test, data)
    _require_p_value(test)
    data = admit(test, data)
    with keys.precision(mode), naming_columns(test, data):
        cost = None if ledger is None else cost_of(test, data)
        with charge.paid(ledger, method_of(test), cost, key, mode=mode, rehearse=lambda: rehearse(test, data)):
            return run_opened(test, source_from_key(key), data)


def _require_p_value(test) -> None:
    """Raises TypeError for a query without a p-value, which is released and not run."""
    if isinstance(test, PrivateQuery) and not isinstance(test, PrivateTest):
        raise TypeError(
            f"{method_of(test)} has no p-value to run for: jaxdp.release(test, key, data) gives what it releases."
        )


def run_opened(test, source: Source, data) -> Result:
    """`run` for a source that an entry point has opened, and paid for."""
    mode = source.mode
    for_release, for_null = source.split()
    resolved, released = _execute(test, for_release, _widened(mode, data))
    with naming_the_rule(test):
        found = _answer(resolved, for_null.key, _bare(released))
    result = Result(
        p_value=found.p_value,
        statistic=found.estimate,
        effect=found.effect,
        interval=found.interval,
        release=released,
        cost=released.cost,
        mode=mode,
        method=method_of(test),
    )
    return keys.settle(mode, result)


def rehearse(test, data) -> None:
    """A whole run on zeros of the same shapes, thrown away: what would fail must fail before it is paid.

    Of a query without a p-value, its release.
    """
    zeros, source = blank(test, data), source_from_key(keys.fresh_key())
    if isinstance(test, PrivateTest):
        run_opened(test, source, zeros)
    else:
        _execute(test, source, _widened(keys.RELEASE, zeros))


def blank(test, data):
    """Zeros in place of every value that is not public."""
    if isinstance(data, Chunks):
        return data.blank()
    public = {name: getattr(data, name) for name in test.public_columns}
    zeros = jax.tree.map(lambda leaf: np.zeros(jnp.shape(leaf), jnp.result_type(leaf)), data)
    return dataclasses.replace(zeros, **public) if public else zeros


def method_of(test) -> str:
    """The name a result carries: that of the test's spec; a query without one is called after its class."""
    if not isinstance(test, PrivateQuery):
        return type(test).__name__
    return ("" if test.spec is None else test.spec.name) or test.method or type(test).__name__

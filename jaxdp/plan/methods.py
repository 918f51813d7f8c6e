"""Which tests can be planned: their power formula, how to build them for a simulation, and when they apply."""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxdp.data.dataset import CATEGORICAL
from jaxdp.independence import registry
from jaxdp.plan import continuous, tables
from jaxdp.plan.setting import CLASSIC_COMPLEXITY, CODES, GROUPS, SCALED, Setting

Formula = Callable[[Setting, int, Any, float, float], float]  # of setting, n, budget, effect, level
GCM, CHI_SQUARED = "gcm", "chi-squared"
SMALLEST_N, SMALLEST_BLOCK, SMALLEST_PAIRS = 20, 30, 10
VOTES, MEDIAN_BLOCKS = 15, 101  # default blocks of TestOfTests and SubsampleAggregate


@dataclasses.dataclass(frozen=True)
class Plan:
    """One row: a test that can be planned.

    formula(setting, n, epsilon, effect, level) -> power, or None where only simulation serves.
    make(setting, epsilon, level) -> test. applies(setting): whether the test fits the columns.
    form: how it wants its columns. reference: the non-private test that its cost is measured against.
    formula_fits(setting): whether the formula holds there. smallest_n: records below which the test's own limit law
    is not to be trusted (blocks of 30; of ten pairs without Z).
    gaussian: whether the test takes Gaussian noise; gaussian_fits(setting): whether the formula knows it there.
    slow: simulated at seconds a point, so that comparisons leave it out. default: the setting if none is given.
    """

    name: str
    formula: Formula | None
    make: Callable[[Setting, float, float], Any]
    applies: Callable[[Setting], bool]
    form: str = SCALED
    reference: str = GCM
    table: bool = False
    formula_fits: Callable[[Setting], bool] = lambda setting: True
    smallest_n: int = SMALLEST_N
    gaussian: bool = True
    gaussian_fits: Callable[[Setting], bool] = lambda setting: False
    slow: bool = False
    default: Setting = Setting()

    @property
    def setting(self) -> Setting:
        """The setting if none is given: the continuous model of the GCM paper, a 2 x 2 table, or `default`."""
        return Setting.table() if self.table else self.default

    def has_formula(self, setting: Setting, delta: float) -> bool:
        """Whether there is one for these columns and this noise."""
        return self.formula is not None and self.formula_fits(setting) and (not delta or self.gaussian_fits(setting))


def _named(name: str):
    """From the registry of the command line; its own defaults outside a schema's scaling."""

    def make(setting: Setting, epsilon: float, level: float):
        if setting.scaled:
            row = registry.METHODS[name]
            return row.make(epsilon, setting.domain(CODES if row.codes else SCALED), registry.Options(level=level))
        return _plain(name, epsilon, level)

    return make


def _plain(name: str, epsilon: float, level: float):
    import jaxdp

    return {
        "partition-gcm": lambda: jaxdp.PartitionGCM(epsilon=epsilon),
        "conditional-kendall": lambda: jaxdp.ConditionalKendall(epsilon=epsilon),
        "conditional-spearman": lambda: jaxdp.ConditionalSpearman(epsilon=epsilon),
        "local-permutation": lambda: jaxdp.LocalPermutation(epsilon=epsilon, level=level),
        "private-gcm": lambda: jaxdp.PrivateGCM(epsilon=epsilon),
        "private-gcm-paper": lambda: jaxdp.PrivateGCM(epsilon=epsilon, variant="paper"),
        "test-of-tests": lambda: jaxdp.TestOfTests(epsilon=epsilon, test=jaxdp.GCM()),
        "gcm": lambda: jaxdp.GCM(),
    }[name]()


def _subsample(setting, epsilon, level):
    import jaxdp

    del setting, level
    return jaxdp.SubsampleAggregate(epsilon=epsilon, statistic_of=squared_correlation)


def squared_correlation(block):
    """Squared correlation of one block without Z, as the square of a normal deviate (Wallace 1959, of Student's t).

    n r^2 is not one in small blocks: the median of 101 blocks of ten then rejects a fifth of the nulls.
    """
    import jax.numpy as jnp

    x, y = (values - jnp.mean(values) for values in (block.x, block.y))
    share = jnp.sum(x * y) ** 2 / jnp.maximum(jnp.sum(x * x) * jnp.sum(y * y), 1e-30)
    freedom = max(x.shape[0] - 2, 1)
    factor = ((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)) ** 2
    return -factor * freedom * jnp.log1p(-jnp.minimum(share, 1.0 - 1e-6))


def _crt(variant: str):
    def make(setting, epsilon, level):
        import jaxdp

        del setting
        law = jaxdp.simulate.SineLaw(complexity=CLASSIC_COMPLEXITY)
        fields = {"level": level} if variant == "threshold" else {}
        return jaxdp.PrivateCRT(epsilon=epsilon, law=law, variant=variant, **fields)

    return make


def _marginal(name: str, **fields):
    """A test of two columns without Z, by its class."""

    def make(setting, epsilon, level):
        import jaxdp

        del setting, level
        return getattr(jaxdp, name)(epsilon=epsilon, **fields)

    return make


def _distance(setting, epsilon, level):
    import jaxdp

    del setting
    return jaxdp.DistanceScore(epsilon=epsilon, level=level)


_on_lines = lambda s: not s.indicators  # noqa: E731
_ordered = lambda s: not s.indicators and all(c.kind != CATEGORICAL or c.levels <= 2 for c in (s.x, s.y))  # noqa: E731
# one continuous column of Z gets cells so narrow that means are constant in them; more of them do not
_narrow = lambda s: not s.indicators and sum(c.levels == 0 for c in s.z) <= 1  # noqa: E731
_given = lambda s: bool(s.z)  # noqa: E731
_case_control = lambda s: s.x.levels == s.y.levels == 2 and not s.z and s.scaled  # noqa: E731
_tables = lambda s: s.discrete and not s.z and s.scaled  # noqa: E731
_known_law = lambda s: not s.scaled  # noqa: E731
_continuous = lambda s: not (s.x.levels or s.y.levels)  # noqa: E731
_two_lines = lambda s: s.scaled and not s.z and not s.discrete and not s.indicators  # noqa: E731
_always = lambda s: True  # noqa: E731

PLANS = {
    row.name: row
    for row in (
        Plan(
            "partition-gcm",
            continuous.partition_gcm_power,
            _named("partition-gcm"),
            _always,
            formula_fits=_narrow,
            gaussian_fits=_known_law,
        ),
        Plan(
            "conditional-kendall",
            tables.kendall_power,
            _named("conditional-kendall"),
            _ordered,
            CODES,
            formula_fits=_narrow,
            gaussian_fits=_narrow,
        ),
        Plan(
            "conditional-spearman",
            tables.spearman_power,
            _named("conditional-spearman"),
            _ordered,
            CODES,
            formula_fits=_narrow,
            gaussian_fits=_narrow,
        ),
        Plan(
            "local-permutation",
            continuous.local_permutation_power,
            _named("local-permutation"),
            _on_lines,
            formula_fits=_narrow,
            gaussian=False,
        ),
        Plan("crt-threshold", continuous.crt_threshold_power, _crt("threshold"), _known_law, gaussian=False),
        Plan("crt-normal", continuous.crt_normal_power, _crt("normal"), _known_law, gaussian_fits=_always),
        Plan("crt-paper", None, _crt("paper"), _known_law, gaussian=False),
        Plan(
            "test-of-tests",
            continuous.test_of_tests_power,
            _named("test-of-tests"),
            _on_lines,
            smallest_n=VOTES * SMALLEST_BLOCK,
        ),
        Plan(
            "subsample-aggregate",
            continuous.subsample_power,
            _subsample,
            # given Z the kernel fit of so small blocks is biased, and the median over them finds the bias
            lambda s: _on_lines(s) and not s.z,
            smallest_n=MEDIAN_BLOCKS * SMALLEST_PAIRS,
            gaussian=False,
            default=Setting(z=(), scaled=True),
        ),
        Plan(
            "private-gcm",
            continuous.private_gcm_power("tight"),
            _named("private-gcm"),
            lambda s: _given(s) and _continuous(s),
            gaussian_fits=_always,
        ),
        Plan(
            "private-gcm-paper",
            continuous.private_gcm_power("paper"),
            _named("private-gcm-paper"),
            lambda s: _given(s) and _continuous(s),
            gaussian_fits=_always,
        ),
        *(
            Plan(name, formula, make, _case_control, GROUPS, CHI_SQUARED, table=True)
            for name, formula, make in (
                ("margin-adaptive", tables.margin_adaptive_power, _named("margin-adaptive")),
                ("unit-circle", tables.unit_circle_power, _named("unit-circle")),
                ("chi2-laplace", tables.chi2_laplace_power, _named("chi2-laplace")),
                ("noisy-proportions", tables.noisy_proportions_power, _named("noisy-proportions")),
            )
        ),
        Plan("distance-score", None, _distance, _case_control, GROUPS, CHI_SQUARED, table=True),
        Plan("noisy-table", tables.noisy_table_power, _named("noisy-table"), _tables, CODES, CHI_SQUARED, table=True),
        Plan(
            "projected-chi2", tables.projected_power, _named("projected-chi2"), _tables, CODES, CHI_SQUARED, table=True
        ),
        *(
            Plan(name, None, make, _two_lines, slow=True, default=Setting(z=(), scaled=True))
            for name, make in (
                ("micr-laplace", _marginal("MICrLaplace")),
                ("mice-laplace", _marginal("MICeLaplace")),
                ("micr-geometric", _marginal("MICrGeometric")),
            )
        ),
    )
}
REFERENCES: dict[str, Formula] = {GCM: continuous.gcm_power, CHI_SQUARED: tables.chi_squared_power}


def plan_of(method: str) -> Plan:
    """The row of this name. Errors: ValueError that lists the names."""
    if method not in PLANS:
        raise ValueError(f"method must be one of {', '.join(PLANS)}, got {method!r}.")
    return PLANS[method]

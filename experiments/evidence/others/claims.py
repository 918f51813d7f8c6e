"""What is audited: functions of other libraries, the neighbours each is run on, and where its relation is documented.

Read by both sides, the auditor and the environment that draws (`draw.py`), so it needs nothing but Python.
"""

import dataclasses

REPLACE, ADD = "replace one", "add one"
Records = tuple[float, ...]
Pair = tuple[Records, Records]


def replacements(low: float, high: float, n: int = 4) -> dict[str, Pair]:
    """n records at the lower bound, and one of them at the upper."""
    return {f"{n} at {low:g}, one moved to {high:g}": ((low,) * n, (low,) * (n - 1) + (high,))}


def additions(low: float, high: float, sizes=(1, 4)) -> dict[str, Pair]:
    """Records at one bound, and one more at the other."""
    return {
        f"{n} at {old:g}, one more at {new:g}": ((old,) * n, (old,) * n + (new,))
        for n in sizes
        for old, new in ((low, high), (high, low))
    }


# The median leaves an interval of a tenth for one of nine tenths.
MEDIAN_REPLACED: dict[str, Pair] = {"0, 0, 0.1, 1, a zero moved to 1": ((0.0, 0.0, 0.1, 1.0), (0.0, 0.1, 1.0, 1.0))}
MEDIAN_ADDED: dict[str, Pair] = {"0, 0, 0.1, 1, one more at 1": ((0.0, 0.0, 0.1, 1.0), (0.0, 0.0, 0.1, 1.0, 1.0))}
COUNTED: dict[str, Pair] = {"4 records, one more": ((0.2,) * 4, (0.2,) * 5)}


@dataclasses.dataclass(frozen=True)
class Claim:
    """A function, called with `epsilon` and public `bounds`; `known`: where its fault is reported, if it has one."""

    library: str
    function: str
    relation: str
    pairs: dict[str, Pair]
    runs: int
    bounds: tuple[float, float] = (0.0, 1.0)
    epsilon: float = 1.0
    known: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.library, self.function, self.relation


def _many(library, functions, relation, pairs, runs, **more) -> list[Claim]:
    return [Claim(library, function, relation, pairs, runs, **more) for function in functions]


DIFFPRIVLIB = [
    *_many("diffprivlib", ("mean", "sum"), REPLACE, replacements(0, 1), 20_000),
    Claim("diffprivlib", "var", REPLACE, replacements(0, 1), 10_000),
    Claim("diffprivlib", "quantile(0.5)", REPLACE, MEDIAN_REPLACED, 20_000),
    Claim("diffprivlib", "count_nonzero", REPLACE, replacements(0, 1), 20_000),
    Claim("diffprivlib", "histogram", ADD, COUNTED, 20_000),
    Claim(
        "diffprivlib",
        "LinearRegression(fit_intercept=False)",
        REPLACE,
        {"X 1, 0, 0, 0, Y 1, the one moved to 100": ((1.0, 0.0, 0.0, 0.0), (100.0, 0.0, 0.0, 0.0))},
        4000,
        bounds=(0.0, 100.0),
        known="https://github.com/IBM/differential-privacy-library/issues/105",
    ),
    Claim(
        "diffprivlib",
        "LinearRegression(fit_intercept=False), symmetric bounds",
        REPLACE,
        {"X 1, 0, 0, 0, Y 1, the one moved to -1": ((1.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0))},
        10_000,
        bounds=(-1.0, 1.0),
    ),
]
OPENDP = [
    *_many("opendp", ("mean", "sum, size known", "variance"), REPLACE, replacements(0, 1), 20_000),
    Claim("opendp", "sum", ADD, additions(0, 1, (4,)), 20_000),
    Claim("opendp", "count", ADD, COUNTED, 40_000),
    Claim("opendp", "count by categories", ADD, COUNTED, 40_000),
    Claim("opendp", "private quantile(0.5)", ADD, MEDIAN_ADDED, 40_000),
]
GOOGLE = [
    Claim("python-dp", "BoundedSum", ADD, additions(0, 1), 100_000),
    *_many("python-dp", ("BoundedMean", "BoundedVariance"), ADD, additions(0, 1), 40_000),
    Claim("python-dp", "Count", ADD, COUNTED, 100_000),
    Claim("python-dp", "Percentile(0.5)", ADD, MEDIAN_ADDED | additions(0, 1, (1,)), 10_000),
    Claim("python-dp", "Max", ADD, additions(0, 1), 10_000),
]
PIPELINE_DP = [
    Claim("pipeline-dp", "COUNT", ADD, COUNTED, 40_000),
    *_many("pipeline-dp", ("SUM", "MEAN", "VARIANCE"), ADD, additions(0, 1), 10_000),
    Claim("pipeline-dp", "PERCENTILE(50)", ADD, MEDIAN_ADDED, 4000),
]
SMARTNOISE = [
    Claim("smartnoise-sql", "COUNT", ADD, COUNTED, 8000),
    *_many("smartnoise-sql", ("SUM", "AVG", "VAR"), ADD, additions(0, 1, (4,)), 8000),
    Claim("smartnoise-sql", "SUM, bounds far from 0", ADD, additions(5, 6, (4,)), 8000, bounds=(5.0, 6.0)),
]
TUMULT = [
    Claim("tmlt-analytics", "count", ADD, COUNTED, 6000),
    *_many("tmlt-analytics", ("sum", "average", "variance"), ADD, additions(0, 1, (4,)), 6000),
]
BINOMIAL = [Claim("binomialdpy", "Tulap noise on a count", ADD, COUNTED, 100_000)]
# Records of the t-test: values of the first group, then as many of the second; of the table: the number of a cell.
FOUR_CELLS = (0.0, 1.0, 2.0, 3.0) * 5
DPRIVSTATS = [
    Claim(
        "DPrivStats",
        "dp_t_test",
        REPLACE,
        {
            f"two groups of 2, a {old:g} moved to {new:g}": ((old, 0.0, 0.0, 0.0), (new, 0.0, 0.0, 0.0))
            for old, new in ((-5.0, 5.0), (0.0, 5.0))
        },
        100_000,
        bounds=(-5.0, 5.0),
    ),
    Claim(
        "DPrivStats",
        "dp_chisq_test",
        ADD,
        {"2 x 2 cells of 5, one more": (FOUR_CELLS, (*FOUR_CELLS, 0.0))},
        200_000,
        bounds=(0.0, 3.0),
    ),
    Claim(
        "DPrivStats",
        "dp_chisq_test",
        REPLACE,
        {"2 x 2 cells of 5, one moved": (FOUR_CELLS, (3.0, *FOUR_CELLS[1:]))},
        200_000,
        bounds=(0.0, 3.0),
    ),
]
CLAIMS = [*DIFFPRIVLIB, *OPENDP, *GOOGLE, *PIPELINE_DP, *SMARTNOISE, *TUMULT, *BINOMIAL, *DPRIVSTATS]

REENACTED = {"DPrivStats": "0.1.0"}  # the version that was written again
ENVIRONMENTS = {"smartnoise-sql": "smartnoise", "tmlt-analytics": "tumult"}  # others share one: "main"


def environment(library: str) -> str:
    """The environment that a library is installed in: requirements-NAME.txt; "own", jaxdp's, where re-enacted."""
    return "own" if library in REENACTED else ENVIRONMENTS.get(library, "main")

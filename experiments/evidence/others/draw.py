"""Outputs of other libraries' functions, drawn in their own environment, where jaxdp is not installed.

Those of DPrivStats (R) are re-enacted in `experiments.evidence.compared.peers` and drawn in jaxdp's environment.

    python -m experiments.evidence.others.draw LIBRARY FUNCTION RELATION SEED OUT.npz

writes for every pair of a claim both sides' outputs (runs, parts), the epsilon and delta that the library itself says
were spent (its accountant or privacy map where it has one, else what it was asked for), and its version. Where a
library works by groups, each group holds a copy of the data set, so that one call gives many independent outputs.
"""

import importlib.metadata
import os
import sys
import warnings

import numpy as np

from experiments.evidence.others.claims import CLAIMS, REENACTED, REPLACE, Claim, Records

warnings.simplefilter("ignore")


def diffprivlib(claim: Claim, data: Records, rng):
    from diffprivlib import tools
    from diffprivlib.accountant import BudgetAccountant

    values, options = np.array(data), {"epsilon": claim.epsilon, "random_state": rng}
    name = claim.function
    accountant = BudgetAccountant()
    if name.startswith("LinearRegression"):
        from diffprivlib.models import LinearRegression

        # Y is 1 for everybody, on public bounds of 0 to 1
        options |= {"bounds_X": claim.bounds, "bounds_y": (0.0, 1.0), "fit_intercept": False}
        x, y = values[:, None], np.ones(len(data))
        once = lambda **more: LinearRegression(**options, **more).fit(x, y).coef_[0]  # noqa: E731
    elif name == "histogram":
        once = lambda **more: tools.histogram(values, bins=2, range=claim.bounds, **options, **more)[0]  # noqa: E731
    elif name == "count_nonzero":
        once = lambda **more: tools.count_nonzero(values, **options, **more)  # noqa: E731
    elif name.startswith("quantile"):
        once = lambda **more: tools.quantile(values, 0.5, bounds=claim.bounds, **options, **more)  # noqa: E731
    else:
        once = lambda **more: getattr(tools, name)(values, bounds=claim.bounds, **options, **more)  # noqa: E731
    once(accountant=accountant)
    epsilon, delta = accountant.total()
    return [once(accountant=BudgetAccountant()) for _ in range(claim.runs)], epsilon, delta


def opendp(claim: Claim, data: Records, rng):
    import opendp.prelude as dp

    del rng  # the noise is the operating system's
    dp.enable_features("contrib")
    values, (low, high), name = list(data), claim.bounds, claim.function
    atoms = dp.atom_domain(bounds=claim.bounds, nan=False)
    free = dp.vector_domain(atoms), dp.symmetric_distance()
    sized = dp.vector_domain(atoms, size=len(data)), dp.symmetric_distance()
    n, distance = len(data), 1
    if name == "sum":
        release = free >> dp.t.then_sum() >> dp.m.then_laplace(scale=max(abs(low), abs(high)) / claim.epsilon)
    elif name == "count":
        release = free >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / claim.epsilon)
    elif name == "count by categories":
        values = [int(value > 0.5) for value in data]
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        release = space >> dp.t.then_count_by_categories([0, 1]) >> dp.m.then_laplace(scale=1 / claim.epsilon)
    elif name.startswith("private quantile"):
        release = free >> dp.m.then_private_quantile(
            dp.max_divergence(), candidates=[0.05, 0.5], alpha=0.5, scale=1 / claim.epsilon
        )
    else:  # the size is public, and one record replaced is two steps of the symmetric distance
        distance = 2
        query = {"mean": dp.t.then_mean, "sum, size known": dp.t.then_sum, "variance": dp.t.then_variance}[name]
        scale = (high - low) / claim.epsilon
        scale *= {"mean": 1 / n, "sum, size known": 1, "variance": (high - low) / n}[name]
        release = sized >> query() >> dp.m.then_laplace(scale=scale)
    return [release(values) for _ in range(claim.runs)], release.map(distance), 0.0


def python_dp(claim: Claim, data: Records, rng):
    import pydp.algorithms.laplacian as algorithms

    del rng  # the noise is the library's own secure one
    name, _, argument = claim.function.partition("(")
    options = {"epsilon": claim.epsilon, "dtype": "float"}
    if name != "Count":
        options |= dict(zip(("lower_bound", "upper_bound"), claim.bounds, strict=True))
    if argument:
        options["percentile"] = float(argument.rstrip(")"))
    made, values = getattr(algorithms, name), list(data)
    return [made(**options).quick_result(values) for _ in range(claim.runs)], claim.epsilon, 0.0


def pipeline_dp(claim: Claim, data: Records, rng):
    import pipeline_dp as library

    metric = claim.function.partition("(")[0]
    metrics = library.Metrics.PERCENTILE(50) if metric == "PERCENTILE" else getattr(library.Metrics, metric)
    n = len(data)
    rows = [(group * n + i, group, value) for group in range(claim.runs) for i, value in enumerate(data)]
    accountant = library.NaiveBudgetAccountant(total_epsilon=claim.epsilon, total_delta=1e-9)
    engine = library.DPEngine(accountant, library.LocalBackend())
    wanted = library.AggregateParams(
        noise_kind=library.NoiseKind.LAPLACE,
        metrics=[metrics],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=claim.bounds[0],
        max_value=claim.bounds[1],
    )
    extract = library.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    found = engine.aggregate(rows, wanted, extract, public_partitions=list(range(claim.runs)))
    accountant.compute_budgets()
    return [next(iter(answer)) for _, answer in found], claim.epsilon, 1e-9


def smartnoise_sql(claim: Claim, data: Records, rng):
    import pandas as pd
    from snsql import Privacy, from_df

    table = pd.DataFrame({"g": np.repeat(np.arange(claim.runs), len(data)), "x": np.tile(data, claim.runs)})
    low, high = claim.bounds
    columns = {"g": {"type": "int"}, "x": {"type": "float", "lower": low, "upper": high}}
    about = {"row_privacy": True, "censor_dims": False, "rows": len(table), **columns}
    reader = from_df(table, privacy=Privacy(epsilon=claim.epsilon, delta=1e-6), metadata={"": {"": {"t": about}}})
    query = f"SELECT g, {claim.function.partition(',')[0]}(x) AS c FROM t GROUP BY g"
    epsilon, delta = reader.get_privacy_cost(query)
    return [np.nan if row[1] is None else row[1] for row in reader.execute(query)[1:]], epsilon, delta


def tmlt_analytics(claim: Claim, data: Records, rng):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt import analytics

    settings = {"spark.sql.shuffle.partitions": 1, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    settings["spark.sql.warehouse.dir"] = os.path.dirname(os.path.abspath(sys.argv[-1]))  # gone with the draws
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    groups = list(range(claim.runs))
    table = pd.DataFrame({"g": np.repeat(groups, len(data)), "x": np.tile(data, claim.runs)})
    session = analytics.Session.from_dataframe(
        analytics.PureDPBudget(claim.epsilon), "t", spark.createDataFrame(table), protected_change=analytics.AddOneRow()
    )
    query = analytics.QueryBuilder("t").groupby(analytics.KeySet.from_dict({"g": groups}))
    query = query.count() if claim.function == "count" else getattr(query, claim.function)("x", *claim.bounds)
    found = session.evaluate(query, analytics.PureDPBudget(claim.epsilon)).toPandas()
    return found.iloc[:, 1].to_numpy(float), claim.epsilon, 0.0  # the session's budget is spent


def binomialdpy(claim: Claim, data: Records, rng):
    from binomialdpy import tulap

    np.random.seed(rng.randint(2**31))  # noqa: NPY002, its noise is NumPy's global generator
    return tulap.random(claim.runs, m=len(data), b=np.exp(-claim.epsilon), q=0), claim.epsilon, 0.0


def dprivstats(claim: Claim, data: Records, rng):
    """The functions of `compared.peers`, whose noise comes from a seed: an R package is not run."""
    from experiments.evidence.compared import peers

    if claim.function == "dp_t_test":
        groups = peers.Groups(*np.split(np.array(data), 2), bounds=claim.bounds)
        return [peers.dprivstats_means(rng, groups, claim.epsilon) for _ in range(claim.runs)], claim.epsilon, 0.0
    cells = np.bincount(np.array(data, int), minlength=4).astype(float)
    many = peers.dprivstats_cells(rng, np.tile(cells, (claim.runs, 1)), 1 / claim.epsilon)
    # one cell moves by 1 where a record is added; one replaced is one taken away and one added
    return many, claim.epsilon * (2 if claim.relation == REPLACE else 1), 0.0


DRAWERS = {
    "diffprivlib": diffprivlib,
    "opendp": opendp,
    "python-dp": python_dp,
    "pipeline-dp": pipeline_dp,
    "smartnoise-sql": smartnoise_sql,
    "tmlt-analytics": tmlt_analytics,
    "binomialdpy": binomialdpy,
    "DPrivStats": dprivstats,
}


def main() -> None:
    *key, seed, out = sys.argv[1:]
    claim = next(one for one in CLAIMS if one.key == tuple(key))
    rng = np.random.RandomState(int(seed))
    drawn = {}
    for place, sides in enumerate(claim.pairs.values()):
        for side, data in enumerate(sides):
            values, epsilon, delta = DRAWERS[claim.library](claim, data, rng)
            drawn[f"{place},{side}"] = np.asarray(values, float).reshape(claim.runs, -1)
            drawn[f"{place},{side},spent"] = np.array([epsilon, delta], float)
    version = REENACTED.get(claim.library) or importlib.metadata.version(claim.library)
    np.savez_compressed(out, version=version, **drawn)


if __name__ == "__main__":
    main()

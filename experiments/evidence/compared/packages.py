"""What other libraries answer about one column; run in their own environments, where jaxdp is not installed.

    python -m experiments.evidence.compared.packages LIBRARY IN.npz OUT.npz

`columns.py` writes IN: `what`, data sets of one column (sets, n), `epsilon` for the replacement of one record,
`ends` (the public bounds, or of "bounds" the widest range thought possible) and `levels`. A library that counts a
record more or fewer as neighbours gets half of epsilon, since a replaced record is two steps. OUT holds of each method
the answers (sets, parts), seconds of one, the stated 95 % half width of its interval (NaN where it states none), and
what the library itself says was spent for a replaced record (NaN where it does not say). Questions: counts of the
levels 0, 1, ...; the three quartiles; private bounds.
"""

import importlib.metadata
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
QUARTILES = (0.25, 0.5, 0.75)
ENDS_OF = {"ends at 0.01 and 0.99": (0.01, 0.99), "quartiles": (0.25, 0.75)}  # what becomes bounds
BINS, CANDIDATES = 256, 1001
# places where bounds may lie, as those of jaxdp: 0 and +-2^(j/256)
POWERS = 2.0 ** (np.arange(-5120, 10_241) / 256)
PLACES = np.concatenate([-POWERS[::-1], [0.0], POWERS])


def widened(rule: str, low: float, high: float):
    """Bounds from two quantiles; of quartiles, by jaxdp's rule: two interquartile ranges beyond."""
    reach = 2.0 * (high - low) if rule == "quartiles" else 0.0
    return (low - reach, high + reach) if high > low else (np.nan, np.nan)


def diffprivlib(what, sets, epsilon, ends, levels, rng):
    from diffprivlib import tools

    state = np.random.RandomState(int(rng.integers(2**31)))
    if what == "counts":  # neighbours: one record more or fewer
        about = {"epsilon": epsilon / 2, "bins": levels, "range": (-0.5, levels - 0.5), "random_state": state}
        yield "histogram", lambda one: tools.histogram(one, **about)[0], {}
        return
    about = {"epsilon": epsilon, "bounds": ends, "random_state": state}  # neighbours: one replaced
    if what == "quartiles":
        yield "quantile", lambda one: tools.quantile(one, QUARTILES, **about), {}
        return
    for rule, places in ENDS_OF.items():
        yield rule, lambda one, rule=rule, at=places: widened(rule, *tools.quantile(one, at, **about)), {}


def opendp(what, sets, epsilon, ends, levels, rng):
    """Neighbours of the symmetric distance; its own map says what two steps of it cost."""
    import opendp.prelude as dp

    del rng  # the noise is the operating system's
    dp.enable_features("contrib")
    steps, n = 2, sets.shape[1]
    if what == "counts":
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        counted = space >> dp.t.then_count_by_categories([*range(levels)], null_category=False)
        release = counted >> dp.m.then_laplace(scale=steps / epsilon)
        reach = dp.discrete_laplacian_scale_to_accuracy(scale=steps / epsilon, alpha=0.05)
        yield "count by categories", release, {"spent": release.map(steps), "reach": reach}
        return
    atoms = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n)  # n public, the tighter of its two maps

    def quantiles(places, candidates):
        """(values -> a quantile of each place, what a replaced record costs), at equal shares of epsilon."""
        scale = steps * len(places) / epsilon
        each = [
            dp.m.make_private_quantile(atoms, dp.symmetric_distance(), dp.max_divergence(), candidates, at, scale)
            for at in places
        ]
        scale *= sum(one.map(steps) for one in each) / epsilon
        each = [
            dp.m.make_private_quantile(atoms, dp.symmetric_distance(), dp.max_divergence(), candidates, at, scale)
            for at in places
        ]
        return lambda one: [release(one) for release in each], sum(one.map(steps) for one in each)

    if what == "quartiles":
        answer, spent = quantiles(QUARTILES, np.linspace(*ends, CANDIDATES).tolist())
        yield "quantiles of candidates", answer, {"spent": spent}
        edges, branches = np.linspace(*ends, BINS + 1).tolist(), dp.t.choose_branching_factor(BINS)
        free = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        tree = free >> dp.t.then_find_bin(edges=edges[1:-1])
        tree = tree >> dp.t.then_count_by_categories([*range(BINS)], null_category=False)
        tree = tree >> dp.t.then_b_ary_tree(leaf_count=BINS, branching_factor=branches)
        release = tree >> dp.m.then_laplace(scale=(tree >> dp.m.then_laplace(scale=1.0)).map(steps) / epsilon)
        consistent = dp.t.make_consistent_b_ary_tree(branches)
        read = dp.t.make_quantiles_from_counts(edges, list(QUARTILES))
        yield "tree of counts", lambda one: read(consistent(release(one))), {"spent": release.map(steps)}
        return
    for rule, places in ENDS_OF.items():
        answer, spent = quantiles(places, PLACES.tolist())
        yield rule, lambda one, rule=rule, answer=answer: widened(rule, *answer(one)), {"spent": spent}


def smartnoise(what, sets, epsilon, ends, levels, rng):
    """Neighbours: one record more or fewer. It has no quantiles, and states no accuracy any more."""
    del ends, rng
    if what == "bounds":
        from snsql.sql._mechanisms.approx_bounds import approx_bounds

        found = lambda one: np.array(approx_bounds(one, epsilon / 2), float)  # noqa: E731, (None, None) is NaN
        yield "approximate bounds", found, {}
    if what == "counts":
        import pandas as pd
        from snsql import Privacy, from_df

        query = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
        about = {"row_privacy": True, "censor_dims": False, "rows": sets.shape[1], "c": {"type": "int"}}
        privacy = {"epsilon": epsilon / 2, "delta": 1e-6}

        def counted(one):
            reader = from_df(pd.DataFrame({"c": one}), privacy=Privacy(**privacy), metadata={"": {"": {"t": about}}})
            found = dict(reader.execute(query)[1:])
            return [found.get(level, np.nan) for level in range(levels)]

        reader = from_df(pd.DataFrame({"c": sets[0]}), privacy=Privacy(**privacy), metadata={"": {"": {"t": about}}})
        yield "COUNT(*)", counted, {"spent": 2 * reader.get_privacy_cost(query)[0]}


NAMES = {"diffprivlib": diffprivlib, "opendp": opendp, "smartnoise": smartnoise}
DISTRIBUTIONS = {"smartnoise": "smartnoise-sql"}  # where it has another name


def main() -> None:
    library, source, out = sys.argv[1:]
    with np.load(source) as file:
        asked = dict(file)
    what, sets, levels = str(asked["what"]), asked["sets"], int(asked["levels"])
    ends = tuple(asked["ends"].tolist())
    rng, drawn = np.random.default_rng(int(asked["seed"])), {}
    for method, answer, about in NAMES[library](what, sets, float(asked["epsilon"]), ends, levels, rng):
        inputs = [one.tolist() for one in sets] if library == "opendp" else list(sets)
        start = time.perf_counter()
        found = [answer(one) for one in inputs]
        seconds = (time.perf_counter() - start) / len(sets)
        drawn[method] = np.asarray(found, float)
        drawn[f"{method},about"] = np.array([seconds, about.get("reach", np.nan), about.get("spent", np.nan)])
    version = importlib.metadata.version(DISTRIBUTIONS.get(library, library))
    np.savez_compressed(out, version=version, **drawn)


if __name__ == "__main__":
    main()

"""MICr of all 8256 pairs of a table like the Baseball one (129 columns, 337 rows, many ties), B = n**0.6.

Peer: minepy's C library (GPL; never shipped here), called in this process through ctypes. Build it once from the
minepy 1.2.6 source distribution, `gcc -O3 -march=native -shared -fPIC libmine/mine.c -o libmine.so -lm`, and
name it in JAXDP_LIBMINE; without it the row has no peer.
"""

import ctypes
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from jaxdp.published import mic_minepy
from jaxdp.statistics.mic import coefficients as mic
from jaxdp.statistics.mic import mic_bins, mic_grids, mic_pairs

RECORDS, COLUMNS, PEER_PAIRS, CHECKED_PAIRS = 337, 129, 60, 6
TOLERANCE = 5e-6
BOUNDS = (-0.0137, 1.0091)  # no rounded value lies on a cell boundary, where float32 and float64 may differ

CASES = {
    "c15": {"columns": COLUMNS, "c": 15.0, "goal": 40.0, "goal_both": 20.0},
    "c5": {"columns": COLUMNS, "c": 5.0, "goal": 30.0, "goal_both": 15.0},
    "c15_minepy_grid": {"columns": COLUMNS, "c": 15.0, "goal": 25.0, "goal_both": 12.0, "grids": mic_minepy.sizes},
    "c5_minepy_grid": {"columns": COLUMNS, "c": 5.0, "goal": 25.0, "goal_both": 12.0, "grids": mic_minepy.sizes},
    "c5_d20": {"columns": 20, "c": 5.0, "goal": None, "goal_both": None},
}
QUICK = ("c5_d20",)


def build(columns: int, c: float, goal: float, goal_both: float, grids=mic_grids.grids) -> Case:
    """Coefficients of every pair in float32; the agreement check is float64 pair by pair.

    grids=`mic_minepy.sizes` searches master grids of minepy's sizes, c floor(B/l) for every l: as much work as the
    peer does.
    """
    table = draw(columns)
    budget = RECORDS**0.6
    pairs = mic_pairs.all_pairs(columns)
    arguments = (jnp.asarray(table, jnp.float32),)
    sizes = grids(budget, c)
    ours = functools.partial(coefficients, pairs=pairs, sizes=sizes)

    def agree() -> dict[str, float]:
        found = np.asarray(ours(*arguments))
        worst = 0.0
        single = np.asarray(arguments[0])
        with jax.enable_x64(True):
            for k in np.random.default_rng(1).integers(0, len(pairs), CHECKED_PAIRS):
                x, y = (single[:, column].astype(float) for column in pairs[k])
                exact = float(mic._largest(mic._range_matrix(x, y, np.array([BOUNDS, BOUNDS]), sizes)))
                worst = max(worst, abs(float(found[k]) - exact))
        return {"error": worst, "tolerance": TOLERANCE}

    peers = {}
    if os.environ.get("JAXDP_LIBMINE"):
        chosen = pairs[:: max(1, len(pairs) // PEER_PAIRS)]
        peers["minepy"] = Peer(
            minepy_loop, (table, chosen, c), units=len(chosen), goal=goal, goal_both=goal_both, both_cores=True
        )
    programs = len(mic_grids.buckets(sizes, len(pairs)))
    return Case(
        ours=ours,
        arguments=arguments,
        units=len(pairs),
        unit="pair",
        agree=agree,
        peers=peers,
        extra=lambda: {"programs": programs},
        compiled=False,
    )


def coefficients(table, pairs, sizes):
    """MICr of the pairs over the grids given, (m,): `mic_r_pairs` with a choice of grids that it does not offer."""
    unit = mic_bins.unit_position(table, *BOUNDS)
    return mic_pairs._over_buckets(unit, pairs, mic_grids.buckets(sizes, len(pairs)), mic_bins.RANGE, False)


def draw(columns: int) -> np.ndarray:
    """Columns in [0, 1] that share one factor; a third whole numbers, a third rates with many zeros, a third smooth."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(RECORDS, 3))
    table = factor @ rng.normal(size=(3, columns)) + rng.normal(size=(RECORDS, columns))
    table = (table - table.min(0)) / (table.max(0) - table.min(0))
    table[:, ::3] = np.round(30 * table[:, ::3]) / 30
    table[:, 1::3] = np.where(table[:, 1::3] < 0.4, 0.0, np.round(100 * table[:, 1::3]) / 100)
    return table


class _Problem(ctypes.Structure):
    _fields_ = (("n", ctypes.c_int), ("x", ctypes.c_void_p), ("y", ctypes.c_void_p))


class _Parameters(ctypes.Structure):
    _fields_ = (("alpha", ctypes.c_double), ("c", ctypes.c_double), ("estimator", ctypes.c_int))


def minepy_loop(table, pairs, c: float) -> list[float]:
    """MICe (est="mic_e", alpha = 0.6) of each pair by minepy's C library."""
    library = ctypes.CDLL(os.environ["JAXDP_LIBMINE"])
    library.mine_compute_score.restype = ctypes.c_void_p
    library.mine_mic.restype = ctypes.c_double
    library.mine_mic.argtypes = [ctypes.c_void_p]
    parameters, found = _Parameters(0.6, c, 1), []
    for i, j in pairs:
        x, y = np.ascontiguousarray(table[:, i]), np.ascontiguousarray(table[:, j])
        score = library.mine_compute_score(
            ctypes.byref(_Problem(len(x), x.ctypes.data, y.ctypes.data)), ctypes.byref(parameters)
        )
        found.append(library.mine_mic(score))
        library.mine_free_score(ctypes.byref(ctypes.c_void_p(score)))
    return found

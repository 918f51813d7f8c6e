"""Made-up trials, as tables of records and as counts, and the textbook's log-rank test by hand."""

import jax
import numpy as np

import jaxdp
from jaxdp.data.dataset import BINARY, Column
from jaxdp.independence.survival import log_rank as private
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS

BINARY_BOUND = 1e-4
SHAPE = (private.PAIR, *private.OF_TIME)
EVENT = Column(BINARY, 2, "died")
TWO = Column(BINARY, 2, "arm")


def drawn_table(seed: int = 0, records: int = 4000):
    """A table of two groups whose shares at risk change with the time."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, records)
    time, gone = rng.exponential(0.8, records), rng.exponential(np.where(group, 0.5, 2.0))
    seen = np.minimum(np.minimum(time, gone), 1.0)
    of_bin, event = log_rank.codes(2.0 * seen - 1.0, (time <= gone).astype(float))
    table = np.zeros(SHAPE)
    np.add.at(table, (group, of_bin.astype(int), event.astype(int)), 1.0)
    return table


def by_hand(table):
    """At risk by group, events by group, O - E of the textbook; a censored record counts half in its bin."""
    at_risk = np.cumsum(table.sum(2)[:, ::-1], axis=1)[:, ::-1][:, :BINS] - 0.5 * table[:, :BINS, 0]
    events = table[:, :BINS, 1]
    return at_risk, events, (events[1] - at_risk[1] / at_risk.sum(0) * events.sum(0)).sum()


def trial(records: int, ratio: float, rate: float = 1.0):
    """A table of a trial: days to death in two arms, with censoring that differs."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, records)
    death, gone = rng.exponential(1.0 / (rate * ratio**arm)), rng.exponential(np.where(arm, 1.5, 4.0))
    return {
        "arm": np.array(["control", "drug"])[arm],
        "days": np.round(365.0 * np.minimum(death, gone)),
        "died": np.array(["no", "yes"])[(death <= gone).astype(int)],
    }


def asked(table, epsilon: float, **more):
    public = {
        "bounds": {"days": (0.0, 730.0)},
        "levels": {"arm": ["control", "drug"], "died": ["no", "yes"]},
        "key": jax.random.key(2),
    }
    return jaxdp.test(table, x="arm", y=["days", "died"], epsilon=epsilon, method="log-rank", **(public | more))


OUTCOME = {
    "arm": {"kind": "binary", "levels": ["control", "drug"]},
    "died": {"kind": "binary", "levels": ["no", "yes"]},
    "days": {"kind": "continuous", "bounds": [0, 730]},
    "survival": {"kind": "survival", "time": "days", "event": "died"},
}

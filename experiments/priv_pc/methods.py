"""The searches compared: name -> (records, epsilon, key) -> Graph."""

from jaxdp import discovery, tune
from jaxdp.discovery.sieve import priv_pc


def sub_sampled(key, records, epsilon):
    """Sieve and examine on the subset that minimises absolute noise (the paper's choice of m)."""
    rounds = len(records.columns) * (len(records.columns) - 1) // 2
    subset = max(2, round(float(tune.subsample_size(records.num_records, epsilon / rounds))))
    return priv_pc(key, records, epsilon=epsilon, subset=min(subset, records.num_records))


def _plain(search, **settings):
    return lambda key, records, epsilon: search(key, records, epsilon=epsilon, **settings)


def _marginals(key, records, epsilon):
    """rho = epsilon^2/2: labelled with its own cost, not comparable with pure epsilon."""
    return discovery.marginal_pc(key, records, rho=epsilon**2 / 2)


METHODS = {
    "table_pc (default)": _plain(discovery.table_pc),
    "svt_pc": _plain(discovery.svt_pc),
    "priv_pc, corrected": _plain(discovery.priv_pc),
    "priv_pc, corrected, sub-sampled": sub_sampled,
    "em_pc": _plain(discovery.em_pc),
    "marginal_pc (zCDP, rho = epsilon^2/2)": _marginals,
}

PUBLISHED = "priv_pc as published (claimed budget, threshold tuned with the truth)"
PUBLISHED_THRESHOLDS = (0.25, 1.0, 4.0)


def published(threshold):
    """Priv-PC with the constant and noise of the paper at one threshold of Definition 6."""
    return _plain(discovery.priv_pc, variant="paper", z=threshold)

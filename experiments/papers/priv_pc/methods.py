"""The searches compared: name -> (records, epsilon, key) -> Graph."""

from jaxdp import discovery, tune
from jaxdp.data import networks
from jaxdp.discovery.methods.priv_pc import priv_pc
from jaxdp.published.curate import adaptive_pc
from jaxdp.published.priv_pc import priv_pc_paper
from jaxdp.published.subsampled_gaussian import gaussian_pc


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


def truth(name):
    """The true network."""
    return networks.load(name)


METHODS = {
    "table_pc (default)": _plain(discovery.table_pc),
    "svt_pc": _plain(discovery.svt_pc),
    "priv_pc, corrected": _plain(discovery.priv_pc),
    "priv_pc, threshold kept": _plain(discovery.priv_pc, refresh=False),
    "priv_pc, corrected, sub-sampled": sub_sampled,
    "em_pc": _plain(discovery.em_pc),
    "adaptive_pc (CURATE style)": _plain(adaptive_pc),
    "marginal_pc (zCDP, rho = epsilon^2/2)": _marginals,
}

PUBLISHED = "priv_pc as published (claimed budget, threshold tuned with the truth)"
PUBLISHED_THRESHOLDS = (0.25, 1.0, 4.0)


def published(threshold):
    """Priv-PC with the constant and noise of the paper at one threshold of Definition 6."""
    return _plain(priv_pc_paper, z=threshold)


DELTA = 1e-6
GAUSSIAN = "gaussian_pc, sub-sampled (own epsilon, delta = 1e-6)"


def gaussian(key, records, epsilon):
    """One row in five, a moments accountant: has its own (epsilon, delta), not comparable with pure epsilon."""
    return gaussian_pc(key, records, epsilon=epsilon, delta=DELTA, subset=records.num_records // 5)


def published_on_all_rows(threshold):
    """The same without sub-sampling."""
    return lambda key, records, epsilon: priv_pc_paper(
        key, records, epsilon=epsilon, z=threshold, subset=records.num_records
    )


def published_twice_the_noise(threshold):
    """Without sub-sampling and with 9/sqrt n in the place of 4.5/sqrt n: half of the budget buys that noise."""
    return lambda key, records, epsilon: published_on_all_rows(threshold)(key, records, epsilon / 2)

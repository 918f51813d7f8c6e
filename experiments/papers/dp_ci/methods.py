"""The tests that are compared, and the scaling each needs."""

import math

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.simulate.designs.confounder import SineLaw
from jaxdp.statistics.kernel_ridge.kernels import RBF

KERNEL = RBF(lengthscale=1.0)


def concentration(n: int) -> float:
    """Scale that bounds n normal variables with high probability: the paper's C sqrt(log n)."""
    return 1.0 + math.sqrt(2.0 * math.log(n))


def gcm_family(n: int, epsilon: float) -> dict:
    """Private GCM as published and tight, PartitionGCM, and the non-private GCM with a good and a heavy ridge."""
    scale = concentration(n)
    private = {"ridge": 10.0, "kernel": KERNEL, "scale_x": scale, "scale_y": scale}
    return {
        "PrivGCM (paper)": jaxdp.published.PaperGCM(epsilon=epsilon, **private),
        "PrivGCM (tight)": jaxdp.PrivateGCM(epsilon=epsilon, **private),
        "PartitionGCM": jaxdp.PartitionGCM(epsilon=epsilon, accept_coarse_cells=True),  # five columns of z too
        "GCM (good ridge, not private)": jaxdp.GCM(kernel=KERNEL),
        "GCM (ridge 10, not private)": jaxdp.GCM(ridge=10.0, kernel=KERNEL),
    }


def crt_family(epsilon: float, complexity: float, num_resamples: int = 19) -> dict:
    """Private CRT as published and its better releases, and the non-private CRT."""
    law = SineLaw(noise_sd=1.0, complexity=complexity)
    return {
        "PrivCRT (paper)": jaxdp.published.PaperCRT(epsilon=epsilon, law=law, num_resamples=num_resamples),
        "PrivCRT (threshold)": jaxdp.PrivateCRT(epsilon=epsilon, law=law, num_resamples=max(99, num_resamples)),
        "PrivCRT (normal)": jaxdp.CRTNormal(epsilon=epsilon, law=law),
        "CRT (not private)": jaxdp.CRT(law=law, num_resamples=num_resamples),
    }


def comparators(epsilon: float) -> dict:
    """The two private tests the paper compares with."""
    return {
        "PrivToT": jaxdp.TestOfTests(epsilon=epsilon, test=jaxdp.GCM(kernel=KERNEL), num_blocks=10, block_level=0.15),
        "Private Kendall (public bins)": jaxdp.ConditionalKendall(epsilon=epsilon, accept_coarse_cells=True),
    }


def heavy(name: str) -> bool:
    """Whether a replicate takes milliseconds: an n x n system, or permutations within cells."""
    if name in ("LocalPermutation", "PrivCRT (paper)"):
        return True
    return ("GCM" in name and "Partition" not in name) or "ToT" in name


def predictions(n: int, complexity: float, ridge: float, seed: int):
    """One sample with its kernel ridge fit: z, x, fit (figure 8)."""
    from jaxdp.statistics.kernel_ridge.ridge import krr_residuals

    data = jaxdp.simulate.sine_confounder(jax.random.key(seed), n, complexity=complexity)
    residual = krr_residuals(KERNEL, ridge, data.z, data.x)
    truth = jaxdp.simulate.confounder.wave(data.z, complexity)
    explained = 1.0 - jnp.sum((data.x - residual - truth) ** 2) / jnp.sum(truth**2)
    return data.z, data.x, data.x - residual, float(explained)

"""Epsilon lower bounds: never above the claim, close to it, and above it for noise that is too small."""

import dataclasses
import json

import jax
import numpy as np
import pytest
import scipy.stats

from jaxdp import audit, core
from jaxdp.accounting.amplification import amplified
from jaxdp.audit import cases, catalogue
from jaxdp.audit import epsilon as bounds
from jaxdp.cli.main import main
from jaxdp.noise import survival
from jaxdp.published import true_losses

pytestmark = pytest.mark.optimised

RUNS = 400_000


def laplace_pair(scale, size=RUNS // 2, seed=0, shift=1.0):
    """Laplace noise rounded to a lattice that the shift respects: floats as they come would be told apart."""
    noise = np.random.default_rng(seed).laplace(scale=scale, size=(2, size))
    noise = np.round(noise * 4096) / 4096
    return noise[0], shift + noise[1]


def test_limits_are_clopper_pearson():
    for hits, sizes in (((900, 100), (1000, 1000)), ((50, 0), (60, 70)), ((60, 60), (60, 60))):
        found = bounds.certain(hits, sizes, 2e-3)
        low = scipy.stats.binomtest(hits[0], sizes[0], alternative="greater").proportion_ci(0.999, "exact").low
        high = scipy.stats.binomtest(hits[1], sizes[1], alternative="less").proportion_ci(0.999, "exact").high
        assert found == pytest.approx(max(0.0, np.log(low / high)), abs=1e-9)
    assert bounds.certain((0, 5), (10, 10), 0.01) == 0.0


def test_delta_is_subtracted_before_the_ratio():
    # a law that is (0, 0.1)-DP: a tenth of the mass is only ever seen on one side
    first = np.where(np.arange(20_000) % 10 == 0, 1.0, 0.0)
    second = np.zeros(20_000)
    rng = np.random.default_rng(0)
    first = rng.permutation(first)
    assert audit.lower_bound(first, second).epsilon > 3
    assert audit.lower_bound(first, second, delta=0.12).epsilon == 0.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_correct_noise_is_bounded_below_and_never_above(epsilon):
    found = audit.lower_bound(*laplace_pair(1 / epsilon))
    # sampling error of the log ratio at the best event: about 5.3 (its two-sided alpha) standard errors
    slack = 5.5 * np.sqrt((1 / 0.5 + 2 * np.exp(epsilon)) / (RUNS / 4))
    assert epsilon - 2 * slack < found.epsilon <= epsilon


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.95])
def test_too_little_noise_is_caught(factor):
    assert audit.lower_bound(*laplace_pair(factor)).epsilon > 1.0


def test_false_alarms_stay_below_alpha():
    # many events, one law: choosing on the counted half would make nearly every bound positive
    alpha, repeats = 0.3, 200
    rng = np.random.default_rng(5)
    alarms = sum(audit.lower_bound(*rng.normal(size=(2, 4000)), alpha=alpha).epsilon > 0 for _ in range(repeats))
    assert alarms <= scipy.stats.binom.ppf(1 - 1e-6, repeats, alpha)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_low_bits_give_floating_point_noise_away(dtype):
    # noise of exactly the right scale, added as floats: the claim of 0.1 is false by far
    noise = np.random.default_rng(1).laplace(scale=10.0, size=(2, 200_000)).astype(dtype)
    found = audit.lower_bound(noise[0], dtype(1.0) + noise[1])
    assert found.epsilon > 0.1
    assert "low bits" in found.event
    assert audit.lower_bound(noise[0], dtype(1.0) + noise[1], low_bits=False).epsilon <= 0.1


# share of the claim that each mechanism's most telling pair must reach in so few runs
REACHED = {
    "exponential": 0.3,
    "top-k": 0.2,
    "cauchy": 0.5,
    "student": 0.25,  # three quarters of the claim are spent
    "smooth-laplace": 0.4,
    "smooth-gaussian": 0.2,
    "rank": 0.6,
    "sparse-vector": 0.5,
    "gaussian": 0.5,
    "random-stopping": 0.2,
}


@pytest.mark.full
@pytest.mark.parametrize("method", sorted(catalogue.MECHANISMS))
def test_every_mechanism_keeps_its_claim_on_every_pair(method):
    for epsilon, pair in ((1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (1.0, 4), (0.5, 0), (2.0, 0)):
        found = audit.audit(method, epsilon, runs=RUNS // 2, key=jax.random.key(3), pair=pair)
        assert found.holds, (epsilon, pair)
        assert found.lower <= epsilon
        if pair == 0 and epsilon == 1.0:
            assert found.lower > REACHED.get(method, 0.8) * epsilon
        assert found.mode == ("release" if method in ("laplace", "geometric") else "simulation")


@pytest.mark.full
@pytest.mark.parametrize(("method", "reached"), [("noisy-max", 0.1), ("sparse-vector", 0.0)])
def test_exact_selections_keep_their_claim(method, reached):
    found = audit.audit(method, 1.0, runs=4096, release=True)
    assert found.mode == "release"
    assert reached <= found.lower <= 1.0


def test_too_little_noise_in_a_mechanism_is_caught():
    """The auditor's own wiring: a mechanism that spends more than it is audited for is refuted."""
    for method in ("noisy-max", "gaussian", "sparse-vector"):
        honest, greedy = (catalogue.MECHANISMS[method](epsilon)[0] for epsilon in (1.0, 2.5))
        swapped = dataclasses.replace(honest, mechanism=greedy.mechanism)
        first, second = (
            catalogue.sample(swapped, jax.random.key(i), value, RUNS // 2)
            for i, value in enumerate((swapped.first, swapped.second))
        )
        assert audit.lower_bound(first, second, delta=swapped.delta, low_bits=False).epsilon > 1.0, method


@pytest.mark.parametrize("method", sorted(catalogue.FLAWED))
def test_flawed_variants_fail(method):
    for epsilon in (0.5, 1.0, 2.0):
        found = audit.audit(method, epsilon)
        assert not found.holds
        assert found.lower > epsilon


def test_flawed_figures():
    assert audit.noisy_rank_loss(1.0) == pytest.approx(1.091, abs=5e-4)
    for count in range(5):
        assert audit.noisy_rank_loss(1.0, level_count=count) <= 1.0 + 1e-6
    assert [audit.algorithm_2_loss(1.0, ratio) for ratio in (2, 5, 20)] == pytest.approx([1.12, 1.56, 4.73], abs=5e-3)
    assert audit.algorithm_3_loss(1.0, 16) == pytest.approx(4.0, abs=1e-6)


def test_rank_quadrature_against_counting():
    statistics = np.array([0.3, -1.0, 0.7, 2.0])
    rng = np.random.default_rng(2)
    noisy = statistics + rng.laplace(scale=2.0, size=(400_000, 4))
    counts = np.bincount(np.sum(noisy[:, 1:] >= noisy[:, :1], axis=1), minlength=4)
    law = true_losses.noisy_rank_law(statistics, 1.0)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert scipy.stats.chisquare(counts, law / law.sum() * counts.sum()).pvalue > 1e-6


def sparse_vector_loss(threshold_scale: float, query_scale: float, queries: int = 20_000) -> float:
    """Largest loss found for one sparse-vector round of sensitivity 1 (Laplace noise), by quadrature.

    The first query that reaches the noisy threshold ends the round. Worst pair: many silent queries move up, the
    one above the threshold moves down. The supremum is 1/threshold_scale + 2/query_scale.
    """
    losses = []
    for silent in np.linspace(-30.0, 30.0, 31) * max(threshold_scale, query_scale):
        laws = []
        for shift in (0.0, 1.0):
            fires = silent - 60.0 * query_scale - 60.0 * threshold_scale - shift
            x, weight = true_losses._quadrature(np.array([0.0, silent + shift]), max(threshold_scale, query_scale))
            density = np.exp(-np.abs(x) / threshold_scale) / (2 * threshold_scale)
            quiet = np.exp(
                queries * np.log1p(-np.minimum(survival.laplace(x - silent - shift, query_scale, xp=np), 1 - 1e-15))
            )
            laws.append(float(np.sum(weight * density * quiet * survival.laplace(x - fires, query_scale, xp=np))))
        if min(laws) > 1e-200:
            losses.append(abs(np.log(laws[0] / laws[1])))
    return max(losses)


def test_round_of_algorithm_2_by_quadrature():
    # the loss of the printed threshold noise on the subsample, then amplification, is the closed form
    ratio, epsilon = 20.0, 1.0
    sieve = np.log1p(ratio * np.expm1(epsilon / 2))
    loss = sparse_vector_loss(2 / (np.sqrt(ratio) * sieve), 4 / sieve)
    assert amplified(loss, 1 / ratio) + epsilon / 2 == pytest.approx(audit.algorithm_2_loss(epsilon, ratio), rel=1e-3)
    assert sparse_vector_loss(2 / sieve, 4 / sieve) == pytest.approx(sieve, rel=1e-3)


# share of the declared bound that a short search reaches: 1 where the bound is attained by a simple pair
FOUND = {"unit-circle": 0.99, "projected-chi2": 0.99}


@pytest.mark.full
@pytest.mark.parametrize("method", ["unit-circle", "projected-chi2", "partition-gcm"])
def test_audit_of_a_test_by_name(method):
    found = audit.audit(method, 2.0, runs=20_000, key=jax.random.key(1))
    assert found.holds
    assert FOUND.get(method, 0.3) < found.sensitivity <= 1.0 + 1e-3
    assert found.lower > 0.2


@pytest.mark.full
def test_audit_of_a_test_of_ones_own():
    found = audit.audit("examples.cell_signs:CellSigns", 1.0, runs=20_000, key=jax.random.key(1))
    assert found.holds
    assert 0.9 < found.sensitivity <= 1.0 + 1e-3
    assert found.lower > 0.4


def test_the_cost_of_an_audited_test_is_the_claim():
    """Many tables cost a multiple of the epsilon of each, and so do published variants with their true cost."""
    for name in ("every-table", "conditional-kendall-paper"):
        found = cases.find(name)
        test = found.audited(1.0)
        cost = core.cost_of(test, found.searched(jax.random.key(0)))
        assert float(cost.epsilon) == pytest.approx(1.0, rel=1e-6), name
        assert float(test.epsilon) < 0.6, name


@pytest.mark.full
def test_audit_of_a_test_that_resamples(monkeypatch):
    monkeypatch.setattr(catalogue, "CANDIDATES", 3)
    found = audit.audit("private-crt-normal", 2.0, runs=20_000, key=jax.random.key(1))
    assert found.holds
    assert found.sensitivity is None
    assert found.lower > 0.1


@pytest.mark.nightly
@pytest.mark.parametrize("method", sorted(name for name, found in cases.all_examples().items() if found.recorded))
def test_audit_of_every_test(method):
    whole = cases.find(method).example.coupled
    found = audit.audit(method, 1.0, runs=100_000 if whole else 1_000_000, key=jax.random.key(2))
    assert found.holds
    assert found.lower > 0.2 or whole or method == "chosen-cells-choice"  # its scores move together


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"method": "laplace2"}, "one of laplace"), ({"epsilon": -1.0}, "epsilon"), ({"runs": 3}, "runs")],
)
def test_bad_audits(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit.audit(**{"method": "laplace", "epsilon": 1.0, **arguments})
    with pytest.raises(ValueError, match="100 runs"):
        audit.lower_bound(np.zeros(5), np.zeros(5))


def test_command(tmp_path, capsys):
    assert main(["audit", "geometric", "--epsilon", "1", "--runs", "1e5", "--out", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["holds"] is True
    assert 0.8 < result["lower"] <= 1.0
    assert result["mode"] == "release"
    assert (tmp_path / "audit.png").read_bytes()[:4] == b"\x89PNG"
    assert "the claim stands" in capsys.readouterr().out
    assert main(["audit", "geometric", "--runs", "1e5", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "result.json").read_text())
    assert main(["audit", "algorithm-3", "--out", str(tmp_path)]) == 0
    assert "THE CLAIM IS FALSE" in capsys.readouterr().out
    assert main(["audit", "nonsense", "--out", str(tmp_path)]) == 2
    assert main(["audit", "laplace", "--runs", "3", "--out", str(tmp_path)]) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("method", sorted(catalogue.MECHANISMS))
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_mechanisms_at_ten_million_runs(method, epsilon):
    runs = 10_000_000 if method in ("laplace", "geometric", "gaussian", "noisy-max", "exponential") else 1_000_000
    for pair in range(5):
        assert audit.audit(method, epsilon, runs=runs, key=jax.random.key(11), pair=pair).holds


@pytest.mark.nightly
def test_one_percent_too_little_noise_is_caught():
    for seed in range(3):
        assert audit.lower_bound(*laplace_pair(0.99, size=10_000_000, seed=seed)).epsilon > 1.0

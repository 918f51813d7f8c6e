"""Query-by-query discovery in releases: certificates, uniform subsets, rounding of queries, the command line."""

import functools
import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom
from test_lattice import key_of

import jaxdp
from jaxdp import discovery
from jaxdp.accounting.amplification import amplified, before_amplification
from jaxdp.data import networks
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import default_query, rounding
from jaxdp.discovery.methods import priv_pc
from jaxdp.noise import source
from jaxdp.noise.recorder import Tape
from jaxdp.randomness import subset
from jaxdp.randomness.keys import RecordedKey
from jaxdp.simulate.designs.networks import sample_network


@pytest.fixture(scope="module")
def cancer():
    return sample_network(jax.random.key(0), networks.load("cancer"), 4000)


@pytest.fixture
def certificates(monkeypatch):
    """Of every exact draw of the test, in order."""
    found, real = [], source.LatticeNoise.draw

    def draw(self, *given):
        before = len(self.certificates)
        output = real(self, *given)
        found.extend(self.certificates[before:])
        return output

    monkeypatch.setattr(source.LatticeNoise, "draw", draw)
    return found


@pytest.mark.parametrize(
    "search", [discovery.svt_pc, discovery.priv_pc, functools.partial(discovery.priv_pc, refresh=False)]
)
def test_releases_are_certified_for_the_whole_search(search, cancer, certificates):
    graph = search(jaxdp.fresh_key(), cancer, epsilon=20.0, max_order=1)
    assert graph.mode == "release"
    assert float(graph.cost.epsilon) == 20.0
    assert sum(facts.epsilon for facts in certificates) <= 20
    assert certificates[0].law == "sparse_vector"
    assert graph.num_tests >= 10
    key = jaxdp.fresh_key()
    search(key, cancer, epsilon=20.0, max_order=0)
    with pytest.raises(ValueError, match="used already"):
        search(key, cancer, epsilon=20.0, max_order=0)


def test_rounds_on_subsets_spend_what_they_say(cancer, certificates):
    rounds, m, draws = 5, 1000, Tape()
    key = RecordedKey(jaxdp.fresh_key(), draws)
    graph = discovery.priv_pc(key, cancer, epsilon=20.0, subset=m, max_rounds=rounds, max_order=1)
    sieves = [facts for facts in certificates if facts.law == "sparse_vector"]
    looks = [facts for facts in certificates if facts.law == "laplace"]
    rate = Fraction(m, cancer.num_records)
    for facts in sieves:
        assert amplified(float(facts.epsilon), rate) <= 2.0
        assert amplified(float(facts.epsilon), rate) == pytest.approx(2.0, rel=1e-9)
    assert all(1.999 < facts.epsilon <= 2 for facts in looks)
    assert len(looks) <= rounds
    assert len(sieves) in (len(looks), len(looks) + 1)
    laws = [call.law.name for call in draws.calls]
    assert laws.count("sparse_threshold") == len(sieves)
    assert laws.count("laplace") == len(looks)
    used = [np.asarray(jax.random.key_data(call.key)).tobytes() for call in draws.calls]
    assert len(set(used)) == len(used)
    assert graph.complete == (len(looks) < rounds)


def test_a_kept_threshold_is_paid_for_once(cancer):
    plan = priv_pc.kept_threshold(0.4, 10, 0.7)
    spent = 1.0 / plan.scale_threshold + 10 * (2.0 / plan.scale_query + 1.0 / plan.scale_examine)
    assert spent == pytest.approx(0.4, rel=1e-6)
    draws = Tape()
    key = RecordedKey(jax.random.key(3), draws)
    graph = discovery.priv_pc(key, cancer, epsilon=50.0, refresh=False, max_rounds=4)
    laws = [call.law.name for call in draws.calls]
    assert laws.count("sparse_threshold") == 1
    assert laws.count("laplace") <= 4
    fired = [call.output for call in draws.calls if call.law.name == "sparse_answer"]
    assert sum(map(bool, fired)) == laws.count("laplace")
    assert graph.complete == (laws.count("laplace") < 4)
    with pytest.raises(ValueError, match="refresh"):
        discovery.priv_pc(jax.random.key(0), cancer, epsilon=1.0, refresh=False, subset=100)


def test_amplification_is_rounded_the_safe_way():
    for epsilon, rate in itertools.product(
        (1e-3, 0.37, 2.0, 800.0), (Fraction(1, 3), Fraction(999, 1000), Fraction(1))
    ):
        base = before_amplification(epsilon, rate)
        assert amplified(base, rate) == pytest.approx(epsilon, rel=1e-14)
        assert base == pytest.approx(
            epsilon - math.log(rate) if epsilon > 9 else math.log1p(math.expm1(epsilon) / rate)
        )
    assert before_amplification(0.37, 1) == 0.37 == amplified(0.37, 1)


def test_subsets_are_uniform_and_without_replacement():
    counts: dict = {}
    for key in jax.random.split(key_of(1), 2000):
        rows = subset.uniform_subset(key, 5, 2)
        assert rows[0] < rows[1]
        counts[tuple(rows)] = counts.get(tuple(rows), 0) + 1
    assert len(counts) == 10
    assert all(binom.ppf(1e-7, 2000, 0.1) <= c <= binom.ppf(1 - 1e-7, 2000, 0.1) for c in counts.values())
    everyone = subset.uniform_subset(jax.random.key(0), 1000, 1000)
    assert everyone.tolist() == list(range(1000))


def test_equal_words_are_drawn_anew(monkeypatch):
    """Words of one bit: among forty, two are equal for sure; the third attempt gets real bits."""
    real, attempts = subset._words, []

    def words(key, attempt, total):
        attempts.append(attempt)
        return real(key, attempt, total) & jnp.uint32(1 if attempt < 2 else 2**32 - 1)

    monkeypatch.setattr(subset, "_words", words)
    assert subset.uniform_subset(key_of(2), 40, 3).size == 3
    assert attempts == [0, 1, 2]


def exact_query(table, z, rate, bound, offset):
    """The query of two binary columns in fractions, rounded once."""
    u = v = Fraction(0)
    for (a, b), (c, d) in table.tolist():
        n = a + b + c + d
        if n > 1:
            u += Fraction(a * d - b * c, n)
            v += Fraction((a + b) * (c + d) * (a + c) * (b + d), n * n * (n - 1))
    under = rate * v + Fraction(offset)
    root = Fraction(math.isqrt(under.numerator * under.denominator << 400), under.denominator << 200)
    return (Fraction(z) * root - abs(u)) / Fraction(bound)


@pytest.mark.parametrize("n", [10, 3000, 200_000])
def test_rounding_bound_holds_against_fractions(n):
    rng, levels = np.random.default_rng(n), (2, 2, 9, 7)
    worst = 0.0
    for skew in (0.5, 0.02):
        codes = np.stack([rng.random(n) < skew, rng.random(n) < 0.3, rng.integers(0, 9, n), rng.integers(0, 7, n)], 1)
        records = as_records(codes.astype(int), levels)
        query, counts = default_query(3.7, n, 0.3), Counts(records)
        for given in ((), (2,), (2, 3)):
            value = query.value(counts, (0, 1, given))
            table = np.asarray(counts.pair_given(0, 1, given))
            bound = query.bound((0, 1, given), levels)
            exact = exact_query(table, 3.7, Fraction(0.3), bound, query.offset)
            worst = max(worst, abs(float(Fraction(value) - exact)))
    assert worst <= rounding(records, 3.7)


def test_bad_budgets_fail_before_the_ledger_is_charged(cancer, tmp_path):
    from jaxdp.accounting.ledger import Ledger

    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=10.0)
    continuous = as_records(np.zeros((5, 2)), (2, 0))
    for search in (discovery.svt_pc, discovery.priv_pc):
        with pytest.raises(ValueError, match="continuous"):
            search(jaxdp.fresh_key(), continuous, epsilon=1.0, ledger=ledger)
        with pytest.raises(ValueError, match="must be"):
            search(jaxdp.fresh_key(), cancer, epsilon=1.0, z=-1.0, ledger=ledger)
    discovery.svt_pc(jaxdp.fresh_key(), cancer, epsilon=10.0, max_order=0, ledger=ledger)


def test_command_line_releases_priv_pc(tmp_path):
    import json

    from jaxdp.cli.main import main

    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{a if rng.random() < 0.9 else 1 - a},{rng.integers(2)}" for a in rng.integers(0, 2, 400))
    (tmp_path / "d.csv").write_text("a,b,c\n" + rows)
    (tmp_path / "s.toml").write_text(
        "".join(f'[columns.{c}]\nkind = "binary"\nlevels = ["0", "1"]\n' for c in ("a", "b", "c"))
    )
    where = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    assert main(["discover", *where, "--method", "priv_pc", "--epsilon", "30"]) == 0
    content = json.loads((tmp_path / "out/result.json").read_text())
    assert (content["mode"], content["epsilon"]) == ("release", 30.0)

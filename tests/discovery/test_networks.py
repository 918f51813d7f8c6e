"""Built-in networks, the .bif reader, and the forward sampler."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import chi2

from jaxdp.data import networks
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.orientation import is_acyclic
from jaxdp.simulate.designs.networks import sample_network
from jaxdp.statistics.tables import contingency

BIF = """network unknown { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable grass { type discrete [ 3 ] { dry, damp, wet }; }
probability ( rain ) { table 0.25, 0.75; }
probability ( grass | rain ) { (yes) 0.1, 0.2, 0.7; (no) 0.6, 0.3, 0.1; }
"""


def joint(network):
    """Exact joint law, by the chain rule, in a plain loop."""
    names = network.names
    law = np.zeros([len(network.variables[name].states) for name in names])
    for index in itertools.product(*map(range, law.shape)):
        p = 1.0
        for name, state in zip(names, index, strict=True):
            variable = network.variables[name]
            p *= variable.probabilities[(*(index[names.index(parent)] for parent in variable.parents), state)]
        law[index] = p
    return law


@pytest.mark.parametrize("name", networks.names())
def test_samples_have_the_joint_law(name):
    network, n = networks.load(name), 20_000
    records = sample_network(jax.random.key(1), network, n)
    counts, law = contingency.joint_table(records.values, records.levels), joint(network)
    assert law.sum() == pytest.approx(1.0)
    assert counts.sum() == n
    assert np.all(counts[law == 0] == 0)  # "either" is a deterministic OR
    likely = n * law > 5
    rest = n * (1 - law[likely].sum())
    statistic = np.sum((counts[likely] - n * law[likely]) ** 2 / (n * law[likely]))
    statistic += (counts[~likely].sum() - rest) ** 2 / max(rest, 1.0)
    assert statistic < chi2.isf(1e-6, likely.sum())


def test_networks_are_acyclic_and_have_the_published_sizes():
    sizes = {name: (len(networks.load(name).names), int(networks.load(name).dag.sum())) for name in networks.names()}
    assert sizes == {"asia": (8, 8), "cancer": (5, 4), "earthquake": (5, 4), "survey": (6, 6)}
    assert all(is_acyclic(networks.load(name).dag) for name in sizes)
    assert {len(edges) for edges in networks.REFERENCE_SKELETONS.values()} == {4, 6}
    with pytest.raises(ValueError, match="network must be one of"):
        networks.load("alarm")


def test_bif_reader(tmp_path):
    path = tmp_path / "rain.bif"
    path.write_text(BIF)
    network = networks.read_bif(path)
    assert network.names == ("rain", "grass")
    assert network.variables["grass"].states == ("dry", "damp", "wet")
    assert network.variables["grass"].probabilities.tolist() == [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]
    for old, new, message in (
        ("0.25, 0.75", "0.25, 0.85", "sum to 1"),
        ("(no) 0.6, 0.3, 0.1;", "", "without a row"),
        ("(no)", "(maybe)", "not a state"),
        ("0.25, 0.75", "0.25", "needs 2 numbers"),
        ("grass | rain", "grass | sun", "undeclared"),
        ("probability ( rain ) { table 0.25, 0.75; }", "", "no probability block"),
    ):
        path.write_text(BIF.replace(old, new))
        with pytest.raises(ValueError, match=message):
            networks.read_bif(path)
    path.write_text("hello")
    with pytest.raises(ValueError, match="declares no variable"):
        networks.read_bif(path)


def test_records_need_public_levels():
    codes = np.zeros((4, 2), int)
    with pytest.raises(ValueError, match="levels is needed"):
        as_records(codes)
    records = as_records(codes, (2, 0), ("a", "b"))
    assert (records.levels, records.names, records.num_records) == ((2, 0), ("a", "b"), 4)
    with pytest.raises(ValueError, match="one column per description"):
        Records(codes, records.columns[:1])


def test_joint_table_streams_chunks_and_clips_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (1000, 3))
    whole = contingency.joint_table(codes, (3, 3, 3))
    assert whole.dtype == np.int64
    assert np.array_equal(whole, contingency.joint_table(codes, (3, 3, 3), chunk_records=128))
    assert np.array_equal(whole, contingency.joint_table(iter([codes[:300], codes[300:]]), (3, 3, 3)))
    expected = np.zeros((3, 3, 3), int)
    np.add.at(expected, tuple(codes.T), 1)
    assert np.array_equal(whole, expected)
    assert np.array_equal(contingency.marginal(whole, (2, 0)), whole.sum(1).T)
    assert contingency.joint_table(np.array([[-5.0, np.nan], [9.0, np.inf]]), (2, 2)).tolist() == [[1, 0], [0, 1]]
    assert contingency.joint_table(np.zeros((0, 2)), (2, 2)).sum() == 0
    with pytest.raises(ValueError, match="cells"):
        contingency.joint_table(codes, (1000, 1000, 1000))
    with pytest.raises(ValueError, match="columns"):
        contingency.joint_table(codes, (3, 3))

"""Tables of unshielded triples: how far one record moves them, and what they say about colliders."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Relation
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.directions import Contrasts
from jaxdp.discovery.engine.number_noise import NormalNoise
from jaxdp.discovery.methods.max_min_pc import BLUR, BOTH, CAP, EFFECT, TripleTables, evidence
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey

N, SETTINGS = 4000, {"delta": 1e-6, "prune": "keep", "directions": 0.5}


def star(generator, first=None):
    """One column that is copied, with errors, by three others; the first record may be given."""
    middle = generator.integers(2, size=N)
    rows = np.stack([middle, *(np.where(generator.random(N) < 0.9, middle, 1 - middle) for _ in range(3))], axis=1)
    rows[0] = rows[0] if first is None else first
    return as_records(rows.astype(np.int32), (2,) * 4)


def released(records, outputs=None, relation=Relation.REPLACE_ONE):
    """The graph, and the noise calls of a search."""
    tape = Tape(outputs=outputs)
    key = RecordedKey(jax.random.key(3), tape)
    return jaxdp.discovery.max_min_pc(key, records, epsilon=20.0, relation=relation, **SETTINGS), tape.calls


def test_a_record_that_moves_in_every_table_reaches_the_bound():
    """All columns of one record change, so every table loses a count in one cell and gains one in another."""
    _, calls = released(star(np.random.default_rng(0), (0, 0, 0, 0)))
    _, others = released(star(np.random.default_rng(0), (1, 1, 1, 1)), [call.output for call in calls])
    tables, moved = calls[-1], np.asarray(others[-1].value) - np.asarray(calls[-1].value)
    assert tables.law.name == "gaussian"
    assert set(np.abs(moved).tolist()) == {0.0, 1.0}
    assert 0.999 < np.linalg.norm(moved) / float(tables.parameters[0]) <= 1.0


def test_tables_of_a_private_number_of_records_move_by_one_cell_each():
    _, calls = released(star(np.random.default_rng(0)), relation=Relation.ADD_OR_REMOVE_ONE)
    count = np.size(calls[-1].value) // 8
    assert float(calls[-1].parameters[0]) == pytest.approx(count**0.5, rel=1e-9)


def test_the_arrows_follow_from_what_was_released():
    graph, calls = released(star(np.random.default_rng(0)))
    other, again = released(star(np.random.default_rng(7)), [call.output for call in calls])
    np.testing.assert_array_equal(graph.cpdag, other.cpdag)
    np.testing.assert_array_equal(graph.arrow_shares, other.arrow_shares)
    assert not np.array_equal(calls[-1].value, again[-1].value)


def test_pure_epsilon_releases_no_tables():
    tape = Tape()
    records = star(np.random.default_rng(0))
    jaxdp.discovery.max_min_pc(RecordedKey(jax.random.key(3), tape), records, epsilon=20.0, prune="keep")
    assert max(np.size(call.value) for call in tape.calls if call.law.name == "max_norm") < 8


def table(generator, collider: bool):
    """i, j and their middle k: k is what both copy, or copies one or the other."""
    first, second = generator.integers(2, size=(2, N))
    if collider:
        rows = first, second, np.where(generator.random(N) < 0.5, first, second)
    else:
        rows = (*(np.where(generator.random(N) < 0.8, first, 1 - first) for _ in range(2)), first)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, rows, 1.0)
    return counts


@pytest.mark.parametrize("collider", [False, True])
def test_tables_tell_colliders_where_contrasts_are_noise(collider):
    generator = np.random.default_rng(4)
    right = 0
    for _ in range(20):
        noisy = table(generator, collider) + generator.normal(0.0, 20.0, (2, 2, 2))
        contrasts = Contrasts([(0, 2, 1)], np.zeros(1), NormalNoise(1000.0), N)
        weight = TripleTables(contrasts, [noisy], 400.0).weights()[0] - contrasts.weights()[0]
        assert abs(weight) <= CAP
        right += (weight > 1.0) if collider else (weight < -1.0)
    assert right == 20


def test_a_table_is_silent_where_its_ends_depend_with_the_middle_and_without():
    counts = np.full((2, 2, 2), 300.0)
    counts[0, 0] = counts[1, 1] = 700.0
    contrasts = Contrasts([(0, 2, 1)], np.array([500.0]), NormalNoise(100.0), N)
    tables = TripleTables(contrasts, [counts], 25.0)
    assert min(evidence(counts, 25.0), evidence(counts.sum(2, keepdims=True), 50.0)) > BOTH
    np.testing.assert_array_equal(tables.weights(), contrasts.weights())


@pytest.mark.parametrize("shape", [(2, 2, 1), (3, 2, 2), (4, 3, 3)])
def test_evidence_is_the_ratio_of_two_normal_laws(shape):
    """By covariances of all residuals at once: noise and sampling, and those with a dependence."""
    generator = np.random.default_rng(9)
    counts, variance = generator.uniform(50.0, 900.0, shape), 300.0
    n, expected = counts.sum(), 0.0
    for level in range(shape[2]):
        stratum = counts[:, :, level]
        total, p, q = stratum.sum(), stratum.sum(1) / stratum.sum(), stratum.sum(0) / stratum.sum()
        residual = (stratum - total * np.outer(p, q))[:-1, :-1].ravel()
        left, right = ((np.eye(len(one)) - one[:, None])[:-1] for one in (p, q))
        sampling = total * np.kron(*((np.diag(one) - np.outer(one, one))[:-1, :-1] for one in (p, q)))
        none = variance * np.kron(left @ left.T, right @ right.T) + sampling * (1.0 + BLUR**2 * n)
        some = none + sampling * EFFECT**2 * n
        for law, sign in ((some, 1.0), (none, -1.0)):
            expected -= sign * (np.linalg.slogdet(law)[1] + residual @ np.linalg.solve(law, residual)) / 2.0
    assert evidence(counts, variance) == pytest.approx(expected, rel=1e-5)


def test_evidence_of_noise_alone_is_about_nothing():
    generator = np.random.default_rng(2)
    found = [evidence(generator.normal(0.0, 50.0, (3, 3, 4)), 2500.0) for _ in range(50)]
    assert np.abs(found).max() < 0.5

"""Cells of Z: centring groups are unions of the test's cells, and a test whose cells are too coarse refuses."""

import dataclasses
import functools
import itertools
import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core, discovery, interop, plan
from jaxdp.ask.graph import GraphAnswer
from jaxdp.cli.main import main
from jaxdp.data import Column, Domain
from jaxdp.data.records import as_records
from jaxdp.discovery import choose
from jaxdp.discovery.engine.answerable import largest_order
from jaxdp.discovery.methods import pc
from jaxdp.independence.continuous import partition_gcm, partition_stages
from jaxdp.independence.continuous.coarse_cells import CoarseCells
from jaxdp.plan import continuous
from jaxdp.plan.solve import PlannedTest
from jaxdp.statistics import partition

ONE = core.Relation.REPLACE_ONE
CODED = Column("categorical", 3)
LINE = Column()
LAWS = (None, partition.Uniform(lower=-2.0, upper=2.0), partition.Normal(mean=0.3, sd=0.7), partition.Cauchy(scale=2.0))


def values(columns, n, seed=0):
    """Records of z, (n, d), the values of continuous columns spread over and beyond [-1, 1]."""
    rng = np.random.default_rng(seed)

    def draw(c):
        return rng.integers(0, c.levels, n) if c.levels else rng.normal(0.0, 0.8, n)

    return np.stack([np.asarray(draw(column), np.float32) for column in columns], 1)


def described(columns, n, domain=True):
    z, blank = values(columns, n), np.zeros(n, np.float32)
    return jaxdp.Data(blank, blank, z, Domain(z=tuple(columns)) if domain else None)


def assert_nested(test, data):
    """No cell of the test lies in two groups."""
    cell, num_cells = test.cells(data)
    group, num_groups = partition_stages.centring_groups(data, test.num_cells, test.reference, test.axes)
    cell, group = np.asarray(cell), np.asarray(group)
    assert group.min() >= 0
    assert group.max() < num_groups <= num_cells
    pairs = np.unique(np.stack([cell, group]), axis=1)
    assert pairs.shape[1] == np.unique(cell).size
    return group


@pytest.mark.parametrize("columns", [(LINE,), (LINE, LINE), (LINE, CODED), (CODED, LINE, LINE), (LINE,) * 3, (CODED,)])
def test_every_centring_group_is_a_union_of_cells(columns):
    for n, num_cells in itertools.product((1000, 9011), (None, 1, 5, 37, 130)):
        law = LAWS[(n + (num_cells or 0)) % len(LAWS)]
        assert_nested(jaxdp.PartitionGCM(epsilon=1.0, num_cells=num_cells, reference=law), described(columns, n))


@pytest.mark.parametrize("law", LAWS)
def test_groups_nest_under_every_reference_law_and_without_a_domain(law):
    for depth, domain in ((1, True), (2, True), (2, False)):
        data = described((LINE,) * depth, 9011, domain)
        groups = assert_nested(jaxdp.PartitionGCM(epsilon=1.0, reference=law), data)
        assert np.unique(groups).size > 4  # not one group for all


@pytest.mark.parametrize("axes", [(0, 1), (2, 0), (1, 1), (3, 1), (3, 3)])
def test_groups_nest_on_chosen_axes(axes):
    """Also where the chosen columns are traced, and one column is chosen twice."""
    columns = (LINE, LINE, LINE, CODED)
    data = described(columns, 9011)
    for num_cells in (None, 9):

        @jax.jit
        def both(axes, num_cells=num_cells):
            test = jaxdp.PartitionGCM(epsilon=1.0, num_cells=num_cells, axes=axes)
            group, _ = partition_stages.centring_groups(data, test.num_cells, None, axes)
            return test.cells(data)[0], group

        cell, group = map(np.asarray, both(tuple(map(jnp.asarray, axes))))
        assert np.unique(np.stack([cell, group]), axis=1).shape[1] == np.unique(cell).size
        assert np.unique(group).size > 1


def test_groups_are_runs_of_nearly_equal_size():
    for count, groups in ((10, 3), (7, 7), (111, 5), (33, 32), (5, 1)):
        found = np.asarray(partition.group_of(jnp.arange(count), count, groups))
        sizes = np.bincount(found, minlength=groups)
        assert np.all(np.diff(found) >= 0)
        assert sizes.size == groups
        assert sizes.max() - sizes.min() <= 1


def test_the_centre_of_a_record_depends_on_its_cell_alone():
    """What the level needs: inside a cell every record is centred by the same number, with weights and regions too."""
    data = described((LINE, LINE), 30_000)
    _, groups = partition_stages.centring_groups(data, None, None, None)
    ramp = jnp.arange(float(groups))[:, None]
    centers = partition_stages.Centers(x=ramp, y=-ramp)
    for fields in ({}, {"num_regions": 3}, {"num_cells": 130, "weights": np.linspace(-1, 1, 121)}):
        test = jaxdp.PartitionGCM(epsilon=1.0, centers=centers, winsorize=1e6, **fields)
        with jax.enable_x64(True):
            released = test.statistic(None, data)
        # x and y are 0, so that what is left are steps of the centres inside cells: none
        np.testing.assert_allclose(np.asarray(released["covariance"]), 0.0, atol=1e-9)


def test_the_planner_centres_in_whole_cells():
    for z, n in itertools.product(((LINE,), (LINE, LINE), (LINE, CODED), (CODED,)), (300, 5000, 30_011)):
        setting = plan.Setting(scaled=True, z=z)
        group, number = continuous._centring_groups(setting, n)
        cell = setting.cell_of_places(n)
        assert np.unique(np.stack([cell, group]), axis=1).shape[1] == np.unique(cell).size
        data = described(z, n)
        assert number == partition_stages.centring_groups(data, None, partition.Uniform(), None)[1]


def additive(key, n):
    """Two confounders, each bending x and y alike; independent given both."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, 2), minval=-1.0)
    bend = 0.3 * jnp.sum(jnp.sin(3.0 * z), axis=1)
    x, y = (jnp.clip(bend + 0.2 * jax.random.normal(k, (n,)), -1, 1) for k in (key_x, key_y))
    return jaxdp.Data(x, y, z, Domain(z=(LINE, LINE)))


@pytest.mark.full
@pytest.mark.optimised
def test_level_given_two_columns_with_additive_means():
    """111 bins a column here, and five groups, which do not divide them: 20 of 20 are rejected if groups cut cells."""
    test = jaxdp.PartitionGCM(epsilon=4.0, standardize=True, scale_x=0.2, scale_y=0.2, accept_coarse_cells=True)
    count = jaxdp.power.rejection_rate(test, functools.partial(additive, n=100_000), jax.random.key(3), 20)
    assert count.rejections <= 5  # binomial(20, 0.06): beyond it at 4e-4


@pytest.mark.parametrize("columns", [(LINE,) * 2, (LINE,) * 5, (LINE,) * 2 + (CODED,)])
def test_two_continuous_columns_are_refused_before_anything_is_spent(columns, tmp_path):
    data = described(columns, 400)
    ledger = jaxdp.Ledger.create(str(tmp_path / "l.db"), epsilon=5.0)
    for test in (
        jaxdp.PartitionGCM(epsilon=1.0),
        jaxdp.PartitionGCM(epsilon=1.0, standardize=True),
        jaxdp.PartitionGCM(mechanism=jaxdp.Gaussian(0.5), select_axes=False),
        jaxdp.AllPairs(test=jaxdp.PartitionGCM(epsilon=1.0)),
        jaxdp.LocalPermutation(epsilon=1.0),
        jaxdp.ConditionalKendall(epsilon=1.0),
        jaxdp.ConditionalKendall(epsilon=1.0, relation=jaxdp.Relation.ADD_OR_REMOVE_ONE, num_cells=4),
        jaxdp.ConditionalSpearman(epsilon=1.0),
    ):
        with pytest.raises(CoarseCells, match=r"Use contrast-gcm, .* accept_coarse_cells=True"):
            core.run(test, jaxdp.fresh_key(), data, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0
    one = described((LINE,), 400)
    for kind in (jaxdp.ConditionalKendall, jaxdp.ConditionalSpearman):
        with pytest.raises(CoarseCells, match=r"1 continuous column of z.* Use band-gcm"):
            core.run(kind(epsilon=1.0), jaxdp.fresh_key(), one, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0
    with pytest.raises(CoarseCells, match="at most 1 of them"):
        jaxdp.all_pairs(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), np.zeros((400, 2)), data.z)
    for kind in (jaxdp.PartitionGCM, jaxdp.LocalPermutation, jaxdp.ConditionalKendall, jaxdp.ConditionalSpearman):
        assert core.specialize(kind(epsilon=1.0, accept_coarse_cells=True), data) is not None


CUT = (jaxdp.PartitionGCM, jaxdp.LocalPermutation, jaxdp.ConditionalKendall, jaxdp.ConditionalSpearman)


@pytest.mark.parametrize("kind", CUT)
def test_what_is_known_about_the_level_follows_the_public_columns(kind):
    def rule(columns, **fields):
        return kind(epsilon=1.0, **fields).validity(described(columns, 400))

    assert (rule((CODED, CODED)).verdict, rule((CODED, CODED)).sentence) == ("run", "")
    one = rule((LINE, CODED))
    ranks = kind in (jaxdp.ConditionalKendall, jaxdp.ConditionalSpearman)  # they tolerate no trend within a cell
    assert (one.verdict, one.flags) == (("refuse", ()) if ranks else ("flag", ("cells",)))
    assert "band-gcm" in one.sentence
    two = rule((LINE, LINE))
    assert two.verdict == "refuse"
    assert "contrast-gcm" in two.sentence
    accepted = rule((LINE, LINE), accept_coarse_cells=True)
    assert (accepted.verdict, accepted.flags) == ("flag", ("coarse cells",))
    without = dataclasses.replace(described((LINE,), 400), z=None, domain=None)
    assert kind(epsilon=1.0).validity(without).verdict == "run"


def test_whole_numbers_without_a_domain_are_strata_of_a_rank_test():
    z = jax.random.randint(jax.random.key(0), (400, 2), 0, 3)
    data = dataclasses.replace(described((CODED, CODED), 400, domain=False), z=z)
    assert jaxdp.ConditionalKendall(epsilon=1.0).validity(data).verdict == "run"
    assert core.specialize(jaxdp.ConditionalKendall(epsilon=1.0), data) is not None


def test_undeclared_columns_count_as_continuous():
    data = described((CODED,) * 3, 400, domain=False)
    with pytest.raises(CoarseCells, match="no domain"):
        core.specialize(jaxdp.PartitionGCM(epsilon=1.0), data)
    assert isinstance(
        core.specialize(jaxdp.PartitionGCM(epsilon=1.0), described((CODED,) * 3, 400)), jaxdp.PartitionGCM
    )


def test_a_choice_of_axes_is_refused_and_coded_columns_are_cut_whole():
    with pytest.raises(CoarseCells, match="select_axes=False"):
        core.specialize(jaxdp.PartitionGCM(epsilon=1.0), described((LINE, CODED, CODED, CODED), 400))
    whole = core.specialize(jaxdp.PartitionGCM(epsilon=1.0), described((CODED,) * 5, 400))
    assert isinstance(whole, jaxdp.PartitionGCM)
    assert whole.cells(described((CODED,) * 5, 400))[1] == 3**5
    with pytest.raises(CoarseCells):
        core.specialize(jaxdp.PartitionGCM(epsilon=1.0), described((CODED,) * 13, 400))


def test_chosen_cells_refuse_before_their_first_stage():
    data = described((LINE,) * 2, 400, domain=False)
    with pytest.raises(CoarseCells, match="chosen-cells"):
        core.run(jaxdp.ChosenCells(epsilon=1.0), jaxdp.fresh_key(), data)
    accepted = jaxdp.ChosenCells(epsilon=1.0, candidates=(2, 4), accept_coarse_cells=True)
    assert float(core.cost_of(accepted, data).epsilon) == pytest.approx(1.0)


def test_plans_refuse_where_the_test_does():
    two = plan.Setting(scaled=True, z=(LINE,) * 2)
    query = {"n": 500, "epsilon": 1.0, "effect": 0.4}
    for engine in ("auto", "simulation"):
        with pytest.raises(CoarseCells, match="partition-gcm"):
            plan.power("partition-gcm", **query, setting=two, engine=engine, replicates=4)
    rows = plan.compare(two, **query, methods=["partition-gcm"])
    assert "accept_coarse_cells" in rows[0].reason
    accepted = plan.Setting(scaled=True, z=(LINE,) * 2, accept_coarse_cells=True)
    asked = PlannedTest.of("partition-gcm", accepted, replicates=4)
    assert asked.plan.make(accepted, 1.0, 0.05).accept_coarse_cells


def chain(d, n=400, coded=0):
    """d columns in a chain, the last ones coded."""
    noise = np.random.default_rng(1).uniform(-1, 1, (n, d))
    values = noise.copy()
    for j in range(1, d):
        values[:, j] = np.clip(0.8 * values[:, j - 1] + 0.4 * noise[:, j], -1, 1)
    values[:, d - coded :] = values[:, d - coded :] > 0
    return as_records(values, (0,) * (d - coded) + (2,) * coded, tuple("abcdefgh"[:d]))


@pytest.mark.parametrize(("coded", "order"), [(0, 1), (3, 1), (4, 1), (5, 3), (6, 4)])
def test_orders_that_are_answered_depend_on_public_columns_alone(coded, order):
    test, records = jaxdp.PartitionGCM(epsilon=1.0), chain(6, coded=coded)
    assert largest_order(test, records, 4) == order
    assert largest_order(test, records, 1) == 1
    assert largest_order(dataclasses.replace(test, accept_coarse_cells=True), records, 4) == 4
    kendall = jaxdp.ConditionalKendall(epsilon=1.0)
    assert largest_order(kendall, records, 4) == 4 * (coded == 6)  # not given a continuous column


def test_a_search_by_partition_stops_at_the_order_that_is_answered(monkeypatch):
    """Every pair is found dependent, so that a search without a limit would reach every order."""
    monkeypatch.setattr(choose, "TESTS_PER_PAIR", 8)

    def dependent(test, key, data):
        return SimpleNamespace(p_value=0.0, cost=test.mechanism_in_force().cost(ONE))

    monkeypatch.setattr(pc, "run_opened", dependent)
    graph = discovery.partition_pc(jax.random.key(0), chain(5), epsilon=1.0)
    assert {len(item.given) for item in graph.decisions} == {0, 1}
    assert graph.complete
    assert "at most 1 column" in graph.note
    assert graph.to_dict()["note"] == graph.note == discovery.graph_from_dict(graph.to_dict()).note
    assert "at most 1 column" in repr(GraphAnswer(graph, 400, ""))
    note = discovery.partition_pc(jax.random.key(0), chain(3), epsilon=1.0).note
    assert note.startswith("Each test is at level 0.01 by itself")
    assert "at most 1 column" not in note
    wide = discovery.partition_pc(jax.random.key(0), chain(5), epsilon=1.0, accept_coarse_cells=True)
    assert 3 in {len(item.given) for item in wide.decisions}


def test_searches_refuse_at_their_start(tmp_path):
    records, test = chain(6), jaxdp.PartitionGCM(epsilon=0.1)
    ledger = jaxdp.Ledger.create(str(tmp_path / "l.db"), epsilon=50.0)
    asked = {"test": test, "max_tests": 5}
    with pytest.raises(CoarseCells, match="max_order=1"):
        discovery.pc(jaxdp.fresh_key(), records, **asked, ledger=ledger)
    with pytest.raises(CoarseCells, match="max_order=1"):
        discovery.partition_pc(jaxdp.fresh_key(), records, epsilon=1.0, max_order=2, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0
    assert discovery.pc(jax.random.key(0), records, **asked, max_order=1).num_tests == 5


def test_queries_of_other_libraries_refuse_now_or_answer_as_chosen():
    records, test = chain(6), jaxdp.PartitionGCM(epsilon=0.1)
    make = functools.partial(interop.PrivateQueries, test, records, epsilon=1.0, key=jax.random.key(0))
    with pytest.raises(CoarseCells, match="max_given=1"):
        make()
    limited = make(max_given=1)
    assert 0.0 <= limited.p_value(0, 1, (2,)) <= 1.0
    with pytest.raises(ValueError, match="declared"):
        limited.p_value(0, 1, (2, 3))
    dependent = make(exhausted="dependent")
    assert dependent.p_value(0, 1, (2, 3)) == 0.0
    assert float(dependent.spent.epsilon) == 0.0
    with pytest.raises(CoarseCells, match="max_order=1"):
        discovery.pc(jax.random.key(0), None, test=dependent)


SCHEMA = "\n".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-1, 1]\n' for name in "abcdef")


@pytest.fixture
def files(tmp_path):
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 6))
    lines = ["a,b,c,d,e,f", *(",".join(f"{value:.4f}" for value in row) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "s.toml").write_text(SCHEMA)
    return [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]


@pytest.mark.full
def test_the_command_line_refuses_and_tells_its_cells(files, tmp_path, capsys):
    query = ["test", *files, "--x", "a", "--y", "b", "--epsilon", "1", "--seed", "1", "--method", "partition-gcm"]
    assert main([*query, "--given", "c,d,e"]) == 2
    assert "--accept-coarse-cells" in capsys.readouterr().err
    assert (
        main(["discover", *files, "--epsilon", "1", "--seed", "1", "--max-order", "4", "--method", "recommended_pc"])
        == 2
    )
    assert "max_order=2" in capsys.readouterr().err
    assert main([*query, "--given", "c,d,e", "--accept-coarse-cells"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "cells 8 of Z, which cut c (scaled to [-1, 1]) into 2 bins, each 1 wide; d (scaled" in told
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    assert content["cells"] == [{"column": c, "number": 2, "levels": False, "width": 1.0} for c in "cde"]


def test_cells_are_told_as_they_are_cut():
    data = described((LINE, CODED), 960)
    line = {"name": "z0", "number": 40, "levels": False, "width": 0.05}
    coded = {"name": "z1", "number": 3, "levels": True, "width": None}
    for kind in (jaxdp.PartitionGCM, jaxdp.LocalPermutation, jaxdp.ConditionalKendall):
        assert [dataclasses.asdict(axis) for axis in kind(epsilon=1.0).axis_bins(data)] == [line, coded]
    test = jaxdp.PartitionGCM(epsilon=1.0, reference=partition.Cauchy())
    assert test.axis_bins(data)[0].width is None
    assert test.axis_bins(dataclasses.replace(data, z=None)) == ()
    for first, second, numbers in ((0, 0, [100]), (0, 2, [10, 10])):
        stage = SimpleNamespace(value={"x": first, "y": second})
        told = test.axis_bins(described((LINE,) * 5, 800), SimpleNamespace(earlier=(stage,)))
        assert [axis.number for axis in told] == numbers


def test_the_bound_of_the_error_counts_the_cells():
    test = jaxdp.PartitionGCM(epsilon=1.0, num_cells=7)
    found = test.sensitivity(100)["covariance"]
    assert found.error == 8.0 * 107 * 100 * partition_gcm.UNIT_ROUNDOFF

"""The catalogue: every test by one name, built by one builder; nothing in the package keeps a list of tests."""

import dataclasses
import inspect
import json
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.cli.main import main
from jaxdp.core import PrivateQuery, method_of
from jaxdp.data.dataset import Column, Domain
from jaxdp.discovery import spec as searches
from jaxdp.independence.recommended import Recommended
from jaxdp.plan.methods import formula_at, plans
from jaxdp.spec import Columns, Options, TestSpec

ROOT = Path(jaxdp.__file__).parent
EXPORTED = [getattr(jaxdp, name) for name in jaxdp.exported_names()]
QUERIES = [cls for cls in EXPORTED if inspect.isclass(cls) and issubclass(cls, PrivateQuery)]
BASES = {jaxdp.PrivateQuery, jaxdp.PrivateTest}
SCALED = Domain((Column(),), (Column(),), (Column(),))


@jaxdp.private_test
class Mine(jaxdp.PartitionGCM):
    """A test of one's own that changes nothing but its spec."""

    spec = TestSpec(name="mine", summary="a test of one's own", columns=Columns.SCORES)


def test_every_exported_query_is_in_the_catalogue():
    known = {entry.cls for entry in catalogue.entries().values()}
    missing = sorted(query.__name__ for query in set(QUERIES) - BASES - known)
    assert not missing, f"{missing} are exported without a spec of their own: give each class spec = TestSpec(...)"
    assert len(known) > 25


def test_a_name_belongs_to_one_test_and_is_what_results_carry():
    for name, entry in catalogue.offered().items():
        test = entry.build(1.0)
        assert method_of(test) == name
        assert isinstance(test, entry.cls)
        assert name == name.lower()
        assert " " not in name


def test_every_spec_points_to_what_exists():
    for entry in catalogue.entries().values():
        planning = entry.spec.planning
        assert set(entry.spec.options) <= {field.name for field in dataclasses.fields(Options)}
        if planning is not None:
            assert planning.formula is None or callable(formula_at(planning.formula))
            assert callable(formula_at(planning.reference))
        page = ROOT.parent / entry.spec.theory
        assert page.is_file(), f"theory= of {entry.name} names {entry.spec.theory!r}: write that page, with the proof"


def test_a_spec_names_the_page_of_its_proof_without_a_heading():
    with pytest.raises(
        ValueError,
        match=r"without its heading: 'docs/theory/partition_gcm.md', got 'docs/theory/partition_gcm.md#level'",
    ):
        dataclasses.replace(Mine.spec, theory="docs/theory/partition_gcm.md#level")
    assert dataclasses.replace(Mine.spec, theory="https://example.org/proofs#mine").theory.endswith("#mine")


def test_names_that_do_not_exist_are_told_with_what_was_meant():
    with pytest.raises(ValueError, match="did you mean 'partition-gcm'"):
        catalogue.find("partiton-gcm")
    with pytest.raises(ValueError, match="cannot be loaded"):
        catalogue.find("no_such_module:Test")
    with pytest.raises(ValueError, match="did you mean 'table_pc'"):
        searches.find("table")


def test_options_that_a_test_does_not_use_are_refused():
    with pytest.raises(ValueError, match="does not use num_cells; it belongs to local-permutation, partition-gcm"):
        catalogue.find("noisy-table").build(1.0, None, Options(num_cells=4))
    with pytest.raises(ValueError, match="private-crt needs law"):
        catalogue.find("private-crt").build(1.0)


def test_a_subclass_is_handed_the_columns_of_its_spec():
    class Quiet(jaxdp.PartitionGCM):
        """Inherits the spec."""

    assert catalogue.wants_scores(jaxdp.PartitionGCM(epsilon=1.0))
    assert catalogue.wants_scores(Quiet(epsilon=1.0))
    assert catalogue.wants_scores(Mine(epsilon=1.0))
    assert not catalogue.wants_scores(jaxdp.ConditionalKendall(epsilon=1.0))


def test_a_test_that_says_nothing_is_refused_where_its_columns_matter():
    class Silent:
        pass

    with pytest.raises(TypeError, match="does not say how its columns are coded"):
        catalogue.wants_scores(Silent())


def test_a_test_of_another_module_is_found_by_its_place():
    entry = catalogue.find(f"{__name__}:Mine")
    assert entry.cls is Mine
    assert method_of(entry.build(1.0)) == "mine"


def test_one_name_builds_the_same_test_for_every_command():
    schema = {
        name: entry.build(0.7, SCALED) for name, entry in catalogue.offered().items() if entry.spec.accepts(SCALED)
    }
    for name, test in schema.items():
        if name in plans():
            setting = jaxdp.plan.Setting(scaled=True)
            planned = plans()[name].make(setting, 0.7, 0.05)
            assert catalogue.described(planned) == catalogue.described(test), name
    assert catalogue.described(schema["partition-gcm"]) == {"scale_x": 0.2, "scale_y": 0.2, "standardize": True}


def test_the_default_is_what_the_specs_rank_first():
    levels = Domain((Column("ordinal", 3),), (Column("binary", 2),), (Column("categorical", 4),))
    assert catalogue.default(levels).name == "conditional-kendall"
    assert catalogue.default(dataclasses.replace(levels, z=())).name == "quantile-table"


def test_entry_points_of_other_packages_join(monkeypatch):
    class Point:
        def load(self):
            return Mine

    class Broken:
        def load(self):
            raise ImportError("somebody else's mistake")

    monkeypatch.setattr(catalogue.metadata, "entry_points", lambda group: [Point(), Broken()])
    catalogue.look_again()
    try:
        assert catalogue.find("mine").cls is Mine
        assert catalogue.find("partition-gcm").cls is jaxdp.PartitionGCM
    finally:
        monkeypatch.undo()
        catalogue.look_again()


def test_methods_lists_every_test_and_search(capsys):
    assert main(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed["tests"]] == list(catalogue.entries())
    assert {"table_pc", "svt_pc", "priv_pc", "em_pc", "partition_pc"} <= {row["name"] for row in listed["searches"]}
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*catalogue.entries(), *searches.searches()))


def test_names_are_no_part_of_a_program():
    key = jax.random.key(0)
    data = jaxdp.simulate.sine_confounder(key, 30)
    named = dataclasses.replace(data, domain=Domain((Column(name="a"),), (Column(name="b"),), (Column(name="c"),)))
    other = dataclasses.replace(data, domain=Domain((Column(name="u"),), (Column(name="v"),), (Column(name="w"),)))
    structure = [jax.tree.structure(one.without_names()) for one in (named, other)]
    assert structure[0] == structure[1]
    assert jax.tree.structure(named) != jax.tree.structure(other)


@pytest.mark.parametrize(("dim", "chosen"), [(1, "BandGCM"), (2, "ContrastGCM")])
def test_the_recommended_test_is_chosen_for_each_query(dim, chosen):
    data = jaxdp.simulate.sine_confounder(jax.random.key(0), 300, dim=dim)
    resolved = Recommended(epsilon=1.0).specialize(data)
    assert type(resolved).__name__ == chosen
    assert float(jaxdp.core.cost_of(Recommended(epsilon=0.7), data).epsilon) == pytest.approx(0.7)
    with_noise = Recommended(mechanism=jaxdp.Gaussian(0.5)).specialize(data)
    assert float(with_noise.mechanism.rho) == 0.5


@pytest.mark.full
def test_twelve_queries_with_names_of_their_own_compile_once():
    """Warm queries: the same test and shapes, other column names."""
    test = jaxdp.PartitionGCM(epsilon=1.0, accept_coarse_cells=True)
    data = jaxdp.simulate.sine_confounder(jax.random.key(0), 37)
    compiled = []

    def count(event, seconds, **more):
        compiled.append(event)

    def ask(number):
        domain = Domain(*((Column(name=f"{part}{number}"),) for part in "xyz"))
        return jaxdp.run(test, jax.random.key(number), dataclasses.replace(data, domain=domain))

    ask(0)
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        for number in range(1, 13):
            ask(number)
        found = [event for event in compiled if event == "/jax/core/compile/backend_compile_duration"]
        jax.jit(lambda x: x + 41.0)(1.0)  # the counter counts
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
    assert not found
    assert "/jax/core/compile/backend_compile_duration" in compiled

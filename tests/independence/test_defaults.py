"""The default test is chosen by measured power: no alternative needs a fifth fewer records anywhere on the public grid.

The record is `experiments/evidence/defaults/defaults.jsonl`; which tests are alternatives is in `rule` there.
"""

import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from experiments.evidence.defaults import page, rule
from experiments.evidence.defaults.__main__ import rate
from experiments.evidence.defaults.nulls import NULL_LAWS
from experiments.evidence.defaults.nulls import rate as null_rate
from experiments.evidence.defaults.shapes import Shape
from jaxdp import catalogue
from jaxdp.data.schema import Schema
from jaxdp.plan.methods import default_method
from jaxdp.plan.setting import Setting
from jaxdp.spec import ANY

KINDS, LOST = rule.records(), rule.lost()


def better_than_the_default(kind: str) -> dict[str, list[str]]:
    """Alternatives of the record -> where they need a fifth fewer records."""
    cells, entry = KINDS[kind], rule.default_of(KINDS[kind])
    seen = entry.spec.suitability(rule.first_shape(cells).domain(True))
    return rule.beaten(cells, entry.name, seen, LOST[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_no_alternative_needs_a_fifth_fewer_records_than_the_default(kind):
    assert not better_than_the_default(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_default_loses_its_level_on_the_nulls_given_z(kind):
    assert rule.default_of(KINDS[kind]).name not in LOST[kind]


def test_a_test_that_loses_its_level_given_z_is_no_alternative():
    """It needs fewer records than `partition-gcm`, and rejects most true nulls whose strata spread differently."""
    kind, name = "nominal 3 x nominal 4 given a coded Z", "winsorised-partial-correlation"
    seen = catalogue.find("partition-gcm").spec.suitability(rule.first_shape(KINDS[kind]).domain(True))
    assert name in rule.beaten(KINDS[kind], "partition-gcm", seen, ())
    assert name in LOST[kind]


@pytest.mark.nightly  # the page of defaults has its records
@pytest.mark.parametrize("null", NULL_LAWS["coded"], ids=lambda null: null.name)
def test_the_default_of_two_nominal_columns_given_z_keeps_its_level(null):
    shape = Shape("nominal", "nominal", (3, 4), "even", "line", 0.3, "coded")
    default = catalogue.default(null.domain(shape, True))
    assert null_rate(default, null, shape, 4.0, 300) * 300 <= binom.ppf(1 - rule.RARE, 300, rule.TOLERATED)
    alternative = catalogue.find("winsorised-partial-correlation")
    assert null_rate(alternative, null, shape, 4.0, 100) > 0.3


def test_the_former_default_of_tables_would_be_found():
    assert rule.beaten(KINDS["nominal 3 x nominal 4"], "partition-gcm", {ANY})


@pytest.mark.parametrize(("share", "elsewhere", "found"), [(0.7, 1.0, True), (0.7, 1.3, True), (0.7, 1.5, False)])
def test_a_planted_row_is_found_unless_it_loses_as_much_elsewhere(share, elsewhere, found):
    cells = KINDS["binary x binary given a continuous Z"]
    default = rule.default_of(cells).name
    shares = dict.fromkeys(cells, elsewhere) | {next(iter(cells)): share}
    planted = {place: needed | {"planted": shares[place] * needed[default]} for place, needed in cells.items()}
    assert ("planted" in rule.beaten(planted, default, {ANY})) == found


def test_of_a_nominal_column_and_a_number_given_levels_neither_test_is_better():
    """`band-gcm` needs fewer records where the noise counts, `partition-gcm` where it does not."""
    cells = KINDS["nominal 3 x number given a coded Z"]
    tests = ("partition-gcm", "band-gcm")
    assert rule.default_of(cells).name == tests[0]
    assert all(rule.saved(cells, one, other) > 1 / rule.FEWER for one, other in (tests, tests[::-1]))
    assert "band-gcm" not in better_than_the_default("nominal 3 x number given a coded Z")


def test_the_page_has_the_tables_of_the_records():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text, "run python -m experiments.evidence.defaults.page"


def test_the_record_holds_the_kinds_of_columns_that_are_met_most():
    measured = {"binary x binary", "nominal 3 x nominal 4", "nominal 8 x nominal 8", "ordered 3 x ordered 4"}
    measured |= {f"{side} x number" for side in ("number", "binary", "nominal 4", "ordered 4")}
    measured |= {f"{side} x number given a continuous Z" for side in ("number", "binary", "nominal 3", "ordered 4")}
    measured |= {f"{pair} given a continuous Z" for pair in ("binary x binary", "nominal 3 x nominal 4")}
    measured |= {f"{side} x number given a coded Z" for side in ("nominal 3", "nominal 4", "ordered 4")}
    measured |= {f"{pair} given a coded Z" for pair in ("number x number", "binary x number", "binary x binary")}
    measured |= {f"{kind} 3 x {kind} 4 given a coded Z" for kind in ("nominal", "ordered")}
    missing = measured - set(KINDS)
    assert not missing, f"measure them: python -m experiments.evidence.defaults --kinds {' '.join(map(repr, missing))}"


def three_by_four(n: int, rng) -> tuple[dict, dict]:
    """Two unordered columns; the chances of the twelve cells are those of the record."""
    shape = Shape("nominal", "nominal", (3, 4), "even", "diffuse", 300.0)
    cell = rng.choice(12, n, p=shape.cells())
    table = {"site": np.array(list("abc"))[cell // 4], "vote": np.array(list("wxyz"))[cell % 4]}
    return table, {"site": list("abc"), "vote": list("wxyz")}


def test_two_unordered_columns_are_found_by_default():
    """The former default, `partition-gcm`, finds the dependence in one of the six."""
    import jax

    rng = np.random.default_rng(5)
    found = 0
    for seed in range(6):
        table, levels = three_by_four(900, rng)
        answer = jaxdp.test(
            table, x="site", y="vote", epsilon=1.0, levels=levels, key=jax.random.key(seed), method=None
        )
        found += answer.p_value <= 0.05
    assert found >= 5


@pytest.mark.full
@pytest.mark.optimised
def test_the_default_needs_no_more_records_than_the_tests_made_for_tables():
    shape = Shape("nominal", "nominal", (3, 4), "even", "diffuse", 300.0)
    default = catalogue.default(shape.domain(True))
    least = rate(default, shape, 500, 1.0, 200)
    for entry in catalogue.offered().values():
        if entry.spec.alternatives == catalogue.find("noisy-table").spec.alternatives and entry.spec.accepts(
            shape.domain(True)
        ):
            assert rate(entry, shape, 400, 1.0, 200) <= least + 0.03, entry.name


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize(
    ("levels", "balance"),
    [
        ((2, 2), "10/90"),
        ((8, 8), "halving"),
        *(
            pytest.param(levels, balance, marks=pytest.mark.nightly)
            for levels, balance in (((2, 2), "even"), ((2, 2), "halving"), ((8, 8), "even"), ((8, 8), "10/90"))
        ),
    ],
)
def test_the_default_of_tables_keeps_its_level(levels, balance):
    shape = Shape("nominal", "nominal", levels, balance, "diffuse", 300.0)
    found = rate(catalogue.default(shape.domain(True)), shape, 300, 1.0, 1000, effect=0.0)
    assert found * 1000 <= binom.ppf(1 - rule.RARE, 1000, rule.TOLERATED)


@pytest.mark.parametrize(
    "setting", [None, Setting.table(3, 4), Setting(scaled=True), Setting(z=(), scaled=True)], ids=str
)
def test_a_plan_without_a_method_is_of_the_default_test(setting, monkeypatch):
    from jaxdp.plan import call

    chosen = setting or Setting()
    assert default_method(setting) == catalogue.default(chosen.domain("codes")).name
    if setting is None:
        monkeypatch.setattr(call, "answer", lambda method, **_: method)
        assert jaxdp.plan(epsilon=1.0, effect=0.4, power=0.8) == default_method()


def test_the_default_of_a_table_in_chunks_is_the_best_that_has_sums():
    """Ranks of continuous columns need all records: where these do not fit into memory, nobody is refused for it."""
    from jaxdp.ask.independence import Query

    schema = Schema.from_dict({
        "columns": {
            **{name: {"kind": "continuous", "bounds": [-4, 4]} for name in "xy"},
            "z": {"kind": "ordinal", "levels": [0, 1, 2, 3]},
        }
    })  # fmt: skip
    query = Query.of(schema, x="x", y="y", given="z", epsilon=1.0)
    assert query.entry.name == "conditional-kendall"
    assert query._with_sums(10_000).entry.name == "partition-gcm"
    named = Query.of(schema, x="x", y="y", given="z", epsilon=1.0, method="conditional-kendall")
    assert named._with_sums(10_000) is named

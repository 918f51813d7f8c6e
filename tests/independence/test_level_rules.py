"""What tests say about their level before a value is read: known laws, votes, and what the command line prints."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.core import public_shapes
from jaxdp.published import PaperCRT
from jaxdp.report import sections

N = 400


def misjudged(key, n: int, error: float):
    """X is N(error y, 1) and y = 1 or -1 is a function of z; the law says N(0, 1)."""
    key_z, key_x = jax.random.split(key)
    z = jax.random.normal(key_z, (n,))
    y = jnp.sign(z)
    return jaxdp.Data(error * y + jax.random.normal(key_x, (n,)), y, z)


def given_law(form):
    return form(epsilon=2.0, law=jaxdp.GaussianLaw(function=jnp.zeros_like))


def rejections(test, error: float, replicates: int) -> int:
    design = functools.partial(misjudged, n=N, error=error)
    return int(jaxdp.power.rejection_rate(test, design, jax.random.key(1), replicates).rejections)


@pytest.mark.full
def test_the_error_of_a_law_that_a_level_bears_is_the_one_printed():
    """A bias of 0.3 sd rejects 0.06, and of 3 sd 0.85 (normal tails; the noise's are heavier)."""
    test = given_law(jaxdp.CRTNormal)
    rule = test.validity(public_shapes(misjudged(jax.random.key(0), N, 0.0)))
    assert 0.3 / np.sqrt(N) < rule.law_error < 0.1
    assert f"{rule.law_error:.3f}" in rule.sentence
    assert rejections(test, rule.law_error, 1000) <= 85  # binomial(1000, 0.06): beyond it at 1e-3
    assert rejections(test, 10 * rule.law_error, 100) >= 65  # binomial(100, 0.85): below it at 1e-6


def test_decisions_about_a_known_law_count_no_noise_as_help():
    for form in (jaxdp.PrivateCRT, PaperCRT):
        rule = given_law(form).validity(public_shapes(misjudged(jax.random.key(0), N, 0.0)))
        assert rule.law_error == pytest.approx(0.3 / np.sqrt(N))


@pytest.mark.parametrize(
    ("blocks", "given", "flags"), [(10, True, ("fit",)), (20, True, ("fit", "small blocks")), (10, False, ())]
)
def test_a_vote_is_flagged_where_blocks_fit_or_are_small(blocks, given, flags):
    data = misjudged(jax.random.key(0), N, 0.0)
    data = data if given else jaxdp.Data(data.x, data.y)
    rule = jaxdp.TestOfTests(epsilon=1.0, test=jaxdp.GCM(), num_blocks=blocks).validity(public_shapes(data))
    assert rule.flags == flags
    assert (rule.verdict == "flag") == bool(flags)
    assert (rule.sentence == "") == (not flags)


def test_a_median_over_blocks_takes_blocks_of_thirty_and_flags_smaller_ones():
    def test(**fields):
        return jaxdp.SubsampleAggregate(epsilon=1.0, statistic_of=lambda block: jnp.mean(block.x), **fields)

    data = jaxdp.Data(jnp.zeros(N), jnp.zeros(N))
    assert test().blocks(N) == 13
    assert test().blocks(10_000) == 101
    assert test().validity(data).verdict == "run"
    assert test(num_blocks=101).validity(data).flags == ("small blocks",)
    assert "30" in test(num_blocks=101).validity(data).sentence


@pytest.fixture
def query(tmp_path):
    rows = np.random.default_rng(0).uniform(-1, 1, (120, 4))
    rows[:, 1] = rows[:, 0]  # found, so that a flag has something to doubt
    (tmp_path / "t.csv").write_text("a,b,c,d\n" + "".join(",".join(f"{v:.4f}" for v in row) + "\n" for row in rows))
    schema = "\n".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-1, 1]\n' for name in "abcd")
    (tmp_path / "s.toml").write_text(schema)
    place = ["--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    return ["test", str(tmp_path / "t.csv"), *place, "--x", "a", "--y", "b", "--epsilon", "1", "--seed", "1"]


@pytest.mark.full
@pytest.mark.parametrize(("method", "flag"), [("partition-gcm", "cells"), ("test-of-tests", "fit, small blocks")])
def test_the_command_line_prints_the_flag_beside_the_p_value(query, method, flag, tmp_path, capsys):
    assert main([*query, "--epsilon", "50", "--given", "c", "--method", method]) == 0
    told = capsys.readouterr().out
    assert f"flagged Take care: {sections.describe_flags(flag.split(', '))}" in " ".join(told.split())
    assert "band-gcm" in " ".join(told.split())
    rule = json.loads((tmp_path / "out" / "result.json").read_text())["level_rule"]
    assert (rule["verdict"], ", ".join(rule["flags"])) == ("flag", flag)


RANKS = ("conditional-kendall", "conditional-spearman")


@pytest.mark.parametrize(
    ("method", "given", "instead"),
    [(method, "c,d", "contrast-gcm") for method in ("partition-gcm", "chosen-cells", "local-permutation", *RANKS)]
    + [(method, "c", "band-gcm") for method in RANKS],
)
def test_the_command_line_refuses_cells_that_lose_the_level(query, method, given, instead, tmp_path, capsys):
    assert main([*query, "--given", given, "--method", method]) == 2
    assert instead in capsys.readouterr().err
    assert not (tmp_path / "out" / "result.json").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["c"],
            "; a jump is a change of more than 5 in a or 1.25 in b, and smaller sudden changes add up to one. Z must",
        ),
        (["c", "d"], "units of a and"),
    ],
)
def test_what_is_admissible_is_told_in_the_units_of_the_columns(given, told):
    """c is an eighth of half the bounds; the deviation from a plane is told as well for two columns."""
    rows = np.random.default_rng(0).uniform(-1, 1, (4, 300))
    bounds = {"a": (0, 80), "b": (-10, 10), "c": (-1, 1), "d": (-1, 1)}
    table = {"a": 40 + 40 * rows[0], "b": 10 * rows[1], "c": rows[2], "d": rows[3]}
    answer = jaxdp.test(table, x="a", y="b", given=given, epsilon=1.0, bounds=bounds, key=jax.random.key(0))
    rule = answer.content["level_rule"]
    assert told in rule["sentence"]
    assert rule["sentence"].count("a jump is") + rule["sentence"].count("A jump is") == (len(given) == 1)
    if len(given) == 2:
        told = f"stray by {40 * rule['deviation']:.3g} units of a and {10 * rule['deviation']:.3g} units of b."
        assert told in rule["sentence"]

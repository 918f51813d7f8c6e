"""Log-rank of times that are recorded in whole steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from trial_tables import BINARY_BOUND

import jaxdp
from jaxdp.cli.main import main
from jaxdp.independence.survival import survival_examples
from jaxdp.query import public_shapes
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS

LEVELS = {"kind": "binary", "levels": [0, 1]}


def schema(upper: float, **more):
    time = {"kind": "continuous", "bounds": [0, upper], **more}
    outcome = {"kind": "survival", "time": "week", "event": "died"}
    return jaxdp.Schema.from_dict({"columns": {"arm": LEVELS, "week": time, "died": LEVELS, "outcome": outcome}})


def trial(seed: int, records: int, recorded, first: bool, ratio: float = 1.0):
    """Events and censoring, which differs, of mean 5 and 3 or 20; recorded each by itself, or the first of both."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, records)
    came, gone = rng.exponential(5.0, records) / ratio**arm, rng.exponential(np.where(arm == 1, 3.0, 20.0))
    if not first:
        came, gone = recorded(came), recorded(gone)
    return {"arm": arm, "week": recorded(np.minimum(came, gone)), "died": 1 * (came <= gone)}


def asked(seed: int, *of, step: float | None = 1.0, epsilon: float = 4.0, records: int = 2000, **more):
    described = schema(60.0, **({} if step is None else {"step": step}))
    table = trial(seed, records, *of, **more)
    return jaxdp.test(
        table, x="arm", y="outcome", schema=described, epsilon=epsilon, key=jax.random.key(seed), force=True
    )


@pytest.mark.parametrize(
    ("blocks", "steps"), [(1, 3), (2, 3), (6, 7), (6, 61), (12, 61), (48, 61), (12, 731), (6, 10**6)]
)
def test_each_step_lies_in_one_block_and_each_block_has_a_step(blocks, steps):
    step = np.unique(np.linspace(0, steps - 1, 2000).astype(int)) if steps > 2000 else np.arange(steps)
    time = 2.0 * step / (steps - 1) - 1.0
    events, _ = log_rank.codes(time, np.ones_like(time), False, blocks, steps)
    censored, _ = log_rank.codes(time, np.zeros_like(time), False, blocks, steps)
    width = BINS // blocks
    assert np.array_equal(events // width, censored // width)
    assert np.all(np.diff(events) >= 0)
    assert np.all(censored >= events)
    assert events[-1] == BINS
    assert set((events[:-1] // width).astype(int)) == set(range(blocks))
    ends = log_rank.ends(blocks, steps=steps) * (steps - 1)
    assert np.all(np.diff(ends) > 0)
    block = (events[:-1] // width).astype(int)
    assert np.all(ends[block] < step[:-1] + 0.25)
    assert np.all(step[:-1] < ends[block + 1])


def test_an_event_is_in_the_middle_of_its_step_and_who_is_censored_leaves_a_quarter_later():
    first, steps = np.array([0, 1, 5]), 6  # two blocks, of one step and of four
    time = 2.0 * np.arange(steps) / (steps - 1) - 1.0
    for event, late in ((1.0, 0.0), (0.0, 0.25)):
        bins, _ = log_rank.codes(time[:-1], np.full(steps - 1, event), False, 2, steps)
        many = np.diff(first)
        places = [
            384 * block + 384 * (step - first[block] + 0.5 + late) / many[block]
            for step, block in enumerate((0, 1, 1, 1, 1))
        ]
        np.testing.assert_array_equal(bins, np.floor(places))
    np.testing.assert_array_equal(log_rank.ends(2, steps=steps), [0.0, 0.1, 0.9])


def test_what_steps_leave_open_is_the_sum_of_the_page():
    """Of two groups and two blocks of 384 bins, of one step and of four (docs/theory/log_rank.md#steps)."""
    events, censored = np.array([[60.0, 40.0], [50.0, 20.0]]), np.array([[10.0, 30.0], [90.0, 20.0]])
    exposed = 384.0 * np.array([[900.0, 700.0], [800.0, 500.0]])
    hazard, share, step = np.array([0.11, 0.05]) / 384.0, np.array([[0.47, 0.42]]), 384.0 / np.array([1.0, 4.0])
    leaving = events + censored
    least = exposed - step * censored / 4.0
    shifted = censored / 4.0 + leaving * (step * leaving / least) / 12.0
    most = hazard * exposed.sum(axis=0) / least.sum(axis=0)
    wanted = np.sum(step * most * (shifted[1] - share[0] * shifted.sum(axis=0)))
    counts = np.concatenate([events, censored, np.zeros((2, 1))], axis=1)
    with jax.enable_x64(True):
        found = log_rank._coarse(*map(jnp.asarray, (counts, share, hazard, exposed, step)))
    np.testing.assert_allclose(found, [wanted], rtol=1e-12)
    assert abs(wanted) > 1.0


def test_a_record_moves_the_counts_by_two_in_whole_steps():
    (pair,) = survival_examples.worst_pairs_in_steps()
    query = jaxdp.LogRank(epsilon=1.0, blocks=6).specialize(public_shapes(pair[0])).first
    counts = [np.asarray(query.statistic(None, data)) for data in pair]
    assert np.abs(counts[0] - counts[1]).sum() == 2.0


@pytest.mark.full
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("recorded", [np.round, np.ceil])
def test_level_where_censoring_differs_whenever_those_who_are_censored_leave(recorded, first):
    """.45 and .22 were rejected where both were recorded by themselves, and the step was not known."""
    rejected = sum(asked(seed, recorded, first).p_value < 0.05 for seed in range(60))
    assert rejected <= stats.binom.isf(BINARY_BOUND, 60, 0.05)


@pytest.mark.full
@pytest.mark.parametrize("recorded", [np.floor, np.ceil])
def test_level_of_many_records_in_coarse_steps(recorded):
    """Of those who may leave at any time, more leave before the middle of a step than after it."""
    rejected = sum(asked(seed, recorded, True, records=20_000).p_value < 0.05 for seed in range(40))
    assert rejected <= stats.binom.isf(BINARY_BOUND, 40, 0.05)


@pytest.mark.full
def test_effects_are_found_in_coarse_steps_and_intervals_hold_them():
    """A third was found where the step was not known, with intervals of width .9: a block held nearly all records."""
    answers = [asked(seed, np.round, True, epsilon=1.0, ratio=1.5) for seed in range(30)]
    assert sum(answer.p_value < 0.05 for answer in answers) >= 26
    known = np.array([answer.interval for answer in answers if np.isfinite(answer.interval[0])])
    held = np.sum((known[:, 0] <= np.log(1.5)) & (np.log(1.5) <= known[:, 1]))
    assert held >= stats.binom.ppf(BINARY_BOUND, len(known), 0.95)
    assert np.median(known[:, 1] - known[:, 0]) < 0.5


@pytest.mark.full
def test_level_of_several_groups_in_coarse_steps():
    rng, rejected = np.random.default_rng(3), 0
    levels = {"kind": "categorical", "levels": [0, 1, 2]}
    columns = {"arm": levels, "week": {"kind": "continuous", "bounds": [0, 60], "step": 1}, "died": LEVELS}
    for seed in range(40):
        arm = rng.integers(0, 3, 3000)
        came, gone = np.ceil(rng.exponential(5.0, 3000)), np.ceil(rng.exponential(np.array([20.0, 3.0, 8.0])[arm]))
        table = {"arm": arm, "week": np.minimum(came, gone), "died": 1 * (came <= gone)}
        answer = jaxdp.test(
            table,
            x="arm",
            y=["week", "died"],
            method="log-rank",
            schema={"columns": columns},
            epsilon=4.0,
            key=jax.random.key(seed),
            force=True,
        )
        rejected += answer.p_value < 0.05
    assert rejected <= stats.binom.isf(BINARY_BOUND, 40, 0.05)


def test_times_that_coincide_are_refused_before_anything_is_charged_unless_the_schema_has_their_step(tmp_path, capsys):
    table = trial(1, 500, np.ceil, True)
    lines = zip(*(table[name] for name in ("arm", "week", "died")), strict=True)
    data, described, ledger = tmp_path / "t.csv", tmp_path / "s.toml", tmp_path / "study.db"
    data.write_text("arm,week,died\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
    said = '[columns.arm]\nkind = "binary"\nlevels = ["0", "1"]\n[columns.died]\nkind = "binary"\nlevels = ["0", "1"]\n'
    said += '[columns.outcome]\nkind = "survival"\ntime = "week"\nevent = "died"\n'
    said += '[columns.week]\nkind = "continuous"\nbounds = [0, 60]\n'
    described.write_text(said)
    account = jaxdp.Ledger.create(ledger, epsilon=5.0)
    how = ["test", str(data), "--x", "arm", "--y", "outcome", "--schema", str(described), "--epsilon", "1"]
    assert main([*how, "--ledger", str(ledger)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "many of the times in column 'week' are equal, whole multiples of 1" in told
    assert "write step = 1 in the schema; nothing was charged" in told
    assert float(account.spent.epsilon) == 0.0
    assert main(["check", str(data), "--schema", str(described)]) == 0
    assert "warning: many of the times in column 'week'" in " ".join(capsys.readouterr().out.split())
    described.write_text(said + "step = 1\n")
    assert main([*how, "--ledger", str(ledger)]) == 0


def test_times_as_fine_as_days_need_no_step():
    table = trial(1, 500, lambda weeks: np.round(700.0 * weeks), True)
    table["week"] = np.minimum(table["week"], 60_000.0)
    answer = jaxdp.test(table, x="arm", y="outcome", schema=schema(60_000.0), epsilon=4.0, key=jax.random.key(0))
    assert answer.p_value > 0.001


def test_one_step_is_no_time():
    with pytest.raises(ValueError, match="times of two steps and more below their upper bound, and week has one: ask"):
        jaxdp.test(
            trial(1, 500, np.ceil, True), x="arm", y="outcome", schema=schema(1.0, step=1.0), epsilon=1.0, force=True
        )


@pytest.mark.full
@pytest.mark.parametrize(("first", "survival"), [(False, lambda end: np.exp(-np.floor(end) / 5.0)), (True, None)])
def test_bands_hold_curves_of_times_in_steps_whenever_those_who_are_censored_leave(first, survival):
    """Where .28 of a group are censored in each step, at its end, no band held the curve (n = 10 000, epsilon 4)."""
    recorded = np.round if first else np.ceil  # a block ends between two steps, where rounding down is right
    held = np.zeros(2)
    for seed in range(20):
        groups = asked(seed, recorded, first, records=10_000).content["curves"]["groups"]
        for place, group in enumerate(groups):
            at, low, high = (np.array(group[name], float) for name in ("at", "low", "high"))
            true = np.exp(-at / 5.0) if survival is None else survival(at)
            held[place] += np.all((low <= true + 1e-9) & (true <= high + 1e-9))
    assert np.all(held >= stats.binom.ppf(BINARY_BOUND, 20, 0.95))

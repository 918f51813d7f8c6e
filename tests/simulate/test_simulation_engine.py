"""Grids: the same counts for any batch, number of devices, processes and tasks, with and without interruption."""

import dataclasses
import functools
import json
import os
import pathlib
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import catalogue, cluster, core
from jaxdp.audit import cases
from jaxdp.cli.main import main
from jaxdp.simulate import examples
from jaxdp.simulate.designs import by_name
from jaxdp.simulate.engine import grid as engine
from jaxdp.simulate.engine import pages, results
from jaxdp.simulate.engine.chunks import Chunks
from jaxdp.simulate.engine.grid import Plan
from jaxdp.simulate.engine.replicates import Design, RejectionRate, batch_of, decided
from jaxdp.simulate.engine.settings import Setting

HERE = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(HERE))
from simulation_worker import NoisyMean, settings, uniforms  # noqa: E402

DEVICES = """
import json, sys, jax
sys.path.insert(0, sys.argv[1])
import jaxdp
from jaxdp.simulate.designs import by_name
from jaxdp.simulate.engine import grid as engine
from jaxdp.simulate.engine.settings import Setting
from simulation_worker import settings
assert len(jax.devices()) == 8
grid = [*settings(), Setting({"m": "p"}, jaxdp.PartitionGCM(epsilon=1.0), by_name.design("sine").build(60, 0.5))]
for name, devices, batch in (("one", 1, "auto"), ("eight", 8, 16)):
    plan = engine.Plan(1001, chunk=400)
    engine.run(grid, f"{sys.argv[2]}/{name}", plan, devices=jax.devices()[:devices], batch_size=batch)
"""


def table(folder):
    """What must be equal; histograms may differ by a p-value at the edge of a bin."""
    return [(record.key, record.stop, record.rejections, record.failures) for record in results.read_records([folder])]


def environment(devices=1):
    flags = f"--xla_force_host_platform_device_count={devices}"
    return {**os.environ, "XLA_FLAGS": flags, "NPROC": "16", "JAX_PLATFORMS": "cpu"}


@pytest.mark.full
def test_one_and_eight_devices_count_the_same(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, str(HERE), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment(8),
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    one, eight = (table(tmp_path / name) for name in ("one", "eight"))
    assert len(one) == 9
    assert one == eight


@pytest.mark.full
def test_two_processes_count_what_one_does(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    grid = ["--method", "private-crt-normal", "--design", "sine", "--n", "40", "--effect", "0.5", "--replicates", "900"]
    command = [sys.executable, "-m", "jaxdp", "simulate", *grid, "--interval-width", "0.07", "--chunk", "200"]
    mesh = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment(2)}
    running = [
        subprocess.Popen([*command, *mesh, "--process", str(place), "--out", str(tmp_path / "two")], **pipes)
        for place in range(2)
    ]
    said = [process.communicate(timeout=1500) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert "process 0/2" in said[0][1]
    assert "process 1/2" in said[1][1]
    assert "rejection rate" in said[0][0]
    assert "rejection rate" not in said[1][0]
    assert main([*command[3:], "--out", str(tmp_path / "one")]) == 0
    assert table(tmp_path / "one") == table(tmp_path / "two")
    assert results.runs(tmp_path / "two")[0]["processes"] == 2
    assert results.runs(tmp_path / "two")[0]["devices"] == 4


def test_batches_tasks_and_resuming_change_nothing(tmp_path):
    whole = engine.run(settings(), tmp_path / "whole", Plan(700, chunk=100))
    expected = table(tmp_path / "whole")
    for batch in (1, 33):
        engine.run(settings(), tmp_path / f"batch{batch}", Plan(700, chunk=100), batch_size=batch)
        assert table(tmp_path / f"batch{batch}") == expected
    for task in (2, 0, 1):
        engine.run(settings(), tmp_path / "tasks", Plan(700, chunk=100, task=task, of=3))
    assert table(tmp_path / "tasks") == expected
    for replicates in (250, 300, 700):
        rows = engine.run(settings(), tmp_path / "grown", Plan(replicates, chunk=100), resume=True)
        assert [row.replicates for row in rows] == [replicates, replicates]
    assert [(row.rejections, row.hash) for row in rows] == [(row.rejections, row.hash) for row in whole]
    starts = [record.start for record in results.read_records([tmp_path / "grown"])]
    assert starts[:5] == [0, 100, 200, 250, 300]


def test_few_replicates_are_not_computed_as_a_whole_chunk(tmp_path):
    drawn = []

    def counted(key, n):
        jax.debug.callback(lambda: drawn.append(1))
        return uniforms(key, n=n, effect=0.0)

    setting = Setting({"design": "counted"}, NoisyMean(epsilon=1.0), functools.partial(counted, n=12))
    assert engine.run([setting], tmp_path, Plan(30), batch_size=1)[0].replicates == 30
    jax.effects_barrier()
    assert 30 <= len(drawn) < 60  # the last batch of each device is filled up


def test_counts_are_those_of_rejection_rate_with_the_settings_key(tmp_path):
    setting = settings()[1]
    row = engine.run([setting], tmp_path, Plan(300, chunk=128, keep_p_values=True))[0]
    key = jax.random.fold_in(jax.random.key(0), setting.number)
    values = np.asarray(jaxdp.power.p_values(setting.test, setting.design, key, 300))
    np.testing.assert_allclose(row.p_values, values, rtol=1e-6)
    assert row.rejections == np.sum(values <= 0.05 * (1 + 1e-6))
    np.testing.assert_array_equal(row.histogram, np.histogram(np.nextafter(values, 0), 100, (0, 1))[0])
    assert row.interval == pytest.approx(tuple(stats.binomtest(row.rejections, 300).proportion_ci(method="wilson")))


def test_rejection_rate_goes_on_with_its_folder(tmp_path):
    setting, key = settings()[1], jax.random.key(9)
    rate = functools.partial(jaxdp.power.rejection_rate, setting.test, setting.design, key)
    expected = rate(2500)
    assert rate(2500, memory=200_000) == expected
    first = rate(1200, folder=tmp_path)
    assert first == rate(1200)
    assert rate(2500, folder=tmp_path) == expected
    assert [record.start for record in results.read_records([tmp_path])] == [0, 1000, 1200, 2000]
    other = jaxdp.power.rejection_rate(NoisyMean(epsilon=0.3), setting.design, key, 1000, folder=tmp_path)
    assert other == jaxdp.power.rejection_rate(NoisyMean(epsilon=0.3), setting.design, key, 1000)
    with pytest.raises(TypeError, match="simulations take"):
        jaxdp.power.rejection_rate(setting.test, setting.design, jaxdp.fresh_key(), 10, folder=tmp_path)


def test_a_setting_stops_at_its_width_wherever_it_was_interrupted(tmp_path):
    plan = Plan(100_000, chunk=100, interval_width=0.03)
    calm = engine.run(settings(), tmp_path / "calm", plan)
    assert all(row.stopped and row.complete and 100 < row.replicates < 5000 for row in calm)
    for row in calm:
        low, high = row.interval
        before = [record for record in results.read_records([tmp_path / "calm"]) if record.cell == row.hash][:-1]
        earlier = RejectionRate(sum(r.rejections for r in before), row.replicates - 100, 0.05).interval()
        assert high - low <= 0.03 < earlier[1] - earlier[0]

    class Stop(Exception):
        pass

    def interrupt(setting, count, seen=[]):  # noqa: B006
        seen.append(count)
        if len(seen) in (4, 19):
            raise Stop

    rows = None
    while rows is None:
        try:
            rows = engine.run(settings(), tmp_path / "cut", plan, resume=True, advance=interrupt)
        except Stop:
            continue
    assert [row.as_dict() | {"seconds": 0} for row in rows] == [row.as_dict() | {"seconds": 0} for row in calm]
    for task in (1, 0):
        rows = engine.run(
            settings(), tmp_path / "tasks", Plan(100_000, chunk=100, interval_width=0.03, task=task, of=2)
        )
    assert table(tmp_path / "tasks") == table(tmp_path / "calm")


def test_the_p_values_of_many_pairs_follow_each_other_whatever_the_batch():
    """Written into a row of one number a replicate, those beyond it would stay 0 and count as rejections."""
    design = functools.partial(examples.four_separate_columns, n=300)
    test, key = jaxdp.PairContrasts(epsilon=1.0, num_null=19, classes=2), jax.random.key(4)
    few, many = (jaxdp.power.p_values(test, design, key, 30, batch_size=batch) for batch in (4, 16))
    assert few.shape == (30,)
    np.testing.assert_array_equal(few, many)
    first = jaxdp.power.p_values(test, design, key, 6, batch_size=1)
    np.testing.assert_array_equal(few[:6], first)
    assert np.all(np.asarray(few) > 0)


def test_p_values_that_are_nan_are_counted_and_never_rejections(tmp_path):
    sick = Setting({"design": "sick"}, NoisyMean(epsilon=1.0), functools.partial(uniforms, n=12, effect=float("nan")))
    row = engine.run([sick], tmp_path, Plan(150, chunk=100))[0]
    assert (row.failures, row.rejections, row.replicates, row.histogram.sum()) == (150, 0, 150, 0)


def test_what_does_not_fit_together_is_refused(tmp_path):
    engine.run(settings(), tmp_path / "a", Plan(100, chunk=100))
    with pytest.raises(ValueError, match="resume it"):
        engine.run(settings(), tmp_path / "a", Plan(100, chunk=100))
    with pytest.raises(ValueError, match="chunk 100, not 50"):
        engine.run(settings(), tmp_path / "a", Plan(100, chunk=50), resume=True)
    with pytest.raises(ValueError, match="share their replicates"):
        engine.run([*settings(), settings()[0]], tmp_path / "b", Plan(100))
    with pytest.raises(ValueError, match="no setting"):
        engine.run([], tmp_path / "b", Plan(100))
    with pytest.raises(ValueError, match="task must be below"):
        Plan(100, task=2, of=2)
    rows = engine.run(settings((0.25,)), tmp_path / "a", Plan(100, chunk=100), resume=True)
    assert [row.identity["effect"] for row in rows] == [0.0, 0.5, 0.25]


def test_merged_folders_hold_each_replicate_once(tmp_path):
    engine.run(settings(), tmp_path / "a", Plan(300, chunk=100, task=0, of=2))
    engine.run(settings(), tmp_path / "b", Plan(300, chunk=100, task=1, of=2))
    engine.run(settings((0.5,)), tmp_path / "c", Plan(300, chunk=100))
    whole = engine.run(settings(), tmp_path / "whole", Plan(300, chunk=100))
    merged = results.merge([tmp_path / name for name in "abc"], tmp_path / "all")
    assert [row.rejections for row in merged] == [row.rejections for row in whole]
    assert table(tmp_path / "all") == table(tmp_path / "whole")
    assert len(results.runs(tmp_path / "all")) == 3
    with pytest.raises(ValueError, match="holds records already"):
        results.merge([tmp_path / "a"], tmp_path / "all")
    engine.run(settings(), tmp_path / "d", Plan(300, chunk=50))
    with pytest.raises(ValueError, match="different chunks"):
        results.merge([tmp_path / "a", tmp_path / "d"], tmp_path / "none")


@pytest.mark.full
def test_memory_follows_the_flag():
    setting = Setting({"d": "big"}, NoisyMean(epsilon=1.0), functools.partial(uniforms, n=50_000))
    free = Chunks(512, batch_size=512).program(setting)
    assert free.batch_size == 512
    bound = Chunks(512, batch_size=512, memory=10_000_000).program(setting)
    assert bound.bytes_per_device <= 5_000_000 < free.bytes_per_device
    assert 1 <= bound.batch_size < 512
    with pytest.raises(ValueError, match="raise the limit"):
        Chunks(512, memory=10_000).program(setting)


def test_the_command_and_its_report(tmp_path, capsys):
    out = tmp_path / "out"
    grid = ["simulate", "--method", "private-crt-normal", "--design", "sine", "--n", "40", "--effect", "0,0.5"]
    assert main([*grid, "--replicates", "2e2", "--chunk", "200", "--keep-p-values", "--out", str(out)]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    lines = (out / "results.csv").read_text().splitlines()
    assert lines[0].startswith("method,design,n,epsilon,effect,")
    assert len(lines) == 3
    row = dict(zip(lines[0].split(","), lines[2].split(","), strict=True))
    assert (row["effect"], row["replicates"], row["complete"]) == ("0.5", "200", "True")
    assert float(row["low"]) < int(row["rejections"]) / 200 < float(row["high"])
    assert json.loads((out / "config.json").read_text())["replicates"] == 200
    run = json.loads((out / "result.json").read_text())["last_run"]
    assert {"jax", "jaxlib", "backend", "device", "commit"} <= run.keys()
    made = ("results.csv", "null_p_values.png", "null_qq.png", "rejection_rates.png", "report.html", "result.json")
    for name in made:
        (out / name).unlink()
    assert main(["report", str(out), "--against", str(out)]) == 0
    assert "0 of them" in capsys.readouterr().out.replace("0 count otherwise", "0 of them")
    assert all((out / name).exists() for name in (*made, "comparison.csv", "comparison.png"))
    assert (out / "results.csv").read_text().splitlines() == lines
    assert main([*grid, "--replicates", "200", "--out", str(out)]) == 2
    assert "resume" in capsys.readouterr().err
    assert main([*grid, "--replicates", "200", "--resume", "--out", str(out)]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--design", "sine"], "--method is missing"),
        (["--method", "gcm"], "give --design"),
        (["--method", "gcm", "--design", "nonsense"], "design must be one of"),
        (["--method", "nonsense", "--design", "sine"], "there is no test called"),
        (["--method", "gcm", "--design", "sine", "--design-option", "wave=1"], "no constant 'wave'"),
        (["--method", "partition-gcm", "--design", "sine", "--method-option", "wave=1"], "no constant 'wave'"),
        (["--method", "crt", "--design", "discrete"], "known law"),
        (["--method", "noisy-table", "--design", "network", "--design-option", "x=asia"], "names of two"),
        (["--method", "gcm", "--design", "sine", "--replicates", "1.5"], "whole number"),
        (["--method", "gcm", "--design", "sine", "--design-option", "dim=0"], "dim must be"),
        (["--method", "margin-adaptive", "--design", "sine"], "does not use z"),
        (["--method", "gcm", "--design", "sine", "--memory", "2 apples"], "must be a size"),
        (["--method", "gcm", "--design", "sine", "--task", "3", "--of", "2"], "task must be below"),
        (["--method", "gcm", "--design", "sine", "--coordinator", "127.0.0.1:1"], "go together"),
    ],
)
def test_mistakes_are_one_line(options, message, tmp_path, capsys):
    assert main(["simulate", *options, "--out", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "o" / "config.json").exists()


def test_a_comparison_finds_what_differs(tmp_path):
    engine.run(settings(), tmp_path / "a", Plan(2000))
    changed = [
        Setting(setting.config, NoisyMean(epsilon=epsilon), setting.design, seed=1)
        for setting, epsilon in zip(settings(), (1.0, 0.3), strict=True)
    ]
    engine.run(changed, tmp_path / "b", Plan(2000))
    same, other = pages.compare(tmp_path / "a", tmp_path / "b")
    assert same["p_value"] > 1e-3
    assert other["p_value"] < 1e-6
    assert other["low"] > 0 or other["high"] < 0
    assert not same["same_experiment"]
    table_of = [
        [other["rate"] * 2000, 2000 * (1 - other["rate"])],
        [other["other_rate"] * 2000, 2000 * (1 - other["other_rate"])],
    ]
    assert other["p_value"] == pytest.approx(stats.chi2_contingency(table_of, correction=False).pvalue, rel=1e-6)
    engine.run(settings((0.1,)), tmp_path / "c", Plan(100))
    with pytest.raises(ValueError, match="share no setting"):
        pages.compare(tmp_path / "a", tmp_path / "c")


def test_a_cluster_is_joined_only_where_there_is_one(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI_", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cluster.initialize() is False
    with pytest.raises(ValueError, match="go together"):
        cluster.initialize("127.0.0.1:1")
    with pytest.raises(ValueError, match="below the number"):
        cluster.initialize("127.0.0.1:1", 2, 2)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert cluster.initialize() is False  # the batch script, outside srun
    asked = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda *given, **named: asked.append((given, named)))
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    cluster.initialize(quiet=True)
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2)")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    cluster.initialize(quiet=True)  # four processes see all four devices: JAX picks by local rank
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    cluster.initialize(quiet=True)  # each was given its own
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "1(x2)")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
    cluster.initialize(quiet=True)  # one process drives eight
    local = [named["local_device_ids"] for _, named in asked]
    assert local == [None, None, [0], list(range(8))]


def test_every_named_design_builds_and_has_a_null():
    for entry in by_name.DESIGNS.values():
        for effect in (0.0, 1.0 if entry.name == "network" else 0.5):
            shapes = jax.eval_shape(entry.build(20, effect), jax.eval_shape(jax.random.key, 0))
            assert shapes.x.shape == shapes.y.shape == (20,)


def test_the_array_template_runs_a_task(tmp_path):
    """The template's own line, with the scheduler's variables set by hand."""
    template = HERE.parent / "scripts" / "slurm" / "array.sbatch"
    recorder = tmp_path / "python"
    recorder.write_text('#!/bin/sh\necho "$@"\n')
    recorder.chmod(0o755)
    scheduler = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_COUNT": "5"}
    environment = {**os.environ, **scheduler, "SLURM_SUBMIT_DIR": str(tmp_path), "PYTHON": str(recorder)}
    done = subprocess.run(
        ["bash", str(template), "--method", "gcm"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["-m", "jaxdp", "simulate", "--method", "gcm", "--resume", "--task", "3", "--of", "5"]


@pytest.mark.parametrize(
    ("test", "n", "batch"),
    [
        (jaxdp.PartitionGCM(epsilon=1.0), 1000, 150),  # narrow, although its effect, not asked for, has wide tables
        (jaxdp.PartitionGCM(epsilon=1.0), 100, 1024),
        (jaxdp.PrivateGCM(epsilon=1.0, ridge=0.1), 200, 100),  # a kernel: 200 numbers a record
    ],
)
def test_the_automatic_batch_is_smaller_for_programs_that_are_wide(test, n, batch):
    design = Design.of(functools.partial(jaxdp.simulate.sine_confounder, n=n))
    assert batch_of(test, design, jax.random.key(0), jax.devices()[0]) == batch


def _drawn_by_numpy(key, n=60):
    """A design that ignores its key."""
    return jaxdp.Data(*np.random.default_rng().uniform(-1, 1, (2, n)))


def _drawn_by_numpy_after_a_split(key, n=60):
    jax.random.split(key)
    return jax.jit(_drawn_by_numpy, static_argnums=1)(key, n)


def _z_alone_is_drawn(key, n=60):
    """A design whose x and y are the same in every replicate."""
    return dataclasses.replace(_drawn_by_numpy(key, n), z=jax.random.uniform(key, (n, 1)))


@pytest.mark.parametrize("design", [_drawn_by_numpy, _drawn_by_numpy_after_a_split, _z_alone_is_drawn])
def test_a_design_that_ignores_its_key_is_refused(design, tmp_path):
    """It would be traced once: one data set, counted as many."""
    test = jaxdp.PartitionGCM(epsilon=1.0)
    for how in ({}, {"folder": tmp_path}):
        with pytest.raises(ValueError, match=r"the design does not use its key.*What np\.random draws is drawn once"):
            jaxdp.power.rejection_rate(test, design, jax.random.key(0), 50, **how)


def test_a_design_with_a_fixed_column_is_taken():
    fixed = np.linspace(-1, 1, 60)
    found = jaxdp.power.rejection_rate(
        jaxdp.PartitionGCM(epsilon=1.0),
        lambda key: jaxdp.Data(fixed, jax.random.uniform(key, (60,))),
        jax.random.key(0),
        8,
    )
    assert found.replicates == 8


@pytest.mark.parametrize("replicates", [200, 600, 5000])
def test_an_interval_holds_its_rate(replicates):
    """Rounded, its end was below a rate of 1, and a picture with an error bar of negative length was refused."""
    for rejections in (0, 1, replicates - 1, replicates):
        rate = RejectionRate(rejections, replicates, 0.05)
        low, high = rate.interval()
        assert low <= rate.rate <= high


def _drawn(key, *, draw, count):
    return draw(key, count)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.25, 4.0])
@pytest.mark.parametrize("name", sorted(catalogue.offered()))
def test_a_simulation_runs_the_query_that_a_release_runs(name, epsilon):
    """Numbers of bins, knots or windows follow the budget, which a compiled program can't read."""
    for configured in cases.of(catalogue.find(name)):
        count = max(1000, configured.example.min_records)
        test, draw = configured.build(epsilon, count), configured.example.data
        if test.public_columns or configured.example.label == "joins":  # as many records as there may be
            continue
        shapes = jax.eval_shape(functools.partial(_drawn, draw=draw, count=count), jax.random.key(0))
        simulated = decided(test, Design.of(functools.partial(_drawn, draw=draw, count=count)))
        traced = []
        jax.eval_shape(lambda one: traced.append(jax.tree.structure(core.specialize(one, shapes))), simulated)  # noqa: B023
        assert traced == [jax.tree.structure(core.specialize(test, shapes))]

"""`jaxdp.simulate.grid` and the command are one code; what a grid takes is told before; memory that fails is halved."""

import functools

import jax
import numpy as np
import pytest
from pyarrow import parquet
from simulation_worker import NoisyMean, settings, uniforms

import jaxdp
from jaxdp.cli.main import main
from jaxdp.simulate import grids
from jaxdp.simulate.engine import chunks, replicates, results
from jaxdp.simulate.engine import grid as engine
from jaxdp.simulate.engine.chunks import Chunks
from jaxdp.simulate.engine.grid import Plan, auto_chunk
from jaxdp.spec import TestSpec

grid = functools.partial(jaxdp.simulate.grid, n=40, epsilon=[1], effect=[0, 0.5], replicates=200)


@jaxdp.private_test
class Described(NoisyMean):
    """`NoisyMean` that a grid can build by its class."""

    spec = TestSpec(name="described-mean", summary="a mean")


def counts(rows):
    return [(row.hash, row.identity, row.rejections, row.replicates, row.failures) for row in rows]


def test_the_command_and_the_call_are_one_grid(tmp_path):
    rows = grid("private-crt-normal", "sine", folder=tmp_path / "called", chunk=100)
    options = ["--method", "private-crt-normal", "--design", "sine", "--n", "40", "--effect", "0,0.5", "--chunk", "100"]
    assert main(["simulate", *options, "--replicates", "200", "--out", str(tmp_path / "command")]) == 0
    assert counts(jaxdp.simulate.grid.load(tmp_path / "command")) == counts(rows)
    assert counts(jaxdp.simulate.grid.load(tmp_path / "called")) == counts(rows)
    table = parquet.read_table(tmp_path / "called" / "results.parquet").to_pylist()
    assert [line["rejections"] for line in table] == [row.rejections for row in rows]
    assert [line["effect"] for line in table] == [0.0, 0.5]
    assert [line["complete"] for line in table] == [True, True]
    assert [sum(line["histogram"]) for line in table] == [200, 200]
    assert (tmp_path / "command" / "results.parquet").exists()


def test_rows_are_drawn_along_the_axis_in_which_they_differ(tmp_path):
    rows = grid(Described, uniforms, n=12, folder=tmp_path)
    picture = jaxdp.simulate.grid.plot(jaxdp.simulate.grid.load(tmp_path))
    assert picture._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="effect, n or epsilon"):
        jaxdp.simulate.grid.plot(rows[:1])
    with pytest.raises(ValueError, match="effect, n or epsilon"):
        jaxdp.simulate.grid.plot([])


def test_the_same_call_goes_on_with_its_folder(tmp_path):
    few = functools.partial(grid, Described, uniforms, n=12, folder=tmp_path)
    first = few(effect=[0.0])
    more = few(replicates=300)
    assert [row.replicates for row in more] == [300, 300]
    assert [row.hash for row in first] == [row.hash for row in more][:1]
    assert results.read_config(tmp_path)["chunk"] == 1000
    apart = grid(Described, uniforms, n=12, replicates=300, folder=tmp_path.with_name("apart"))
    assert counts(apart) == counts(more)


def test_tests_are_named_built_or_given(tmp_path):
    given = Described(epsilon=7.0)
    rows = grid([Described, given], uniforms, n=12, epsilon=[0.3, 2.0], effect=0.5, folder=tmp_path)
    assert [row.identity["method"] for row in rows] == [f"{__name__}:Described"] * 2 + ["described-mean"] * 2
    assert [row.identity["epsilon"] for row in rows] == [0.3, 2.0] * 2
    assert len({row.hash for row in rows}) == 4
    rates = [row.rate for row in rows]
    assert max(rates[1], rates[3]) < min(rates[0], rates[2])  # of the grid's budget, not the 7 it was made with


def test_a_test_with_a_mechanism_of_its_own_has_no_budget_to_sweep():
    gaussian = jaxdp.PartitionGCM(mechanism=jaxdp.Gaussian(0.5))
    axes = {"n": [100], "epsilon": [1.0, 2.0], "effect": [0.0]}
    (setting,) = grids.make_settings([gaussian], [grids.named("sine")], **axes)
    assert setting.identity["epsilon"] is None
    assert setting.test == gaussian
    assert len(grids.make_settings([jaxdp.PartitionGCM], [grids.named("sine")], **axes)) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tests": "nonsense"}, "there is no test called"),
        ({"tests": [NoisyMean(epsilon=1.0)]}, "does not say how its columns"),
        ({"tests": [3]}, "named by a short text"),
        ({"n": 1.5}, "integer"),
        ({"designs": "nonsense"}, "design must be one of"),
        ({"designs": lambda key: key}, "is no design"),
        ({"epsilon": []}, "at least one value of each"),
        ({"replicates": 0}, "replicates must be"),
        ({"fields": {"wave": 1}}, "no constant 'wave'"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(wrong, message, tmp_path):
    asked = {"tests": "partition-gcm", "designs": "sine", "n": 100, "folder": tmp_path / "out"} | wrong
    with pytest.raises((ValueError, TypeError), match=message):
        jaxdp.simulate.grid(asked.pop("tests"), asked.pop("designs"), **asked)
    assert not (tmp_path / "out").exists()


def test_an_estimate_counts_what_is_left_and_writes_nothing(tmp_path, capsys):
    folder = tmp_path / "out"
    ask = functools.partial(grid, Described, uniforms, n=[11, 12], folder=folder, chunk=100, replicates=450)
    told = ask(estimate=True)
    assert (told.settings, told.programs, told.launches, told.replicates) == (4, 2, 20, 1800)
    assert told.bytes_per_device > 0
    assert told.bytes_on_disk == 20 * 400
    assert 0 < told.seconds < 60
    assert not folder.exists()
    ask(effect=[0], n=11)
    before = results.record_files(folder)[0].read_bytes()
    assert (ask(estimate=True).launches, ask(estimate=True).replicates) == (15, 1350)
    assert ask(estimate=True, keep_p_values=True).bytes_on_disk == 15 * 400 + 4 * 1350
    assert results.record_files(folder)[0].read_bytes() == before
    command = ["simulate", "--method", "private-crt-normal", "--design", "sine", "--n", "40", "--effect", "0,0.5"]
    assert main([*command, "--replicates", "2500", "--estimate", "--out", str(tmp_path / "told")]) == 0
    said = capsys.readouterr().out
    assert "2 settings, 5000 replicates to do" in said
    assert "launches   6, one for each chunk" in said
    assert not (tmp_path / "told").exists()


def test_the_automatic_chunk_follows_platform_replicates_and_the_folder(tmp_path):
    assert auto_chunk(10**6, 100, tmp_path, "cpu") == 1000
    assert auto_chunk(10**6, 100, tmp_path, "gpu") == 100_000
    assert auto_chunk(500, 100, tmp_path, "gpu") == 1000
    assert auto_chunk(10**9, 3, tmp_path, "cpu") == 30_000  # 10^5 records
    engine.run(settings(), tmp_path, Plan(200, chunk=77))
    assert auto_chunk(10**9, 3, tmp_path, "gpu") == 77


class Failing:
    """A device whose memory holds `most` replicates; counts how often it was asked for more."""

    def __init__(self, monkeypatch, most):
        self.most, self.refused, self.compile = most, 0, Chunks._compile
        test = self

        def compile_(self, arguments, batch):
            program = test.compile(self, arguments, batch)
            return program._replace(compiled=functools.partial(test.run, program))

        monkeypatch.setattr(Chunks, "_compile", compile_)

    def run(self, program, *arguments):
        if program.batch_size > self.most:
            self.refused += 1
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return program.compiled(*arguments)


def test_a_batch_that_cannot_be_allocated_is_halved_and_the_grid_goes_on(tmp_path, monkeypatch):
    expected = engine.run(settings(), tmp_path / "whole", Plan(400, chunk=200))
    device = Failing(monkeypatch, most=30)
    rows = engine.run(settings(), tmp_path / "halved", Plan(400, chunk=200), batch_size=200)
    assert counts(rows) == counts(expected)
    assert device.refused == 3  # 200, 100 and 50 once, and never again
    Failing(monkeypatch, most=0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        engine.run(settings(), tmp_path / "none", Plan(400, chunk=200), batch_size=4)


def test_memory_that_fails_while_a_chunk_runs_is_halved_too(tmp_path, monkeypatch):
    on_host, failed = chunks._on_host, []

    def late(found):
        if not failed:
            failed.append(1)
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return on_host(found)

    expected = engine.run(settings(), tmp_path / "whole", Plan(400, chunk=200))
    monkeypatch.setattr(chunks, "_on_host", late)
    assert counts(engine.run(settings(), tmp_path / "late", Plan(400, chunk=200))) == counts(expected)


def test_p_values_halve_their_batch_too(monkeypatch):
    launch, refused = replicates._p_values, []

    def small(*arguments):
        if arguments[5] > 64:
            refused.append(arguments[5])
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return launch(*arguments)

    ask = functools.partial(jaxdp.power.p_values, settings()[1].test, settings()[1].design, jax.random.key(0), 700)
    expected = np.asarray(ask())
    monkeypatch.setattr(replicates, "_p_values", small)
    np.testing.assert_allclose(ask(), expected, rtol=1e-6)
    assert refused == [1024, 512, 256, 128]


def test_other_errors_of_a_device_are_not_swallowed():
    def broken(batch):
        raise jax.errors.JaxRuntimeError("INTERNAL: broken")

    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        replicates.halving(broken, 8)


class Accelerator:
    """A GPU as far as the batch policy looks at one."""

    platform = "gpu"

    def __init__(self, gigabytes):
        self.gigabytes = gigabytes

    def memory_stats(self):
        return {"bytes_limit": self.gigabytes * 10**9} if self.gigabytes else None


def test_one_batch_policy_by_platform_and_memory():
    test, key = jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0)
    design = replicates.Design.of(functools.partial(jaxdp.simulate.sine_confounder, n=1000))
    batch = functools.partial(replicates.batch_of, test, design, key)
    assert batch(jax.devices("cpu")[0]) == 150
    assert batch(Accelerator(None)) == batch(Accelerator(80)) == replicates.MAX_ACCELERATED == 2**16
    assert 1 <= batch(Accelerator(0.1)) < batch(Accelerator(0.2)) < 4096
    assert 2**14 < batch(Accelerator(16)) < 2**16


def test_a_run_says_of_which_settings_no_p_values_are_kept(tmp_path, capsys):
    """It kept none of what was counted before, without a word."""
    command = ["simulate", "--method", "partition-gcm", "--design", "sine", "--n", "40", "--replicates", "50"]
    command += ["--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "p-values" not in capsys.readouterr().err
    assert main([*command, "--resume", "--keep-p-values"]) == 0
    assert "1 of 1 settings have replicates that were counted without it" in capsys.readouterr().err
    assert main([*command[:-1], str(tmp_path / "new"), "--keep-p-values"]) == 0
    assert "p-values" not in capsys.readouterr().err

"""Where releases keep compiled programs: a folder of their owner alone, found unsafe for every reason there is."""

import os
import stat
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp._base import programs
from jaxdp.independence.mic import mic_common


@pytest.fixture
def kept(tmp_path, monkeypatch, own_programs):
    """The folder that the environment names; programs are kept nowhere yet, and simulations elsewhere."""
    monkeypatch.setenv(programs.VARIABLE, str(tmp_path / "mine" / "programs"))
    yield tmp_path / "mine" / "programs"
    programs.forget()


def release(count):
    """A release of a size of its own, so that nothing is compiled before."""
    values = np.linspace(-1.0, 1.0, count)
    return jaxdp.run(
        jaxdp.PartitionGCM(epsilon=1.0, num_cells=3), jaxdp.fresh_key(), jaxdp.Data(values, -values, values)
    )


def test_a_release_keeps_its_programs_and_leaves_the_settings(kept, own_programs, tmp_path):
    folder = jaxdp.programs.keep()
    assert folder.parent == kept
    assert jaxdp.programs.folder() == folder
    for path in (kept, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    release(69)
    assert list(folder.glob("jit__statistic-*-cache"))
    assert {name: getattr(jax.config, name) for name in own_programs} == own_programs
    before = set(folder.iterdir())
    jax.jit(lambda value: value + 3)(np.arange(69.0))  # the caller's own programs go where they went
    assert set(folder.iterdir()) == before
    assert list(tmp_path.glob("jit__lambda-*-cache"))


def test_forgetting_keeps_nothing_more(kept):
    folder = jaxdp.programs.keep()
    jaxdp.programs.forget()
    assert jaxdp.programs.folder() is None
    release(70)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_the_environment_switches_it_off_whatever_is_called(word, tmp_path, monkeypatch, own_programs):
    monkeypatch.setenv(programs.VARIABLE, word)
    assert jaxdp.programs.keep(tmp_path / "folder") is None
    assert jaxdp.programs.folder() is None
    assert not (tmp_path / "folder").exists()


def opened_to_others(folder):
    folder.mkdir(mode=0o700, parents=True)
    folder.chmod(0o750)
    return "others can open it"


def a_link(folder):
    target = folder.parent / "target"
    target.mkdir(mode=0o700, parents=True)
    folder.symlink_to(target)
    return "it is a link"


def a_file(folder):
    folder.parent.mkdir(parents=True)
    folder.write_text("")
    return "it is no folder"


def in_a_folder_of_others(folder):
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o777)
    return "others can write into"


@pytest.mark.parametrize("spoil", [opened_to_others, a_link, a_file, in_a_folder_of_others])
def test_unsafe_folders_are_refused_and_found_out_later(spoil, kept, tmp_path):
    wrong = spoil(kept)
    with pytest.raises(ValueError, match=f"not kept in .*: .*{wrong}.*{programs.VARIABLE}=off"):
        jaxdp.programs.keep()
    assert jaxdp.programs.folder() is None
    folder = jaxdp.programs.keep(tmp_path / "good")  # and one that is spoilt after it was found good
    assert jaxdp.programs.folder() == folder
    folder.chmod(0o755)
    assert jaxdp.programs.folder() is None
    release(71)
    assert not list(folder.iterdir())


def test_the_folder_of_somebody_else_is_refused(kept, monkeypatch):
    kept.mkdir(mode=0o700, parents=True)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ValueError, match="belongs to somebody else"):
        jaxdp.programs.keep()


def test_old_programs_make_room(kept, monkeypatch):
    folder = jaxdp.programs.keep()
    for age in range(3):
        path = folder / f"jit_{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    monkeypatch.setattr(programs, "MAX_BYTES", 250)
    jaxdp.programs.keep()
    assert {path.name for path in folder.iterdir()} == {"jit_0-cache", "jit_1-cache"}


@pytest.mark.full
@pytest.mark.parametrize("off", [False, True])
def test_the_command_line_keeps_them_unless_told_not_to(off, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "0,1\n1,0\n1,1\n" * 30)
    (tmp_path / "s.toml").write_text(
        '[columns.a]\nkind = "binary"\nlevels = ["0", "1"]\n[columns.b]\nkind = "binary"\nlevels = ["0", "1"]\n'
    )
    words = "test t.csv --schema s.toml --x a --y b --epsilon 1 --json --out out"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {programs.VARIABLE: "off" if off else str(tmp_path / "kept")}
    subprocess.run([sys.executable, "-m", "jaxdp", *words.split()], cwd=tmp_path, env=environment, check=True)
    assert bool(list(tmp_path.rglob("*-cache"))) is not off


def test_numbers_that_public_numbers_decide_are_made_once(kept):
    made = []

    def make():
        made.append(1)
        return np.arange(5, dtype=np.float32)

    def numbers(name="a"):
        return programs.numbers_of(name, (5,), make).tolist()

    assert numbers() == numbers() == [0, 1, 2, 3, 4]
    assert len(made) == 2  # no folder in force: nothing is kept
    folder = jaxdp.programs.keep()
    assert numbers() == numbers()
    assert len(made) == 3
    (file,) = folder.glob("*-numbers.npy")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    numbers("b")
    assert len(made) == 4
    for spoilt in (b"", b"no array", np.lib.format.MAGIC_PREFIX):
        file.write_bytes(spoilt)
        assert numbers() == [0, 1, 2, 3, 4]
    np.save(file, np.full(5, np.nan, np.float32))
    assert numbers() == [0, 1, 2, 3, 4]
    np.save(file, np.zeros(4, np.float32))
    assert numbers() == [0, 1, 2, 3, 4]
    assert len(made) == 9


def test_the_null_table_of_mic_is_the_same_from_the_folder(kept):
    settings = 40, 12.0, 2.0, "capped", "range", 30
    drawn = mic_common.null_table.__wrapped__(*settings)
    folder = jaxdp.programs.keep()
    first, second = (mic_common.null_table.__wrapped__(*settings) for _ in range(2))
    assert len(list(folder.glob("*-numbers.npy"))) == 1
    np.testing.assert_array_equal(first, drawn)
    np.testing.assert_array_equal(second, drawn)


def test_programs_that_are_packed_otherwise_lie_elsewhere(monkeypatch):
    monkeypatch.setattr(programs, "_has", lambda module: True)
    with_both = programs._machine()
    monkeypatch.setattr(programs, "_has", lambda module: False)
    assert with_both != programs._machine()

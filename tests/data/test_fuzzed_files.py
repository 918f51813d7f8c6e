"""Files with damage at random: a reader gives columns of the promised form, or one sentence that quotes no cell.

A strict reader gives the columns whatever a record holds. Damage is of the kinds that files meet: bytes changed, cut
out, repeated, put in; quotes, delimiters, ends of lines, marks of order, numbers beyond every range.

A number makes a file. The full suite tries the same ones each time; a nightly run begins at a number of its own, which
it prints. A failure names its number: JAXDP_FUZZ_SEED=NUMBER scripts/test --nightly tests/data/test_fuzzed_files.py
begins there. GOVERNANCE.md says why this is neither hypothesis nor atheris.
"""

import contextlib
import json
import os
import secrets
import tomllib

import numpy as np
import pytest

from jaxdp.data import Schema, plink
from jaxdp.discovery import read_graph

FEW, MANY = 150, 20_000
SEED = "JAXDP_FUZZ_SEED"
HEADER = b"age,sex,grade,seen\n"
CELL = b"zanzibar"  # in every undamaged record, in no sentence
ROWS = [f"{20 + i % 60}.5,{'fm'[i % 2]},{1 + i % 3},2020-01-{1 + i % 28:02}".encode() for i in range(12)]
ROWS[5] = b"31.25," + CELL + b",2,2020-02-02"
TABLE = b"\n".join([*ROWS, b""])
RULES = """
missing = "refuse"
[columns.age]
kind = "continuous"
bounds = [18, 90]
step = 0.5
[columns.sex]
kind = "categorical"
levels = ["f", "m"]
[columns.grade]
kind = "ordinal"
levels = [1, 2, 3]
[columns.seen]
kind = "continuous"
date = true
cycles = []
bounds = ["2020-01-01", "2020-12-31"]
"""
PARTS = [
    *(b'"', b'""', b",", b";", b"\n", b"\r", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\\", b"'"),
    *(b"NaN", b"inf", b"-1e999", b"1e400", b"9" * 400, b"0x10", b"1_0", b"=1+1", b"2020-13-45", b"\xd9\xa1", b" "),
    *(b"[", b"]", b"{", b"}", b"=", b"#", b"null", b"true", b"[" * 100_000, b":", b"-0"),
]
ODD = [None, True, 0, -1, 0.5, 1e308, "", "x", [], [[]], {}, {"x": 1}, [1, "x"], "\x00"]
GRAPH = {"names": ["a", "b", "c"], "directed": [["a", "b"]], "undirected": [["b", "c"]], "epsilon": 1.0, "cautions": []}


def rules():
    return tomllib.loads(RULES)


def damaged(rng, content):
    """The content with one to four pieces of damage."""
    for _ in range(rng.integers(1, 5)):
        start, end = sorted(rng.integers(0, len(content) + 1, 2))
        end = min(end, start + 40)
        kind = rng.integers(5)
        if kind == 0:
            content = content[:start] + PARTS[rng.integers(len(PARTS))] + content[start:]
        elif kind == 1:
            content = content[:start] + content[end:]
        elif kind == 2:
            content = content[:end] + content[start:]
        elif kind == 3:
            content = content[:start] + rng.bytes(1) + content[start + 1 :]
        else:
            content = content[:start]
    return content


def restructured(rng, value):
    """The value of a JSON file with another value at one place of its tree."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return ODD[rng.integers(len(ODD))]
    keys = list(value) if isinstance(value, dict) else range(len(value))
    changed = value.copy()
    place = keys[rng.integers(len(keys))]
    changed[place] = restructured(rng, value[place])
    return changed


def first_seed():
    """Where a nightly run begins: a new number each time, or that of a run that is repeated."""
    return int(os.environ.get(SEED) or secrets.randbits(62))


def json_files(path, value, seeds):
    """Two files for each seed, with damage to its bytes and to its tree."""
    for seed in files(path, json.dumps(value).encode(), seeds[: len(seeds) // 2]):
        yield seed
        path.write_text(json.dumps(restructured(np.random.default_rng(seed), value)))
        yield seed


def files(path, content, seeds, head=b""):
    """One file after the other, each damaged in its own way."""
    for seed in seeds:
        path.write_bytes(head + damaged(np.random.default_rng(seed), content))
        yield seed


def one_sentence(seed, error):
    text = str(error)
    assert text, seed
    assert not isinstance(error, UnicodeError), (seed, text)  # it holds the bytes
    assert "\n" not in text, (seed, text)
    assert CELL.decode() not in text, (seed, text)


@contextlib.contextmanager
def may_refuse(seed, *errors):
    """Only these errors, with one sentence; what else is raised names the seed."""
    try:
        try:
            yield
        except errors as error:
            one_sentence(seed, error)
    except BaseException as error:
        error.add_note(f"{SEED}={seed}")
        raise


def require_form(data, n=None):
    n = len(data.x) if n is None else n
    assert data.x.shape == (n,)
    assert data.y.shape == (n,)
    assert data.z.shape == (n, 2)
    for values in (data.x, data.y, data.z):
        assert not np.any(np.abs(np.asarray(values)) > 3)


def read_strictly(path, seeds):
    schema = Schema.from_dict(rules())
    for seed in files(path, TABLE, seeds, HEADER):
        with may_refuse(seed):
            require_form(schema.read(path, x="age", y="sex", given=["grade", "seen"], strict=True, records=12), 12)


def read_openly(path, seeds):
    schema = Schema.from_dict(rules())
    for seed in files(path, HEADER + TABLE, seeds):
        with may_refuse(seed, ValueError):
            require_form(schema.read(path, x="age", y="sex", given=["grade", "seen"]))


def read_schemas(path, seeds):
    for seed in files(path, RULES.encode(), seeds):
        with may_refuse(seed, ValueError, TypeError):
            Schema.load(path)


def read_json_schemas(path, seeds):
    path = path.with_suffix(".json")
    for seed in json_files(path, rules(), seeds):
        with may_refuse(seed, ValueError, TypeError):
            Schema.load(path)


def read_genotypes(path, seeds):
    rng = np.random.default_rng(0)
    plink.write_genotypes(path, rng.integers(-1, 2, (9, 4)).astype(np.int8), phenotype=["1", "2", CELL.decode()] * 3)
    for end in (".bed", ".bim", ".fam"):
        place = path.with_name(path.name + end)
        content = place.read_bytes()
        for seed in files(place, content, seeds[: len(seeds) // 3]):
            with may_refuse(seed, ValueError):
                assert set(np.unique(plink.read_genotypes(path).counts)) <= {plink.MISSING, -1, 0, 1}
        place.write_bytes(content)


def read_persons(path, seeds):
    persons = [(f"p{i}", f"p{i}") for i in range(9)]
    rows = [*(f"p{i} p{i} {20 + i} ".encode() + CELL for i in range(9)), b""]
    for seed in files(path, b"\n".join(rows), seeds, b"#FID IID age seen\n"):
        with may_refuse(seed, ValueError):
            columns = plink.read_persons(path, ["age", "seen"], persons)
            assert [len(texts) for texts in columns.values()] == [9, 9]


def read_graphs(path, seeds):
    for seed in json_files(path, GRAPH, seeds):
        with may_refuse(seed, ValueError):
            read_graph(path)


READERS = [read_strictly, read_openly, read_schemas, read_json_schemas, read_genotypes, read_persons, read_graphs]


@pytest.mark.parametrize("read", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(read, tmp_path):
    read(tmp_path / "table.csv", range(FEW))


@pytest.mark.nightly
@pytest.mark.parametrize("read", READERS)
def test_many_damaged_files_are_read_or_refused_in_one_sentence(read, tmp_path):
    start = first_seed()
    print(f"{SEED}={start}")
    read(tmp_path / "table.csv", range(start, start + MANY))


@pytest.mark.parametrize(
    ("read", "name", "text"),
    [(Schema.load, "s.json", "["), (Schema.load, "s.toml", "a = "), (read_graph, "g.json", '{"names": ')],
    ids=["json", "toml", "graph"],
)
def test_a_file_nested_too_deeply_is_refused(read, name, text, tmp_path):
    (tmp_path / name).write_text(text + "[" * 100_000)
    with may_refuse(name, ValueError):
        read(tmp_path / name)
        raise AssertionError("it was read")


def test_nights_try_other_files_and_a_failure_names_the_one_that_repeats_it(monkeypatch, tmp_path):
    monkeypatch.delenv(SEED, raising=False)
    nights = [first_seed(), first_seed()]
    texts = [tmp_path / "first", tmp_path / "second"]
    for path, start in zip(texts, nights, strict=True):
        next(files(path, TABLE, range(start, start + MANY)))
    assert nights[0] != nights[1]
    assert texts[0].read_bytes() != texts[1].read_bytes()
    with pytest.raises(KeyError) as failed, may_refuse(nights[0], ValueError):
        raise KeyError("x")
    name, _, number = failed.value.__notes__[0].partition("=")
    monkeypatch.setenv(name, number)
    next(files(texts[1], TABLE, range(first_seed(), first_seed() + MANY)))
    assert texts[0].read_bytes() == texts[1].read_bytes()


def test_the_check_sees_a_quoted_cell_and_another_error():
    with pytest.raises(AssertionError), may_refuse(0, ValueError):
        raise ValueError(f"{CELL.decode()} is no number")
    with pytest.raises(AssertionError), may_refuse(0, ValueError):
        b"\xff".decode()
    with pytest.raises(KeyError), may_refuse(0, ValueError):
        raise KeyError("x")


def test_damage_is_repeatable_and_varies():
    texts = [damaged(np.random.default_rng(seed), TABLE) for seed in range(50)]
    assert texts == [damaged(np.random.default_rng(seed), TABLE) for seed in range(50)]
    assert len(set(texts)) > 40
    assert len({json.dumps(restructured(np.random.default_rng(seed), GRAPH)) for seed in range(200)}) > 40

"""What may enter a test: everything else is refused by type, dtype and shape, unpaid, and no text quotes a value."""

import array
import decimal
import fractions
import traceback
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import jaxdp
from jaxdp import catalogue, core, discovery, interop
from jaxdp.core import cost_of
from jaxdp.data.dataset import ORDINAL, Column, Domain
from jaxdp.data.records import Records

ROWS = 40
NUMBER, TEXT = 8675309.25, "canary-8675309"
MARKS = ("8675309", "8.675309", "8.67531", "8.6753")  # as anything would print them
GOOD = np.linspace(-1.0, 1.0, ROWS)


def column(kind=float):
    """Numbers with the canary among them."""
    values = GOOD.astype(kind)
    values[3] = NUMBER
    return values


def objects(extra):
    values = GOOD.astype(object)
    values[3] = extra
    return values


class Quoting:
    """Converts to no number, and says why."""

    def __array__(self, *_, **__):
        raise ValueError(f"cannot convert {TEXT} {NUMBER}")

    def __repr__(self):
        return f"Quoting({TEXT})"

    __float__ = __index__ = __array__


class Frame:
    """Looks like a data frame: a shape, columns, no dtype, and it prints its values."""

    shape = (ROWS, 1)
    columns = (TEXT,)

    def __array__(self, *_, **__):
        return column()[:, None]

    def __repr__(self):
        return f"{TEXT}\n{NUMBER}"


class Named(Frame):
    """A frame with columns of the names that arrays use."""

    dtype = shape = Frame()


def pandas(name):
    library = pytest.importorskip("pandas")
    return getattr(library, name)(column())


FIELDS = {
    # dtypes
    "objects that are numbers": lambda: column().astype(object),
    "objects with a text": lambda: objects(TEXT),
    "objects with nothing": lambda: np.array([*column()[1:], None], object),
    "objects with a list": lambda: objects([NUMBER]),
    "objects that refuse": lambda: objects(Quoting()),
    "decimals": lambda: np.array([decimal.Decimal(str(NUMBER))] * ROWS),
    "fractions": lambda: np.array([fractions.Fraction(NUMBER)] * ROWS),
    "whole numbers beyond int64": lambda: np.array([8675309 * 10**30] * ROWS),
    "texts": lambda: np.array([TEXT] * ROWS),
    "texts of numbers": lambda: np.array([str(NUMBER)] * ROWS),
    "bytes": lambda: np.array([TEXT.encode()] * ROWS),
    "strings of NumPy": lambda: np.array([TEXT] * ROWS, np.dtypes.StringDType()),
    "complex": lambda: column(complex),
    "complex of JAX": lambda: jnp.asarray(column(complex)),
    "booleans": lambda: column() > 0,
    "booleans of JAX": lambda: jnp.asarray(column()) > 0,
    "dates": lambda: np.full(ROWS, np.datetime64(8675309, "s")),
    "time spans": lambda: np.full(ROWS, np.timedelta64(8675309, "s")),
    "structured": lambda: np.full(ROWS, (NUMBER,), [(TEXT, float)]),
    "records": lambda: np.rec.array([(NUMBER,)] * ROWS, dtype=[(TEXT, float)]),
    "void": lambda: np.full(ROWS, np.void(TEXT.encode())),
    "long floats": lambda: column(np.longdouble),
    "keys": lambda: jax.random.split(jax.random.key(8675309), ROWS),
    # types
    "masked": lambda: np.ma.masked_values(column(), NUMBER),
    "masked, nothing hidden": lambda: np.ma.array(column()),
    "sparse of JAX": lambda: sparse.BCOO.fromdense(jnp.asarray(column())),
    "frame": Frame,
    "frame with odd names": Named,
    "refuses": Quoting,
    "namespace": lambda: SimpleNamespace(shape=(ROWS,), dtype=np.dtype(float), value=NUMBER),
    "text": lambda: TEXT,
    "bytes text": lambda: TEXT.encode(),
    "number": lambda: NUMBER,
    "whole number": lambda: 8675309,
    "set": lambda: {NUMBER, TEXT},
    "dict": lambda: {TEXT: column()},
    "generator": lambda: (value for value in column()),
    "array module": lambda: array.array("d", column()),
    "memory": lambda: memoryview(column()),
    "function": lambda: lambda: NUMBER,
    "nested data": lambda: jaxdp.Data(column(), column()),
    # lists
    "list of texts": lambda: [TEXT] * ROWS,
    "list with a text": lambda: [*GOOD[1:], TEXT],
    "list with nothing": lambda: [*column()[1:], None],
    "ragged list": lambda: [[NUMBER], [NUMBER, 2.0]] * (ROWS // 2),
    "ragged tuple": lambda: ((NUMBER,), (NUMBER, 2.0)) * (ROWS // 2),
    "list of objects": lambda: [Quoting()] * ROWS,
    "list of frames": lambda: [Frame(), [NUMBER]],
    "list of complex": lambda: [complex(NUMBER)] * ROWS,
    "list of booleans": lambda: [True] * ROWS,
    "list of dicts": lambda: [{TEXT: NUMBER}] * ROWS,
    "empty list": list,
    # shapes
    "scalar": lambda: np.float64(NUMBER),
    "scalar array": lambda: np.array(NUMBER),
    "scalar of JAX": lambda: jnp.asarray(NUMBER),
    "no rows": lambda: column()[:0],
    "one row less": lambda: column()[1:],
    "three axes": lambda: np.broadcast_to(column()[:, None, None], (ROWS, 2, 2)),
    "no columns": lambda: column()[:, None][:, :0],
    "transposed": lambda: np.stack([column()] * 3),
}
FRAMES = {"data frame": "DataFrame", "series": "Series"}


def texts_of(error):
    """All that an exception, what it came from and its traceback print."""
    seen, found = [], []
    while error is not None and error not in seen:
        seen.append(error)
        found += [str(error), repr(error), *getattr(error, "__notes__", ()), *map(repr, error.args)]
        found += traceback.format_exception_only(error)
        error = error.__cause__ or error.__context__
    return found


def assert_silent(texts, name):
    for text in texts:
        assert not any(mark in text for mark in MARKS), f"{name}: {text[:300]}"


@pytest.fixture
def ledger(tmp_path):
    return jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1e6)


def refused(call, ledger, capfd, name):
    """The sentence with which a call refuses, in simulation and release mode; nothing is paid and nothing quoted."""
    for key, paid in ((jax.random.key(1), None), (jaxdp.fresh_key(), ledger), (jaxdp.fresh_key(), None)):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                call(key, paid)
            except Exception as error:
                caught = error
            else:
                pytest.fail(f"{name} was taken")
        assert type(caught) in (TypeError, ValueError), f"{name}: {caught!r}"
        assert_silent([*texts_of(caught), *(str(each.message) for each in warned), *capfd.readouterr()], name)
        assert caught.__cause__ is None, name
        assert caught.__context__ is None, name
        assert not getattr(key, "spent", False), f"{name}: a refusal spent the key"
        assert ledger.rows() == [], f"{name}: a refusal was charged"
        assert traceback.extract_tb(caught.__traceback__)[-1].filename.endswith(
            ("admit.py", "records.py", "features.py")
        )
    return str(caught)


def placed(value, where):
    fields = {"x": GOOD, "y": GOOD, "z": GOOD}
    return jaxdp.Data(**{**fields, where: value})


@pytest.mark.parametrize("where", ["x", "y", "z"])
def test_bad_data_are_refused_without_a_word_of_them(where, ledger, capfd):
    test = jaxdp.PartitionGCM(epsilon=1.0)
    for name, make in FIELDS.items():
        if name == "transposed" and where != "z":
            continue
        told = refused(
            lambda key, paid, make=make: jaxdp.run(test, key, placed(make(), where), ledger=paid), ledger, capfd, name
        )
        assert where in told.split(" of ")[0]
        assert len(told) < 300
        refused(lambda key, paid, make=make: jaxdp.release(test, key, placed(make(), where)), ledger, capfd, name)
        refused(lambda key, paid, make=make: cost_of(test, placed(make(), where)), ledger, capfd, name)
        assert_silent([repr(placed(make(), where)), str(placed(make(), where)), f"{placed(make(), where)}"], name)


def test_all_pairs_refuses_them_too(ledger, capfd):
    test, features = jaxdp.PartitionGCM(epsilon=1.0), np.stack([GOOD, -GOOD], axis=1)
    for name, make in FIELDS.items():
        refused(
            lambda key, paid, make=make: jaxdp.all_pairs(test, key, features, make(), ledger=paid), ledger, capfd, name
        )
        if name != "transposed":  # many features of few records are all pairs' own case
            refused(lambda key, paid, make=make: jaxdp.all_pairs(test, key, make(), ledger=paid), ledger, capfd, name)


SEARCHES = {
    "discover": lambda key, data, paid: discovery.discover(key, data, epsilon=1.0, levels=(2, 2), ledger=paid),
    "continuous": lambda key, data, paid: discovery.discover(key, data, epsilon=1.0, levels=(0, 0), ledger=paid),
    "table": lambda key, data, paid: discovery.table_pc(key, data, epsilon=1.0, levels=(2, 2), ledger=paid),
    "marginal": lambda key, data, paid: discovery.marginal_pc(key, data, rho=0.1, levels=(2, 2), ledger=paid),
    "svt": lambda key, data, paid: discovery.svt_pc(key, data, epsilon=1.0, levels=(2, 2), ledger=paid),
    "priv": lambda key, data, paid: discovery.priv_pc(key, data, epsilon=1.0, levels=(2, 2), ledger=paid),
    "em": lambda key, data, paid: discovery.em_pc(key, data, epsilon=1.0, levels=(2, 2), ledger=paid),
    "pc": lambda key, data, paid: discovery.pc(
        key, data, test=jaxdp.PartitionGCM(epsilon=1.0), max_tests=3, levels=(0, 0), ledger=paid
    ),
    "described": lambda key, data, paid: discovery.table_pc(
        key, (data, (Column("binary", 2), Column("binary", 2))), epsilon=1.0, ledger=paid
    ),
    "records": lambda key, data, paid: discovery.table_pc(
        key, Records(data, (Column("binary", 2), Column("binary", 2))), epsilon=1.0, ledger=paid
    ),
    "queries": lambda key, data, paid: interop.PrivateQueries(
        jaxdp.PartitionGCM(epsilon=1.0), data, epsilon=1.0, levels=(0, 0)
    ),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_searches_refuse_them_too(search, ledger, capfd):
    for name, make in FIELDS.items():
        refused(lambda key, paid, make=make: SEARCHES[search](key, make(), paid), ledger, capfd, name)


def test_data_frames_are_refused_with_the_way_out(ledger, capfd):
    for name, kind in FRAMES.items():

        def call(key, paid, kind=kind):
            return jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key, placed(pandas(kind), "x"), ledger=paid)

        told = refused(call, ledger, capfd, name)
        assert f"pandas.{kind}" in told
        assert "jaxdp.Schema" in told


@pytest.mark.parametrize("make", [lambda: TEXT, lambda: [NUMBER], Frame, lambda: {TEXT: NUMBER}, Quoting, dict])
def test_what_is_no_data_at_all_is_refused(make, ledger, capfd):
    test = jaxdp.MICrPairs(epsilon=1.0)
    refused(lambda key, paid: jaxdp.release(test, key, make()), ledger, capfd, "top")
    refused(lambda key, paid: jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key, make()), ledger, capfd, "top")


@pytest.mark.full
def test_lists_and_tuples_are_arrays():
    test = jaxdp.PartitionGCM(epsilon=1.0)
    wanted = jaxdp.run(test, jax.random.key(0), jaxdp.Data(GOOD, GOOD, GOOD))
    for kind in (list, tuple):
        found = jaxdp.run(test, jax.random.key(0), jaxdp.Data(*(kind(GOOD.tolist()) for _ in "xyz")))
        assert found.p_value == wanted.p_value
        assert found.statistic == wanted.statistic
    swapped = GOOD.astype(">f8")
    assert jaxdp.run(test, jax.random.key(0), jaxdp.Data(swapped, GOOD, GOOD)).p_value == wanted.p_value
    codes = [[0, 1], [1, 0], [1, 1]] * 20
    graphs = [
        discovery.table_pc(jax.random.key(0), each, epsilon=1.0, levels=(2, 2)) for each in (codes, np.array(codes))
    ]
    assert np.array_equal(graphs[0].cpdag, graphs[1].cpdag)


@pytest.mark.full
def test_stacked_data_sets_are_told_apart_from_columns(ledger, capfd):
    stacked = np.tile(column(), (4, 13))[:, :500]
    assert stacked.shape == (4, 500)
    described = Domain((Column(),), (Column(),), (Column(),))
    codes = Domain((Column(ORDINAL, 3),), (Column(ORDINAL, 3),))
    cases = {
        "plain": (jaxdp.PartitionGCM(epsilon=1.0), jaxdp.Data(stacked, stacked, stacked)),
        "no z": (jaxdp.PartitionGCM(epsilon=1.0), jaxdp.Data(stacked, stacked)),
        "described": (jaxdp.PartitionGCM(epsilon=1.0), jaxdp.Data(stacked.T, stacked.T, stacked.T, described)),
        "coded": (jaxdp.NoisyTableChi2(epsilon=1.0), jaxdp.Data(stacked.T, stacked.T, None, codes)),
        "kernel": (jaxdp.PrivateGCM(epsilon=1.0), jaxdp.Data(stacked, stacked, stacked)),
    }
    for name, (test, data) in cases.items():
        told = refused(lambda key, paid, t=test, d=data: jaxdp.run(t, key, d, ledger=paid), ledger, capfd, name)
        assert "columns against 1" in told
        assert "jax.vmap" in told
    one_by_one = jax.vmap(lambda row: jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), row).p_value)
    assert one_by_one(jaxdp.Data(stacked, stacked, stacked)).shape == (4,)
    genes = jaxdp.all_pairs(jaxdp.GCM(), jax.random.key(0), np.random.default_rng(0).normal(size=(8, 12)))
    assert genes.p_values.shape == (12, 12)


def test_trees_hold_any_leaf():
    """Nothing is checked when a pytree is rebuilt: transformations put tracers, shapes and marks into it."""
    data = jaxdp.Data(GOOD, GOOD, None, Domain((Column(),), (Column(),)))
    records = Records(np.zeros((ROWS, 2)), (Column(), Column()))
    for tree in (data, records):
        for leaf in (object(), TEXT, None, 1.0, np.zeros(3), jax.ShapeDtypeStruct((5,), float)):
            leaves, shape = jax.tree.flatten(tree)
            rebuilt = jax.tree.unflatten(shape, [leaf] * len(leaves))
            assert type(rebuilt) is type(tree)
            assert_silent([repr(rebuilt), str(rebuilt)], leaf)
        assert type(jax.tree.map(np.sum, tree)) is type(tree)
    with pytest.raises(ValueError, match="one column per description"):
        discovery.table_pc(jax.random.key(0), jax.tree.map(np.sum, records), epsilon=1.0)


def test_printed_data_show_dtypes_shapes_and_the_domain():
    data = jaxdp.Data(column(), jnp.asarray(column(), jnp.float32), None, Domain((Column(name="dose"),), (Column(),)))
    assert repr(data).startswith("Data(x=float64[40], y=float32[40], z=None, domain=Domain(x=(Column(")
    assert "dose" in repr(data)
    traced = []
    jax.make_jaxpr(lambda values: traced.append(repr(jaxdp.Data(values, values))))(column())
    assert traced == ["Data(x=float32[40], y=float32[40], z=None)"]
    assert repr(jax.eval_shape(lambda: data)) == repr(jax.tree.map(jnp.asarray, data)) or jax.config.jax_enable_x64
    texts = np.array([TEXT] * 3)
    assert repr(jaxdp.Data(texts, texts)) == "Data(x=text[3], y=text[3], z=None)"  # their length is theirs alone


def test_what_is_printed_of_answers_is_released(tmp_path):
    """The statistics without noise, and the values, are in no text of a result, release, graph, schema or table."""
    (tmp_path / "s.toml").write_text('[columns.a]\nkind = "continuous"\nbounds = [0, 1]\n')
    data = jaxdp.Data(column(), column()[::-1], GOOD)
    table = np.stack([column(), GOOD], axis=1)
    codes = np.array([[0, 1], [1, 0], [1, 1]] * 20)
    tables = jaxdp.Tables(np.array([8675309]), np.array([8675309]))
    test = jaxdp.PartitionGCM(epsilon=1.0)
    exact = test.specialize(jax.eval_shape(lambda: jax.tree.map(jnp.asarray, data)))
    with jax.enable_x64(True):
        plain = exact.statistic(jax.random.key(0), jax.tree.map(jnp.asarray, data))
    hidden = [f"{float(value):.6g}" for leaf in jax.tree.leaves(plain) for value in np.ravel(leaf)]
    shown = [
        jaxdp.run(test, jaxdp.fresh_key(), data),
        jaxdp.release(test, jaxdp.fresh_key(), data),
        jaxdp.all_pairs(test, jaxdp.fresh_key(), table),
        discovery.table_pc(jaxdp.fresh_key(), codes, epsilon=1.0, levels=(2, 2)),
        Records(table, (Column(), Column())),
        tables,
        interop.PrivateQueries(test, table, epsilon=1.0, levels=(0, 0)),
        jaxdp.Schema.load(tmp_path / "s.toml"),
    ]
    assert shown[2].p_values.dtype == np.float64
    texts = [form(each) for each in shown for form in (repr, str, "{}".format)]
    assert_silent(texts, "printed")
    for text in texts:
        assert not any(value in text for value in hidden if len(value) > 4)


def test_sentences_name_the_test():
    two = np.zeros((ROWS, 2))
    for test in (jaxdp.NoisyTableChi2(epsilon=1.0, levels=(2, 2)), jaxdp.UnitCircle(epsilon=1.0)):
        with pytest.raises(ValueError, match=f"^{core.method_of(test)} (tests|takes) one") as caught:
            jaxdp.run(test, jax.random.key(0), jaxdp.Data(two, GOOD))
        assert core.method_of(test)
        assert_silent(texts_of(caught.value), "columns")


def test_settings_that_are_data_are_not_quoted():
    for make in (
        lambda: jaxdp.PartitionGCM(epsilon=-column()),
        lambda: jaxdp.UnitCircle(epsilon=1.0, null=column()),
        lambda: jaxdp.PrivateGCM(epsilon=1.0, ridge=jnp.asarray(-column())),
        lambda: jaxdp.fresh_key().split(column()),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            make()
        assert_silent(texts_of(caught.value), "setting")


@pytest.mark.parametrize("name", ["partition-gcm", "distance-score", "test-of-tests", "noisy-table"])
@pytest.mark.parametrize("entry", [jaxdp.run, jaxdp.release])
def test_an_array_is_no_pair_of_columns(name, entry):
    """Whatever stage of a test first looks for a column, a compiled one too."""
    test = catalogue.find(name).build(1.0)
    for key in (jax.random.key(0), jaxdp.fresh_key()):
        with pytest.raises(TypeError, match=rf"{name} reads [xyz] of its data: give jaxdp.Data\(x, y, z\)"):
            entry(test, key, np.zeros((60, 3)))

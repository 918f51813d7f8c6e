"""No release under a JAX transformation: whatever is called, and however it is wrapped, nothing is released or paid."""

import itertools

import cases
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import AxisType, PartitionSpec

import jaxdp
from jaxdp import discovery, interop, published
from jaxdp.core import Cost
from jaxdp.independence.tables.gwas import Tables
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.randomness import keys, traces
from jaxdp.simulate.examples import codes

ROWS = 50  # data sets in one call
RECORDS = cases.NUM_RECORDS
TEST = jaxdp.ConditionalKendall(epsilon=0.5)
NUMBER = jax.ShapeDtypeStruct((), np.float32)


def once(f):
    """f on one number through a function whose derivative JAX may ask for."""
    wrapped = jax.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return wrapped


def sharded(f, rows):
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("rows")
    return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)(rows[:1])


TRANSFORMS = {
    "jit": lambda f, rows: [jax.jit(f)(row) for row in rows],
    "vmap": lambda f, rows: jax.vmap(f)(rows),
    "pmap": lambda f, rows: jax.pmap(f)(rows[:1]),
    "map": lambda f, rows: jax.lax.map(f, rows),
    "batched map": lambda f, rows: jax.lax.map(f, rows, batch_size=4),
    "scan": lambda f, rows: jax.lax.scan(lambda carry, row: (carry + f(row), row), jnp.zeros_like(rows[0]), rows),
    "grad": lambda f, rows: jax.grad(f)(rows[0]),
    "jvp": lambda f, rows: jax.jvp(f, (rows[0],), (rows[0],)),
    "vjp": lambda f, rows: jax.vjp(f, rows[0]),
    "linearize": lambda f, rows: jax.linearize(f, rows[0]),
    "shard_map": lambda f, rows: jax.jit(lambda rows: sharded(lambda part: f(part[0])[None], rows))(rows),
    "export": lambda f, rows: jax.export.export(jax.jit(f))(rows[0]),
    "lower": lambda f, rows: jax.jit(f).lower(rows[0]),
    "eval_shape": lambda f, rows: jax.eval_shape(f, rows[0]),
    "make_jaxpr": lambda f, rows: jax.make_jaxpr(f)(rows[0]),
    "while": lambda f, rows: jax.lax.while_loop(lambda x: x < 3, lambda x: f(x) + 1, rows[0]),
    "fori": lambda f, rows: jax.lax.fori_loop(0, 3, lambda i, x: f(x), rows[0]),
    "cond": lambda f, rows: jax.lax.cond(rows[0] > 0, f, f, rows[0]),
    "switch": lambda f, rows: jax.lax.switch(1, [f, f], rows[0]),
    "remat": lambda f, rows: jax.checkpoint(f)(rows[0]),
    "custom_jvp": lambda f, rows: jax.jit(once(f))(rows[0]),
    "constants": lambda f, rows: jax.jit(lambda _: f(np.float32(1.0)))(rows[0]),
    "eager constants": lambda f, rows: jax.vmap(lambda row: f(np.float32(1.0)) + row)(rows),
    "compile time": lambda f, rows: jax.jit(lambda _: within(jax.ensure_compile_time_eval(), f)(np.float32(1.0)))(
        rows[0]
    ),
    "pure_callback": lambda f, rows: jax.pure_callback(f, NUMBER, rows[0]),
    "jit pure_callback": lambda f, rows: jax.jit(lambda x: jax.pure_callback(f, NUMBER, x))(rows[0]),
    "vmap pure_callback": lambda f, rows: jax.vmap(lambda x: jax.pure_callback(f, NUMBER, x, vmap_method="sequential"))(
        rows
    ),
    "io_callback": lambda f, rows: jax.jit(lambda x: io_callback(f, NUMBER, x))(rows[0]),
    "debug callback": lambda f, rows: jax.debug.callback(lambda x: (f(x), None)[1], rows[0]),
}


def within(context, f):
    def g(x):
        with context:
            return f(x)

    return g


class Spy:
    """A ledger that lets everything through and counts."""

    def __init__(self):
        self.charged = 0

    def require(self, cost):
        del cost

    def charge(self, method, cost, key):
        self.charged += 1


def moved(data, number):
    """The data, which depend on the number that a transformation maps over."""
    zero = number * 0
    return jax.tree.map(lambda leaf: leaf + zero.astype(leaf.dtype), data)


def blank(draw):
    """Zeros of the shapes of drawn data."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(draw, jax.random.key(1)))


def entries(spy):
    """(name, data, call(key, data)) of every way to a release."""
    for case in cases.CASES:
        test, data = case.test(1.0), blank(lambda key, draw=case.data: draw(key, RECORDS))
        yield f"run {case.name}", data, lambda k, d, t=test: jaxdp.run(t, k, d, ledger=spy)
        yield f"release {case.name}", data, lambda k, d, t=test: jaxdp.release(t, k, d)
    table = jnp.zeros((RECORDS, 3))
    yield "all_pairs", table, lambda k, d: jaxdp.all_pairs(jaxdp.PartitionGCM(epsilon=1.0), k, d, ledger=spy)
    for kind in (jaxdp.MICrPairs, jaxdp.MICrTopPair):
        yield kind.__name__, table, lambda k, d, t=kind: jaxdp.release(t(epsilon=1.0), k, d)
    tables = Tables(jnp.array([15, 8, 9]), jnp.array([3, 8, 10]))
    sizes = {"kind": jaxdp.UnitCircle, "num_cases": 20, "num_controls": 20}
    for many in (jaxdp.EveryTable, jaxdp.FirstTables, jaxdp.BestTables):
        yield many.__name__, tables, lambda k, d, t=many: jaxdp.release(t(epsilon=1.0, **sizes), k, d)
    codes = jnp.zeros((RECORDS, 3), np.int32)
    settings = {"levels": (2, 2, 2), "ledger": spy}
    searches = {
        "discover": {"epsilon": 1.0},
        "table_pc": {"epsilon": 1.0},
        "svt_pc": {"epsilon": 1.0},
        "priv_pc": {"epsilon": 1.0},
        "em_pc": {"epsilon": 1.0},
        "adaptive_pc": {"epsilon": 1.0},
        "gaussian_pc": {"epsilon": 1.0, "delta": 1e-6},
        "priv_pc_paper": {"epsilon": 1.0},
        "marginal_pc": {"rho": 1.0},
        "max_min_pc": {"epsilon": 1.0},
        "partition_pc": {"epsilon": 1.0},
        "moment_pc": {"epsilon": 1.0},
        "neighbour_pc": {"epsilon": 1.0},
        "recommended_pc": {"epsilon": 1.0},
        "pc": {"test": TEST, "max_tests": 3},
    }
    exported = {name: package for package in (published, discovery) for name in package.__all__}
    assert {name for name in exported if "_pc" in name or name in ("discover", "pc")} == set(searches)
    for name, options in searches.items():
        yield name, codes, lambda k, d, n=name, o=options: getattr(exported[n], n)(k, d, **o, **settings)
    one = jnp.asarray(1.0)
    svt = SparseVector(epsilon=1.0)
    with jax.enable_x64(True):
        state = svt.init(jaxdp.fresh_key())
    queries = interop.PrivateQueries(TEST, codes, epsilon=1.0, levels=(2, 2, 2))
    yield "demo", one, lambda k, d: discovery.demo(k)
    yield "sparse vector init", one, lambda k, d: svt.init(k, d)
    yield "sparse vector answers", one, lambda k, d: svt.answers(k, d[None])
    yield "sparse vector step", one, lambda k, d: svt.step(state, d)
    yield "sparse vector scan", one, lambda k, d: svt.scan(state, d[None])
    yield "queries", one, lambda k, d: queries.p_value(0, 1)
    yield "ledger", one, lambda k, d: keys.admit(k) and spy.charge("m", Cost(epsilon=1.0), k)
    yield "audit", one, lambda k, d: jaxdp.audit.audit("laplace", 1.0, release=True, runs=400)
    yield "audit of a search", one, lambda k, d: jaxdp.audit.audit("svt_pc", 1.0, release=True, runs=400)
    yield "fresh key", one, lambda k, d: jaxdp.fresh_key()
    yield "split", one, lambda k, d: k.split(2)


@pytest.fixture(scope="module")
def every_entry():
    spy = Spy()
    return spy, list(entries(spy))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_nothing_is_released_or_paid_under_a_transformation(every_entry, transform, wide):
    spy, calls = every_entry
    given, refused = [jaxdp.fresh_key() for _ in calls], set()

    def attack(number):
        for key, (name, data, call) in zip(given, calls, strict=True):
            for shown in (data, moved(data, number)):
                with pytest.raises(RuntimeError, match=r"inside jax.jit, .* loop in Python, .*fresh_key\(\)\.split"):
                    call(key, shown)
            refused.add(name)
        return number * np.float32(1.0)

    with jax.enable_x64(wide), jax.debug_key_reuse(False):
        jax.block_until_ready(TRANSFORMS[transform](attack, jnp.arange(1.0, 1.0 + ROWS, dtype=np.float32)))
        jax.effects_barrier()
    assert refused == {name for name, _, _ in calls}
    assert spy.charged == 0
    assert not any(key.spent for key in given)


def test_entries_work_outside_a_transformation(every_entry):
    """The refusals above are due to the transformations."""
    spy, calls = every_entry
    for name, data, call in calls:
        if name in ("ledger", "fresh key", "split", "release conditional-kendall-codes"):
            call(jaxdp.fresh_key(), data)
    assert spy.charged == 1
    spy.charged = 0


def test_a_map_over_devices_that_is_not_compiled_is_a_trace_too():
    data = blank(lambda key: codes(key, RECORDS, (2, 3, 2)))

    key = jaxdp.fresh_key()

    def attack(part):
        with pytest.raises(RuntimeError, match="loop in Python"):
            jaxdp.run(TEST, key, data)
        return part

    sharded(attack, jnp.arange(1.0))


def test_a_key_as_a_static_argument_is_refused_too():
    data = codes(jax.random.key(1), RECORDS, (2, 3, 2))
    with pytest.raises(RuntimeError, match="loop in Python"):
        jax.jit(lambda key, d: jaxdp.run(TEST, key, d).p_value, static_argnums=0)(jaxdp.fresh_key(), data)


def test_a_leaked_tracer_is_refused_without_an_open_trace():
    leaked = []
    jax.eval_shape(lambda x: leaked.append(x) or x, jnp.zeros(RECORDS))
    with pytest.raises(RuntimeError, match="loop in Python"):
        jaxdp.run(TEST, jaxdp.fresh_key(), jaxdp.Data(leaked[0], leaked[0]))


def test_plain_python_is_no_trace():
    """What JAX calls a context but not a trace: a release runs there."""
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    contexts = [jax.ensure_compile_time_eval(), jax.disable_jit(), jax.set_mesh(mesh), jax.enable_x64(True)]
    for context in contexts:
        with context:
            traces.require_plain_python("a release", jnp.zeros(2))
    assert not traces.is_open()
    assert not traces.in_callback()


def test_a_callback_is_no_plain_python():
    seen = jax.jit(lambda x: jax.pure_callback(lambda x: np.float32(traces.in_callback()), NUMBER, x))(np.float32(0.0))
    assert float(seen) == 1.0


def test_keys_of_callbacks_are_fresh_and_single_use(monkeypatch):
    """Were a callback not recognised, its keys would still be new at every call, and spent by the first."""
    monkeypatch.setattr(traces, "in_callback", lambda: False)
    shared, seen, second = jaxdp.fresh_key(), [], []

    def call(x):
        seen.append(jaxdp.fresh_key().fingerprint)
        try:
            second.append(shared.split(1)[0].fingerprint)
        except ValueError as error:
            second.append(str(error))
        return np.asarray(x)

    compiled = jax.jit(lambda x: jax.pure_callback(call, NUMBER, x))
    for _ in range(3):
        compiled(np.float32(1.0)).block_until_ready()
    assert len(set(seen)) == len(seen) == 3
    assert all("used already" in text for text in second[1:])
    assert len(second[0]) == 64


@pytest.mark.parametrize(
    ("take", "kind"),
    [*itertools.product([jaxdp.run, jaxdp.release, lambda t, k, d: discovery.pc(k, d, test=t, max_tests=2)], [0, 1])],
)
def test_keys_taken_out_of_a_release_key_are_refused(take, kind):
    inner = keys.open_key(jaxdp.fresh_key())
    key = inner if kind == 0 else jax.random.split(inner)[0]
    for other in (take, lambda t, k, d: SparseVector(epsilon=1.0).init(k)):
        with pytest.raises(TypeError, match="taken out of a release key"):
            other(TEST, key, codes(jax.random.key(1), RECORDS, (2, 3, 2)))

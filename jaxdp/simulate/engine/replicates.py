"""P-values over simulated replicates: generate and test in one program; and what a count of them is called.

Replicate r uses key fold_in(key, r) whatever the batch size or the number of devices, so neither
changes a count.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxdp import core
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit, power_of_two
from jaxdp._base.layout import device_list, in_mesh, on_host
from jaxdp._base.traced import largest, uses_its_inputs
from jaxdp.data.dataset import Data
from jaxdp.randomness import keys, normals


@dataclasses.dataclass(frozen=True, repr=False)
class RejectionRate:
    """How often a test rejected: counts, not probabilities."""

    rejections: int
    replicates: int
    level: float

    @property
    def rate(self) -> float:
        """Share of rejections."""
        return self.rejections / self.replicates

    def __repr__(self) -> str:
        low, high = self.interval() if self.replicates else (0.0, 1.0)
        share = f"{self.rejections} of {self.replicates} simulated"
        return f"RejectionRate({self.rate:.4g} at level {self.level:g}: {share}, 95 % interval {low:.4g} to {high:.4g})"

    def interval(self, z: float = 1.959964) -> tuple[float, float]:
        """Wilson interval of the rejection probability; z = 1.96 is 95 %."""
        n, p = self.replicates, self.rate
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        # rounded, an end may lie beyond the rate itself where all or none reject
        return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Design:
    """A design with its numbers as leaves, so that a sweep over them reuses one compiled program."""

    numbers: dict[str, Any]
    function: Any = jax.tree.static()
    settings: tuple[tuple[str, Any], ...] = jax.tree.static(default=())

    @classmethod
    def of(cls, design) -> "Design":
        """From any callable key -> Data; the floats and arrays of a `functools.partial` become leaves."""
        if isinstance(design, cls):
            return design
        if not isinstance(design, functools.partial) or design.args:
            return cls({}, design)

        def is_number(value):
            return isinstance(value, float | jax.Array | np.ndarray | np.floating)

        numbers = {name: _plain(value) for name, value in design.keywords.items() if is_number(value)}
        settings = tuple(item for item in design.keywords.items() if not is_number(item[1]))
        return cls(numbers, design.func, settings)

    def __call__(self, key):
        return self.function(key, **dict(self.settings), **self.numbers)


def p_values(
    test: Any,
    design: Callable[..., Any],
    key: jax.Array,
    replicates: int,
    *,
    batch_size: int | None = None,
    devices: Any = None,
    start: int = 0,
) -> jax.Array:
    """P-values of replicates start, ..., start + replicates - 1; array (replicates,).

    test: any test, a pytree argument of one compiled program (sweeps over epsilon, ridge, ... do not recompile).
    design: callable key -> Data, best `functools.partial(jaxdp.simulate.sine_confounder, n=1000, effect=0.2)`: its
        floats and arrays become arguments of the program too, everything else is static.
    key: simulation key. batch_size: replicates in flight per device (memory), default from the data's shapes.
        The number of replicates is an argument of the program, from one whole batch a device on.
    devices: devices that share the replicates (a sequence, or a mesh whatever its axes), default the first one.
    """
    check.at_least(1, replicates=replicates)
    keys.require_simulation(key)
    design = Design.of(design)
    test, design = jax.tree.map(_plain, (decided(test, design), design))
    devices = device_list(devices) or tuple(jax.devices()[:1])
    most = min(batch_size or most_of(devices[0]), power_of_two(-(-replicates // len(devices))))
    fixed = batch_size is not None
    with in_mesh(mesh_of(devices)) as replaced:
        test, design, key = on_host((test, design, key))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((test, design, key))):
            return spread(test, design, key, start, replicates, replicates, most, devices, fixed=fixed)
        found = []
        for done in range(0, replicates, CAPACITY):
            count = min(CAPACITY, replicates - done)
            first = np.uint32(start + done)

            def launched(batch: int, first=first, count=count):
                return np.asarray(_p_values(test, design, key, first, np.uint32(count), batch, devices, fixed))

            values, most = halving(launched, most)
            found.append(values[:count])  # on the device, every number of replicates would be a program
    values = np.concatenate(found)
    return jnp.asarray(values) if replaced or len(devices) > 1 else jax.device_put(values, devices[0])


def decided(test, design: Design):
    """The test as a release would run it on data of this design.

    A program in which the budget is traced can't read it, and would run what the test does at another one where the
    budget decides what is static: numbers of bins, knots or windows. Such a test is specialized before it is traced.
    """
    if not isinstance(test, core.PrivateQuery) or test.public_columns or not check.is_known(test):
        return test
    return decided_for(test, jax.eval_shape(lambda key: design(normals.for_data(key)), jax.random.key(0)))


def decided_for(test, shapes):
    """`decided`, for data of these shapes."""
    known = core.specialize(test, shapes)
    traced: list[Any] = []
    jax.eval_shape(lambda test: traced.append(jax.tree.structure(core.specialize(test, shapes))), test)
    return test if traced == [jax.tree.structure(known)] else known


def _plain(leaf):
    """A NumPy number as Python's: other kinds of the same number would be other programs."""
    return leaf.item() if isinstance(leaf, np.floating) else leaf


RECORDS = 150_000  # in flight on a device: 7 MB for PartitionGCM
RECORDS_WIDE = 20_000  # of programs that are wider than WIDE numbers a record: kernels, permutations
WIDE = 16
MAX_BATCH = 1024  # replicates
CAPACITY = 2**16  # p-values that a launch has room for: how many it computes is an argument of its program


MAX_ACCELERATED = 2**16  # replicates in flight on an accelerator, where launches cost (docs/evidence/speed.md)
ACCELERATOR_SHARE = 0.25  # of a device's memory, where no limit is given
LIVE = 8  # arrays as large as the largest that a program may hold at once: a first guess


def default_batch(program, num_records: int, device) -> int:
    """Replicates in flight on a device, for the traced program of one: the one rule, by platform and memory.

    On a CPU XLA cuts each step of a batch into as many tasks as it has threads, whatever the cores: what a step costs
    to begin is shared by the batch, and the batch must still stay in a core's caches. On an accelerator a step is a
    launch, so as many as its memory holds.
    """
    most, elements = most_of(device), largest(program.jaxpr)
    if device.platform != "cpu":
        held = share_of_memory(device) / (LIVE * np.dtype(jnp.result_type(float)).itemsize * max(1, elements))
        return int(max(1, min(most, held)))
    wide = elements > WIDE * num_records
    return max(1, min(most, (RECORDS_WIDE if wide else RECORDS) // max(1, num_records)))


def most_of(device) -> int:
    """The largest batch that is chosen on such a device."""
    return MAX_BATCH if device.platform == "cpu" else MAX_ACCELERATED


def share_of_memory(device) -> float:
    """Bytes of an accelerator's memory that a program may take by itself; infinite where it does not say."""
    told = device.memory_stats() or {}
    return int(ACCELERATOR_SHARE * told["bytes_limit"]) if "bytes_limit" in told else math.inf


def halving[T](launch: Callable[[int], T], batch: int) -> tuple[T, int]:
    """launch(batch) and the batch, which is halved for as long as its memory cannot be allocated."""
    while True:
        try:
            return launch(batch), batch
        except jax.errors.JaxRuntimeError as error:
            if batch == 1 or not is_out_of_memory(error):
                raise
        batch //= 2


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device refused to allocate memory."""
    return "RESOURCE_EXHAUSTED" in str(error)


def batch_of(test, design, key, device) -> int:
    """`default_batch` of a test on a design."""
    found = []

    def note(*arguments):  # traced as in the program of a chunk: numbers are not known
        program, num_records = _traced(*arguments)
        found.append(default_batch(program, num_records, device))

    jax.eval_shape(note, test, design, key)
    return found[-1]


@functools.partial(bounded_jit, static_argnums=(5, 6, 7))
def _p_values(test, design, key, start, count, batch_size, devices, fixed):
    p = spread(test, design, key, start, count, CAPACITY, batch_size, devices, fixed=fixed)
    return jax.lax.with_sharding_constraint(p, NamedSharding(mesh_of(devices), PartitionSpec()))


def mesh_of(devices) -> jax.sharding.Mesh:
    """The mesh whose one axis is that of replicates."""
    return jax.sharding.Mesh(np.array(devices), ("replicate",), axis_types=(AxisType.Auto,))


def spread(test, design, key, start, count, capacity: int, batch_size: int, devices, *, fixed: bool = True):
    """P-values of `count` replicates from `start` on, in the first places of an array (capacity,); 0 in the others.

    To be traced; start and count may be. Whole batches only, dealt to the devices in turn: the last one is filled up
    with replicates that are thrown away, so that every replicate goes through the same program, and batches beyond
    `count` are not computed. Where a replicate has several p-values they follow each other, and the first `count` are
    kept. fixed: batch_size is the batch, otherwise a bound of `default_batch`.
    """

    def share(key, start):
        program, num_records = _traced(test, design, key)
        batch = min(capacity, batch_size if fixed else min(batch_size, default_batch(program, num_records, devices[0])))
        together = len(devices) * batch
        one, first = jaxpr_as_fun(program), jax.lax.axis_index("replicate") * batch

        def block(number, found):
            ids = start + jnp.asarray(number * together + first, jnp.uint32) + jnp.arange(batch, dtype=jnp.uint32)
            return jax.lax.dynamic_update_index_in_dim(found, jax.vmap(lambda i: one(i)[0])(ids), number, 0)

        rounds = (count + together - 1) // together
        if not isinstance(rounds, int):  # a known number of rounds can be differentiated in reverse
            rounds = rounds.astype(jnp.int32)
        one_p = program.out_avals[0]  # a test of many pairs has several p-values for each replicate
        found = jnp.zeros((-(-capacity // together), batch, *one_p.shape), one_p.dtype)
        return jax.lax.fori_loop(0, rounds, block, found)[:, None]

    whole, replicate = PartitionSpec(), PartitionSpec(None, "replicate")
    dealt = jax.shard_map(share, mesh=mesh_of(devices), in_specs=(whole, whole), out_specs=replicate, check_vma=False)(
        key, start
    )
    return dealt.reshape(-1)[:capacity]


def _traced(test, design, key):
    """The traced program from a replicate's number to its p-value, and its number of records.

    Errors: ValueError for a design whose x and y do not depend on its key, so that all replicates would share them.
    """
    seen = []

    def drawn(replicate):
        key_data, key_test = jax.random.split(jax.random.fold_in(key, replicate))
        return design(normals.for_data(key_data)), key_test

    def one(replicate):
        data, key_test = drawn(replicate)
        seen.append(core.num_records(data))
        return core.run(test, key_test, data).p_value

    def tested(replicate):
        data = drawn(replicate)[0]
        return (data.x, data.y) if isinstance(data, Data) else data

    if not uses_its_inputs(jax.make_jaxpr(tested)(np.uint32(0)).jaxpr):
        raise ValueError(
            "the design does not use its key for x or y, so every replicate would have the same: draw them from the "
            "key that it is given, such as jax.random.normal(key, (n,)). What np.random draws is drawn once, when the "
            "program is made."
        )
    return jax.make_jaxpr(one)(np.uint32(0)), seen[-1]

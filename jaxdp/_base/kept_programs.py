"""Functions whose programs a command finds on the disk without tracing them again.

JAX's own cache of compiled programs is asked with the program as it is lowered, so every process traces and lowers it
first: of a second answer that was more than half of the time. Here a program is asked for by what decides it: the code
of the package, the function, shapes and dtypes, public settings. It lies in the folder of `jaxdp._base.programs`, under
the same rules, and holds no value of the data, of the noise or of a key, which are arguments.

Only a process that says so does this (`begin`: the command line does), since a process that has replaced a function of
the package would find the program of the other one. A program is kept only if all that decides it is the package's
own: a class or a function from elsewhere can change while its name stays.
"""

import contextlib
import functools
import hashlib
import inspect
import io
import math
import os
import pickle
import platform
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
from jax.experimental import serialize_executable

from jaxdp._base import programs

DIGEST = 32  # bytes before a program, by which a damaged file is known
MAX_PROGRAMS = 64  # of a function, in the memory of a process
OWN = ("jaxdp", "jax", "jaxlib", "numpy", "builtins", "fractions", "functools", "enum", "collections")
# what JAX reads while it traces, besides the arguments
STATE = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_platforms",
)
NEVER = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs", "jax_check_tracer_leaks", "jax_default_device")

# How a program is compiled that a command runs once: making it fast would take longer than it gains.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
MAX_SMALL = 1 << 16  # numbers that such a program is given and gives
LAPACK = "lapack_"
_CALLED = re.compile(r"custom_call @(\w+)")

_begun: list[str] = []  # the digest of the code, once a process has begun


def begin() -> None:
    """From here on, this process takes programs from the folder in force, and puts new ones there."""
    if not _begun:
        _begun.append(_code())


def kept_jit[**P, R](function: Callable[P, R], *, quickly: bool = False, **options: Any) -> Callable[P, R]:
    """`jax.jit(function, **options)`; where a process has begun, its programs are taken from the folder in force.

    quickly: programs that are kept, of few numbers, skip optimisations: of what an answer runs once or a few times.
    options: static_argnames and static_argnums. The function is one of a module, and reads nothing but its arguments.
    """
    program: Any = jax.jit(function, **options)
    kept = _Kept(function, options, quickly)

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        found = kept.of(arguments, named) if _begun else None
        return program(*arguments, **named) if found is None else found

    for name in ("lower", "trace", "eval_shape", "clear_cache", "_cache_size"):
        setattr(call, name, getattr(program, name))
    return call


def kept_text(asked: tuple, find: Callable[[], str]) -> str:
    """find(), a short text; where a process has begun, taken from the folder in force.

    asked: all that decides the text besides the package's code, and public. Errors: those of `find`, never kept.
    """
    folder = programs.folder() if _begun else None
    name = None if folder is None else _digest(("text", asked))
    if folder is None or name is None:
        return find()
    path = folder / f"{name}-text"
    with contextlib.suppress(OSError, ValueError):
        digest, _, text = path.read_text().partition(" ")
        if digest == hashlib.sha256(text.encode()).hexdigest():
            return text
    text = find()
    programs.put(path, lambda file: file.write(f"{hashlib.sha256(text.encode()).hexdigest()} {text}".encode()))
    return text


class _Kept:
    """The programs of one function that are kept."""

    def __init__(self, function: Callable, options: dict[str, Any], quickly: bool = False):
        self.quickly = quickly
        self.function, self.signature = function, inspect.signature(function)
        names, numbers = (options.get(f"static_arg{kind}", ()) for kind in ("names", "nums"))
        parameters = list(self.signature.parameters)
        numbered = [parameters[i] for i in ((numbers,) if isinstance(numbers, int) else numbers)]
        self.static = ((names,) if isinstance(names, str) else tuple(names)) + tuple(numbered)
        self.in_memory: dict[Any, Any] = {}

    def of(self, arguments: tuple, named: dict[str, Any]) -> Any:
        """The results by a kept program; None where there is none for these arguments."""
        folder = _folder()
        if folder is None:
            return None
        bound = self.signature.bind(*arguments, **named)
        bound.apply_defaults()
        given = bound.arguments
        static = {name: given.pop(name) for name in self.static}
        leaves, tree = jax.tree.flatten(dict(given))
        kinds = _kinds(leaves)
        if kinds is None:
            return None
        state = tuple(getattr(jax.config, name) for name in STATE)
        asked = tree, tuple(static.items()), kinds, state
        if asked not in self.in_memory:
            if len(self.in_memory) >= MAX_PROGRAMS:
                self.in_memory.clear()
            self.in_memory[asked] = self._found(folder, asked, static, leaves)
        found = self.in_memory[asked]
        if found is None:
            return None
        compiled, out = found
        try:
            return jax.tree.unflatten(out, compiled(*leaves))
        except jax.errors.JaxRuntimeError:  # a file that was damaged: a release that is paid for goes on without it
            self.in_memory[asked] = None
            return None

    def _found(self, folder: Path, asked: tuple, static: dict[str, Any], leaves: list[Any]) -> Any:
        """(program of flat arrays, tree of its results), from the disk or compiled and put there; None for neither."""
        name = _name(self.function, asked)
        if name is None:
            return None
        path = folder / f"{name}-traced"
        return _loaded(path, len(leaves)) or self._compiled(path, asked[0], static, leaves)

    def _compiled(self, path: Path, tree: Any, static: dict[str, Any], leaves: list[Any]) -> Any:
        outer: list[Any] = []

        def flat(*values):
            found, out = jax.tree.flatten(self.function(**jax.tree.unflatten(tree, values), **static))
            outer[:] = [out]
            return tuple(found)

        flat.__name__ = self.function.__name__
        lowered = jax.jit(flat).lower(*leaves)
        called = set(_CALLED.findall(lowered.as_text()))
        if not all(name.startswith(LAPACK) for name in called):  # of Python, or what a process must register first
            return None
        small = _is_small([*leaves, *jax.tree.leaves(lowered.out_info)])
        with programs.without_cache():  # XLA cannot write out again what it has read from there
            compiled = lowered.compile(QUICKLY if self.quickly and small else None)
        try:
            content = pickle.dumps((serialize_executable.serialize(compiled)[0], outer[0], bool(called)))
        except (ValueError, TypeError, AttributeError, NotImplementedError, pickle.PicklingError):
            return compiled, outer[0]  # of this process alone
        programs.put(path, lambda file: file.write(hashlib.sha256(content).digest() + content))
        return compiled, outer[0]


def _is_small(leaves: Iterable[Any]) -> bool:
    return jax.default_backend() == "cpu" and sum(math.prod(np.shape(leaf)) for leaf in leaves) <= MAX_SMALL


def _loaded(path: Path, inputs: int) -> Any:
    """What `_compiled` has put there; None where there is nothing that can be read."""
    try:
        whole = path.read_bytes()  # of a folder that is its owner's alone
        if hashlib.sha256(whole[DIGEST:]).digest() != whole[:DIGEST]:  # a changed instruction could change the noise
            return None
        content, out, with_lapack = pickle.loads(whole[DIGEST:])
        if with_lapack:
            _register_lapack()
        given = jax.tree.structure((tuple(range(inputs)), {}))
        returned = jax.tree.structure(tuple(range(out.num_leaves)))
        return serialize_executable.deserialize_and_load(
            content, given, returned, execution_devices=jax.devices()[:1]
        ), out
    except FileNotFoundError:
        return None
    except Exception:  # cut short, or of another build: compiled anew
        return None


@functools.cache
def _register_lapack() -> None:
    """Has JAX hand LAPACK's functions to XLA, which it does when it lowers a call of them; without, a call crashes."""
    jax.jit(jax.numpy.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), np.float32))


def _folder() -> Path | None:
    """The folder that programs of this moment go to; None where they go nowhere, or are traced in an unusual way."""
    found = programs.in_use()
    if found is None or any(getattr(jax.config, name) for name in NEVER):
        return None
    return found if jax.sharding.get_abstract_mesh().empty else None


def _kinds(leaves: Iterable[Any]) -> tuple | None:
    """Shape, dtype and weakness of each array; None where one is traced, no array, or not on the one device."""
    found = []
    for leaf in leaves:
        if isinstance(leaf, np.ndarray | np.generic):
            if leaf.dtype == object:
                return None
            found.append((leaf.shape, leaf.dtype, False))
        elif isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
            if leaf.devices() != {jax.devices()[0]}:
                return None
            found.append((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)))  # keys have none
        elif type(leaf) in (bool, int, float):
            found.append(((), type(leaf), True))
        else:
            return None
    return tuple(found)


def _name(function: Callable, asked: tuple) -> str | None:
    """A digest of all that decides a program; None where some of it is not the package's own."""
    tree, static, kinds, state = asked
    if function.__module__.partition(".")[0] not in OWN:
        return None
    called = function.__module__, function.__qualname__
    shown = [(shape, str(dtype), weak) for shape, dtype, weak in kinds]
    return _digest((called, tree, static, shown, state))


def _digest(asked: tuple) -> str | None:
    """A digest of this and of the package's code; None where some of it is not the package's own."""
    file = io.BytesIO()
    pickler = _Strict(file)
    pickler.fast = True  # without references among equal parts, which differ between processes
    try:
        pickler.dump(asked)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(_begun[0].encode() + file.getvalue()).hexdigest()


class _Strict(pickle.Pickler):
    """Refuses classes and functions from outside: by name alone one cannot see whether they have changed."""

    def reducer_override(self, obj: Any) -> Any:
        if inspect.isclass(obj) or inspect.isroutine(obj):
            module = getattr(obj, "__module__", None) or "builtins"
            if module.partition(".")[0] not in OWN:
                raise pickle.PicklingError(f"{obj} is not the package's own.")
        return NotImplemented


def _code() -> str:
    """A digest of the package's files, by name, size and time as Python's byte code is, and of what they run on."""
    package = Path(__file__).resolve().parent.parent
    files = []
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                files.append((os.path.join(folder, name), status.st_size, status.st_mtime_ns))
    flags = sorted(item for item in os.environ.items() if item[0].startswith(("XLA_", "JAX_")))
    versions = platform.python_version(), jax.__version__, jaxlib.__version__, np.__version__
    devices = [(device.platform, device.device_kind) for device in jax.devices()]
    return hashlib.sha256(repr((sorted(files), flags, versions, devices)).encode()).hexdigest()

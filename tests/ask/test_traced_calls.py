"""Under a transformation of JAX every public call about a table answers, or says in one sentence what to do instead.

The calls are found by their signatures: whatever the package exports that is charged to a `ledger`.
"""

import inspect
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.data import plink

ROWS = 200
TRANSFORMS = {
    "jit": lambda f: jax.jit(f)(1.0),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(2)),
    "grad": lambda f: jax.grad(f)(1.0),
}
TRACED = ("table", "epsilon", "key", "nothing")


def exported(module, seen):
    """(name, value) of everything that a module of the package exports, and the modules that it exports."""
    for name in module.__all__:
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType):
            yield f"{module.__name__}.{name}", value
        elif value.__name__.startswith("jaxdp.") and value.__name__ not in seen and hasattr(value, "__all__"):
            seen.add(value.__name__)
            yield from exported(value, seen)


def parameters(value):
    """The parameters of what can be called; none of a class that Python cannot tell them of."""
    try:
        return inspect.signature(value).parameters if callable(value) else {}
    except ValueError:
        return {}


def charged_calls():
    """name -> call, with its parameters: all that take a `ledger`, each once."""
    found = {}
    for name, value in exported(jaxdp, set()):
        if "ledger" in parameters(value) and value not in found.values():
            found[name] = value
    return found


CALLS = charged_calls()


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("plink") / "study"
    genotypes = np.random.default_rng(0).integers(0, 3, (ROWS, 2)).astype(np.int8)
    plink.write_genotypes(path, genotypes, phenotype=["1", "2"] * (ROWS // 2))
    return path


def arguments(prefix, traced, number):
    """A value for every parameter without a default that any of the calls has; one of them follows the number."""
    rng = np.random.default_rng(1)
    moved = {name: number * 0.0 if name == traced else 0.0 for name in TRACED}
    codes = rng.integers(0, 2, (ROWS, 3))
    table = {name: rng.uniform(-1.0, 1.0, ROWS) for name in ("a", "b")}
    key = jax.random.key(0)
    if traced == "key":
        key = jax.random.fold_in(key, moved["key"].astype(int))
    if traced == "table":
        codes, table = (
            codes + moved["table"].astype(int),
            {name: cells + moved["table"] for name, cells in table.items()},
        )
    return {
        "table": table,
        "genotypes": prefix,
        "features": codes * 1.0 - 0.5,
        "data": codes,
        "key": key,
        "epsilon": 4.0 + moved["epsilon"],
        "rho": 2.0 + moved["epsilon"],
        "delta": 1e-6,
        "test": jaxdp.ConditionalKendall(epsilon=0.5),
        "x": "a",
        "y": "b",
        "columns": ["a", "b"],
        "levels": (2, 2, 2),
        "schema": {"columns": {name: {"kind": "continuous", "bounds": [-1, 1]} for name in table}},
    }


def asked(call, prefix, traced, number):
    """The call on what it needs, and on the key and the public facts if it takes them."""
    values = arguments(prefix, traced, number)
    own = parameters(call)
    facts = "schema" if "schema" in own else "levels"
    given = {name: values[name] for name in ("key", facts) if name in own}
    for name, parameter in own.items():
        plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if plain and parameter.default is parameter.empty:
            assert name in values, f"{call.__name__}({name}=): give this parameter a value in arguments() of this file"
            given[name] = values[name]
    if "data" in own and "levels" not in own:
        given["data"] = jaxdp.Data(*values["data"].T)
    if call is jaxdp.interop.PrivateQueries:
        given["epsilon"] = values["epsilon"]
    return call(**given)


def test_the_calls_are_all_there():
    names = {name.rpartition(".")[2] for name in CALLS}
    assert {"describe", "discover", "draft_schema", "gwas", "mic", "test", "test_pairs", "Session"} <= names
    assert {"PrivateQueries", "table_pc", "all_pairs", "run"} <= names


@pytest.mark.parametrize("traced", TRACED)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_answers_or_says_what_to_do_instead(name, transform, traced, prefix):
    def f(number):
        asked(CALLS[name], prefix, traced, number)
        return number * 1.0

    told = ""
    with jax.debug_key_reuse(False):  # a key that is mapped over makes it see one key twice
        try:
            TRANSFORMS[transform](f)
        except (TypeError, ValueError, RuntimeError) as error:
            told = str(error)
    if told:
        assert re.fullmatch(r"[^\n]* jax\.jit,? [^\n]*(call it in plain Python|loop in Python)[^\n]*\.", told)
        assert not re.search("Tracer|traced array", told)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("read", [jaxdp.Schema.read, jaxdp.Schema.read_table])
def test_a_traced_column_is_no_column_of_a_table(read, transform):
    schema = jaxdp.Schema.from_dict({"columns": {name: {"kind": "continuous", "bounds": [0, 1]} for name in "ab"}})
    asked = {"x": "a", "y": "b"} if read is jaxdp.Schema.read else {}

    def f(number):
        read(schema, {"a": np.zeros(3), "b": number * jnp.ones(3)}, **asked)
        return number * 1.0

    with pytest.raises(TypeError, match=r"column 'b' is traced by JAX, .* outside jax.jit, .* in plain Python"):
        TRANSFORMS[transform](f)


def test_the_message_comes_before_what_is_wrong_otherwise():
    """A traced epsilon is no wrong epsilon."""
    with pytest.raises(TypeError, match=r"jaxdp\.draft_schema decides on the host .* outside jax\.jit"):
        jax.jit(lambda epsilon: jaxdp.draft_schema({"a": [1.0]}, columns=["a"], epsilon=epsilon))(1.0)
    with pytest.raises(TypeError, match=r"jaxdp\.Session decides on the host"):
        jax.jit(lambda epsilon: jaxdp.Session({"a": [1.0]}, epsilon=epsilon).left)(1.0)

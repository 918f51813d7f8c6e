"""The page on the abstraction lists every hook of the base classes, with its type and its default."""

import ast
import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import pytest

import jaxdp
from jaxdp import core

ROOT = Path(jaxdp.__file__).parent
PAGE = (ROOT.parent / "docs/abstraction.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| `(.*?)` \| (.*?) \| (.*?) \| (.*?) \|$", flags=re.M)
REQUIRED = "must be defined"


@dataclasses.dataclass(frozen=True)
class Hook:
    """type: annotation of an attribute, arguments of a method. default: as the page has it; "" where it is in words."""

    type: str
    default: str


def hooks_of(cls: type) -> dict[str, Hook]:
    """The public attributes and methods that a class itself defines, from its source."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            kind, value = ast.unparse(node.annotation), ast.unparse(node.value) if node.value else REQUIRED
            found[ast.unparse(node.target)] = Hook(
                kind.removeprefix("ClassVar[").removesuffix("]" * ("ClassVar[" in kind)), value
            )
        elif isinstance(node, ast.Assign):
            value = getattr(cls, ast.unparse(node.targets[0]))
            cast = isinstance(node.value, ast.Call)
            kind = ast.literal_eval(node.value.args[0]) if cast else type(value).__name__
            found[ast.unparse(node.targets[0])] = Hook(kind, repr(value))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = ", ".join(arg.arg for arg in node.args.args if arg.arg != "self")
            required = ast.unparse(node.body[-1]) == "raise NotImplementedError"
            found[node.name] = Hook(f"({arguments})", REQUIRED if required else "")
    return found


HOOKS = hooks_of(core.PrivateQuery) | hooks_of(core.PrivateTest)
PROTOCOLS = {name for kind in (core.Mechanism, core.AdditiveMechanism, core.NullMechanism) for name in hooks_of(kind)}
ROWS = {found[0]: found[1:] for found in ROW.findall(PAGE)}


def test_the_page_lists_every_hook_and_no_other():
    missing, strange = set(HOOKS) - set(ROWS), set(ROWS) - set(HOOKS)
    assert not missing, f"docs/abstraction.md lacks rows for {sorted(missing)}: name, type, default, meaning, readers"
    assert not strange, f"docs/abstraction.md has rows for {sorted(strange)}, which jaxdp/query.py does not define"


@pytest.mark.parametrize("name", HOOKS)
def test_a_row_has_the_type_the_default_and_the_readers(name):
    kind, default, meaning, readers = ROWS[name]
    expected = HOOKS[name]
    assert kind.replace("\\|", "|") == expected.type, f"write `{expected.type}` as the type of {name}"
    if expected.default:
        assert default.strip("`") == expected.default, f"write `{expected.default}` as the default of {name}"
    assert meaning
    for reader in re.findall(r"`([\w/]+\.py)`", readers):
        source = (ROOT / reader).read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", source), f"{reader} does not read {name}: name a file that does"
    assert "`" in readers, f"name a file that reads {name}"


def test_the_page_names_what_mechanisms_have():
    missing = {name for name in PROTOCOLS if f"`{name}" not in PAGE}
    assert not missing, f"docs/abstraction.md lacks {sorted(missing)} of the mechanisms' protocols"


def test_no_hook_is_looked_for_by_its_name_as_text():
    """A hook has a default, so nobody needs to ask whether it is there."""
    asked = re.compile(r"\b(?:has|get)attr\([^()]*(?:\([^()]*\))?[^()]*, \"(\w+)\"")
    elsewhere = {"spec", "uses_z", "p_value", "method", "epsilon"}  # also of functions, searches, answers, mechanisms
    for path in ROOT.rglob("*.py"):
        for name in asked.findall(path.read_text(encoding="utf-8")):
            assert name not in set(HOOKS) - elsewhere, (
                f"{path.relative_to(ROOT)}: {name} has a default, read it plainly"
            )


DATA = jaxdp.Data(jnp.linspace(-1.0, 1.0, 30), jnp.linspace(1.0, -1.0, 30))


class Bare(jaxdp.PrivateTest):
    """The covariance on [-1, 1], without the decorator."""

    default_mechanism = jaxdp.Laplace

    def statistic(self, key, data):
        return jnp.sum(jnp.clip(data.x, -1.0, 1.0) * jnp.clip(data.y, -1.0, 1.0))

    def sensitivity(self, num_records):
        return jaxdp.Sensitivity(
            2.0, self.mechanism_in_force().norm, jaxdp.Relation.REPLACE_ONE, 1e-9, -num_records, num_records
        )

    def p_value(self, key, release):
        return self.mechanism_in_force().null_p_value(release.value, 5.0, release.sensitivity)


@jaxdp.private_test
class Plain(Bare):
    """`Bare` with the decorator."""


@jaxdp.private_test
class Unstated(Bare):
    """`Bare` with a number as its sensitivity."""

    def sensitivity(self, num_records):
        return 2.0


@jaxdp.private_test
class NoNorm:
    """A mechanism that has what every mechanism must have, and no more."""

    epsilon: float

    def perturb(self, source, value, sensitivity):
        return jaxdp.Laplace(self.epsilon).perturb(source, value, sensitivity)

    def cost(self, relation):
        return jaxdp.Cost(epsilon=self.epsilon, relation=relation)

    def share(self, fraction):
        return NoNorm(epsilon=jaxdp.Laplace(self.epsilon).share(fraction).epsilon)


@jaxdp.private_test
class Normed(NoNorm):
    """The same with a norm, but without a null law."""

    norm: ClassVar = jaxdp.Norm.L1


@pytest.mark.parametrize(
    ("test", "rule"),
    [
        (Bare(epsilon=1.0), "Bare is no pytree: write @jaxdp.private_test above its class"),
        (
            Unstated(epsilon=1.0),
            "sensitivity() must return jaxdp.Sensitivity(bound, norm, relation), or a pytree of them",
        ),
        (object(), "object is no test: a test derives from jaxdp.PrivateTest"),
        (Plain(mechanism=NoNorm(epsilon=1.0)), "NoNorm has no norm, which Plain reads of its mechanism"),
        (Plain(mechanism=Normed(epsilon=1.0)), "Normed has no null_p_value, which Plain reads of its mechanism"),
    ],
    ids=["undecorated", "no sensitivity", "no test", "no norm", "no null law"],
)
def test_a_broken_rule_is_named_in_one_sentence(test, rule):
    with pytest.raises(TypeError, match=re.escape(rule)) as caught:
        jaxdp.run(test, jax.random.key(0), DATA)
    assert "\n" not in str(caught.value)
    assert float(jaxdp.run(Plain(epsilon=1.0), jax.random.key(0), DATA).p_value) <= 1.0


@jaxdp.private_test
class Shared(Bare):
    """`Bare` without a p-value of its own: it has an effect."""

    p_value = jaxdp.PrivateTest.p_value

    def interpret(self, key, release):
        p_value = self.mechanism_in_force().null_p_value(release.value, 5.0, release.sensitivity)
        share = release.value / release.num_records
        return core.Interpretation(p_value, 2.0 * share, share, (share - 1.0, share + 1.0))


def test_a_test_with_an_effect_says_everything_in_interpret():
    simple, told = (jaxdp.run(kind(epsilon=1.0), jax.random.key(0), DATA) for kind in (Plain, Shared))
    assert (simple.effect, simple.interval) == (None, None)
    assert float(told.p_value) == float(simple.p_value)
    assert float(told.statistic) == pytest.approx(float(simple.statistic) / 15)
    assert 2.0 * float(told.effect) == float(told.statistic)
    parts = Shared(epsilon=1.0)
    assert float(parts.p_value(None, told.release)) == float(told.p_value)
    assert float(parts.estimate(told.release)) == float(told.statistic)


def test_the_p_value_alone_takes_nothing_else_of_interpret():
    def program(test):
        shapes = jax.eval_shape(lambda: jaxdp.release(test, jax.random.key(0), DATA))
        return jax.jit(lambda release: test.p_value(None, release)).lower(shapes).compile().as_text()

    assert program(Shared(epsilon=1.0)).count(" = ") <= program(Plain(epsilon=1.0)).count(" = ") + 2


def test_what_no_answer_would_read_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match=r"Both has an interpret and a p_value of its own.*docs/abstraction\.md"):
        type("Both", (Shared,), {"p_value": Bare.p_value})
    neither = jaxdp.private_test(type("Neither", (Bare,), {"p_value": jaxdp.PrivateTest.p_value}))
    with pytest.raises(NotImplementedError, match=r"Neither has no p-value: define p_value"):
        jaxdp.run(neither(epsilon=1.0), jax.random.key(0), DATA)
    silent = jaxdp.private_test(type("Silent", (Bare,), {"default_mechanism": None}))
    with pytest.raises(NotImplementedError, match=r"Silent does not say what epsilon buys: set default_mechanism"):
        jaxdp.run(silent(epsilon=1.0), jax.random.key(0), DATA)


def test_a_fault_of_a_test_itself_stays_what_it_is():
    class Faulty(Bare):
        def sensitivity(self, num_records):
            return self.nowhere

    with pytest.raises(AttributeError, match="nowhere"):
        jaxdp.run(jaxdp.private_test(Faulty)(epsilon=1.0), jax.random.key(0), DATA)


@pytest.mark.full
def test_the_contract_says_that_nan_does_not_reach_a_statistic(some_checks):
    def draw(key, n):
        return jaxdp.Data(*jax.random.uniform(key, (2, n), minval=-1.0, maxval=1.0))

    def skipping(self, key, data):
        held = jnp.where(jnp.isnan(data.x), 0.5, data.x)
        return jnp.sum(jnp.clip(held, -1.0, 1.0) * jnp.clip(jnp.nan_to_num(data.y, nan=0.5), -1.0, 1.0))

    spec = jaxdp.TestSpec(name="skipping", summary="NaN counts as a half", examples=(jaxdp.Example(draw),))
    said = "say reads_missing = True"
    for fields, expected in (
        ({"statistic": skipping}, True),
        ({}, False),
        ({"statistic": skipping, "reads_missing": True}, False),
    ):
        kind = jaxdp.private_test(type("Skipping", (Bare,), {**fields, "spec": spec}))
        assert (said in str(some_checks(kind, "bad values"))) == expected

"""Random Bayesian networks by stated recipes, and the built-in ones."""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxdp.data import networks
from jaxdp.data.networks import Network, Variable


@dataclasses.dataclass(frozen=True)
class Recipe:
    """columns: how many. degree: mean edges per column, both ends counted. levels: drawn for each column.

    concentration: of the Dirichlet rows of probabilities, in levels: small rows are skewed and effects strong.
    functions: share of columns with parents that are functions of them. parents: at most so many.
    """

    columns: int
    degree: float
    levels: tuple[int, ...]
    concentration: float = 0.5
    functions: float = 0.0
    parents: int = 3


RECIPES = {
    "12 of 2-3": Recipe(12, 3.0, (2, 3)),
    "20 of 2-4": Recipe(20, 3.0, (2, 3, 4)),
    "27 of 2-5": Recipe(27, 3.5, (2, 3, 4, 5)),
    "30 of 2-4, functions": Recipe(30, 2.5, (2, 3, 4), functions=0.2),
    "36 of 2-4, skewed": Recipe(36, 2.8, (2, 3, 4), concentration=0.2),
    "37 of 2-4": Recipe(37, 2.5, (2, 3, 4)),
    "40 of 2": Recipe(40, 3.0, (2,)),
    "56 of 2-6": Recipe(56, 2.4, (2, 3, 4, 5, 6)),
}
SMALL = ("asia", "cancer", "earthquake", "survey")


def network(name: str, seed: int) -> Network:
    """A network of a recipe, or a built-in one."""
    return networks.load(name) if name in SMALL else made(RECIPES[name], seed)


def made(recipe: Recipe, seed: int) -> Network:
    """A random network: arcs between columns that are near in a random order, Dirichlet rows of probabilities."""
    generator = np.random.default_rng([seed, recipe.columns])
    levels = generator.choice(recipe.levels, size=recipe.columns)
    parents = _parents(recipe, generator)
    variables = {}
    for column in range(recipe.columns):
        shape = [int(levels[parent]) for parent in parents[column]]
        function = bool(shape) and generator.random() < recipe.functions
        variables[f"v{column}"] = Variable(
            tuple(map(str, range(levels[column]))),
            tuple(f"v{parent}" for parent in parents[column]),
            _probabilities(generator, shape, int(levels[column]), recipe.concentration, function),
        )
    return Network(variables)


def _parents(recipe: Recipe, generator) -> dict[int, list[int]]:
    order, reach = generator.permutation(recipe.columns), max(3, recipe.columns // 3)
    parents: dict[int, list[int]] = {column: [] for column in range(recipe.columns)}
    left = round(recipe.columns * recipe.degree / 2)
    for _ in range(10_000):
        first, second = sorted(generator.choice(recipe.columns, 2, replace=False).tolist())
        parent, child = int(order[first]), int(order[second])
        room = second - first <= reach and len(parents[child]) < recipe.parents
        if left and room and parent not in parents[child]:
            parents[child].append(parent)
            left -= 1
    return parents


def _probabilities(generator, shape, levels: int, concentration: float, function: bool) -> np.ndarray:
    """P(level | parents), (*shape, levels): rows about a common base; a function has one 1 in each row."""
    base = generator.dirichlet(np.full(levels, 2.0))
    if function:
        return np.eye(levels)[generator.integers(levels, size=shape)]
    rows = generator.dirichlet(concentration * levels * base + 0.01, size=shape) if shape else base
    return 0.98 * rows + 0.02 / levels

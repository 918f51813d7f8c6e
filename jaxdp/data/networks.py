"""Discrete Bayesian networks: the built-in ones of the literature, and a reader for .bif files.

Probabilities are facts of the published networks: Earthquake and Cancer (Korb and Nicholson), Asia
(Lauritzen and Spiegelhalter 1988), Survey (Scutari and Denis).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxdp.data.columns import BINARY, CATEGORICAL, Column


@dataclasses.dataclass(frozen=True)
class Variable:
    """One node: its states, its parents by name, and P(state | parents), shape (*parent states, states)."""

    states: tuple[str, ...]
    parents: tuple[str, ...]
    probabilities: np.ndarray


@dataclasses.dataclass(frozen=True)
class Network:
    """A discrete Bayesian network; `variables` keeps the order of the columns."""

    variables: Mapping[str, Variable]

    def __post_init__(self):
        for name, variable in self.variables.items():
            _check_variable(name, variable, self.variables)
        if len(self.order) != len(self.variables):
            raise ValueError("the network has a directed cycle.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.variables)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Public descriptions of the columns."""
        return tuple(
            Column(BINARY if len(v.states) == 2 else CATEGORICAL, len(v.states), name)
            for name, v in self.variables.items()
        )

    @property
    def dag(self) -> np.ndarray:
        """Bool (d, d): entry (i, j) is the arc i -> j."""
        position = {name: i for i, name in enumerate(self.names)}
        arcs = np.zeros((len(position), len(position)), bool)
        for name, variable in self.variables.items():
            arcs[[position[parent] for parent in variable.parents], position[name]] = True
        return arcs

    @property
    def order(self) -> tuple[str, ...]:
        """Names, parents before children; shorter than `names` if there is a cycle."""
        placed: list[str] = []
        while True:
            ready = [
                name
                for name, variable in self.variables.items()
                if name not in placed and all(parent in placed for parent in variable.parents)
            ]
            if not ready:
                return tuple(placed)
            placed.extend(ready)


def _check_variable(name: str, variable: Variable, variables: Mapping[str, Variable]) -> None:
    missing = [parent for parent in variable.parents if parent not in variables]
    if missing:
        raise ValueError(f"variable {name!r} has an undeclared parent {missing[0]!r}.")
    shape = (*(len(variables[parent].states) for parent in variable.parents), len(variable.states))
    if variable.probabilities.shape != shape:
        raise ValueError(
            f"variable {name!r}: probabilities must have shape {shape}, got {variable.probabilities.shape}."
        )
    if np.any(variable.probabilities < 0) or np.any(np.abs(variable.probabilities.sum(-1) - 1) > 1e-6):
        raise ValueError(f"variable {name!r}: each row of probabilities must be >= 0 and sum to 1.")


def load(name: str) -> Network:
    """A built-in network: "earthquake", "cancer", "asia" or "survey"."""
    if name not in _BUILT_IN:
        raise ValueError(f"network must be one of {', '.join(sorted(_BUILT_IN))}, got {name!r}; read_bif reads files.")
    return _BUILT_IN[name]()


def names() -> tuple[str, ...]:
    """Names of the built-in networks."""
    return tuple(sorted(_BUILT_IN))


def _binary(parents: Sequence[str], first, states: tuple[str, str]) -> Variable:
    """A two-state node from the probability of its first state, nested over the parents' states."""
    first = np.asarray(first, float)
    return Variable(states, tuple(parents), np.stack([first, 1.0 - first], axis=-1))


def _earthquake() -> Network:
    state = ("True", "False")
    return Network(
        {
            "Burglary": _binary([], 0.01, state),
            "Earthquake": _binary([], 0.02, state),
            "Alarm": _binary(["Burglary", "Earthquake"], [[0.95, 0.94], [0.29, 0.001]], state),
            "JohnCalls": _binary(["Alarm"], [0.9, 0.05], state),
            "MaryCalls": _binary(["Alarm"], [0.7, 0.01], state),
        }
    )


def _cancer() -> Network:
    state = ("True", "False")
    return Network(
        {
            "Pollution": _binary([], 0.9, ("low", "high")),
            "Smoker": _binary([], 0.3, state),
            "Cancer": _binary(["Pollution", "Smoker"], [[0.03, 0.001], [0.05, 0.02]], state),
            "Xray": _binary(["Cancer"], [0.9, 0.2], ("positive", "negative")),
            "Dyspnoea": _binary(["Cancer"], [0.65, 0.3], state),
        }
    )


def _asia() -> Network:
    state = ("yes", "no")
    return Network(
        {
            "asia": _binary([], 0.01, state),
            "tub": _binary(["asia"], [0.05, 0.01], state),
            "smoke": _binary([], 0.5, state),
            "lung": _binary(["smoke"], [0.1, 0.01], state),
            "bronc": _binary(["smoke"], [0.6, 0.3], state),
            "either": _binary(["lung", "tub"], [[1.0, 1.0], [1.0, 0.0]], state),
            "xray": _binary(["either"], [0.98, 0.05], state),
            "dysp": _binary(["bronc", "either"], [[0.9, 0.8], [0.7, 0.1]], state),
        }
    )


def _survey() -> Network:
    cars = [[[0.48, 0.42, 0.10], [0.58, 0.24, 0.18]], [[0.56, 0.36, 0.08], [0.70, 0.21, 0.09]]]
    return Network(
        {
            "A": Variable(("young", "adult", "old"), (), np.array([0.3, 0.5, 0.2])),
            "S": _binary([], 0.6, ("M", "F")),
            "E": _binary(["A", "S"], [[0.75, 0.64], [0.72, 0.70], [0.88, 0.90]], ("high", "uni")),
            "O": _binary(["E"], [0.96, 0.92], ("emp", "self")),
            "R": _binary(["E"], [0.25, 0.2], ("small", "big")),
            "T": Variable(("car", "train", "other"), ("O", "R"), np.array(cars)),
        }
    )


_BUILT_IN = {"asia": _asia, "cancer": _cancer, "earthquake": _earthquake, "survey": _survey}

# The graph that the Priv-PC experiments score against, pairs of names; not the true graph (skeleton level).
REFERENCE_SKELETONS = {
    "earthquake": ("Burglary Alarm", "Earthquake Alarm", "Alarm JohnCalls", "Alarm MaryCalls"),
    "cancer": ("Pollution Cancer", "Smoker Cancer", "Cancer Xray", "Dyspnoea Cancer"),
    "asia": ("asia tub", "tub either", "smoke lung", "smoke bronc", "lung either", "bronc dysp"),
    "survey": ("E O", "E R", "R T", "T O"),
}

_VARIABLE = re.compile(r'variable\s+"?([^\s"{]+)"?\s*\{(.*?)\}\s*;?\s*\}', re.S)
_STATES = re.compile(r"type\s+discrete\s*\[\s*\d+\s*\]\s*\{(.*)", re.S)
_PROBABILITY = re.compile(r"probability\s*\(([^)]*)\)\s*\{(.*?)\}", re.S)
_ROW = re.compile(r"\(([^)]*)\)\s*([^;]*);")


def read_bif(path: str | os.PathLike) -> Network:
    """Reads a network in Bayesian interchange format (the dialect of the bnlearn repository).

    Errors: OSError if the file cannot be opened, ValueError with the variable's name otherwise.
    """
    text = re.sub(r"//.*", "", Path(path).read_text(encoding="utf-8"))
    states = {}
    for name, body in _VARIABLE.findall(text):
        found = _STATES.search(body)
        if not found:
            raise ValueError(f"variable {name!r} has no 'type discrete' line.")
        states[name] = _words(found.group(1))
    if not states:
        raise ValueError(f"{os.fspath(path)} declares no variable: is it a .bif file?")
    tables = {}
    for head, body in _PROBABILITY.findall(text):
        child, *parents = _words(head.replace("|", ","))
        unknown = [name for name in (child, *parents) if name not in states]
        if unknown:
            raise ValueError(f"probability of {child!r} names an undeclared variable {unknown[0]!r}.")
        tables[child] = Variable(states[child], tuple(parents), _probabilities(child, parents, states, body))
    missing = [name for name in states if name not in tables]
    if missing:
        raise ValueError(f"variable {missing[0]!r} has no probability block.")
    return Network({name: tables[name] for name in states})


def _probabilities(child: str, parents: list[str], states, body: str) -> np.ndarray:
    shape = (*(len(states[parent]) for parent in parents), len(states[child]))
    whole = re.search(r"table\s+([^;]*);", body)
    if whole:
        return _numbers(child, whole.group(1), int(np.prod(shape))).reshape(shape)
    default = re.search(r"default\s+([^;]*);", body)
    result = np.full(shape, np.nan)
    if default:
        result[...] = _numbers(child, default.group(1), shape[-1])
    for levels, numbers in _ROW.findall(body):
        words = _words(levels)
        try:
            index = tuple(states[parent].index(word) for parent, word in zip(parents, words, strict=True))
        except ValueError:
            raise ValueError(f"probability of {child!r}: ({levels.strip()}) is not a state of its parents.") from None
        result[index] = _numbers(child, numbers, shape[-1])
    gaps = [index for index in itertools.product(*map(range, shape[:-1])) if np.isnan(result[index]).any()]
    if gaps:
        raise ValueError(f"probability of {child!r} leaves {len(gaps)} combination(s) of parent states without a row.")
    return result


def _words(text: str) -> tuple[str, ...]:
    return tuple(
        word.strip().strip('"') for word in text.replace("}", " ").replace(";", " ").split(",") if word.strip()
    )


def _numbers(child: str, text: str, count: int) -> np.ndarray:
    try:
        values = np.array([float(word) for word in _words(text)])
    except ValueError:
        raise ValueError(f"probability of {child!r} holds something that is not a number.") from None
    if values.size != count:
        raise ValueError(f"probability of {child!r} needs {count} numbers in a row, got {values.size}.")
    return values

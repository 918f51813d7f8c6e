"""The public grid: kinds of columns, how their levels are shared, and dependence of a stated strength.

`strength` of two columns with levels is the number of records that the chi-squared test without privacy needs for
power 0.8; the law is the product law times 1 + d e with e of mean 0 in each row and column. Given a coded Z that is so
in every stratum, with the same pattern and margins that Z moves. Of other columns, and of the law `line` of columns
with levels given Z, it is the size of the effect in residual sds.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2, norm

from jaxdp.data import Column, Data, Domain
from jaxdp.data.dataset import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL, equally_spaced
from jaxdp.spec import ANY, LINEAR, MONOTONE

LEVEL, WANTED = 0.05, 0.8
EVEN, TENTH, HALVING = "even", "10/90", "halving"
STRATA = 4  # of a coded Z
CODED, NUMBER, TWO, MIXED = "coded", "number", "two numbers", "coded and number"
Z_KINDS = {"": (), CODED: (CODED,), NUMBER: (NUMBER,), TWO: (NUMBER, NUMBER), MIXED: (CODED, NUMBER)}
Z_COLUMNS = {CODED: Column(CATEGORICAL, STRATA), NUMBER: Column()}
Z_WORDS = {CODED: "a coded Z", NUMBER: "a continuous Z", TWO: "two continuous Z", MIXED: "a coded and a continuous Z"}
BOUND = 4.0  # sds, of the public bounds of continuous columns
Z_SHIFT = 0.5  # sds by which Z, or the mean of two, moves the means of numbers and of what levels are cut from


@dataclasses.dataclass(frozen=True)
class Shape:
    """One query and its law. x, y: "nominal", "ordered" or "number"; levels: of x and of y, 0 for numbers.

    balance: of the levels. z: a name of `Z_KINDS`. law: of the dependence, a name of `TABLES` or `CURVES`.
    """

    x: str
    y: str
    levels: tuple[int, int]
    balance: str
    law: str
    strength: float
    z: str = ""

    @property
    def kind(self) -> str:
        """What is public about the columns, in a few words: what a default may depend on."""
        words = [_word(*side) for side in ((self.x, self.levels[0]), (self.y, self.levels[1]))]
        return " x ".join(words) + (f" given {Z_WORDS[self.z]}" if self.z else "")

    @property
    def columns(self) -> tuple[Column, Column]:
        """X and Y as codes, or numbers."""
        first, second = (_column(*side) for side in ((self.x, self.levels[0]), (self.y, self.levels[1])))
        return first, second

    def domain(self, coded: bool) -> Domain:
        """The public description in the form that a test wants."""
        x, y = self.columns
        z = tuple(Z_COLUMNS[kind] for kind in Z_KINDS[self.z])
        return Domain((x,), (y,), z) if coded else Domain(_scaled(x), _scaled(y), z)

    def design(self, n: int, coded: bool, effect: float = 1.0):
        """key -> Data; effect 0 is the null of the same margins. What differs is in numbers of the program."""
        how = {"n": n, "coded": coded, "domain": self.domain(coded), "columns": self.columns}
        if all(self.levels) and self.law in TABLES:
            laws = (_shifted(self.levels, self.balance, place) for place in self.places())
            cells = np.float32([self.cells(effect, *margins) for margins in laws])
            return functools.partial(table, **how, cells=cells, given=bool(self.z))
        cuts = {
            name: cuts_of(count, self.balance) for name, count in zip(("x_cuts", "y_cuts"), self.levels, strict=True)
        }
        scores = _scores(shares(self.levels[0], self.balance)) if self.levels[0] else np.zeros(1, np.float32)
        numbers = {**cuts, "scores": scores, "effect": float(effect * self.strength)}
        return functools.partial(curve, **how, z_kinds=Z_KINDS[self.z], law=self.law, **numbers)

    def places(self) -> list[float]:
        """Where the strata of a coded Z lie on [-1, 1]; one at 0 without Z. Errors: ValueError for other Z."""
        if self.z not in ("", CODED):
            raise ValueError(f"the law {self.law} is one of strata: z must be coded or absent.")
        return [2.0 * z / (STRATA - 1) - 1.0 for z in range(STRATA)] if self.z else [0.0]

    def cells(self, effect: float = 1.0, p=None, q=None) -> np.ndarray:
        """The chances of the cells, in the order of the rows, of such margins p and q."""
        if p is None or q is None:
            p, q = (shares(count, self.balance) for count in self.levels)
        e = TABLES[self.law](p, q)
        e = e - (e @ q)[:, None] - (p @ e)[None, :] + p @ e @ q
        e = e / np.sqrt(p @ e**2 @ q)
        size = min(np.sqrt(noncentrality(self.levels) / self.strength), -0.98 / e.min())
        return (np.outer(p, q) * (1.0 + effect * size * e)).ravel()


def _word(kind: str, levels: int) -> str:
    return "number" if kind == "number" else "binary" if levels == 2 else f"{kind} {levels}"


def _column(kind: str, levels: int) -> Column:
    if kind == "number":
        return Column()
    return Column(BINARY if levels == 2 else ORDINAL if kind == "ordered" else CATEGORICAL, levels)


def _unordered(column: Column) -> bool:
    return column.kind == CATEGORICAL and column.levels > 2


def _scaled(column: Column) -> tuple[Column, ...]:
    return (Column(CONTINUOUS, 2),) * column.levels if _unordered(column) else (Column(CONTINUOUS, column.levels),)


def shares(levels: int, balance: str) -> np.ndarray:
    """Shares of the levels: all alike; the last a tenth and the rest alike; each half of the one before."""
    if balance == EVEN:
        return np.full(levels, 1.0 / levels)
    if balance == TENTH:
        return np.append(np.full(levels - 1, 0.9 / (levels - 1)), 0.1)
    halves = 0.5 ** np.arange(levels)
    return halves / halves.sum()


@functools.cache
def noncentrality(levels: tuple[int, int]) -> float:
    """Of the chi-squared law that passes its 0.95 quantile with probability 0.8."""
    freedom = (levels[0] - 1) * (levels[1] - 1)
    return brentq(lambda size: ncx2.sf(chi2.isf(LEVEL, freedom), freedom, size) - WANTED, 1e-3, 1e3)


def _diffuse(p, q):
    """Signs and sizes without a pattern, the same for every run."""
    rng = np.random.default_rng(3)
    return rng.choice([-1.0, 1.0], (p.size, q.size)) + 0.3 * rng.normal(size=(p.size, q.size))


def _trend(p, q):
    """The product of the mean ranks of the levels."""
    return np.outer(np.cumsum(p) - p / 2, np.cumsum(q) - q / 2)


TABLES = {"diffuse": _diffuse, "trend": _trend}


def observed(values, column: Column, coded: bool):
    if coded or not column.levels:
        return values
    if _unordered(column):
        return jnp.where(values[:, None] == jnp.arange(column.levels)[None, :], 1.0, -1.0)
    return equally_spaced(1.0 * values, column.levels)


def table(key, *, n: int, coded: bool, domain: Domain, columns, cells, given: bool = False) -> Data:
    """Two columns with levels from the chances of their cells, a row of them for each stratum of a coded Z."""
    key_z, key = jax.random.split(key) if given else (key, key)
    z = jax.random.randint(key_z, (n,), 0, len(cells)) if given else None
    ends = jnp.cumsum(cells, axis=1)[:, :-1]
    chance = jax.random.uniform(key, (n,))
    cell = jnp.searchsorted(ends[0], chance) if z is None else jnp.sum(ends[z] < chance[:, None], axis=1)
    count = columns[1].levels
    return Data(observed(cell // count, columns[0], coded), observed(cell % count, columns[1], coded), z, domain)


def curve(key, *, n: int, coded: bool, domain, columns, z_kinds, law, x_cuts, y_cuts, scores, effect) -> Data:
    """Columns cut from, or equal to, residuals a and effect f(a) + e; Z moves both means, x up and y down."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z, place = None, jnp.zeros(n)
    if z_kinds:
        own = jax.random.split(key_z, len(z_kinds)) if len(z_kinds) > 1 else [key_z]
        found, places = zip(*(_given(*one, n) for one in zip(own, z_kinds, strict=True)), strict=True)
        z, place = jnp.stack(found, axis=1) if len(z_kinds) > 1 else found[0], sum(places) / len(places)
    a, e = jax.random.normal(key_x, (n,)), jax.random.normal(key_y, (n,))
    x = cut(a + Z_SHIFT * place, columns[0], x_cuts)
    own = jnp.asarray(scores)[x] if columns[0].levels else a  # levels act by their number, no matter the cuts
    y = cut(CURVES[law](own, e, effect) - Z_SHIFT * place, columns[1], y_cuts)
    x, y = (observed(side, column, coded) for side, column in zip((x, y), columns, strict=True))
    return Data(x, y, z, domain)


def _given(key, kind: str, n: int):
    """A column of Z, and where its values lie on [-1, 1]."""
    if kind == CODED:
        z = jax.random.randint(key, (n,), 0, STRATA)
        return z, 2.0 * z / (STRATA - 1) - 1.0
    z = jax.random.uniform(key, (n,), minval=-1.0)
    return z, z


def cut(values, column: Column, cuts):
    if not column.levels:
        return jnp.clip(values / BOUND, -1.0, 1.0)
    return jnp.searchsorted(cuts, values)


def cuts_of(levels: int, balance: str) -> np.ndarray:
    """Places at which a standard normal variable is cut into such levels; one that is not read for numbers."""
    return np.float32(norm.ppf(np.cumsum(shares(levels, balance))[:-1])) if levels else np.zeros(1, np.float32)


def _shifted(levels: tuple[int, int], balance: str, place: float) -> list[np.ndarray]:
    """Shares of the levels of x and of y where Z moves what they are cut from, x up and y down; their own at 0."""
    if not place:
        return [shares(count, balance) for count in levels]
    moves = (Z_SHIFT * place, -Z_SHIFT * place)
    return [
        np.diff(norm.cdf(cuts_of(count, balance) - move), prepend=0.0, append=1.0)
        for count, move in zip(levels, moves, strict=True)
    ]


def _scores(p: np.ndarray) -> np.ndarray:
    """Of the levels in order, of mean 0 and sd 1 at these shares."""
    middle = np.arange(p.size) - p @ np.arange(p.size)
    return np.float32(middle / np.sqrt(p @ middle**2))


CURVES = {
    "line": lambda a, e, effect: effect * a + e,
    "bend": lambda a, e, effect: effect * (a**2 - 1.0) / jnp.sqrt(2.0) + e,
    "spread": lambda a, e, effect: jnp.exp(effect * a) * e,
}

SEEN_BY = {"line": LINEAR, "trend": MONOTONE, "diffuse": ANY, "bend": ANY, "spread": ANY}  # the least that sees a law

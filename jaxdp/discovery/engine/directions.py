"""Which way edges point, from noisy contrasts of unshielded triples. Post-processing of released numbers only.

Theory: docs/theory/max_min_pc.md#directions. Where one release answers any number of queries, contrasts of |z| cost
nothing more: read off separating sets, a pair that lacks power would make a collider of every common neighbour. A
contrast asks how much nearer to independence the common neighbour brings the pair, and all of them decide together.

Shares of arrows follow from the numbers of one skeleton. False and missing edges make arrows wrong of which each number
is sure, and public things tell skeletons with many such edges from others: cycles, pairs without an edge that stay
dependent, the number of columns and the noise. Fitted and measured on random models: docs/discovery.md#arrow-shares.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.special import betaln, gammaln

from jaxdp.data.records import Records, RecordsInChunks
from jaxdp.discovery.engine import false_edges
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.max_min_scores import MaxMinScores
from jaxdp.discovery.engine.number_noise import NormalNoise, NumberNoise
from jaxdp.discovery.engine.orientation import colliders_of, compelled, orient_colliders, unshielded
from jaxdp.discovery.engine.session import Session
from jaxdp.discovery.engine.skeleton import CIQuery, find_skeleton
from jaxdp.discovery.graph import Decision, Graph

OFFSET = 0.1  # added to the leftover dependence, whose logarithm counts
LOUDEST = 4.0  # sds to which the |z| of a pair counts: a missing edge, not how strong it is


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a found graph shows of its edges, public.

    cycles: independent cycles of the skeleton per column. leftover: mean square of the least |z| of the pairs that no
    edge joins; about 1 and less where they are independent given some set; None where that is not released.
    """

    cycles: float
    leftover: float | None = None


@dataclasses.dataclass(frozen=True)
class Trust:
    """What is right of a share of 1: expit(constant - per_cycle cycles - per_leftover log(OFFSET + leftover)).

    The last term is 0 where the leftover is not released. per_few, per_noise: what `at` takes off the constant.
    """

    constant: float
    per_cycle: float = 0.0
    per_leftover: float = 0.0
    per_few: float = 0.0
    per_noise: float = 0.0

    def at(self, columns: int, noise: float) -> Trust:
        """Of so many columns, and noise of a draw per column, in thousandths of the records: less of few, and of noise.

        Edges of few columns are many for each of them, and noise leaves edges out: cycles do not show those.
        """
        return Trust(self.constant - self.per_few / columns - self.per_noise * noise, self.per_cycle, self.per_leftover)

    def of(self, shown: Shown) -> float:
        """Of the arrows of a graph that shows this."""
        odds = self.constant - self.per_cycle * shown.cycles
        if shown.leftover is not None:
            odds -= self.per_leftover * math.log(OFFSET + shown.leftover)
        return 1.0 / (1.0 + math.exp(-odds))


def cycles(skeleton: np.ndarray) -> float:
    """Independent cycles of a symmetric skeleton (d, d) per column: edges beyond those of a spanning forest."""
    component = np.arange(len(skeleton))
    edges = np.argwhere(np.triu(skeleton))
    for i, j in edges:
        component[component == component[j]] = component[i]
    return (len(edges) - len(skeleton) + len(np.unique(component))) / len(skeleton)


def leftover(least: np.ndarray) -> float | None:
    """Mean square of the least |z| of pairs without an edge, each at most LOUDEST; None without such a pair."""
    return float(np.mean(np.minimum(least, LOUDEST) ** 2)) if len(least) else None


Triple = tuple[int, int, int]

SIGNAL = 0.02  # mean size of a contrast without noise where no number of its edges is released, as a share of n
PRODUCT = 3.0  # n times the mean size of a contrast of a non-collider, over the product of the numbers of its edges
LEAST = 0.001  # of n: no mean size is below
RARE = 0.5  # log odds against each collider beforehand: .1 to .2 of the triples of random networks are, not a quarter
SEED = 20_26  # of the sampler, whose draws are neither secret nor part of the noise: the same numbers, the same graph
CHAINS, WARM_UP, KEPT, THIN = 4, 60, 60, 2  # chains, sweeps before and samples kept of each, sweeps between samples
HOT = 6.0  # temperature at which a chain starts


class Evidence(Protocol):
    """What released numbers say about triples."""

    @property
    def triples(self) -> Sequence[Triple]:
        """Unshielded ones, (i, k, j)."""

    def weights(self) -> np.ndarray:
        """Log odds of a collider against none, one for each."""


@dataclasses.dataclass(frozen=True)
class Contrasts:
    """Released contrasts of unshielded triples (i, k, j): below 0 speaks for i -> k <- j, above 0 against it.

    values: (T,), each a signal of unknown size with fresh noise. noise: its law. num_records: public number of records;
    0 where it is private. strengths: (T, 2), released numbers of the edges i - k and k - j, NaN where there is none;
    None where they say nothing about contrasts. mean: size of a signal where nothing says more, default SIGNAL n and at
    least the spread of the noise. doubt: share of contrasts that have the wrong sign without noise, so that none has
    larger odds; noise of bounded tails alone would leave no doubt.
    """

    triples: Sequence[Triple]
    values: np.ndarray
    noise: NumberNoise
    num_records: int
    strengths: np.ndarray | None = None
    mean: float = 0.0
    doubt: float = 0.0

    def weights(self) -> np.ndarray:
        """Log odds of a collider against none, (T,), for signals of exponential laws.

        Where the numbers of both edges are known, a dependence that passes through k has the mean size of the product
        of those of i and of j on k, and one that appears given a collider that of the smaller.
        """
        density, values, n = self.noise.log_density, np.asarray(self.values, float), self.num_records
        mean = np.full(len(values), max(self.mean or SIGNAL * n, self.noise.spread))
        plain = self._doubted(density(-values, mean) - density(values, mean))
        if self.strengths is None or not n:
            return plain
        known = np.isfinite(self.strengths).all(axis=1)
        strengths = np.where(known[:, None], np.maximum(self.strengths, 0.0), 0.0)
        other = np.maximum(PRODUCT * strengths.prod(axis=1) / n, LEAST * n)
        collider = np.maximum(strengths.min(axis=1), other)
        sized = self._doubted(density(-values, collider) - density(values, other)) - RARE
        return np.where(known, sized, plain)

    def _doubted(self, odds: np.ndarray) -> np.ndarray:
        if not self.doubt:
            return odds
        right, wrong = math.log1p(-self.doubt), math.log(self.doubt)
        return np.logaddexp(right + odds, wrong) - np.logaddexp(right, wrong + odds)


@dataclasses.dataclass(frozen=True)
class Rule:
    """What is assumed of orientations before the contrasts, and which arrows are drawn after them.

    few_parents: whether the number of parents of a column has a Poisson law beforehand, however many neighbours it
    has, and not every number of them the same probability.
    reversal: what an arrow that is drawn the wrong way counts, where a missing or an unfounded one counts 1.
    trust: of the share of an arrow among sampled classes, what was right where it was measured.
    """

    few_parents: bool = False
    reversal: float = 1.0
    trust: Trust = Trust(math.inf)


@dataclasses.dataclass(frozen=True)
class Orientation:
    """A CPDAG, bool (d, d), and how often each arrow was sampled.

    arrow_shares: (d, d), the share of sampled equivalence classes in which i -> j, a posterior probability of a model
    (docs/theory/max_min_pc.md#directions), times what was right of it on such graphs (`Trust`); i - j has what is left.
    """

    cpdag: np.ndarray
    arrow_shares: np.ndarray

    @property
    def sentence(self) -> str:
        """How many arrows there are, and how many of them to expect wrong."""
        drawn = self.cpdag & ~self.cpdag.T
        edges = np.triu(self.cpdag | self.cpdag.T)
        number, total = int(drawn.sum()), int(edges.sum())
        told = f"{number} of {total} edge{'s' * (total != 1)} {'has' if number == 1 else 'have'} an arrow."
        settled = int((drawn & (self.arrow_shares == 1.0)).sum())  # by knowledge: the trust is below 1
        if settled:
            told += f" {_of_them(settled, number)} as the public knowledge says; such an edge may still be false."
        if settled == number:
            return told
        wrong = _expected_wrong(1.0 - self.arrow_shares[drawn], number - settled, settled > 0)
        return (
            f"{told} {wrong}, that is to point the other way, or to stand where the truth has an open edge or none, as "
            "measured on random models (docs/discovery.md#arrow-shares). Arrows that share a column tend to be right "
            "or wrong together."
        )


def _of_them(some: int, number: int) -> str:
    """Which of the arrows point, with the verb."""
    if some == number:
        return "It points" if number == 1 else "All of them point"
    return f"{some} of them {'points' if some == 1 else 'point'}"


def _expected_wrong(wrong: np.ndarray, number: int, others: bool) -> str:
    """How many of so many arrows to expect wrong, and their share. others: there are arrows that are not among them."""
    share = f"{100.0 * wrong.sum() / number:.0f}"
    if number == 1:
        return f"Of 100 arrows such as {'the other' if others else 'this'} one about {share} are expected to be wrong"
    which = "the other" if others else "these"
    return f"Of {which} {number} arrows about {wrong.sum():.1f} are expected to be wrong ({share} %)"


def oriented(
    skeleton: np.ndarray,
    contrasts: Evidence,
    against: np.ndarray | None = None,
    rule: Rule = Rule(),
    shown: Shown | None = None,
) -> Orientation:
    """The equivalence class nearest to the others that the contrasts leave probable.

    Before the contrasts every number of parents of a column is equally probable, or has a Poisson law
    (`Rule.few_parents`), and every set of so many neighbours, in acyclic orientations of the skeleton (d, d) that no
    arc of `against` (d, d) is part of; RARE takes something off colliders. Orientations are sampled from what the
    contrasts make of that; the sampled class of the smallest mean structural Hamming distance to all sampled ones,
    reversed arrows counted by the rule, is returned. shown: what the graph shows of its edges; default, its cycles.
    """
    edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(skeleton))]
    generator = np.random.default_rng(SEED)
    marks, orientations = [], []
    for _ in range(CHAINS):
        chain = _Chain(skeleton, edges, contrasts, against, generator, rule.few_parents)
        for sweep in range(WARM_UP):
            chain.sweep(max(1.0, HOT * (1.0 - 1.5 * sweep / WARM_UP)))
        for _ in range(KEPT):
            for _ in range(THIN):
                chain.sweep(1.0)
            marks.append(chain.marks())
            orientations.append(list(chain.heads))
    sampled = np.array(marks)
    nearest = int(np.argmin([_distance(sampled, one, rule.reversal) for one in sampled]))
    dag = _dag(len(skeleton), edges, orientations[nearest])
    shares = np.zeros(skeleton.shape)
    for (i, j), forward, backward in zip(edges, (sampled > 0).mean(0), (sampled < 0).mean(0), strict=True):
        shares[i, j], shares[j, i] = forward, backward
    settled = np.zeros(skeleton.shape, bool) if against is None else against | against.T
    shares = np.where(settled, shares, rule.trust.of(shown or Shown(cycles(skeleton))) * shares)
    return Orientation(orient_colliders(skeleton, colliders_of(dag), against), shares)


def _distance(sampled: np.ndarray, one: np.ndarray, reversal: float) -> float:
    """How far a class is from all sampled ones together."""
    return float((sampled != one).sum() + (reversal - 1.0) * (sampled * one < 0).sum())


def _by_parents(degree: int, few: bool) -> list[float]:
    """Log prior of each set of m of so many neighbours as parents: of m, less that of the C(degree, m) sets.

    few: m has a Poisson law, whose mean cancels, as all columns together have as many parents as there are edges.
    """
    if few:
        return [float(gammaln(degree - m + 1) - gammaln(degree + 1)) for m in range(degree + 1)]
    return [float(betaln(m + 1, degree - m + 1)) for m in range(degree + 1)]


class _Chain:
    """A Metropolis chain over acyclic orientations of a skeleton, which turns one edge at a time."""

    def __init__(self, skeleton, edges, contrasts: Evidence, against, generator, few_parents: bool):
        self._edges, self._generator = edges, generator
        self._forbidden = forbidden = np.zeros(skeleton.shape, bool) if against is None else against
        self._fixed = [bool(forbidden[i, j] or forbidden[j, i]) for i, j in edges]
        place = {pair: number for number, (i, j) in enumerate(edges) for pair in ((i, j), (j, i))}
        self._triples: list[list[tuple[int, int, float]]] = [[] for _ in edges]
        for (i, k, j), weight in zip(contrasts.triples, contrasts.weights().tolist(), strict=True):
            first, second = place[i, k], place[j, k]
            self._triples[first].append((second, k, weight))
            self._triples[second].append((first, k, weight))
        order = _order(forbidden & skeleton, generator)
        self.heads = [j if order[i] < order[j] else i for i, j in edges]
        self._children: list[set[int]] = [set() for _ in skeleton]
        for number, head in enumerate(self.heads):
            self._children[self._tail(number)].add(head)
        degrees = skeleton.sum(axis=1).tolist()
        self._prior = [_by_parents(degree, few_parents) for degree in degrees]
        self._parents = [self.heads.count(node) for node in range(len(skeleton))]

    def sweep(self, temperature: float) -> None:
        """As many proposals as there are edges."""
        count = len(self._edges)
        places, chances = self._generator.integers(count, size=count), self._generator.random(count)
        for number, chance in zip(places.tolist(), chances.tolist(), strict=True):
            if not self._fixed[number] and math.log(chance or 1.0) * temperature < self._gain(number):
                self._turn(number)

    def marks(self) -> list[int]:
        """Of each edge of the equivalence class: 1 along the pair's order, -1 against it, 0 open."""
        dag = _dag(len(self._children), self._edges, self.heads)
        if any(self._fixed):  # what follows from knowledge is no longer open
            arcs = orient_colliders(dag | dag.T, colliders_of(dag), self._forbidden)
            return [int(arcs[i, j]) - int(arcs[j, i]) for i, j in self._edges]
        arrows = compelled(dag)
        return [int((i, j) in arrows) - int((j, i) in arrows) for i, j in self._edges]

    def _tail(self, number: int) -> int:
        i, j = self._edges[number]
        return i if self.heads[number] == j else j

    def _gain(self, number: int) -> float:
        """Change of the log posterior if an edge is turned."""
        head, tail = self.heads[number], self._tail(number)
        met = [(k, weight) for other, k, weight in self._triples[number] if self.heads[other] == k]
        gained, lost = self._prior[tail], self._prior[head]
        prior = gained[self._parents[tail] + 1] - gained[self._parents[tail]]
        prior += lost[self._parents[head] - 1] - lost[self._parents[head]]
        return prior + sum(weight for k, weight in met if k == tail) - sum(weight for k, weight in met if k == head)

    def _turn(self, number: int) -> None:
        head, tail = self.heads[number], self._tail(number)
        self._children[tail].discard(head)
        if self._reaches(tail, head):  # another way leads there: turned, it would close a cycle
            self._children[tail].add(head)
            return
        self._children[head].add(tail)
        self.heads[number] = tail
        self._parents[head] -= 1
        self._parents[tail] += 1

    def _reaches(self, start: int, end: int) -> bool:
        seen, left = {start}, [start]
        while left:
            for child in self._children[left.pop()] - seen:
                if child == end:
                    return True
                seen.add(child)
                left.append(child)
        return False


def _order(arcs: np.ndarray, generator) -> list[int]:
    """A place for each node, drawn such that no arc i -> j that is forbidden (True) leads forwards."""
    place, left = [0] * len(arcs), set(range(len(arcs)))
    for number in range(len(arcs)):
        free = [node for node in sorted(left) if not any(arcs[node, other] for other in left)]
        chosen = free[int(generator.integers(len(free)))]
        place[chosen] = number
        left.discard(chosen)
    return place


def _dag(num_nodes: int, edges, heads) -> np.ndarray:
    dag = np.zeros((num_nodes, num_nodes), bool)
    for (i, j), head in zip(edges, heads, strict=True):
        dag[(i, j) if head == j else (j, i)] = True
    return dag


ORDER = 2  # largest set of the queries that directions rest on
SD = math.sqrt(2.0)  # of a difference of two |z|, at most
MEAN = 3.0  # sds; medians were 2.8 of colliders and 3.7 of others on the models of docs/theory/neighbour_pc.md


def by_one_release(
    adjacency: np.ndarray,
    sizes: Callable[[Sequence[CIQuery]], np.ndarray],
    facts: Known,
    max_order: int | None,
    rule: Rule,
) -> Orientation | None:
    """Directions of a skeleton (d, d); None where no triple has a contrast. sizes: |z| of queries."""

    def scores(queries):
        return sizes(queries) if queries else np.zeros(0), np.zeros(len(queries))

    found = MaxMinScores((0,) * len(adjacency), scores, ORDER if max_order is None else min(max_order, ORDER), facts)
    found.add([(int(i), int(j)) for i, j in np.argwhere(np.triu(adjacency))])
    triples = unshielded(adjacency)
    values = found.contrast(triples) if triples else np.zeros(0)
    asked = np.flatnonzero(np.isfinite(values))
    if not asked.size:
        return None
    contrasts = Contrasts([triples[place] for place in asked], values[asked], NormalNoise(SD), 0, None, MEAN)
    apart = np.triu(~(adjacency | facts.forbidden), 1)
    shown = Shown(cycles(adjacency), leftover(found.minimum[apart]))
    return oriented(adjacency, contrasts, facts.against_time(), rule, shown)


def graph_by_one_release(
    session: Session,
    records: Records | RecordsInChunks,
    sizes: Callable[[Sequence[CIQuery]], np.ndarray],
    threshold: float,
    max_order: int | None,
    facts: Known,
    rule: Rule,
) -> tuple[Graph, str]:
    """The graph of PC, its edges less those that chance explains, and a sentence about its directions.

    sizes: |z| of queries, below the threshold where they are independent; decisions hold the least of each pair.
    """
    decisions: dict[tuple[int, int], Decision] = {}

    def ask(queries):
        values = sizes(queries)
        for (i, j, given), z in zip(queries, values, strict=True):
            weakest = decisions.get((i, j))
            if weakest is None or z < weakest.value:
                decisions[i, j] = Decision(i, j, given, bool(z < threshold), float(z), 0.0)
        return [bool(z < threshold) for z in values]

    skeleton = find_skeleton(len(records.columns), ask, max_order=max_order, batched=True, known=facts)
    kept, told = false_edges.without_chance(skeleton, decisions, false_edges.SHARE)
    graph = session.graph(records, dataclasses.replace(kept, separators={}), told)
    directed = by_one_release(kept.adjacency, sizes, facts, max_order, rule)
    if directed is None:
        return graph, ""
    return dataclasses.replace(graph, cpdag=directed.cpdag, arrow_shares=directed.arrow_shares), directed.sentence

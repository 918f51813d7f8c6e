"""Run, flag or refuse: what n, the columns of Z and the budget say about the level, before a value is read.

No test keeps its level for every law of (X, Y, Z) with continuous Z (Shah and Peters 2020), and a private diagnostic
sees a bias that matters too rarely to guard the level (docs/theory/ordered_neighbours.md#rule). So the rule is public:
it says how rough is too rough, and refuses where no sensible roughness is admissible.
"""

import dataclasses
import math

from jaxdp.statistics.neighbours import contrasts

RUN, FLAG, REFUSE = "run", "flag", "refuse"
CURVATURE, LOW_POWER, NARROW_KERNEL, LABELS_IN_Z = "curvature", "low power", "narrow kernel", "labels"
FIT, SMALL_BLOCKS = "fit", "small blocks"
BAND_FLAGS = (LOW_POWER, NARROW_KERNEL, LABELS_IN_Z)
CONTRAST_FLAGS = (CURVATURE, NARROW_KERNEL, LABELS_IN_Z)
FIT_FLAGS = (FIT, SMALL_BLOCKS)
BAND_RECORDS = 100  # fewest for one continuous column
CONTRAST_RECORDS = {2: 200, 3: 500, 4: 1000, 5: 1000}
ADMISSIBLE_BIAS = 0.3  # in sd of the released number: moves a level of 0.05 to about 0.06
SMALL_WIDTH = 1.0 / 16.0  # of the half range: below it a kernel removes hardly any trend
STRONG_EFFECT = 0.32  # E S per record at a correlation of a half, for kernels much narrower than the residuals
NEEDED_Z = 6.0  # below it the power at that effect is under 0.8

CONTINUITY = (
    'Z must be a quantity: declare labels of groups as kind = "categorical", and whole numbers with many ties with '
    'step (one column of Z) or as kind = "ordinal".'
)
JUMP = "a jump is a change by more than the kernel's width"  # an answer names the width in its columns' units
LABELS = (
    "Z takes whole steps and records of different values are compared: if its values are labels of groups, declare "
    'kind = "categorical", or true nulls are rejected.'
)


class LevelLost(ValueError):
    """A test would find dependence where there is none, as public numbers say; nothing was spent."""


@dataclasses.dataclass(frozen=True)
class Validity:
    """What is publicly known about the level of one run.

    verdict: "run", "flag" or "refuse". flags: why it is flagged, of those that the test names (`PrivateTest.flags`).
    sentence: what the level rests on, in one or two sentences for people.
    jumps: admissible number of places of z at which both laws change by more than c (one column of Z; else NaN).
    deviation: admissible deviation of the mean of X (of Y: times the ratio of their scales) from a plane in a box
    of side `side`, in units of the scale of X given to the test; curvature: the same as a second derivative, per
    unit^2 of the reference law of Z (two columns and more; else NaN).
    law_error: admissible error of the known mean of X given Z, root mean square over records, in residual sds of X
    (tests that are given that law; else NaN).
    """

    verdict: str
    sentence: str
    flags: tuple[str, ...] = ()
    jumps: float = math.nan
    deviation: float = math.nan
    curvature: float = math.nan
    side: float = math.nan
    law_error: float = math.nan

    def require(self) -> None:
        """Raises `LevelLost`, with the sentence, where the rule refuses."""
        if self.verdict == REFUSE:
            raise LevelLost(self.sentence)


def band_rule(
    num_records: int,
    num_neighbors: int,
    variance: float,
    *,
    narrow: bool = False,
    labels: bool = False,
    strata: int = 1,
) -> Validity:
    """The rule for one continuous column of Z.

    variance: of S with its noise, for kernel products in [-1, 1]. narrow: the kernel is narrower than 1/16 of the half
    range.
    labels: Z takes whole steps and may be a label of groups, and its values are compared with other values.
    strata: joint levels of coded columns of Z, each with an order of its own, which a jump of Z crosses once in each.
    """
    if num_records < BAND_RECORDS:
        return _refusal(
            f"{num_records} records are too few to condition on a continuous column: this test needs at least "
            f"{BAND_RECORDS}; give more records, or declare a column of few levels as such."
        )
    spread = math.sqrt(variance)
    jumps = 4.0 * ADMISSIBLE_BIAS * spread / ((num_neighbors + 1) * strata)
    weak = num_records * STRONG_EFFECT < NEEDED_Z * spread
    flags = _flags((LOW_POWER, weak), (NARROW_KERNEL, narrow), (LABELS_IN_Z, labels))
    sentence = (
        "The level holds if X and Y change gradually with Z, and in no cycle shorter than about 60 records: declare a "
        f"time as a date, whose cycles are conditioned on. {_places(jumps)} "
        f"(n = {num_records}, {_counted(num_neighbors, 'neighbour')}); {JUMP}, and smaller sudden changes add up to "
        "one. "
    )
    sentence += LABELS if labels else CONTINUITY
    if weak:
        sentence += " Low power: even a correlation of 0.5 given Z may be missed."
    return Validity(FLAG if flags else RUN, sentence, flags, jumps=jumps)


def contrast_rule(
    num_records: int,
    depth: int,
    variance: float,
    side: float,
    *,
    symmetric: bool,
    scale: float = 1.0,
    narrow: bool = False,
    skewed: bool = False,
    labels: bool = False,
    width: float = 0.5,
    laws: bool = False,
    windows: float | None = None,
    checked: bool = False,
) -> Validity:
    """The rule for `depth` continuous columns of Z.

    variance: of T with its noise. side: caliper, as a share of the range.
    scale: of X, as given to the test. skewed: a column of Z is known to be skewed and has linear bounds.
    labels: a column of Z takes whole steps and may be a label of groups. width: of the kernel, in units of the scale.
    windows: how many of them count; default all. checked: the release says itself where it may be trends.
    laws: planes do not cancel in the statistic, so that the whole laws of X and Y must hardly change.
    """
    refusal = _contrast_refusal(num_records, depth, skewed)
    if refusal:
        return _refusal(refusal)
    size = contrasts.window_size(depth, symmetric)
    # of K windows |E T| <= K m kappa_x kappa_y r^4/(4 c_x c_y), and kappa r^2/2 is the deviation
    windows = num_records if windows is None else windows
    share = math.sqrt(ADMISSIBLE_BIAS * math.sqrt(variance) / (size * windows))
    deviation, radius = width * scale * share, 0.5 * math.sqrt(depth) * side
    # a jump along a surface meets n^(1 - 1/d) windows, against a deviation of n^(1/2): no n makes it harmless
    # so that every answer is flagged, or a part of the budget looks for them and flags those that they may explain
    flags = _flags((CURVATURE, not checked), (NARROW_KERNEL, narrow), (LABELS_IN_Z, labels))
    box = f"in any box that spans {side:.3f} of the range of each column of Z"
    change = f"the means of X and of Y are nearly flat or straight over short distances: {box} they stray from a plane"
    if laws:
        change = f"the laws of X and of Y hardly change over short distances: {box} they change"
    sentence = (
        f"The level holds if, given Z, {change} by less than {width * share:.3f} of the residual sd "
        f"(n = {num_records}, {depth} columns of Z). Sharper trends give false findings: drop columns of Z, use more "
        "records, or, in Python, give trend_x and trend_y. "
    )
    if checked:
        sentence += (
            "A quarter of the budget checks for jumps, and flags a finding that they could explain; means that go up "
            "and down within such a box are not detected. "
        )
    sentence += LABELS if labels else CONTINUITY
    return Validity(
        FLAG if flags else RUN, sentence, flags, deviation=deviation, curvature=2.0 * deviation / radius**2, side=side
    )


def law_rule(num_records: int, noise_share: float = 0.0) -> Validity:
    """The rule for a test that is given the law of X given Z (docs/theory/crt.md#misspecification).

    noise_share: smallest variance that noise adds to the statistic, as a share of the statistic's own.
    """
    error = ADMISSIBLE_BIAS * math.sqrt((1.0 + noise_share) / num_records)
    sentence = (
        f"Level rests on the law of X given Z that was given: it holds if that law's mean is right to {error:.3f} of "
        f"X's residual sd (root mean square over the {num_records} records, where Y follows the error); three times "
        "that error can reject 15 % of true nulls, ten times most of them."
    )
    return Validity(RUN, sentence, law_error=error)


def fit_rule(block: int, least: int, *, given: bool) -> Validity:
    """The rule for a vote of tests over blocks of `block` records; given: whether they condition on columns of Z."""
    flags = _flags((FIT, given), (SMALL_BLOCKS, block < least))
    sentences = []
    if given:
        sentences.append(
            f"Level is that of the test within one block: what its fit on Z leaves unexplained in {block} records "
            "counts as dependence, and nothing checks the fit; band-gcm and contrast-gcm need none."
        )
    if block < least:
        sentences.append(f"Blocks of fewer than {least} records are too small for that test's own limit law.")
    return Validity(FLAG if flags else RUN, " ".join(sentences), flags)


def _contrast_refusal(num_records: int, depth: int, skewed: bool) -> str:
    if depth > max(CONTRAST_RECORDS):
        return (
            f"{depth} continuous columns of Z are too many for a level that can be believed: use at most "
            f"{max(CONTRAST_RECORDS)}, or, where a linear model will do, partial-correlation (--method "
            "partial-correlation), which takes any number."
        )
    fewest = CONTRAST_RECORDS[depth]
    if num_records < fewest:
        return (
            f"with {num_records} records and {depth} continuous columns of Z neighbours are too far apart: at least "
            f"{fewest} records are needed; give more, or drop columns of Z."
        )
    if depth >= 3 and skewed:
        return (
            "a skewed column of Z on linear bounds puts all records in a corner of the box, where neighbours are far "
            'apart on its scale: declare scale = "log" for it.'
        )
    return ""


def _places(jumps: float) -> str:
    """At how many values of Z both may jump, in words, rounded down."""
    if jumps < 1.0:
        return "They should not jump at the same value of Z"
    counted = "a few values" if not math.isfinite(jumps) else _counted(math.floor(jumps), "value")
    return f"Both may jump at the same value of Z, but at {counted} at most"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _refusal(sentence: str) -> Validity:
    return Validity(REFUSE, sentence)


def _flags(*named: tuple[str, bool]) -> tuple[str, ...]:
    return tuple(name for name, raised in named if raised)

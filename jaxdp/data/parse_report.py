"""What the counts of a file's cells mean, for its owner, never for release.

A column in another notation (decimal commas, percent signs, dates) would count as missing throughout, and an answer
about it would be bought for nothing. The counts are private, so they go to the owner alone; no cell is quoted.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jaxdp.data import conditioning
from jaxdp.data.coding import DATES, DECIMAL_COMMA, OF_A_DRAFT, PERCENTAGES, THOUSANDS, ColumnRule
from jaxdp.data.column_counts import BINS, DECIMAL_COMMA_TOO, MAX_VALUES, ColumnCounts
from jaxdp.data.notation import ISO
from jaxdp.data.texts import taken

MAX_FILLED = 0.25  # times the root of n: so many filled cells move a statistic by a quarter of its spread at most
MAX_CLIPPED = 1.0  # the same of cells of Z beyond the bounds, which still say on which side they are
CODED = "one and the same value outside the bounds"
EMPTY_THEM = (  # what to do about them
    'write such cells as empty if the value stands for missing (then missing = "drop" leaves them out), or widen the '
    "bounds to hold it if it is none and public knowledge allows"
)
FAILING_SHARE = 0.5  # of the cells that are not missing; from here on a column does not parse
MIN_VALUES = 3  # fewer values are no order
MAX_HEAPS = 4  # multiples that are found one beside the other until nothing is left to say
MIN_PILES, PILED_SHARE = 5, 0.1  # values that pile up, and the records on them, from where on they are told
PILE_RATIO, PILE_MORE, BESIDE = 3.0, 3, 10  # so many times, and records, more than values up to so many steps beside
ROUND_RECORDS, ROUND_SDS = 0.75, 4.0  # rounded records that are told: so many roots of n, above so many sds of chance
ROUND_RATIO, CLOSE_RATIO = 1.25, 2.0  # and round values so many times as many as others; as many where they are close
COARSE = 2.0  # roots of n: fewer times than that, each as frequent as the others, and their order within a step counts
RESOLUTION = 0.05  # quantile of the distances of values that is taken for the step of a column; its least may be odd
TIED_RECORDS, TIED_WHOLE = 4.0, 1.25  # so many records a value are taken for codes; of whole numbers, so many
MIN_COUNTED, COUNTED_SHARE = 100, 0.4  # values of a counter, and their part of its range; samples of few ties have less
DECIMAL_SHARE = 0.05  # so many numbers such as 1,5 for each one such as 1,234 tell the comma of both; fewer are slips
CROWDED_SHARE, CROWDED_WIDTH = 0.9, 0.25  # so many of the values in so much of the bounds are told
WAYS_OUT = {
    PERCENTAGES: "write percent = true in the schema, and bounds in percent",
    DATES: 'write date = true in the schema (or date = "%d.%m.%Y"), and dates as bounds',
    THOUSANDS: 'write thousands = "," in the schema (or "." with decimal = ","), or decimal = "," alone where 5,123 is '
    "less than 6",
    DECIMAL_COMMA: 'write decimal = "," in the schema',
    DECIMAL_COMMA_TOO: 'write decimal = "," and thousands = "." in the schema',
    "truth values in other words": "write boolean = true in the schema instead of levels",
    "truth values": 'write kind = "binary" and boolean = true in the schema instead of levels',
    "levels in another letter case": "write them as the file does, or boolean = true for truth values",
}


def max_filled(num_records: int) -> float:
    """How many cells of a column may be filled with one value before that is taken for dependence."""
    return max(1.0, MAX_FILLED * math.sqrt(num_records))


def _step(values: np.ndarray) -> float:
    """The distance of the values of a column, sorted, where they are closest: not of one odd value among them."""
    distances = np.diff(values)
    distances = distances[distances > 1e-9 * (values[-1] - values[0])]
    return float(np.quantile(distances, RESOLUTION))


class ColumnReport(ColumnCounts):
    """What the counts of one column say: whether it parses, and where conditioning on it would go wrong."""

    @property
    def tied(self) -> bool:
        """Whether a continuous column without a declared step looks like codes: few values, many records of each."""
        if self.rule.step or self.rule.heaps or self._says_what_repeats:
            return False
        share = TIED_WHOLE if self.is_whole else TIED_RECORDS
        return MIN_VALUES <= len(self.values) <= min(MAX_VALUES, self.values.total() / share)

    @property
    def counts_on(self) -> bool:
        """Whether a continuous column without a declared step looks like a counter of days: whole numbers, hardly one
        of which repeats, and which fill their range.
        """
        many = len(self.values)
        if self.rule.step or self._says_what_repeats or self.tied or many < MIN_COUNTED:
            return False
        filled = COUNTED_SHARE * (max(self.values) - min(self.values) + 1.0)
        return filled <= many <= MAX_VALUES and self.is_whole

    @property
    def _says_what_repeats(self) -> bool:
        """Whether the schema says what all equal values are: dates, labels, or that there are no heaps."""
        return bool(self.rule.is_date or self.rule.ignored or self.rule.labels)

    def _beside_heaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Values, sorted, that are no multiples of the schema's heaps, and how many records have each.

        People may round to other numbers than the schema says, of which it then says nothing.
        """
        values = np.array(sorted(self.values))
        if self.rule.heaps:
            values = values[conditioning.roundness(values, self.rule.heaps) == len(self.rule.heaps)]
        return values, np.array([self.values[value] for value in values.tolist()], float)

    @property
    def piles(self) -> tuple[int, float]:
        """How many values are far more frequent than the values beside them, and the share of records that have them.

        The values beside one are those at the distance of a few steps; a measured
        quantity that was rounded to its resolution has no piles, however many records share a value.
        """
        values, counts = self._beside_heaps()
        if len(values) < MIN_VALUES:
            return 0, 0.0
        step = _step(values)
        below = np.concatenate([[0], np.cumsum(counts)])
        ends = (np.searchsorted(values, values + sign * (BESIDE + 0.5) * step) for sign in (1.0, -1.0))
        beside = (below[next(ends)] - below[next(ends)] - counts) / (2.0 * BESIDE)
        piled = counts > PILE_RATIO * beside + PILE_MORE
        return int(np.sum(piled)), float(np.sum(counts[piled]) / self.values.total())

    @property
    def rounded(self) -> tuple[float, int]:
        """The multiple of 1 or 5 times a power of ten that values were rounded to, and the records beyond chance, or 0.

        However few records are rounded, each lies between records that are not, and the bias is that of their number
        against a spread of the root of n. Values beside the multiples say how many would lie there unrounded. One
        value that is far more frequent than all others (zero) says nothing of rounding.
        """
        values, counts = self._beside_heaps()
        if len(values) <= MIN_PILES:
            return 0.0, 0
        counts[np.argmax(counts)] = 0.0
        step, width = _step(values), values[-1] - values[0]
        found, most = 0.0, 0.0
        for power in range(math.floor(math.log10(step)), math.floor(math.log10(width)) + 1):
            for size in (10.0**power, 5.0 * 10.0**power):
                if size < 4.9 * step or width / size < MIN_PILES:
                    continue
                round_ones = np.abs(values - size * np.round(values / size)) <= 1e-9 * size
                reach = (BESIDE + 0.5) * step
                beside = np.floor((values + reach) / size) - np.ceil((values - reach) / size) + 1.0 - round_ones
                chance = float(np.sum(counts * beside)) / (2.0 * BESIDE)
                ratio = CLOSE_RATIO if size <= 2.0 * reach else ROUND_RATIO
                least = max(ratio * chance, chance + ROUND_SDS * math.sqrt(chance))
                hits = float(np.sum(counts[round_ones]))
                told = hits > least + ROUND_RECORDS * math.sqrt(self.values.total())
                if told and np.sum(counts[round_ones] > 0.0) >= MIN_PILES and hits - chance >= 0.9 * most:
                    found, most = size, max(most, hits - chance)
        return found, round(most)

    @property
    def _resolution(self) -> float:
        """The least distance of values, where it has few digits and all values are its multiples; else 0."""
        values = np.array(sorted(self.values))
        step = float(np.min(np.diff(values))) if len(values) > 1 else 0.0
        exact = (
            step > 0.0
            and float(f"{step:.2g}") == step
            and np.all(np.abs(values - step * np.round(values / step)) <= 1e-9 * step)
        )
        return step if exact else 0.0

    @property
    def _unsaid_piles(self) -> tuple[str, float, int, bool] | None:
        """What the schema says nothing of: piles or rounding, in words; the multiple, how many records are rounded to
        it (0: to none that was found), and whether persons may repeat their values. None where nothing is unsaid.
        """
        rule = self.rule
        by_step = rule.step and rule.heaps in ((), conditioning.usual_heaps(rule.lower, rule.upper, rule.step))
        if by_step or self._says_what_repeats:
            return None
        (count, share), (multiple, rounded) = self.piles, self.rounded
        if count >= MIN_PILES and share >= PILED_SHARE:
            multiple = multiple or 10.0 ** (math.floor(math.log10(rule.upper - rule.lower)) - 1)
            cause = f"{share:.0%} of the records lie on {count} values of column {rule.name!r} that are"
            return cause, multiple, rounded, True
        cause = f"multiples of {multiple:g} in column {rule.name!r} are, by {rounded} of {self.values.total()} records,"
        return (cause, multiple, rounded, False) if rounded else None

    def _sufficient_heaps(self, multiple: float) -> tuple[float, ...]:
        """The schema's heaps with this one, and with those that are found once it is said; () where none suffice."""
        rule = self.rule
        for _ in range(MAX_HEAPS):
            if not rule.step < multiple < rule.upper - rule.lower or multiple in rule.heaps:
                return ()
            rule = dataclasses.replace(rule, heaps=tuple(sorted({*rule.heaps, multiple}, reverse=True)))
            left = dataclasses.replace(self, rule=rule)._unsaid_piles
            if left is None:
                return rule.heaps
            multiple = left[1]
        return ()

    @property
    def piling(self) -> str:
        """Why conditioning on the column would go wrong, for piles that the schema says nothing of; else empty.

        What it advises to declare is what it would not speak of again.
        """
        rule, unsaid = self.rule, self._unsaid_piles
        if unsaid is None:
            return ""
        cause, multiple, rounded, repeated = unsaid
        persons = ' (where the rows of one person repeat its value, unit = "COLUMN" names the person)'
        if rule.heaps:
            cause = f"beside the heaps of the schema, {cause}"
        heaps, step = self._sufficient_heaps(multiple), 0.0 if rule.step else self._resolution
        instead = " in place of heaps" if rule.heaps else ""
        left_out = ""
        if step and not (heaps and rounded):
            declared = f"step = {step:.15g}{instead}, if it is recorded in such steps; "
        elif heaps:
            listed = ", ".join(f"{heap:.15g}" for heap in heaps)
            declared = f"heaps = [{listed}], if people round to such multiples; "
        else:
            grid = f"step = ...{instead}, if it is recorded in equal steps (before a standardisation, say); "
            declared, left_out = "" if rule.step else grid, f". Or leave {rule.name} out"
        return (
            f"{cause} far more frequent than "
            "the values beside them. Where such records differ from their neighbours in both X and Y, true nulls are "
            f"rejected given {rule.name}. Write one of these in the schema: {declared}labels = true, if its values "
            "stand for groups or devices (records of equal value are compared); heaps = [], if neither"
            f"{persons if repeated else ''}{left_out}"
        )

    @property
    def unstepped(self) -> str:
        """Why times to an event that coincide would be compared wrongly, where the schema has no step; else empty.

        The more records there are, the finer must times be for the order within a step not to matter.
        """
        rule = self.rule
        inner = [count for value, count in self.values.items() if value < rule.upper]
        step = 0.0 if rule.step or not inner else self._resolution
        distinct = sum(inner) ** 2 / sum(count**2 for count in inner) if step else math.inf
        if distinct > COARSE * math.sqrt(self.cells):
            return ""
        instead = ' in place of scale = "log"' if rule.logarithmic else ""
        return (
            f"many of the times in column {rule.name!r} are equal, whole multiples of {step:.15g}, of which the schema "
            "says nothing. Where censoring differs between groups, true nulls are rejected: write "
            f"step = {step:.15g} in the schema{instead}"
        )

    @property
    def untimed(self) -> str:
        """What the schema leaves open about the times of day in a column of dates; else the empty text."""
        if not self.times or self.rule.times not in (conditioning.UNSAID, conditioning.NONE):
            return ""
        return (
            f"{self._of_cells(self.times)} of {self.rule.name!r} hold a time of day, of which the schema says nothing: "
            'to condition on the column write cycles = ["day", "week"] (or [], if X and Y follow neither the hour nor '
            "the weekday)"
        )

    @property
    def crowding(self) -> str:
        """Where nine in ten values crowd into a small part of the bounds, in words; else the empty text."""
        total = int(self.histogram.sum())
        for width in range(1, int(CROWDED_WIDTH * BINS) + 1):
            windows = np.convolve(self.histogram, np.ones(width, int), "valid")
            if total and windows.max() >= CROWDED_SHARE * total:
                return (
                    f"nine in ten values of {self.rule.name!r} lie within {width / BINS:.0%} of its bounds. "
                    'Narrower bounds, or scale = "log", are needed to condition on it, and find more effects where it '
                    "is X or Y. Write them if public knowledge allows it, not because of this count, which is private"
                )
        return ""

    @property
    def parses(self) -> bool:
        """False where half of the cells or more, missing ones aside, are doubtful, or all are missing."""
        present = self.cells - self.missing
        return self.cells == 0 or (present > 0 and self.doubtful < max(FAILING_SHARE * present, 1))

    @property
    def replaced(self) -> list[str]:
        """What the cells count as that do not say what the schema expects, in sentences without full stops."""
        name = repr(self.rule.name)
        told = []
        if self.missing and not self.rule.fills:
            told.append(
                f"{self._of_cells(self.missing)} of {name} are empty: leave such records out with --missing drop, or "
                "write in the schema what an empty cell means"
            )
        if self.unreadable and self.rule.is_continuous:
            told.append(f"{self._of_cells(self.unreadable)} of {name} cannot be read and count as missing")
        if self.unknown:
            levels = self.rule.levels
            way_out = "add the level to the schema if it is public, or choose with other = ..."
            if self.rule.pools:
                way_out = "the private draft named no such level, so add one only if it is public"
            elif self._looks:
                way_out = f"they {self._looks}"
            told.append(
                f"{self._of_cells(self.unknown)} of {name} hold none of its levels and count as "
                f"{levels[self.rule.other]!r}: {way_out}"
            )
        if self.outside:
            midnight = ": a bound without a time is its midnight" if self.rule.notation.date else ""
            told.append(
                f"{self._of_cells(self.outside)} of {name} lie outside its bounds and count as the nearer one{midnight}"
            )
        if self.coded[0] > max_filled(self.cells):
            told.append(
                f"{self._of_cells(self.coded[0])} of {name} hold {CODED}, as codes for missing do: {EMPTY_THEM}"
            )
        return told

    def _of_cells(self, count: int) -> str:
        return f"{count} of {self.cells} cells"

    @property
    def sentence(self) -> str:
        """What is wrong with the column, without a full stop; the empty text where it parses."""
        if self.parses:
            return ""
        name = repr(self.rule.name)
        if self.missing == self.cells:
            return f"column {name} does not parse: all of its {self.cells} cells are empty or marked as missing"
        if self.outside == self.doubtful:
            share = f"{self.outside / (self.cells - self.missing):.0%}"
            limits = "dates" if self.rule.notation.date else f"[{self.rule.lower:g}, {self.rule.upper:g}]"
            within = f"its bounds {limits}: correct the bounds or the unit"
            if self.rule.drafted:
                within = f"{limits}, where private bounds are looked for: change the unit"
            return f"{share} of the cells of column {name} lie outside {within}"
        counts = {"unreadable": self.unreadable, "unknown": self.unknown, "out of bounds": self.outside}
        shown = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
        return f"column {name} does not parse: of {self.cells} cells {shown}{self._hint()}"

    def _hint(self) -> str:
        if self._looks:
            return f", which {self._looks}"
        return ", in another unit or on another scale than the bounds" if self.outside else ""

    @property
    def looks(self) -> str:
        """What most cells that say no value look like, and the way out, in a clause; empty where most are empty."""
        return f", which {self._looks}" if self._looks and self.unreadable + self.unknown > self.missing else ""

    @property
    def _looks(self) -> str:
        """In which notation cells that cannot be read seem to be, and what to do about it; else empty."""
        notations = self.notations.copy()
        if notations[DECIMAL_COMMA_TOO]:  # the small numbers of such a column show the comma alone
            notations[DECIMAL_COMMA_TOO] += notations.pop(DECIMAL_COMMA, 0)
        elif notations[DECIMAL_COMMA] >= DECIMAL_SHARE * notations[THOUSANDS]:  # 1,5 has no thousands: nor has 1,234
            notations[DECIMAL_COMMA] += notations.pop(THOUSANDS, 0)
        likely = notations.most_common(1)
        if likely and likely[0][0] and 2 * likely[0][1] > self.notations.total():
            way_out = (OF_A_DRAFT if self.rule.drafted else WAYS_OUT).get(likely[0][0])
            if likely[0][0] == DATES and self.rule.is_date and not self.rule.drafted:
                form = "2024-12-31" if self.rule.notation.date == ISO else self.rule.notation.date
                way_out = f'not as the schema says, {form}: write their own format in it, such as date = "%d.%m.%Y"'
            return f"look like {likely[0][0]}" + (f": {way_out}" if way_out else "")
        return ""


def describe_ties(columns: Iterable[ColumnReport]) -> list[str]:
    """What it means that numbers repeat where they are conditioned on: a warning of whole numbers, a note of others;
    and a warning of those that count on, as days do.

    One sentence each without a full stop, whatever the number of columns.
    """
    columns = list(columns)
    tied = [column for column in columns if column.tied]
    whole, other = (
        ", ".join(f"{c.rule.name!r} ({len(c.values)} values)" for c in tied if c.is_whole == kind)
        for kind in (True, False)
    )
    labels = 'kind = "categorical" if they label groups like sites'
    told = []
    if whole:
        told.append(
            f"warning: whole numbers of {whole} may be codes. To condition on them, write step = 1 if they are "
            f"quantities, or {labels}; else differences between groups count as dependence"
        )
    if other:
        told.append(f"note: numbers of {other} repeat, as measurements may; write {labels}")
    if counted := ", ".join(f"{c.rule.name!r} ({len(c.values)} values)" for c in columns if c.counts_on):
        told.append(
            f"warning: whole numbers of {counted} hardly repeat and have few gaps, as numbered days do. To condition "
            "on days, give dates (date = true), so that their weekdays are conditioned on too; otherwise a cycle that "
            "X and Y follow counts as dependence"
        )
    return told


class ParseReport:
    """Counts of every column that is read, and of lines passed over: `Schema.read(..., report=ParseReport())`. Private.

    watch: looks, in the same pass, for identifiers that repeat (`identifiers.Watch`).
    """

    def __init__(self, watch: Any = None) -> None:
        self.columns: dict[str, ColumnReport] = {}
        self.watch = watch
        self.faults: Counter[str] = Counter()
        self.drops = False  # whether incomplete records are left out
        self.dropped = 0
        self.without_id = 0  # rows of one record that nobody asked for
        self.headings = 0  # rows without a number, of two columns of numbers or more, and with text in all of them

    def add(self, rule: ColumnRule, values: Any) -> np.ndarray | None:
        """Counts some cells of a column, as `ColumnCounts.add`."""
        return self.columns.setdefault(rule.name, ColumnReport(rule)).add(values)

    @property
    def of_headings(self) -> str:
        """What rows of text in the place of numbers are, in words; empty where there are none, or columns fail."""
        if not self.headings or self.failing():
            return ""
        rows = "row holds" if self.headings == 1 else "rows hold"
        return (
            f"{self.headings} {rows} text in every column of numbers, as a repeated header or a row of units does, and "
            "each counts as a record: take such rows out of the file"
        )

    def failing(self) -> list[ColumnReport]:
        """The columns that do not parse."""
        return [column for column in self.columns.values() if not column.parses]

    def _displaced(self, column: ColumnReport, given: set[str]) -> float:
        """How many cells one sd beside the mean do to a covariance what the filled cells do (docs/theory/missing.md).

        Beside the mean by r sds, a cell of Z does as much as 1 + r^2; of X or Y as r, and where both are empty in one
        record as r times that of the other.
        """
        if column.rule.name in given:
            return column.pooled + column.empty * column.reach**2
        far = max(column.reach, 1.0)
        others = [c for name, c in self.columns.items() if name not in given and c is not column]
        both = [min(column.empty, other.empty) * far * max(other.reach, 1.0) for other in others]
        return max([column.unnamed * far, *both])

    def harm(
        self, given: Iterable[str], *, clipped_z: bool = False, finds: str = "dependence", of_moments: bool = False
    ) -> str:
        """Why cells that say no value would be taken for dependence, or for another level; else the empty text.

        Without a full stop. Records whose Z is unknown are compared as if their Z were equal; where X is unknown it
        takes one value, and if that happens more often for some values of Y, X and Y depend on each other through it.
        The bias grows with n, the spread with its root only (docs/theory/missing.md).
        given: the columns that are conditioned on. clipped_z: values of Z at a bound are left out by the test.
        finds: what the test finds. of_moments: whether a value counts in it by its distance from the mean.
        """
        given = set(given)
        counts = [(c.pooled if c.rule.name in given else c.unnamed, c) for c in self.columns.values()]
        weighed = [(self._displaced(c, given) if of_moments else float(count), count, c) for count, c in counts]
        weight, count, column = max(weighed, key=lambda one: one[0], default=(0.0, 0, None))
        most = 0.0 if column is None else max_filled(column.cells)
        if column is not None and not self.drops and weight > most:
            cells = f"{count} of {column.cells} cells of column {column.rule.name!r}"
            if column.rule.name not in given and column.unknown > column.empty:
                return (
                    f"{cells} hold none of its levels{column.looks}. They would count as "
                    f"{column.rule.levels[column.rule.other]!r}, and the answer would be about other groups than it "
                    "names"
                )
            return (
                f"{cells} are empty or hold no value of it{column.looks}. Filled with one value"
                f"{', far from the others,' * (count <= most)} they would be taken for {finds}"
            )
        if harm := self._of_codes(given, clipped_z, finds, of_moments):
            return harm
        for name in [] if clipped_z else sorted(given & set(self.columns)):
            column = self.columns[name]
            if column.outside > MAX_CLIPPED * math.sqrt(column.cells):
                return (
                    f"{column.outside} of {column.cells} cells of column {name!r} lie outside its bounds. Conditioned "
                    "on as if they were equal, they would be taken for dependence"
                )
        return ""

    def _of_codes(self, given: set[str], clipped_z: bool, finds: str, of_moments: bool) -> str:
        """`harm` of cells that hold one value beyond the bounds, which counts as the nearer bound, of Z or of X and Y.

        Of X or of Y alone the value may be one, such as a top code, and is a function of that column.
        """
        coded = [(c, *c.coded) for c in self.columns.values() if c.coded[0]]
        found = [(c, n, c.sds_beside(bound, n) if of_moments else 0.0) for c, n, bound in coded]
        in_search = given >= set(self.columns)  # any column may be conditioned on, and none is left out
        for column, count, far in found:
            of_z = column.rule.name in given and (in_search or not clipped_z)
            if of_z and count * (1.0 + far**2) > max_filled(column.cells):
                return (
                    f"{count} of {column.cells} cells of column {column.rule.name!r} hold {CODED}, as codes for "
                    "missing do. Conditioned on as if they were equal, they would be taken for dependence"
                )
        of_xy = [one for one in found if one[0].rule.name not in given]
        for (x, count, far), (y, other, beside) in itertools.combinations(of_xy, 2):
            if min(count, other) * max(far, 1.0) * max(beside, 1.0) > max_filled(x.cells):
                return (
                    f"{count} of {x.cells} cells of column {x.rule.name!r} and {other} of column {y.rule.name!r} hold "
                    f"{CODED}, as codes for missing do. In the same records they would be taken for {finds}"
                )
        return ""

    def unsaid(self, given: Iterable[str], times: Iterable[str] = ()) -> str:
        """Why a column that is conditioned on, or holds times, would let true nulls be rejected; else empty."""
        columns = [self.columns[name] for name in given if name in self.columns]
        of_times = (self.columns[name].unstepped for name in times if name in self.columns)
        told = (text for column in columns for text in (column.untimed, column.piling))
        return next((text for text in (*told, *of_times) if text), "")

    def tied(self, names: Iterable[str]) -> list[ColumnReport]:
        """Those of the named columns that look like codes, or like counters, without saying so."""
        found = [self.columns[name] for name in names if name in self.columns]
        return [column for column in found if column.tied or column.counts_on]

    def add_piece(
        self, rules: Mapping[str, ColumnRule], piece: Mapping[str, Any], places: np.ndarray | None = None
    ) -> None:
        """Counts a piece of the table, as `readers.pieces` yields it. places: int (k,), of its rows that count."""
        cells = ((rule, piece[name] if places is None else taken(piece[name], places)) for name, rule in rules.items())
        of_text = [found for found in (self.add(rule, values) for rule, values in cells) if found is not None]
        if len(of_text) > 1:
            self.headings += int(np.sum(np.all(of_text, axis=0)))
        if self.watch is not None:
            self.watch.add(piece)

    def add_records(
        self,
        rules: Mapping[str, ColumnRule],
        held: Iterable[tuple[Mapping[str, Any], slice | np.ndarray]],
        chosen: np.ndarray,
    ) -> None:
        """Counts the rows that stand for persons. Other rows of theirs say nothing of the records, nor does how many
        there are.

        held: pieces, and which of their rows are complete. chosen: int (m,), places among these rows of all pieces.
        """
        chosen, before = np.sort(chosen), 0
        for piece, kept in held:
            rows = np.arange(len(next(iter(piece.values()))))[kept]
            first, last = np.searchsorted(chosen, [before, before + len(rows)])
            self.add_piece(rules, piece, rows[chosen[first:last] - before])
            before += len(rows)

"""What is publicly known about columns, as tests take them; nothing here needs JAX."""

import dataclasses

CONTINUOUS, ORDINAL, CATEGORICAL, BINARY = "continuous", "ordinal", "categorical", "binary"
RECORDS_A_DAY = 2  # of dates without times, from so many on records of one day are compared with each other alone
TIMED_RECORDS_A_DAY = 10  # of dates with times, from so many on those of one hour of one day (docs/evidence/days.md)


@dataclasses.dataclass(frozen=True)
class Column:
    """Public description of one column of `Data`, after scaling or coding.

    continuous: values lie in [-1, 1]; levels > 0 says that they take that many equally spaced values
    (a discrete column that was scaled). The other kinds: values are codes 0, ..., levels - 1.
    values: of a continuous column that is declared to take whole steps only, how many values that leaves; 0 if it may
    take any.
    labels: whether the values of a continuous column may label groups, so that only records of equal value are alike.
    days: of a continuous column of whole days, how many its bounds hold; 0 for any other.
    repeats: whether the codes repeat with the days of the column of dates before it.
    logarithmic: whether the values of a continuous column are scaled by their logarithm.
    from_zero: whether the values are numbers whose public range begins at 0, so that their ratios have a meaning.
    event: whether the column is declared to say, of a time in another column, that its event came.
    level_names: what the codes stand for, as sentences name it, where that is known; columns that differ in it alone
    are equal.
    """

    kind: str = CONTINUOUS
    levels: int = 0
    name: str = ""
    values: int = 0
    labels: bool = False
    event: bool = False
    days: int = 0
    repeats: bool = False
    logarithmic: bool = False
    from_zero: bool = False
    level_names: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @property
    def unordered(self) -> bool:
        """Whether it has more than two levels without an order, which no line can hold."""
        return self.kind == CATEGORICAL and self.levels > 2

    @property
    def spread(self) -> "Column":
        """The description of this column's codes as `equally_spaced` numbers; a continuous column as it is."""
        return self if self.kind == CONTINUOUS else Column(CONTINUOUS, self.levels, self.name, from_zero=self.from_zero)


def level_name(level: float | str) -> str:
    """A level as sentences name it."""
    return level if isinstance(level, str) else f"{level:.12g}"


def equally_spaced(codes, levels):
    """Codes 0, ..., levels - 1 as equally spaced numbers on [-1, 1]; one level stays at -1. levels: int, or (d,)."""
    import numpy as np  # only here, so that commands start without it

    steps = max(levels - 1, 1) if isinstance(levels, int) else np.maximum(np.asarray(levels) - 1, 1)
    return 2.0 * codes / steps - 1.0


def with_repeats(drawn, columns):
    """Drawn columns (n,) of Z with those that repeat with the days of the dates before them, as in `conditioning`."""
    found, day = [], None
    for values, column in zip(drawn, columns, strict=True):
        if column.days:
            day = (0.5 * (values + 1.0) * (column.days - 1)).round()
        found.append(day % column.levels if column.repeats else values)
    return found


@dataclasses.dataclass(frozen=True)
class Domain:
    """Public description of the columns of x, y and z."""

    x: tuple[Column, ...] = ()
    y: tuple[Column, ...] = ()
    z: tuple[Column, ...] = ()

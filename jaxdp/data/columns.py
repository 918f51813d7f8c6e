"""What is publicly known about columns, as tests take them; nothing here needs JAX."""

import dataclasses

CONTINUOUS, ORDINAL, CATEGORICAL, BINARY = "continuous", "ordinal", "categorical", "binary"


@dataclasses.dataclass(frozen=True)
class Column:
    """Public description of one column of `Data`, after scaling or coding.

    continuous: values lie in [-1, 1]; levels > 0 says that they take that many equally spaced values
    (a discrete column that was scaled). The other kinds: values are codes 0, ..., levels - 1.
    values: of a continuous column that is declared to take whole steps only, how many values that leaves; 0 if it may
    take any.
    labels: whether the values of a continuous column may label groups, so that only records of equal value are alike.
    event: whether the column is declared to say, of a time in another column, that its event came.
    """

    kind: str = CONTINUOUS
    levels: int = 0
    name: str = ""
    values: int = 0
    labels: bool = False
    event: bool = False

    @property
    def spread(self) -> "Column":
        """The description of this column's codes as `equally_spaced` numbers; a continuous column as it is."""
        return self if self.kind == CONTINUOUS else Column(CONTINUOUS, self.levels, self.name)


def equally_spaced(codes, levels):
    """Codes 0, ..., levels - 1 as equally spaced numbers on [-1, 1]; one level stays at -1. levels: int, or (d,)."""
    import numpy as np  # only here, so that commands start without it

    steps = max(levels - 1, 1) if isinstance(levels, int) else np.maximum(np.asarray(levels) - 1, 1)
    return 2.0 * codes / steps - 1.0


@dataclasses.dataclass(frozen=True)
class Domain:
    """Public description of the columns of x, y and z."""

    x: tuple[Column, ...] = ()
    y: tuple[Column, ...] = ()
    z: tuple[Column, ...] = ()

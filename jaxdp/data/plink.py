"""Genotypes as PLINK keeps them (.bed, .bim, .fam) and tables of persons (--covar, --pheno), matched by FID and IID.

Format: https://www.cog-genomics.org/plink/1.9/formats. Variants are public names; who is in the table is public, too
(replace-one neighbours); genotypes, phenotype and covariates are private and appear in no error.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxdp.data.coding import MISSING_MARKS
from jaxdp.data.dataset import CONTINUOUS, Column, Data, Domain
from jaxdp.data.identifiers import Watch
from jaxdp.data.parse_report import FAILING_SHARE, MAX_FILLED
from jaxdp.data.readers import FormError
from jaxdp.data.texts import as_number

MAGIC = b"\x6c\x1b\x01"  # a .bed file, variant by variant
MISSING = -9  # allele count less one of a genotype that was not read
# Two bits of a genotype as the count of the first allele less one: 2, missing, 1, 0 copies.
COUNTS_LESS_ONE = np.array([1, MISSING, 0, -1], np.int8)
MISSING_NUMBER = -9.0  # PLINK's code of a missing quantity
CASE, CONTROL, NO_GROUP = 2.0, 1.0, 0.0  # no group: as -9, a missing phenotype
BEYOND_AUTOSOMES = frozenset({"x", "y", "xy", "m", "mt", "par1", "par2", "23", "24", "25", "26"})  # codes in .bim
ELSEWHERE = "check that FID and IID are those of .fam, and which column is meant (--phenotype, --given)"


@dataclasses.dataclass(frozen=True, repr=False)
class Genotypes:
    """A fileset. counts: (n, K) int8, allele count less one, -9 missing. persons: (FID, IID) of each row.

    names, places: of the variants, places as "chromosome:position". phenotype: sixth column of the .fam file, texts.
    alleles: the first of each variant in .bim, whose copies are counted.
    """

    counts: np.ndarray
    persons: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    places: tuple[str, ...]
    phenotype: tuple[str, ...]
    alleles: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Genotypes({self.counts.shape[0]} persons, {self.counts.shape[1]} variants)"


def read_genotypes(prefix) -> Genotypes:
    """PREFIX.bed, .bim and .fam.

    Errors: ValueError for files that are no PLINK 1 fileset or do not fit together, and for a person with two rows.
    """
    prefix = str(prefix).removesuffix(".bed")
    fam, bim = (_rows(f"{prefix}{end}", 6) for end in (".fam", ".bim"))
    _require_one_row_each(f"{prefix}.fam", fam)
    content = Path(f"{prefix}.bed").read_bytes()
    if content[:3] != MAGIC:
        raise ValueError(f"{prefix}.bed is no PLINK 1 file ordered by variants; plink --make-bed writes one.")
    each = -(-len(fam) // 4)
    if len(content) != 3 + each * len(bim):
        raise ValueError(f"{prefix}.bed does not fit {len(fam)} persons of .fam and {len(bim)} variants of .bim.")
    packed = np.frombuffer(content, np.uint8, offset=3).reshape(len(bim), each)
    counts = np.empty((len(fam), len(bim)), np.int8)
    for quarter in range(4):
        rows = counts[quarter::4]
        rows[:] = COUNTS_LESS_ONE[(packed[:, : len(rows)] >> (2 * quarter)) & 3].T
    return Genotypes(
        counts,
        tuple((row[0], row[1]) for row in fam),
        tuple(row[1] for row in bim),
        tuple(f"{row[0]}:{row[3]}" for row in bim),
        tuple(row[5] for row in fam),
        tuple(row[4] for row in bim),
    )


def beyond_autosomes(place: str) -> bool:
    """Whether a place, "chromosome:position", lies on X, Y, their common region or MT by the codes of people."""
    return place.rpartition(":")[0].lower().removeprefix("chr") in BEYOND_AUTOSOMES


def write_genotypes(prefix, counts, *, phenotype: Sequence[str] | None = None) -> None:
    """A fileset of persons p0, p1, ... and variants v0, v1, ... from counts (n, K) less one; for examples and tests."""
    counts = np.asarray(counts)
    n, num = counts.shape
    code = np.full(counts.shape, 1, np.uint8)
    for bits, value in enumerate(COUNTS_LESS_ONE):
        code[counts == value] = bits
    padded = np.zeros((-(-n // 4) * 4, num), np.uint8)
    padded[:n] = code
    packed = np.bitwise_or.reduce([padded[quarter::4] << np.uint8(2 * quarter) for quarter in range(4)])
    Path(f"{prefix}.bed").write_bytes(MAGIC + packed.T.tobytes())
    told = ["-9"] * n if phenotype is None else phenotype
    Path(f"{prefix}.fam").write_text("".join(f"p{i} p{i} 0 0 0 {told[i]}\n" for i in range(n)))
    Path(f"{prefix}.bim").write_text("".join(f"1\tv{j}\t0\t{j + 1}\tA\tC\n" for j in range(num)))


def read_persons(
    path, names: Sequence[str], persons: Sequence[tuple[str, str]], watch: Watch | None = None
) -> dict[str, list[str]]:
    """Columns of a table with a header FID IID ..., in the order of `persons`; texts, "NA" for who is not in it.

    watch: gets the columns beside FID and IID, named or not.
    Errors: ValueError for a missing header or column, and for a person with two rows; `FormError` for rows of another
    length than the header.
    """
    header, *rows = _fields(path) or [[]]
    if [name.lstrip("#").upper() for name in header[:2]] != ["FID", "IID"]:
        raise ValueError(f"{path} must begin with a header FID IID and the names of its columns.")
    absent = [name for name in names if name not in header[2:]]
    if absent:
        raise ValueError(f"{path} has no column {absent[0]!r}; it has {', '.join(header[2:])}.")
    if any(len(row) != len(header) for row in rows):
        raise FormError(f"{path} has rows that are longer or shorter than its header")
    _require_one_row_each(path, rows)
    if watch is not None:
        watch.look(dict(zip(header[2:], zip(*(row[2:] for row in rows), strict=True), strict=True)))
    by_person = {(row[0], row[1]): row for row in rows}
    nothing = ["NA"] * len(header)
    return {name: [by_person.get(person, nothing)[header.index(name)] for person in persons] for name in names}


def _require_one_row_each(path, rows: Sequence[Sequence[str]]) -> None:
    """Raises ValueError where FID and IID of a row, which are public, are those of another."""
    if len({(row[0], row[1]) for row in rows}) < len(rows):
        raise ValueError(
            f"{path} has several rows of one FID and IID: keep one row of each person, since rows of one are no "
            "independent records."
        )


def cohort(
    genotypes: Genotypes,
    phenotype: Sequence[str],
    covariates: Mapping[str, Sequence[str]],
    bounds: Mapping[str, tuple[float, float]],
    phenotype_bounds: tuple[float, float] | None,
) -> Data:
    """x = allele counts less one, y = phenotype, z = covariates, scaled to [-1, 1] by public bounds; texts as read.

    phenotype_bounds: of a quantity; None for cases and controls, 2 and 1 as in PLINK (0, -9, NA: missing).
    """
    if phenotype_bounds is None:
        groups = _numbers(phenotype)
        y = np.select([groups == CASE, groups == CONTROL], [1.0, -1.0], np.nan)
        column = Column(CONTINUOUS, 2)
    else:
        y, column = scaled(phenotype, phenotype_bounds), Column()
    z = np.stack([scaled(values, bounds[name]) for name, values in covariates.items()], 1) if covariates else None
    if z is not None:  # who lacks a covariate is left out as one without a phenotype: what it explains is unknown
        y = np.where(np.isnan(z).any(1), np.nan, y)
    domain = Domain((Column(),) * genotypes.counts.shape[1], (column,), tuple(Column(name=name) for name in covariates))
    return Data(genotypes.counts, y, z, domain)


def scaled(texts: Sequence[str], bounds: tuple[float, float]) -> np.ndarray:
    """Numbers on [-1, 1] by bounds, clipped; NaN for what is no number, and for -9 unless it lies within the bounds."""
    low, high = bounds
    values = _measured(_numbers(texts), bounds)
    with np.errstate(over="ignore"):  # far beyond the bounds is beyond them
        return np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)


def fault_of_groups(name: str, texts: Sequence[str], way_out: str) -> str:
    """Why texts are no cases and controls, without a full stop; empty where they are. Private; quotes no cell.

    name: of the phenotype in a sentence. way_out: what to do with a quantity.
    """
    codes, blank = _numbers(texts), _marked(texts)
    known = np.isin(codes, [CASE, CONTROL, NO_GROUP, MISSING_NUMBER])
    others, zeros = int(np.sum(~known & ~blank)), bool(np.any(codes == NO_GROUP))
    cases, controls = bool(np.any(codes == CASE)), bool(np.any(codes == CONTROL))
    if others:
        return (
            f"{others} of {len(texts)} cells of {name} are neither 1 (control) nor 2 (case) nor missing (0, -9, NA): "
            f"recode cases and controls so, or {way_out} if it is a quantity"
        )
    if cases and controls:
        return ""
    if controls and zeros:
        return (
            f"{name} has no case (2), and 0 is a missing phenotype: where 0 stands for controls and 1 for cases recode "
            "them to 1 and 2 (plink --1 --make-bed), or name another column with --phenotype"
        )
    if cases or controls:
        return f"{name} has no {'control (1)' if cases else 'case (2)'}"
    return f"all {len(texts)} cells of {name} are missing (0, -9, NA): {ELSEWHERE}"


def fault_of_numbers(name: str, texts: Sequence[str], bounds: tuple[float, float]) -> str:
    """Why texts are no numbers within bounds, without a full stop; empty where they are. Private; quotes no cell."""
    numbers = _numbers(texts)
    values = _measured(numbers, bounds)
    unreadable = int(np.sum(np.isnan(numbers) & ~_marked(texts)))
    outside = int(np.sum((values < bounds[0]) | (values > bounds[1])))
    if unreadable > max(1.0, MAX_FILLED * math.sqrt(len(texts))):
        return (
            f"{unreadable} of {len(texts)} cells of {name} are no numbers: write them as 1.5, and NA where a value is "
            "missing"
        )
    if np.all(np.isnan(values)):
        return f"all {len(texts)} cells of {name} are missing (-9, NA): {ELSEWHERE}"
    if outside >= FAILING_SHARE * np.sum(~np.isnan(values)):
        return (
            f"{outside} of {len(texts)} cells of {name} lie outside its bounds [{bounds[0]:g}, {bounds[1]:g}]: correct "
            "the unit, or the bounds if public knowledge allows"
        )
    return ""


def _numbers(texts: Sequence[str]) -> np.ndarray:
    """Cells as numbers, NaN for others."""
    return np.array([as_number(text) for text in texts], float)


def _marked(texts: Sequence[str]) -> np.ndarray:
    """Whether cells are marked as missing, apart from PLINK's numbers for it."""
    return np.array([text.lower() in MISSING_MARKS for text in texts], bool)


def _measured(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """NaN in place of a -9 beyond the bounds: clipped, who was not measured would have the low bound."""
    return values if bounds[0] <= MISSING_NUMBER <= bounds[1] else np.where(values == MISSING_NUMBER, np.nan, values)


def _fields(path) -> list[list[str]]:
    """The fields of each line that is not empty."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:  # which quotes a byte of the file, and holds all of them
        raise ValueError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    return [line.split() for line in text.splitlines() if line.strip()]


def _rows(path: str, width: int) -> list[list[str]]:
    rows = _fields(path)
    if not rows or any(len(row) != width for row in rows):
        raise ValueError(f"{path} must have rows of {width} columns.")
    return rows

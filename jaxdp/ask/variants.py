"""`jaxdp.gwas`: which variants go with a phenotype, adjusted for covariates? Private score tests of a PLINK fileset."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from jaxdp import catalogue, core
from jaxdp._base import csv_files, p_values
from jaxdp._base.display import printable
from jaxdp._base.json_files import plain
from jaxdp._base.keywords import complete
from jaxdp._base.owner import OWNER, warn_owner
from jaxdp._base.printed import printed, printed_name
from jaxdp.ask.calls import GwasOptions
from jaxdp.ask.cautions import cautions
from jaxdp.ask.reading import Selection, Table
from jaxdp.ask.table_answer import TableAnswer, versions
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget
from jaxdp.core import Cost
from jaxdp.data import identifiers, plink, readers
from jaxdp.data.schema import Schema, as_names
from jaxdp.independence.variants.best_variants import BestVariants
from jaxdp.independence.variants.score_test import ScoreTest
from jaxdp.report import sections

LEVEL = 0.05
OF_FAM = "phenotype"  # what bounds call the sixth column of .fam
MISSING_CALLS = (
    "Given the covariates, genotypes are missing as often for one phenotype as for another (calls that fail more often "
    "among cases bias the score)."
)
UNIT = (
    "One record for each person of .fam, FID and IID: its genotypes, phenotype and covariates are protected together. "
    "A person in two rows under different ids is two records."
)
NO_SCHEMA = Schema({})  # a fileset is typed; what else is public are the bounds


@dataclasses.dataclass(frozen=True, repr=False)
class VariantAnswers(TableAnswer):
    """Tested variants, the smallest p-value first. Noisy and public values only.

    variants: dicts of name, place, allele (the first of .bim), index, p_value (family-wise over all variants), effect
    for each further copy of that allele and its interval or None (95 %, for all variants together), in the phenotype's
    own units (of cases: the difference of their share).
    cost, mode: of the release. content: what result.json holds beside them.
    """

    files: ClassVar = ("variants.csv", "manhattan.png", "result.json", "report.html")
    page: ClassVar = "Private score tests of variants"

    variants: list[dict[str, Any]]
    cost: Cost
    mode: str
    content: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return plain({**self.content, "variants": self.variants})

    def table(self) -> list[str]:
        """A line for each variant."""
        return [
            f"{one['name']}  {one['place']}  {p_values.describe(one['p_value'])}  effect {one['effect']:.3g}"
            + ("" if one["interval"] is None else " [{:.3g}, {:.3g}]".format(*one["interval"]))
            + f" for each copy of {printable(one['allele'])}"
            for one in self.variants
        ]

    def written(self) -> dict[str, Any]:
        """The table of variants."""
        rows = [
            [one["name"], one["place"], one["allele"], one["p_value"], one["effect"], *(one["interval"] or ("", ""))]
            for one in self.variants
        ]
        return {
            "variants.csv": (csv_files.write, ("name", "place", "allele", "p_value", "effect", "low", "high"), rows)
        }

    def draw(self, path: Path) -> None:
        """The p-values along the genome."""
        from jaxdp.report import manhattan

        places, found = ([one[name] for one in self.variants] for name in ("index", "p_value"))
        manhattan.draw(places, found, self.content["num_variants"], path, simulation=self.mode == "simulation")


@dataclasses.dataclass(frozen=True)
class GwasQuery(TableQuery[VariantAnswers]):
    """What is asked of a fileset, at what budget; checked before a file is opened.

    persons: a table of persons with a header FID IID ..., which has the covariates. phenotype: its column; "" for the
    sixth column of .fam. bounds: of covariates, and of a phenotype that is a quantity (that of .fam: `OF_FAM`). count:
    variants chosen and tested; None tests every one, for few variants.
    """

    form: ClassVar = VariantAnswers
    keywords: ClassVar = GwasOptions
    lacks: ClassVar = "a fileset is read whole, and its persons are those of .fam"

    schema: Schema
    persons: str | os.PathLike | None
    covariates: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    phenotype: str
    epsilon: float
    count: int | None

    @classmethod
    def of(cls, schema: Schema = NO_SCHEMA, **given: Unpack[GwasOptions]) -> GwasQuery:
        """Errors: ValueError for covariates without bounds and bounds that are none."""
        own = complete(GwasOptions, given)
        bounds, phenotype, count = own["bounds"] or {}, own["phenotype"], own["count"]
        names = tuple(as_names("covariates", own["names"]))
        if len(set(names)) < len(names) or phenotype in names:
            raise ValueError("every column is named once, as a covariate or as the phenotype.")
        for place, name in enumerate(names):
            if name not in bounds:
                told = printed_name(names, place, bounds)
                raise ValueError(f"covariate {told} needs public bounds: give them as NAME=LOW:HIGH.")
        checked = {name: _bounds(name, pair) for name, pair in bounds.items()}
        unknown = sorted(set(checked) - set(names) - {phenotype or OF_FAM})
        if unknown:
            raise ValueError(
                f"bounds of {unknown[0]!r}, which is neither a covariate nor the phenotype"
                + ("." if phenotype else f" ({OF_FAM!r}: that of .fam).")
            )
        if count is not None and count < 1:
            raise ValueError(f"count must be at least 1, got {count}.")
        return cls(schema, own["covariates"], names, checked, phenotype, budget(own["epsilon"]), count)

    @property
    def short(self) -> str:
        """What is asked in one line, for ledgers."""
        return f"variants ~ {self.phenotype or OF_FAM} | {', '.join(self.covariates) or 'nothing'}"

    @property
    def phenotype_bounds(self) -> tuple[float, float] | None:
        """Of a quantity; None for cases and controls."""
        name = self.phenotype or OF_FAM
        return None if name in self.covariates else self.bounds.get(name)

    def test(self, data):
        """The test that answers it, for at most the budget to the last bit."""

        def build(epsilon):
            if self.count is None:
                return ScoreTest(epsilon=epsilon, each=True)
            return BestVariants(epsilon=epsilon, count=self.count)

        return catalogue.at_most(self.epsilon, build, data)

    def selection(self, table: Table) -> Selection:
        """The covariates and the phenotype; a fileset has the rest."""
        return Selection(table, (*self.covariates, *([self.phenotype] if self.phenotype else [])))

    def loader(self, selection: Selection, key: Any) -> tuple[GwasQuery, Callable[..., Any]]:
        """The fileset with its table of persons, in memory."""
        return self, functools.partial(self._read, selection.names)

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> VariantAnswers:
        """By the test of all variants, or of the best."""
        genotypes, records = data
        test = self.test(records)
        rule = test.validity(core.public_shapes(records))
        on_stage("testing variants")
        result = core.run(test, key, records, ledger=account)
        names = range(len(genotypes.names)) if self.count is None else BestVariants.chosen(result).tolist()
        notes = test.effect_notes(core.public_shapes(records), result.release)
        return self._answers(genotypes, list(names), np.asarray(result.p_value), result, (rule, notes), account)

    def _read(self, wanted: Sequence[str], prefix: Any, **how: Any) -> tuple[Any, Any]:
        genotypes = plink.read_genotypes(prefix)
        if wanted and self.persons is None:
            raise ValueError(f"column {wanted[0]!r} needs a table of persons with a header FID IID: give covariates.")
        watch = identifiers.Watch()
        columns = plink.read_persons(self.persons, wanted, genotypes.persons, watch) if wanted else {}
        families, persons = zip(*genotypes.persons, strict=True)
        if len(set(families)) == len(families):  # within families numbers of persons begin anew
            watch.look({"IID": persons})
        if told := watch.describe("keep one row of each (plink --keep)"):
            warn_owner(f"{told} ({OWNER}).")
        phenotype = columns[self.phenotype] if self.phenotype else genotypes.phenotype
        covariates = {name: columns[name] for name in self.covariates}
        records = plink.cohort(genotypes, phenotype, covariates, self.bounds, self.phenotype_bounds)
        if fault := self._fault(phenotype, covariates, records.y):
            raise readers.FormError(f"{fault}; nothing was charged")
        return genotypes, records

    def _fault(self, phenotype: Sequence[str], covariates: Mapping[str, Sequence[str]], y: np.ndarray) -> str:
        """Why the answer would be about nothing, without a full stop; empty where it is not. For the owner alone."""
        told = f"phenotype {self.phenotype!r}" if self.phenotype else "the phenotype of .fam"
        way_out = f"give public bounds (--bounds {self.phenotype or OF_FAM}=LOW:HIGH; in Python bounds=)"
        numbers = [(f"covariate {name!r}", texts, self.bounds[name]) for name, texts in covariates.items()]
        if self.phenotype_bounds is not None:
            numbers.append((told, phenotype, self.phenotype_bounds))
        faults = [plink.fault_of_numbers(*column) for column in numbers]
        if self.phenotype_bounds is None:
            faults.append(plink.fault_of_groups(told, phenotype, way_out))
        if len(set(y[~np.isnan(y)].tolist())) < 2:
            faults.append(f"the persons who have all covariates do not differ in {told}: {plink.ELSEWHERE}")
        return next(filter(None, faults), "")

    def _effect_is(self, num_variants: int) -> str:
        """What the effects and the ends of their intervals are, as a sentence."""
        what = f"mean of {self.phenotype or OF_FAM}, in its own units," if self.phenotype_bounds else "share of cases"
        given = ", between persons of equal covariates" if self.covariates else ""
        return (
            f"An effect is the difference in the {what} for each further copy of the named allele, the first of .bim"
            f"{given}. The intervals hold for all {num_variants} variants together with 95 % confidence, chosen or not."
        )

    def _answers(self, genotypes, places, p_values, result, told, account) -> VariantAnswers:
        rule, notes = told
        quantity = self.phenotype_bounds
        unit = 0.5 if quantity is None else 0.5 * (quantity[1] - quantity[0])  # of y on [-1, 1]
        effect, (low, high) = result.effect, result.interval
        found = [
            {
                "name": genotypes.names[j],
                "place": genotypes.places[j],
                "allele": genotypes.alleles[j],
                "index": int(j),
                "p_value": float(p),
                "effect": float(unit * effect[i]),
                "interval": None if np.isnan(low[i]) else [float(unit * low[i]), float(unit * high[i])],
            }
            for i, (j, p) in enumerate(zip(places, p_values, strict=True))
        ]
        hits = sum(one["p_value"] <= LEVEL for one in found)
        content = {
            "title": f"Which of {len(genotypes.names)} variants go with {self.phenotype or 'the phenotype'}"
            + (f", given {', '.join(self.covariates)}?" if self.covariates else "?"),
            "answer": f"{hits} of {len(found)} tested variants at family-wise level {LEVEL:g}"
            + (sections.describe_doubts(rule.flags) if hits else ""),
            "method": result.method,
            "n": len(genotypes.persons),
            "n_is": f"The fileset has {len(genotypes.persons)} persons, whom n counts. Who lacks the phenotype"
            + " or a covariate" * bool(self.covariates)
            + " is left out of the test; how many do is private.",
            "num_variants": len(genotypes.names),
            "epsilon": float(self.epsilon),
            "relation": str(result.cost.relation.value),
            "mode": result.mode,
            "unit": UNIT,
            "effect_notes": {"effect": self._effect_is(len(genotypes.names))},
            "assumption": f"{rule.sentence} {MISSING_CALLS}",
            "flags": list(rule.flags),
            "cautions": [
                *notes.values(),
                *_of_chromosomes([genotypes.places[j] for j in places]),
                *cautions(len(genotypes.persons), result.cost, result.mode, account is not None),
            ],
            "versions": versions(),
        }
        return VariantAnswers(sorted(found, key=lambda one: one["p_value"]), result.cost, result.mode, content)


def _of_chromosomes(places: Sequence[str]) -> list[str]:
    """What is said of tested variants beyond the autosomes; nothing where there are none."""
    count = sum(map(plink.beyond_autosomes, places))
    told = (
        f"Chromosomes X, Y, XY and MT hold {count} of the {len(places)} tested variants, which are tested as on "
        "autosomes: sex must be among the covariates, and men have one copy of X (two or none in .bed)."
    )
    return [told] if count else []


def _bounds(name: str, pair: Any) -> tuple[float, float]:
    """Errors: ValueError unless these are two numbers LOW < HIGH."""
    numeric = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(end, Real) for end in pair)
    if not numeric or not pair[0] < pair[1]:
        raise ValueError(f"bounds of {name!r} must be two numbers LOW < HIGH, got {printed(pair)}.")
    return float(pair[0]), float(pair[1])


@table_call(GwasOptions)
def gwas(genotypes: str | os.PathLike, **how: Unpack[GwasOptions]) -> VariantAnswers:
    """Which variants of a PLINK fileset are associated with a phenotype, given covariates? Score tests of the best.

        jaxdp.gwas("study", covariates="study.cov", names=["age", "pc1"], bounds={"age": (18, 90), "pc1": (-0.1, 0.1)},
                   epsilon=3.0, count=4)

    genotypes: prefix of .bed, .bim and .fam. covariates: a table of persons with a header FID IID ...; names: its
    columns to adjust for. phenotype: a column of that table; default the sixth column of .fam. bounds: public, of every
    covariate and of a phenotype that is a quantity (of that of .fam under the name "phenotype"); without bounds it
    holds cases and controls, 2 and 1.
    count: variants that are chosen and tested; None tests every one (few variants only: the noise grows with them).
    ledger, key: as in `jaxdp.test`. strict, records, force, missing, rows, memory, keep_sums are refused: a fileset is
    typed, its persons are those of .fam, and it is read whole.
    Returns `VariantAnswers`. Privacy: epsilon-DP under replace-one: one person's genotypes, phenotype and covariates
    together. Errors: ValueError and OSError about names, bounds and files, and for the owner about columns that do not
    hold what they should, before anything is charged.
    """
    return asked(GwasQuery, genotypes, how)

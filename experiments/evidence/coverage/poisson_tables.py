"""Coverage of `poisson-regression` on real tables (docs/evidence/coverage.md): a table is the population.

    python -m experiments.evidence.coverage.poisson_tables --folder CSVS [--replicates 200]
    python -m experiments.evidence.coverage.poisson_tables --table     # the table of the page, from the record

As `experiments.evidence.coverage.logistic_tables`, with statsmodels' fair.csv and randhie.csv. *Truth*: the slope of X
by Poisson maximum likelihood without privacy on the whole table, columns and Y clipped at the bounds below.
`plain_covered`: of its interval with the sandwich variance.
"""

import dataclasses
from pathlib import Path

from experiments.evidence.coverage import poisson
from experiments.evidence.coverage.logistic_tables import FAIR, Case, Regression, run
from jaxdp.data.dataset import Column, Data, Domain

RECORD = Path(__file__).parent / "poisson_tables.jsonl"


@dataclasses.dataclass(frozen=True)
class Counts(Case):
    """`yes` reads the count of a row; most: its public upper bound."""

    most: float = 20.0

    @property
    def domain(self) -> Domain:
        """As a schema describes the columns."""
        return dataclasses.replace(super().domain, y=(Column(from_zero=True),))

    def read(self, folder: Path):
        """(columns within their bounds, counts within theirs)."""
        values, counts = super().read(folder)
        return values, counts.clip(0.0, self.most)

    def data(self, values, y) -> Data:
        """As the schema scales them."""
        return super().data(values, 2.0 * y / self.most - 1.0)


def visits(row) -> float:
    return row["mdvis"]


def affairs(row) -> float:
    return row["affairs"]


TABLES = {
    "randhie: visits by diseases": Counts("randhie.csv", visits, {"logc": (0, 5), "idp": None, "disea": (0, 60)}),
    "randhie: visits up to 40 by diseases": Counts(
        "randhie.csv", visits, {"logc": (0, 5), "physlm": None, "lpi": (0, 8), "disea": (0, 60)}, most=40.0
    ),
    "randhie: visits by coinsurance": Counts("randhie.csv", visits, {"disea": (0, 60), "logc": (0, 5)}),
    "randhie: visits by fair health": Counts("randhie.csv", visits, {"disea": (0, 60), "hlthf": None}),
    "randhie: visits by age": Counts("randhie.csv", visits, {"female": None, "xage": (0, 80)}),
    "fair: affairs by years married": Counts("fair.csv", affairs, {**FAIR, "yrs_married": (0, 40)}, most=10.0),
    "fair: affairs by rating of the marriage": Counts(
        "fair.csv", affairs, {"yrs_married": (0, 40), "rate_marriage": (1, 5)}, most=10.0
    ),
}
POISSON = Regression(poisson.METHOD, RECORD, TABLES, poisson.plain, poisson.sandwich)

if __name__ == "__main__":
    run(POISSON, __doc__, "poisson tables", "mean")

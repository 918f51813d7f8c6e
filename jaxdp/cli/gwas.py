"""`jaxdp gwas`: which variants of a PLINK fileset go with a phenotype, adjusted for covariates?"""

from __future__ import annotations

import argparse

from jaxdp.ask.calls import GwasOptions
from jaxdp.cli import asking, options

EXAMPLE = """examples:
  jaxdp gwas study --covariates study.cov --given age,pc1 --bounds age=18:90 pc1=-0.1:0.1 --epsilon 3
  jaxdp gwas study --covariates study.cov --given age --phenotype ldl --bounds age=18:90 ldl=0:10 --epsilon 3"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "gwas",
        help="score tests of the variants of a PLINK fileset, adjusted for covariates",
        description="Chooses the variants that go with a phenotype most and tests each, adjusted for covariates: "
        "family-wise p-values over all variants, effects per allele with intervals.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("genotypes", metavar="PREFIX", help="PREFIX.bed, PREFIX.bim and PREFIX.fam")
    asking.add_keywords(parser, GwasOptions)
    parser.add_argument("--every", action="store_true", help="test every variant; for few of them")
    options.add_run(parser, "out/gwas")


def run(args: argparse.Namespace) -> int:
    from jaxdp.ask.reading import Table
    from jaxdp.ask.variants import NO_SCHEMA, GwasQuery

    options.prefer_cpu(args)
    options.keep_programs(args)
    if args.every and args.count:
        raise options.UserError("give --count or --every, not both.")
    asked = asking.given(args, GwasOptions) | ({"count": None} if args.every else {})
    return asking.ask(args, Table(args.genotypes, NO_SCHEMA), GwasQuery.of(**asked))

"""`jaxdp gwas`: which variants of a PLINK fileset go with a phenotype, adjusted for covariates?"""

from __future__ import annotations

import argparse

from jaxdp.cli import options

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
    parser.add_argument("--covariates", metavar="FILE", help="table of persons with a header FID IID ...")
    parser.add_argument("--given", type=options.names, metavar="A,B", help="its columns to adjust for")
    parser.add_argument("--phenotype", metavar="NAME", help="its column that is the phenotype (default: that of .fam)")
    parser.add_argument(
        "--bounds",
        nargs="+",
        default=[],
        metavar="NAME=LOW:HIGH",
        type=bounds,
        help="public bounds of every covariate, and of a phenotype that is a quantity (without: cases 2, controls 1)",
    )
    parser.add_argument("--count", type=options.count, metavar="M", help="variants that are chosen and tested (4)")
    parser.add_argument("--every", action="store_true", help="test every variant; for few of them")
    options.add_epsilon(parser)
    options.add_run(parser, "out/gwas")


def bounds(text: str) -> tuple[str, tuple[float, float]]:
    """argparse type: NAME=LOW:HIGH."""
    name, equals, limits = text.rpartition("=")
    low, colon, high = limits.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        found = (0.0, 0.0)
    if not (name and equals and colon and found[0] < found[1]):
        raise argparse.ArgumentTypeError(f"must be NAME=LOW:HIGH with LOW < HIGH, got {text!r}")
    return name, found


def run(args: argparse.Namespace) -> int:
    from jaxdp.ask.reading import Table
    from jaxdp.ask.variants import COUNT, NO_SCHEMA, GwasQuery
    from jaxdp.cli import asking

    options.keep_programs()
    if args.every and args.count:
        raise options.UserError("give --count or --every, not both.")
    count = None if args.every else args.count or COUNT
    persons, given, phenotype = args.covariates, args.given or (), args.phenotype or ""
    query = GwasQuery.of(persons, given, dict(args.bounds), phenotype, args.epsilon, count)
    return asking.ask(args, Table(args.genotypes, NO_SCHEMA), query)

"""A ledger as an entry of the registry of deployments that OpenDP began (registry.opendp.org).

The entry holds what the ledger knows: the variant, the amounts, the neighbours, how they add up, which tests ran. All
else is for the owner of the data to write: it stands in the file as comments at its place, and is returned as a list.
Nothing private is in a ledger, so nothing private is in an entry; names of files and folders are left out all the same.
"""

from __future__ import annotations

import collections
import decimal
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxdp._base import amounts, risk
from jaxdp._base.version import version
from jaxdp.accounting import privacy_unit

TIER = 3  # the registry's most detailed
_NEIGHBOURS = {
    "replace_one": (
        "Two tables are adjacent if they have the same number of records and one record differs, in any of its values. "
        "The number of records is public."
    ),
    "add_or_remove_one": (
        "Two tables are adjacent if one of them has one record more and they agree otherwise. The number of records is "
        "not public."
    ),
    "replace_attribute": (
        "Two tables are adjacent if they have the same number of records and one record differs, in the values that "
        "are not declared public. The number of records and the public columns of every record are public."
    ),
}
_PUBLIC = {
    "replace_one": "the number of records, ",
    "add_or_remove_one": "",
    "replace_attribute": "the number of records, the columns declared public, ",
}
_DOMAIN = (
    "All tables under one public schema: names and kinds of the columns, the bounds of numbers and the list of levels "
    "of each column"
)
_DRAFTED = {"private-bounds": "bounds", "private-levels": "levels"}  # what a charge paid for, by its method
_PAID = " (what private drafts released of it was paid for)"
_MECHANISMS = (
    "Noise is drawn exactly, in whole numbers on a lattice, from ChaCha20 with a fresh key of the operating system for "
    "each release; its law is that of each test. The rounding of a statistic enters its sensitivity, so that "
    "floating-point numbers leak nothing through the noise.",
    "Not counted: time, memory and other side channels of the whole job.",
)
_POST = (
    "P-values, intervals, graphs, pictures and pages are computed from the noisy values and from public numbers alone."
)

# Fields in the registry's order: place, and what the owner has to write where the ledger does not know it.
_OWNERS = {
    "url_slug": "what the registry's scripts/update_slug.py makes of name, curators and year",
    "deployment.basic.name": "the data product's name",
    "deployment.basic.data_curators": "a list: who publishes the data product",
    "deployment.basic.description": "the data product in a sentence or two",
    "deployment.basic.intended_use": "what it is for",
    "deployment.basic.data_product_type": "such as Summary statistics, Dataset or Machine learning model",
    "deployment.basic.data_product_region": "the region of the data, or of the law that applies",
    "deployment.basic.publication_date": 'the first publication, in quotes: "2026-01-31"',
    "deployment.basic.data_product_sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    "deployment.deployment_model.actors": "who holds the records, who runs jaxdp, who sees results; whom each trusts",
    "deployment.deployment_model.release_type": "One release, or Many releases if results appear over time",
    "deployment.deployment_model.release_type_details": "whether these people's data will be asked again",
    "deployment.deployment_model.data_source_type": "Static or Dynamic",
    "deployment.deployment_model.data_source_type_details": "if Dynamic: how the data grow",
    "deployment.deployment_model.access_type": "Interactive if analysts may ask, else Non-interactive",
    "deployment.deployment_model.access_type_details": "who may spend, how much each, and whether they may collude",
    "deployment.implementation.preprocessing_and_hyperparameter_tuning": (
        "how bounds, levels and settings were known without a look at the records (where no private draft released "
        "them), and what cleaned them"
    ),
    "deployment.implementation.justification": "why this epsilon and this unit, who decided, and what was checked",
    "deployment.administrative.sources": "links to the protocol, the results, the code",
    "deployment.administrative.registry_authors": "a list: who wrote this entry",
}
_CHECK = {  # of fields that are filled, what the ledger cannot know about them
    "deployment.dp_variant.unprotected_quantities": "add columns declared public, and the number of complete records "
    "where incomplete ones were dropped",
    "deployment.privacy_loss.privacy_unit": "say whether a record is a person: without `unit` in the schema a person "
    "with k records has k times this loss",
    "deployment.implementation.mechanisms": "add who can read the records, how access is controlled, and a link to the "
    "version of jaxdp that ran",
}
_ORDER = (
    *("url_slug", "status", "tier"),
    *(name for name in _OWNERS if name.startswith("deployment.basic.")),
    *(f"deployment.dp_variant.{name}" for name in ("variant_name", "data_domain", "unprotected_quantities")),
    *(f"deployment.privacy_loss.{name}" for name in ("privacy_unit", "privacy_unit_details")),
    *(f"deployment.privacy_loss.privacy_parameters.{name}" for name in ("epsilon", "delta", "rho")),
    "deployment.privacy_loss.privacy_parameters_details",
    "deployment.deployment_model.model_name",
    *(name for name in _OWNERS if name.startswith("deployment.deployment_model.")),
    *(f"deployment.accounting.{name}" for name in ("post_processing", "composition")),
    "deployment.implementation.preprocessing_and_hyperparameter_tuning",
    "deployment.implementation.mechanisms",
    "deployment.implementation.justification",
    *(name for name in _OWNERS if name.startswith("deployment.administrative.")),
)


def known(ledger: Any) -> dict[str, Any]:
    """The fields that the ledger knows, by their places joined by dots. Errors: ValueError without a charge."""
    rows, spent = ledger.rows(), ledger.spent
    if not rows:
        raise ValueError(f"ledger {ledger.path.name} has no charges, so there is nothing to register yet.")
    persons = _protects_persons(rows)
    public = _PUBLIC[ledger.relation].replace("number of records", f"number of {'persons' if persons else 'records'}")
    fields: dict[str, Any] = {
        "status": "Draft",
        "tier": TIER,
        "deployment.dp_variant.variant_name": _variant(spent),
        "deployment.dp_variant.data_domain": _domain(rows),
        "deployment.dp_variant.unprotected_quantities": f"Public, and not protected: {public}the "
        f"schema{_PAID if _drafts(rows) else ''}, the settings of each test, and the list of what was asked and when.",
        **_unit(rows, ledger.relation),
        "deployment.privacy_loss.privacy_parameters_details": "\n".join(_parameters(ledger)),
        "deployment.deployment_model.model_name": "Central",
        "deployment.accounting.post_processing": _POST,
        "deployment.accounting.composition": _composition(spent),
        "deployment.implementation.mechanisms": "\n".join(_mechanisms(rows)),
    }
    for name in ("epsilon", "delta", "rho"):
        if getattr(spent, name):
            fields[f"deployment.privacy_loss.privacy_parameters.{name}"] = getattr(spent, name)
    return fields


def _drafts(rows: Any) -> dict[int, list[str]]:
    """Number of a charge -> what of a schema it paid for, of charges for private drafts."""
    parts = {row.number: set(row.method.split("+")) & set(_DRAFTED) for row in rows}
    return {number: [_DRAFTED[name] for name in _DRAFTED if name in names] for number, names in parts.items() if names}


def _domain(rows: Any) -> str:
    """What is fixed about the tables, and for a private draft what was released."""
    drafts = _drafts(rows)
    if not drafts:
        return f"{_DOMAIN}, fixed without a look at the records."
    charges = ", ".join(f"charge {number} ({' and '.join(parts)})" for number, parts in drafts.items())
    return (
        f"{_DOMAIN}. Bounds or levels of some columns were released by private drafts and paid for: {charges}. All "
        "others were fixed without a look at the records."
    )


def _protects_persons(rows: Any) -> bool:
    """Whether every charge protects all records of a person together."""
    unit, *others = privacy_unit.of(rows)
    return bool(unit) and not others


def _unit(rows: Any, relation: str) -> dict[str, Any]:
    """What is protected as one: a record, or where every charge is for the same persons, all records of one."""
    unit, *others = privacy_unit.of(rows)
    if _protects_persons(rows):
        told = f"All records of the table that have the same {unit}, of one person."
        details = (
            "Two tables are adjacent if they hold the same persons and all records of one person differ, in their "
            "number and any of their values. The number of persons is public, that of their records is not."
        )
    else:
        told, details = "One record of the table.", " ".join([_NEIGHBOURS[relation], *_named(unit, others)])
    return {"deployment.privacy_loss.privacy_unit": told, "deployment.privacy_loss.privacy_unit_details": details}


def _named(unit: str, others: list[str]) -> list[str]:
    """Units of persons beside that of records, for which a part of the loss was spent."""
    persons = ", ".join(name for name in (unit, *others) if name)
    return [f"A part of the charges protects all records of one {persons} together."] if persons else []


def owners(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the owner must write, and what the owner must check: place and words, in the order of the file."""
    return [(name, _OWNERS[name]) for name in _ORDER if name in _OWNERS] + [
        (name, f"check: {words}") for name, words in _CHECK.items() if name in fields
    ]


def yaml(fields: Mapping[str, Any], source: str) -> str:
    """The file: known fields as YAML, the owner's as comments at their place.

    source: the ledger's name, for a comment.
    """
    slug, *rest = _lines(_ORDER, fields, "")  # the registry's scripts look for the slug at the first character
    return "\n".join([slug, *_head(source), *rest, ""])


def _head(source: str) -> Iterator[str]:
    yield f"# Written by jaxdp {version()} from the ledger {json.dumps(source)}. A line with # is for the owner of the"
    yield "# data: take away the # and the space after it and write the field, or delete the line."


def _lines(names: Sequence[str], fields: Mapping[str, Any], parent: str) -> Iterator[str]:
    """Lines of the fields below a parent; a parent of which nothing is known is a comment too."""
    depth = len(parent.split(".")) if parent else 0
    indent = "  " * depth
    children = dict.fromkeys(name.split(".")[depth] for name in names)
    for child in children:
        place = f"{parent}.{child}" if parent else child
        below = [name for name in names if name.startswith(f"{place}.")]
        if below:
            yield f"{indent}{'' if any(name in fields for name in below) else '# '}{child}:"
            yield from _lines(below, fields, place)
        elif place in fields:
            if place in _CHECK:
                yield f"{indent}# check: {_CHECK[place]}"
            yield from _value(indent, child, fields[place])
        elif place in _OWNERS:
            empty = "[]" if _OWNERS[place].startswith("a list") else '""'
            yield f"{indent}# {child}: {empty}  # {_OWNERS[place]}"


def _value(indent: str, name: str, value: Any) -> Iterator[str]:
    """A scalar as YAML: numbers without exponent (1e-6 would be read as a text), texts as JSON or as a block."""
    if isinstance(value, float):
        yield f"{indent}{name}: {format(decimal.Decimal(repr(value)), 'f')}"
    elif isinstance(value, str) and "\n" in value:
        yield f"{indent}{name}: |"
        yield from (f"{indent}  {line}" for line in value.split("\n"))
    else:
        yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"


def _variant(spent: Any) -> str:
    if spent.rho:
        return "Custom" if spent.epsilon or spent.delta else "Zero-concentrated DP"
    return "Approximate DP" if spent.delta else "Pure DP"


def _parameters(ledger: Any) -> Iterator[str]:
    rows, spent = ledger.rows(), ledger.spent
    times = f"{rows[0].time[:10]} to {rows[-1].time[:10]}"
    yield f"Spent by {len(rows)} charges from {times}: {spent}. Granted: {ledger.total}."
    if spent.epsilon and not spent.rho and math.isfinite(spent.epsilon):
        yield risk.sentence(spent.epsilon, spent.delta, ledger.relation, _protects_persons(rows))
    left = ledger.remaining
    if left.epsilon or left.delta or left.rho:
        yield "What is granted and not spent may be spent later; the loss then grows up to what is granted."


def _composition(spent: Any) -> str:
    told = ["Sequential composition, sound for releases that are chosen on earlier answers: the amounts are added up."]
    if spent.rho:
        told.append("Rho is added up by the filter of Feldman and Zrnic (2021).")
    if spent.rho and (spent.epsilon or spent.delta):
        told.append("Releases charged in epsilon and releases charged in rho are added up apart; both totals hold.")
    told.append(
        "Every charge was on disk before a value of its records entered an answer, and a charge that did not fit was "
        "refused."
    )
    return " ".join(told)


def _mechanisms(rows: list[Any]) -> Iterator[str]:
    yield f"jaxdp (this entry was written by version {version()}), differentially private dependence tests:"
    sums: dict[str, dict[str, Any]] = collections.defaultdict(lambda: {"count": 0, "epsilon": 0.0, "rho": 0.0})
    for row in rows:
        entry = sums[" ".join(row.method.split())]
        entry["count"] += 1
        entry["epsilon"] += row.epsilon
        entry["rho"] += row.rho
    for method, entry in sums.items():
        spent = ", ".join(f"{name} {amounts.spent(entry[name])}" for name in ("epsilon", "rho") if entry[name])
        printable = method if method.isprintable() else json.dumps(method)
        yield f"- {printable}: {entry['count']} x, {spent} in all"
    yield from _MECHANISMS

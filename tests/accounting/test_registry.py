"""The draft for the registry of deployments: what the ledger knows, at its place, and nothing else."""

import re
import secrets

import pytest
import yaml

import jaxdp
from jaxdp.accounting import privacy_unit, registry
from jaxdp.accounting.ledger import Ledger
from jaxdp.ask.draft_schema import ColumnLevels, ColumnQuantiles
from jaxdp.cli.main import main

# As the registry's own schema requires them (schemas/deployments-schema.yaml of its repository, July 2026).
REQUIRED = ("url_slug", *(f"deployment.basic.{name}" for name in (
    "name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
    "publication_date",
)), "deployment.administrative.registry_authors")  # fmt: skip
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Custom")


def charged(path, *amounts, **totals):
    ledger = Ledger.create(path / "study.db", **totals)
    for amount in amounts:
        ledger.reserve("band-gcm", digest=secrets.token_hex(32), relation=ledger.relation, **amount)
    return ledger


def entry(ledger, path):
    owners = ledger.to_registry(path / "registry.yaml")
    text = (path / "registry.yaml").read_text()
    return yaml.safe_load(text), text, owners


def test_what_the_ledger_knows_is_in_the_entry(tmp_path):
    ledger = charged(tmp_path, {"epsilon": 0.5}, {"epsilon": 0.25}, epsilon=2.0)
    found, text, owners = entry(ledger, tmp_path)
    part = found["deployment"]
    assert (found["status"], found["tier"]) == ("Draft", 3)
    assert part["dp_variant"]["variant_name"] == "Pure DP"
    assert part["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.75}
    assert "one record differs" in part["privacy_loss"]["privacy_unit_details"]
    assert "up to 68.0 of 100 cases" in part["privacy_loss"]["privacy_parameters_details"]
    assert "may be spent later" in part["privacy_loss"]["privacy_parameters_details"]
    assert part["deployment_model"] == {"model_name": "Central"}
    assert "- band-gcm: 2 x, epsilon 0.75 in all" in part["implementation"]["mechanisms"]
    assert "basic" not in part
    assert "administrative" not in part
    assert set(REQUIRED) <= {name for name, _ in owners}
    assert text.startswith("# url_slug:")  # the registry's scripts look for it at the first character


def test_bounds_and_levels_of_a_private_draft_are_not_said_to_be_public(tmp_path):
    """With charges of drafts the entry names them; without, the schema was fixed without a look at the records."""
    ledger = charged(tmp_path, {"epsilon": 0.5}, epsilon=2.0)
    part = entry(ledger, tmp_path)[0]["deployment"]["dp_variant"]
    assert part["data_domain"].endswith("of each column, fixed without a look at the records.")
    assert "paid for" not in part["unprotected_quantities"]
    for method in (ColumnQuantiles.method, f"{ColumnQuantiles.method}+{ColumnLevels.method}", ColumnLevels.method):
        ledger.reserve(method, epsilon=0.25, digest=secrets.token_hex(32))
    part = entry(ledger, tmp_path)[0]["deployment"]["dp_variant"]
    paid = "charge 2 (bounds), charge 3 (bounds and levels), charge 4 (levels)"
    assert f"released by private drafts and paid for: {paid}. All others were fixed" in part["data_domain"]
    assert "the schema (what private drafts released of it was paid for), the" in part["unprotected_quantities"]


def test_the_owner_takes_away_the_signs_and_has_every_field(tmp_path):
    """The file with every field of the owner is YAML of the registry's form, without a field twice or out of place."""
    _, text, owners = entry(charged(tmp_path, {"epsilon": 1.0}, epsilon=1.0), tmp_path)
    opened = re.sub(r"^( *)# (?!check|Written|data:)", r"\1", text, flags=re.M)
    found = yaml.safe_load(opened)
    for name, words in owners:
        value = found
        for step in name.split("."):
            value = value[step]
        assert (value in ("", [])) == (not words.startswith("check: "))
    assert set(found["deployment"]) == {
        *("basic", "dp_variant", "privacy_loss", "deployment_model", "accounting", "implementation", "administrative")
    }


@pytest.mark.parametrize(
    ("totals", "amounts", "variant", "parameters"),
    [
        ({"epsilon": 1.0, "delta": 1e-6}, [{"epsilon": 1.0, "delta": 1e-7}], 1, {"epsilon": 1.0, "delta": 1e-7}),
        ({"epsilon": 1.0, "delta": 1e-6}, [{"epsilon": 1.0}], 0, {"epsilon": 1.0}),
        ({"rho": 0.5}, [{"rho": 0.125}], 2, {"rho": 0.125}),
        ({"epsilon": 1.0, "rho": 0.5}, [{"rho": 0.125}, {"epsilon": 1e-7}], 3, {"epsilon": 1e-7, "rho": 0.125}),
    ],
)
def test_variants_and_numbers(totals, amounts, variant, parameters, tmp_path):
    found, _, _ = entry(charged(tmp_path, *amounts, **totals), tmp_path)
    assert found["deployment"]["dp_variant"]["variant_name"] == VARIANTS[variant]
    assert found["deployment"]["privacy_loss"]["privacy_parameters"] == parameters  # numbers: 1e-07 would be a text
    assert ("are added up apart" in found["deployment"]["accounting"]["composition"]) == (variant == 3)


@pytest.mark.parametrize(
    ("relation", "unprotected"),
    [
        ("add_or_remove_one", "not protected: the schema"),
        ("replace_attribute", "the columns declared public, the schema"),
    ],
)
def test_neighbours(relation, unprotected, tmp_path):
    found, _, _ = entry(charged(tmp_path, {"epsilon": 1.0}, epsilon=1.0, relation=relation), tmp_path)
    assert unprotected in found["deployment"]["dp_variant"]["unprotected_quantities"]
    assert "may be spent later" not in found["deployment"]["privacy_loss"]["privacy_parameters_details"]


def test_texts_of_a_ledger_break_nothing(tmp_path):
    ledger = charged(tmp_path, epsilon=1.0)
    request = ledger.asked(columns="salary # of: Ms X", source="secret.csv").request
    for method in ('a "b": {}\n# c\x85: d', "bell\x07"):
        ledger.reserve(method, epsilon=0.1, digest=secrets.token_hex(32), request=request)
    found, text, _ = entry(ledger, tmp_path)
    lines = found["deployment"]["implementation"]["mechanisms"].splitlines()
    assert lines[1:3] == ['- a "b": {} # c : d: 1 x, epsilon 0.1 in all', '- "bell\\u0007": 1 x, epsilon 0.1 in all']
    assert "salary" not in text
    assert "secret.csv" not in text


def test_the_command_lists_what_the_owner_must_write(tmp_path, capsys):
    charged(tmp_path, {"epsilon": 0.5}, epsilon=2.0)
    out = tmp_path / "out"
    assert main(["ledger", "export", str(tmp_path / "study.db"), "--registry", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "  basic.name: the data product's name" in shown
    assert "  privacy_loss.privacy_unit: check: say whether a record is a person" in shown
    assert yaml.safe_load((out / "registry.yaml").read_text())["tier"] == registry.TIER
    assert (out / "ledger.csv").exists()
    assert (
        main(["ledger", "export", str(tmp_path / "study.db"), "--registry", "--out", str(out)]) == 0
    )  # ours: replaced


def test_a_ledger_without_charges_has_nothing_to_register(tmp_path, capsys):
    charged(tmp_path, epsilon=2.0)
    assert main(["ledger", "export", str(tmp_path / "study.db"), "--registry", "--out", str(tmp_path / "out")]) == 2
    assert "no charges, so there is nothing to register yet" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_entry_of_persons_counts_persons_and_speaks_of_them(tmp_path):
    """It called the number of records public and, two lines below, not public; the guess was of one record."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    account = ledger.asked(columns=privacy_unit.noted("x ~ y", "patient_id"))
    account.charge("m", jaxdp.core.Cost(epsilon=1.0), jaxdp.fresh_key())
    fields = registry.known(ledger)
    public = fields["deployment.dp_variant.unprotected_quantities"]
    assert "the number of persons" in public
    assert "number of records" not in public
    details = fields["deployment.privacy_loss.privacy_parameters_details"]
    assert "knows every other person's records, and considers two versions of all records of one person" in details
    ledger.charge("m", jaxdp.core.Cost(epsilon=0.5), jaxdp.fresh_key())  # of single rows
    fields = registry.known(ledger)
    assert "the number of records" in fields["deployment.dp_variant.unprotected_quantities"]
    assert "versions of one record" in fields["deployment.privacy_loss.privacy_parameters_details"]

"""What starting costs, by what is imported: neither `import jaxdp` nor `--help` reads JAX or another heavy package."""

import subprocess
import sys

import pytest

from jaxdp.cli.main import COMMANDS, main

HEAVY = {"jax", "jaxlib", "numpy", "scipy", "optax", "pandas", "matplotlib", "networkx", "dp_accounting", "tqdm"}
COMMAND_LINE = 20 + len(COMMANDS)  # a file for each command
STARTS = {
    "import jaxdp": 3,
    "import jaxdp; dir(jaxdp)": 3,
    "import jaxdp.interop, jaxdp.accounting": 5,
    "from jaxdp.cli.main import main; main(['--help'])": COMMAND_LINE,
    "from jaxdp.cli.main import main; main(['test', '--help'])": COMMAND_LINE,
}


@pytest.mark.parametrize(("start", "most"), STARTS.items(), ids=STARTS)
def test_starting_imports_little(start, most):
    code = f"import sys\n{start}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500, check=True)
    modules = done.stderr.split()
    assert "jaxdp" in modules
    heavy = HEAVY & set(modules)
    assert not heavy, f"{start} imports {sorted(heavy)}: import them in the function that needs them"
    ours = [name for name in modules if name.startswith("jaxdp")]
    told = "import a file in the function that needs it; one that every start needs raises the number in STARTS"
    assert len(ours) <= most, f"{start} imports {len(ours)} files of the package, not {most}: {told}"


MISTAKES = {
    "no such column": (["--x", "dosage", "--y", "response"], "trial.csv", "column 'dosage' is not in the schema"),
    "no such file": (["--x", "dose", "--y", "response"], "trail.csv", "trail.csv: no such file or directory"),
}


WITHOUT_DATA = {
    "plan --epsilon 1 --effect 0.2": "give three of n, epsilon, effect, power",
    "plan --epsilon 1 --effect 0.2 --power 0.8 --x dose": "--x belongs to --schema",
    "plan --schema examples/trial.toml --epsilon 1 --effect 0.2 --power 0.8 --x dosage --y response": "column 'dosage'",
    "plan --schema examples/trial.toml --epsilon 1 --effect 0.2 --power 0.8": "--schema needs --x and --y",
    "plan --epsilon-curve --n 1000": "--epsilon-curve needs --n and --effect",
    "plan --discover --n 1000": "--discover needs --schema",
    "simulate --design sine": "--method is missing",
    "simulate --method gcm": "give --design",
    "simulate --method gcm --schema examples/trial.toml --x dosage --y response": "column 'dosage'",
    "simulate --method gcm --design sine --submit slurm": "needs --tasks",
}


@pytest.mark.parametrize("command", ["test", "mic"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_the_schema_refuses_is_refused_before_jax_is_imported(mistake, command):
    named, data, told = MISTAKES[mistake]
    refused_without_jax(
        [command, f"examples/{data}", "--schema", "examples/trial.toml", "--epsilon", "1", *named], told
    )


@pytest.mark.parametrize(
    ("epsilon", "told", "code"),
    [(None, "does not exist: create it with", 2), ("0.5", "budget exhausted: epsilon 1 is asked and 0.5 is left", 3)],
    ids=["no ledger", "too little left"],
)
@pytest.mark.parametrize(
    "command", [["test", "--x", "dose", "--y", "response"], ["discover"]], ids=["test", "discover"]
)
def test_what_the_ledger_refuses_is_refused_before_jax_is_imported(tmp_path, command, epsilon, told, code):
    ledger = tmp_path / "study.db"
    if epsilon is not None:
        assert main(["ledger", "create", str(ledger), "--epsilon", epsilon]) == 0
    table = ["examples/trial.csv", "--schema", "examples/trial.toml", "--epsilon", "1", "--ledger", str(ledger)]
    refused_without_jax([*command[:1], *table, *command[1:]], told, code)


def test_the_catalogue_is_imported_without_scipy():
    """It took a quarter of a second in every first answer, for distances that few tests need."""
    code = "import sys\nfrom jaxdp import catalogue\ncatalogue.entries()\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500, check=True)
    modules = done.stdout.split()
    assert "jaxdp.independence.continuous.band_gcm" in modules
    assert not {"scipy", "pandas", "matplotlib", "networkx"} & set(modules)


@pytest.mark.parametrize("line", WITHOUT_DATA)
def test_what_the_options_say_is_refused_before_jax_is_imported(line):
    refused_without_jax(line.split(), WITHOUT_DATA[line])


def refused_without_jax(asked, told, code_of_exit=2):
    code = f"import sys\nfrom jaxdp.cli.main import main\nprint(main({asked}), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500, check=True)
    status, *modules = done.stdout.split()
    assert int(status) == code_of_exit
    assert told in done.stderr
    assert not {"jax", "jaxlib", "scipy", "pandas", "matplotlib"} & set(modules)

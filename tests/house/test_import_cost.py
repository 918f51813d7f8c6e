"""What starting costs, by what is imported: neither `import jaxdp` nor `--help` reads JAX or another heavy package."""

import subprocess
import sys

import pytest

from jaxdp.cli.main import COMMANDS

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


@pytest.mark.parametrize("line", WITHOUT_DATA)
def test_what_the_options_say_is_refused_before_jax_is_imported(line):
    refused_without_jax(line.split(), WITHOUT_DATA[line])


def refused_without_jax(asked, told):
    code = f"import sys\nfrom jaxdp.cli.main import main\nprint(main({asked}), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500, check=True)
    status, *modules = done.stdout.split()
    assert status == "2"
    assert told in done.stderr
    assert not {"jax", "jaxlib", "scipy", "pandas", "matplotlib"} & set(modules)

"""What starting costs, by what is imported: neither `import jaxdp` nor `--help` reads JAX or another heavy package."""

import subprocess
import sys

import pytest

HEAVY = {"jax", "jaxlib", "numpy", "scipy", "optax", "pandas", "matplotlib", "networkx", "dp_accounting", "tqdm"}
STARTS = {
    "import jaxdp": 3,
    "import jaxdp; dir(jaxdp)": 3,
    "import jaxdp.interop, jaxdp.accounting": 5,
    "from jaxdp.cli.main import main; main(['--help'])": 22,  # a file for each command
    "from jaxdp.cli.main import main; main(['test', '--help'])": 22,
}


@pytest.mark.parametrize(("start", "most"), STARTS.items(), ids=STARTS)
def test_starting_imports_little(start, most):
    code = f"import sys\n{start}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500, check=True)
    modules = done.stderr.split()
    assert "jaxdp" in modules
    heavy = HEAVY & set(modules)
    assert not heavy, f"{start} imports {sorted(heavy)}: import them in the function that needs them"
    assert len([name for name in modules if name.startswith("jaxdp")]) <= most

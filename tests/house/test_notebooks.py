"""Tutorials as notebooks: made from the pages, and executed with what their cells print and show."""

import json
import re
import sys
from pathlib import Path

import pytest

import jaxdp

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import notebooks  # noqa: E402

PAGE = """# A page

See [another](../start.md#x) and [the net](https://example.org).

```python
total = 1 + 1
print("two", total)
```

```text
two ...
```

```sh
jaxdp --version
```

```sh
sbatch job
```

```python
class Shown:
    def _repr_html_(self):
        return "<b>shown</b>"

Shown()
```

```python
# needs a scheduler
print("never")
```

```text
never
```

```python
print("after it")
```

```python
import no_such_library
```

```python
print("nor this")
```
"""


def texts(cell):
    return "".join("".join(output.get("text", [])) for output in cell["outputs"])


def test_a_page_becomes_a_notebook_with_its_output(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    made = notebooks.notebook(page)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    prose = "\n".join("".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert [texts(cell) for cell in code] == ["two 2\n", f"jaxdp {jaxdp.__version__}\n", "", "", "after it\n", "", ""]
    assert "".join(code[1]["source"]) == "%%sh\njaxdp --version"
    assert code[2]["outputs"][0]["data"]["text/html"] == ["<b>shown</b>"]
    assert [cell["execution_count"] is None for cell in code] == [False, False, False, True, False, True, True]
    assert "See another and [the net](https://example.org)." in prose
    assert "sbatch job" in prose
    assert "two ..." not in prose  # the cell's own output stands there
    assert "It prints\n\n```text\nnever\n```" in prose  # never ran


def test_a_cell_that_fails_ends_the_build(tmp_path):
    page = tmp_path / "page.md"
    other = "python\nprint(1)\n```\n\n```text\n2"  # prints 1, shows 2
    for block, said in (
        ("python\n1 / 0", "ZeroDivisionError"),
        ("sh\njaxdp tset", "did you mean 'test'"),
        (other, "prints\n1\n"),
    ):
        page.write_text(f"# A page\n\n```{block}\n```\n")
        with pytest.raises(RuntimeError, match=said):
            notebooks.notebook(page)


@pytest.mark.parametrize("page", notebooks.pages(), ids=lambda page: page.stem)
def test_every_tutorial_is_a_notebook_and_loses_nothing(page, tmp_path):
    notebooks.write(page, tmp_path / "n.ipynb", run=False)
    made = json.loads((tmp_path / "n.ipynb").read_text())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in made["cells"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w-]{1,64}", name) for name in names)
    assert all(("outputs" in cell) == (cell["cell_type"] == "code") for cell in made["cells"])
    assert any(cell["cell_type"] == "code" for cell in made["cells"])
    whole = "\n".join("".join(cell["source"]) for cell in made["cells"])
    for _, block in notebooks.BLOCK.findall(page.read_text(encoding="utf-8")):
        assert block.rstrip("\n") in whole


def test_there_are_eight_tutorials():
    assert len(notebooks.pages()) >= 8

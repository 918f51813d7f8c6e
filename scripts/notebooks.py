"""The tutorials as notebooks: made from the same pages, executed, with what their cells print and draw.

    python scripts/notebooks.py docs/tutorials/csv_test.md notebook.ipynb [--without-running]

`scripts/docs build` makes one for each tutorial, which the page links; nobody edits a notebook. Python blocks of a page
become cells of one namespace, `jaxdp` lines become shell cells. A block of what is printed gives way to the
cell's own output. Blocks that need a scheduler stay without output, and so does a block that needs a library which
is not installed here, with all that follows it.
"""

import argparse
import ast
import base64
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.S | re.M)
LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\((?![a-z]+:)[^()\s]+\)")
IMPORT = re.compile(r"^(?:import|from) (\w+)", flags=re.M)
SCHEDULER = "# needs a scheduler\n"  # opens a block that starts jobs
PATIENCE = 3600  # seconds for one page


def pages() -> list[Path]:
    """The pages that are also notebooks."""
    found = [*(ROOT / "docs" / "tutorials").glob("*.md"), ROOT / "docs" / "guides" / "write_your_own_test.md"]
    return sorted(page for page in found if page.stem != "index")


def cells(text: str) -> list[dict]:
    """Cells without output: {"cell_type", "source"}, and "printed" where the page says what a cell prints."""
    found: list[dict] = []
    pieces = any(language == "python" and block.startswith(" ") for language, block in BLOCK.findall(text))
    place = 0
    for block in BLOCK.finditer(text):
        _prose(found, text[place : block.start()])
        place = block.end()
        language, source = block[1], block[2].rstrip("\n")
        if language == "python" and (source.startswith("import ") or not pieces):  # pieces of a file are only shown
            found.append({"cell_type": "code", "source": source})
        elif language == "sh" and any(line.startswith("jaxdp ") for line in source.splitlines()):
            found.append({"cell_type": "code", "source": f"%%sh\n{source}"})
        elif language == "text" and found and found[-1]["cell_type"] == "code":
            found[-1]["printed"] = source
        else:
            _prose(found, block[0])
    _prose(found, text[place:])
    return found


def _prose(found: list[dict], text: str) -> None:
    """Adds prose to the cells, with links between pages as text."""
    text = LINK.sub(r"\1", text).strip()
    if text and found and found[-1]["cell_type"] == "markdown":
        found[-1]["source"] += f"\n\n{text}"
    elif text:
        found.append({"cell_type": "markdown", "source": text})


def notebook(
    page: Path, run: bool = True, change: Callable[[str], str] = str, shell: Callable[[str], str] | None = None
) -> dict:
    """The page as a notebook (nbformat 4.5).

    change: of the source of a cell before it runs; shell: what runs its commands and returns what they print. Tests
    make replicates few by them. Errors: RuntimeError with the cell that failed and what it said, or with the cell that
    prints something else than the page shows.
    """
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    where = "the folder `examples`" if "guides" in page.parts else "the root"
    head = f"*This notebook is made from `{name}`. Run it in {where} of a checkout in which jaxdp is installed.*"
    made = [{"cell_type": "markdown", "source": head}, *cells(page.read_text(encoding="utf-8"))]
    outputs = executed(made, change, shell or _shell) if run else {}
    written: list[dict] = []
    for place, cell in enumerate(made):
        printed = cell.pop("printed", None)
        cell["source"] = cell["source"].splitlines(keepends=True)
        cell.update(id=f"cell-{place}", metadata={})
        written.append(cell)
        if cell["cell_type"] == "code":
            cell.update(execution_count=place if place in outputs else None, outputs=outputs.get(place, []))
            if printed is not None and place not in outputs:
                text = f"It prints\n\n```text\n{printed}\n```"
                written.append({**_markdown(text), "id": f"cell-{place}-printed", "metadata": {}})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _markdown(text: str) -> dict:
    return {"cell_type": "markdown", "source": text.splitlines(keepends=True)}


def executed(made: list[dict], change: Callable[[str], str], shell: Callable[[str], str]) -> dict[int, list[dict]]:
    """Outputs by place of the cells, run in a folder that holds the examples; up to the first that lacks a library."""
    outputs: dict[int, list[dict]] = {}
    namespace: dict = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory(prefix="jaxdp-notebook-") as folder, contextlib.chdir(folder), _importable(folder):
        shutil.copytree(ROOT / "examples", "examples")
        shutil.copytree(ROOT / "examples", ".", dirs_exist_ok=True)
        for place, cell in enumerate(made):
            if cell["cell_type"] == "markdown" or SCHEDULER in cell["source"]:
                continue
            if not _has_libraries(cell["source"]):
                break  # what follows may build on it
            try:
                outputs[place] = _run(change(cell["source"]), namespace, shell)
            except Exception as error:
                raise RuntimeError(f"the cell\n{cell['source']}\nfails: {type(error).__name__}: {error}") from error
            printed = "".join(line for output in outputs[place] for line in output.get("text", []))
            if not shown(cell.get("printed", ""), printed):
                raise RuntimeError(f"the cell\n{cell['source']}\nprints\n{printed}\nand the page\n{cell['printed']}")
    return outputs


def shown(text: str, printed: str) -> bool:
    """Whether the parts of the text between `...` are printed in this order, apart from how lines are broken."""
    place, printed = 0, " ".join(printed.split())
    for part in text.split("..."):
        wanted = " ".join(part.split())
        found = printed.find(wanted, place)
        if found < 0:
            return False
        place = found + len(wanted)
    return True


@contextlib.contextmanager
def _importable(folder: str):
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _has_libraries(source: str) -> bool:
    return source.startswith("%%sh") or all(importlib.util.find_spec(name) for name in IMPORT.findall(source))


def _run(source: str, namespace: dict, shell: Callable[[str], str]) -> list[dict]:
    """Outputs of one cell: what it prints, and the value of its last expression as a notebook shows it."""
    if source.startswith("%%sh\n"):
        return _stream(shell(source.removeprefix("%%sh\n")))
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        value = None if last is None else eval(compile(last, "cell", "eval"), namespace)
    return _stream(printed.getvalue()) + ([] if value is None else [_shown(value)])


def _shell(source: str) -> str:
    """What commands print; `jaxdp` is the package that is being documented."""
    jaxdp = f'jaxdp() {{ "{sys.executable}" -m jaxdp "$@"; }}\n'
    path = os.pathsep.join(["examples", str(ROOT)])
    done = subprocess.run(
        ["sh", "-ec", jaxdp + source],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def _stream(text: str) -> list[dict]:
    lines = text.splitlines(keepends=True)
    return [{"output_type": "stream", "name": "stdout", "text": lines}] if text else []


def _shown(value: object) -> dict:
    data = {"text/plain": [repr(value)]}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = [value._repr_html_()]
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode("ascii")
    return {"output_type": "display_data", "data": data, "metadata": {}}


def write(page: Path, path: Path, run: bool) -> None:
    """Writes the notebook of a page; an executed one is kept in out/notebooks until the page or the package changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not run:
        path.write_text(json.dumps(notebook(page, run=False), indent=1), encoding="utf-8")
        return
    sources = [page, *sorted((ROOT / "jaxdp").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.*"))]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    kept = ROOT / "out" / "notebooks" / f"{page.stem}-{digest}.ipynb"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(notebook(page), indent=1), encoding="utf-8")
    shutil.copy(kept, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One page of the documentation as a notebook.")
    parser.add_argument("page", type=Path)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--without-running", action="store_true")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    write(given.page.resolve(), given.notebook.resolve(), run=not given.without_running)

"""ACRO (SACRO): the answers of jaxdp among the outputs of a session, for the person who checks what leaves.

session = acro.ACRO()
jaxdp.interop.acro_output(session, "out/test")      # the folder of a command
session.finalise("outputs")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxdp.report import sections, written

RESULT = "result.json"


def acro_output(session: Any, folder: Any) -> list[str]:
    """Adds the answer in this folder, which a command wrote with --out, to a session of ACRO; returns the files added.

    session: an `acro.ACRO`. Each file of the answer becomes a custom output, with what the page says in words as its
    comment: the answer, what it rests on, what it cost and whom it protects. ACRO marks custom outputs "review".
    Privacy: the folder holds noisy and public values only. ACRO writes files of one name to one place: give the folders
    of several answers to one session each.
    Errors: ValueError for a folder without an answer, with files changed since, and for a simulation, whose noise can
    be computed from its seed; and where ACRO refuses a kind of file.
    """
    place = Path(folder)
    contents, changed = written.shown(place)
    if changed:
        raise ValueError(f"{', '.join(changed)} in {place} changed after jaxdp wrote it: run the command again.")
    result = json.loads(contents.get(RESULT, b"{}"))
    if not {"mode", "answer"} <= set(result):
        raise ValueError(f"{place} holds no answer about records: give the folder that a command named after --out.")
    if result["mode"] != "release":
        raise ValueError(f"{place} holds a simulation, which is not private: run the command without --seed.")
    told = [result["answer"], *(f"{heading}: {' '.join(said)}" for heading, said in sections.narrative(result))]
    comment = "\n".join(told)
    added = [str(place / name) for name in contents]
    for path in added:
        if not session.custom_output(path, comment):
            raise ValueError(f"ACRO does not take {path}: its configuration blocks this kind of file.")
    return added

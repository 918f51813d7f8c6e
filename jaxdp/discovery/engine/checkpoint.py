"""Answers of a search on disk: an interrupted search goes on where it was, and nothing is paid or drawn twice.

What is written is released or public: the search, and each noisy answer before the search uses it. No key is written
and none is needed: whoever goes on draws what is still open with a fresh key. Computing again from the same data and
the same answers leads to the same place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp import charge
from jaxdp._base import file_lock
from jaxdp._base.owner import warn_owner
from jaxdp._base.printed import path_of
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Relation
from jaxdp.data.records import Records
from jaxdp.noise.recorder import Tape

FILE = "answers.jsonl"


@dataclasses.dataclass(eq=False)
class Checkpoint(Tape):
    """The answers of one search, for one process at a time; made by `keeping`.

    Without a ledger they are lines of a file. With one they lie in the ledger, beside the charge, where each is
    given once whatever happens to copies of the file, which then only names the charge.
    known: what is publicly known of the columns, such as their bounds, by its repr; None where nobody said.
    """

    path: Path = Path(FILE)
    descriptor: int = -1
    ledger: Any = None
    known: Any = None
    header: dict[str, Any] = dataclasses.field(default_factory=dict)
    answers: list[str] = dataclasses.field(default_factory=list)
    given: int = 0
    begun_here: bool = False  # a strict search is charged, and so begun, before its records are read

    @property
    def after_failure(self) -> str:
        """What to do where a search failed after its charge."""
        if not self.header:
            return charge.PAID_AGAIN
        return f"ask again with {self.path}, and what was charged and answered is used, not paid again"

    def begin(self, search: Mapping[str, Any]) -> None:
        """Takes up the search of the file, or writes down a new one. search: public facts, all that decides it.

        Errors: ValueError if the file is of another search.
        """
        search = json.loads(
            json.dumps(dict(search) | {"ledger": self.ledger is not None, "schema": _digest(self.known)})
        )
        if not self.header:
            nonce = secrets.token_hex(16)
            self.header = {"search": search, "nonce": nonce, "txid": _transaction(search, nonce)}
            self._write(json.dumps(self.header))
            self.begun_here = True
            return
        other = self.header["search"]
        for name in sorted(set(search) | set(other)):
            if search.get(name) != other.get(name):
                raise ValueError(
                    f"{self.path} holds the answers of another search: its {name} is {other.get(name)}, not "
                    f"{search.get(name)}. Ask the same again to go on, or give another place for a new search."
                )

    def warn_of_other_data(self) -> None:
        """Warns a search that goes on: a hash of its table would be an answer without noise, and none is kept."""
        if not self.begun_here and (self.answers or self.paid()):
            warn_owner(
                f"the search goes on with what is kept for {self.path}. jaxdp cannot check that the table is the one "
                "that was read then; of another one the graph would be a mixture of both."
            )

    def require(self, cost) -> None:
        """As the ledger's, for what is not paid yet."""
        if not self.paid(cost):
            self.ledger.require(cost)

    def charge(self, method: str, cost, key) -> None:
        """Charges the ledger, once for all runs of the search, and reads what was answered.

        A search that did not begin here keeps no answers (its noise stays secret), and every run of it is charged.
        """
        if not self.header:
            charge.once(self.ledger, method, cost, key, None)
            return
        if not self.paid(cost):
            charge.once(self.ledger, method, cost, key, self.header["txid"])
        self.answers = _book(self.ledger).checkpoint(self.header["txid"], cost)

    def holds(self, key) -> bool:
        """Whether the ledger holds a charge of this search, or of this key."""
        return self.paid() or _book(self.ledger).holds(key)

    @property
    def statement(self) -> str:
        """Where the charges are shown."""
        return _book(self.ledger).statement

    def paid(self, cost=None) -> bool:
        """Whether the ledger holds the charge of this search. Errors: `LedgerError` if it is not of this cost."""
        if self.ledger is None or not self.header:
            return False
        return _book(self.ledger).checkpoint(self.header["txid"], cost) is not None

    def play(self, law, value, parameters, key, output):
        """The next answer as it was given before; or this one, which is on disk when this returns."""
        del value, key
        if not law.outputs_released:
            raise NotImplementedError(f"answers of {law.name} are not kept.")
        number, output = self.given, np.asarray(output)
        facts = {"law": law.name, "parameters": [_exact(part) for part in parameters], "shape": list(output.shape)}
        self.given += 1
        if number < len(self.answers):
            answer = json.loads(self.answers[number])
            values = answer.pop("output")
            if answer != facts:
                raise ValueError(
                    f"answer {number} of {self.path} was given to another query: the search, its data or this "
                    "package changed since; give another place for a new search."
                )
            return jnp.asarray(np.array(values, output.dtype).reshape(output.shape))
        text = json.dumps(facts | {"output": output.tolist()})
        if self.ledger is None:
            self._write(text)
        else:
            _book(self.ledger).keep(self.header["txid"], number, text)
        self.answers.append(text)
        return output

    def _write(self, text: str) -> None:
        left = memoryview((text + "\n").encode())
        while left:
            left = left[os.write(self.descriptor, left) :]
        os.fsync(self.descriptor)

    def read(self) -> None:
        """What the file holds; a last line that a power cut left unfinished was never used, and is cut off."""
        content = self.path.read_bytes()
        if not content:
            return
        whole = content[: content.rfind(b"\n") + 1]
        try:
            first, *self.answers = whole.decode().splitlines()
            self.header = json.loads(first)
            named = self.header["txid"] == _transaction(self.header["search"], self.header["nonce"])
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{self.path} is no file of kept answers: give another place.") from None
        if not named:  # the name of a charge says which search it paid for
            raise ValueError(
                f"{self.path} was changed by hand: its charge paid for another search. Give another place."
            )
        if len(whole) < len(content):
            os.ftruncate(self.descriptor, len(whole))


@contextlib.contextmanager
def keeping(path: str | os.PathLike, ledger=None, known: Any = None) -> Iterator[Checkpoint]:
    """The answers kept in a file, made if missing, held while the context lasts; itself an account for the ledger.

    known: as in `Checkpoint`.

    Errors: ValueError for a file of something else, or one that another process holds; TypeError for an account that
    keeps no answers.
    """
    if ledger is not None and not hasattr(_book(ledger), "checkpoint"):
        raise TypeError("answers are kept beside their charge in a jaxdp.Ledger; this account has no place for them.")
    path = Path(path_of("keep", path))
    path.parent.mkdir(parents=True, exist_ok=True)
    found = path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        try:
            file_lock.take(descriptor, wait=False)
        except BlockingIOError:
            raise ValueError(f"{path} is held by another process that runs this search: wait for it.") from None
        kept = Checkpoint(path=path, descriptor=descriptor, ledger=ledger, known=known)
        kept.read()
        try:
            yield kept
        finally:
            # a mistake before anything was paid leaves nothing behind; a file that was there may name a charge, of a
            # ledger that this call does not have
            if not (found or kept.answers or kept.paid()):
                path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _transaction(search: Mapping[str, Any], nonce: str) -> str:
    """The name of the charge of a search: nobody can find another search of the same name."""
    return hashlib.sha256(json.dumps([dict(search), nonce], sort_keys=True).encode()).hexdigest()[:32]


def _digest(known: Any) -> str | None:
    return None if known is None else hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _book(account):
    """The ledger behind an account that writes down what was asked."""
    return getattr(account, "ledger", account)


def _exact(number) -> str:
    """A parameter of a law to the last bit, in words; a whole vector of them too."""
    return " ".join(str(as_fraction(float(part))) for part in np.ravel(np.asarray(number, float)))


def described(records: Records, relation: Relation, **settings: Any) -> dict[str, Any]:
    """What a search asks, in public words: its columns, its settings, and under replace-one how many records."""
    public = {"columns": list(records.names), "levels": list(records.levels), "relation": relation.value}
    public["records"] = records.num_records if relation is Relation.REPLACE_ONE else None
    return public | {name: repr(value) for name, value in settings.items()}

"""What the noise seam did: certificates for a `Release`, and a tape for audits.

A tape holds private values. Only `jaxdp.audit` opens one, on data that are not secret.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator
from typing import Any

_certificates: contextvars.ContextVar[list | None] = contextvars.ContextVar("certificates", default=None)
_tape: contextvars.ContextVar["Tape | None"] = contextvars.ContextVar("tape", default=None)


@dataclasses.dataclass(frozen=True)
class Call:
    """One use of noise: law, un-noised value, public parameters, key and released output."""

    law: str
    value: Any
    parameters: tuple[float, ...]
    key: Any
    output: Any


@dataclasses.dataclass
class Tape:
    """The calls of one run in order; outputs of an earlier run, if given, replace the noisy ones."""

    calls: list[Call] = dataclasses.field(default_factory=list)
    outputs: list | None = None

    def play(self, law: str, value, parameters, key, output):
        """Records a call and returns the output that the program shall go on with."""
        if self.outputs is not None and len(self.calls) < len(self.outputs):
            output = self.outputs[len(self.calls)]
        self.calls.append(Call(law, value, parameters, key, output))
        return output


def is_open() -> bool:
    """Whether calls are being recorded."""
    return _tape.get() is not None


@contextlib.contextmanager
def certified() -> Iterator[list]:
    """Collects the certificates of every draw inside."""
    found: list = []
    token = _certificates.set(found)
    try:
        yield found
    finally:
        _certificates.reset(token)


@contextlib.contextmanager
def recording(outputs: list | None = None, tape: Tape | None = None) -> Iterator[Tape]:
    """Records every draw inside; `outputs` of an earlier tape are played back. tape: one of another kind."""
    tape = Tape(outputs=outputs) if tape is None else tape
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)


def certify(facts) -> None:
    """Notes the certificate of a draw for the release being made."""
    found = _certificates.get()
    if found is not None:
        found.append(facts)


def play(law: str, value, parameters, key, output):
    """The output, or what a tape puts in its place."""
    tape = _tape.get()
    return output if tape is None else tape.play(law, value, parameters, key, output)

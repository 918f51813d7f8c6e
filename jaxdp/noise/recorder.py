"""The tape of an audit: every use of noise in a run, in order.

A tape holds private values. Only `jaxdp.audit` makes one, on data that are not secret.
"""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Call:
    """One use of noise: its law (a `Law`), un-noised value, public parameters, key and released output."""

    law: Any
    value: Any
    parameters: tuple[float, ...]
    key: Any
    output: Any


@dataclasses.dataclass(eq=False)
class Tape:
    """The calls of one run in order; outputs of an earlier run, if given, replace the noisy ones."""

    calls: list[Call] = dataclasses.field(default_factory=list)
    outputs: list | None = None

    def play(self, law, value, parameters, key, output):
        """Records a call and returns the output that the program shall go on with."""
        if self.outputs is not None and len(self.calls) < len(self.outputs):
            output = self.outputs[len(self.calls)]
        self.calls.append(Call(law, value, parameters, key, output))
        return output

    def ahead(self, law):
        """An answer that a program shall go on with without a draw; None: draw. Simulations alone have such tapes."""

"""A process that spends from a ledger: prints the id of every acknowledged charge, then how many were refused.

python tests/ledger_worker.py LEDGER EPSILON COUNT
"""

import os
import secrets
import sys

from jaxdp.accounting.ledger import BudgetExhausted, Ledger


def main() -> None:
    ledger, epsilon, count = Ledger.open(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    say("ready")
    refused = 0
    for _ in range(count):
        try:
            say(ledger.reserve("worker", epsilon=epsilon, digest=secrets.token_hex(32)))
        except BudgetExhausted:
            refused += 1
    say(f"refused {refused}")


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())  # one unbuffered write: what a reader sees was acknowledged


if __name__ == "__main__":
    assert "jax" not in sys.modules, "the ledger must not import JAX"
    main()

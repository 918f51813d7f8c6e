"""`jaxdp COMMAND ...`: finds the command's file and turns its outcome into an exit code.

A command is one file in this folder, named in `COMMANDS`, with two functions:

    add_parser(subparsers)   registers the command: `subparsers.add_parser(name, help=..., epilog=...)`
    run(args) -> int         does the work and returns the exit code, 0

The file imports only argparse and `jaxdp.cli.options` at its top; JAX and the rest of the package are
imported inside `run`, so that `--help` stays instant. A file that does not exist is simply absent.
A mistake of the user is any ValueError or TypeError that the package itself raises (or
`options.UserError`): it becomes one line and exit code 2, so commands need no handlers of their own.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from jaxdp.cli.options import UserError

# command -> module in this package; the order is that of --help.
COMMANDS = {
    "demo": "demo",
    "test": "test",
    "discover": "discover",
    "mic": "mic",
    "check": "check",
    "simulate": "simulate",
    "plan": "plan",
    "methods": "methods",
    "audit": "audit",
    "ledger": "ledger",
    "report": "report",
    "bench": "bench",
}
SUCCESS, INTERNAL_ERROR, USER_ERROR, BUDGET_EXHAUSTED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141
TRACEBACK_VARIABLE = "JAXDP_TRACEBACK"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, raised rather than printed."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


def build_parser() -> Parser:
    """The parser of every command whose file exists."""
    parser = Parser(
        prog="jaxdp",
        description="Differentially private dependence tests and causal discovery.",
        epilog="example: jaxdp demo --out out/demo",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS.values():
        path = f"jaxdp.cli.{module}"
        if importlib.util.find_spec(path) is not None:
            importlib.import_module(path).add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, 2 (user's mistake), 3 (budget exhausted), 1 (a bug) or 130 (interrupted)."""
    argv = sys.argv[1:] if argv is None else list(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's own remarks would hide the one line of an error
    try:
        args = build_parser().parse_args(argv)
        return importlib.import_module(f"jaxdp.cli.{COMMANDS[args.command]}").run(args)
    except SystemExit as leaving:  # argparse leaves this way after --help
        return int(leaving.code or SUCCESS)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        return _say(*_verdict(error))


def _verdict(error: Exception) -> tuple[str, int]:
    """What to print about an exception, and the exit code."""
    if _is_exhausted_budget(error):
        return str(error), BUDGET_EXHAUSTED
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}", USER_ERROR
    if isinstance(error, UserError) or (isinstance(error, ValueError | TypeError) and _raised_by_package(error)):
        return str(error), USER_ERROR
    # The text of a foreign exception may quote data, so only its kind and place are shown.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error, {type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}; "
        f"set {TRACEBACK_VARIABLE}=1 for the traceback (it may quote data)",
        INTERNAL_ERROR,
    )


def _is_exhausted_budget(error: Exception) -> bool:
    ledger = sys.modules.get("jaxdp.accounting.ledger")
    return ledger is not None and isinstance(error, ledger.BudgetExhausted)


def _raised_by_package(error: Exception) -> bool:
    """Whether the raise statement stands in this package: a sentence of ours, not a library's."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost is not None and innermost.tb_frame.f_globals.get("__name__", "").startswith("jaxdp.")


def _say(message: str, code: int) -> int:
    print(f"jaxdp: error: {' '.join(message.split())}", file=sys.stderr)
    return code

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
import contextlib
import difflib
import importlib
import importlib.util
import itertools
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import NoReturn

from jaxdp._base import arguments
from jaxdp.cli.options import RED, UserError, coloured, reason

# command -> module in this package; the order is that of --help.
COMMANDS = {
    "demo": "demo",
    "test": "test",
    "discover": "discover",
    "mic": "mic",
    "gwas": "gwas",
    "describe": "describe",
    "schema": "schema",
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


TYPED = "_typed"  # of a namespace: the options seen so far
_CHOICE = re.compile(r"(argument [^:]*: )?invalid choice: '?(?P<given>[^']*)'? \(choose from (?P<known>.*)\)", re.S)
_MISSED = re.compile(r"argument (?P<option>\S+): expected (one|at least one) argument")


class _Once(argparse.Action):
    """Stores a value, as argparse does, but never names of columns in place of others that were typed before."""

    def __call__(self, parser, namespace, values, option_string=None):
        typed = vars(namespace).setdefault(TYPED, set())
        if isinstance(values, arguments.Names) and self.dest in typed:
            parser.error(f"{option_string} is given twice: name all of its columns at once, separated by commas")
        typed.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, raised rather than printed, with what was probably meant."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[override]
        """As argparse, but unknown arguments are told by the command they were given to, which knows its options."""
        self._typed = sys.argv[1:] if args is None else list(args)
        self._refuse_misspelt(self._typed)
        found, unknown = super().parse_known_args(args, namespace)
        if TYPED in found:
            delattr(found, TYPED)
        if unknown:
            self.error(
                f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown[0]) or self._reads_no_data(unknown)}"
            )
        return found, unknown

    def error(self, message: str) -> NoReturn:
        wrong = _CHOICE.search(message)
        if wrong is not None:
            known = [name.strip(" '") for name in wrong["known"].split(",")]
            close = difflib.get_close_matches(wrong["given"], known, 1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"it must be one of {', '.join(known)}"
            if os.path.isfile(wrong["given"]):  # a file where an action belongs
                action = "show" if "show" in known else known[0]
                hint = f"did you mean {self.prog} {action} {shlex.quote(wrong['given'])}?"
            message = (
                f"there is no {(wrong[1] or 'choice').removeprefix('argument ').strip(': ')} {wrong['given']!r}; {hint}"
            )
        message += self._dashed(message)
        if "required: " in message and "--schema" in message:
            message += "; jaxdp schema draft DATA --out S.toml writes one to fill in"
        raise UserError(f"{message} (see {self.prog} --help)")

    def _refuse_misspelt(self, arguments) -> None:
        """A misspelt option is told before the required one that it was meant for is missed."""
        if self._subparsers is not None:  # its own arguments come before the command's
            return
        known = [option for action in self._actions for option in action.option_strings]
        for argument in arguments:
            name = argument.partition("=")[0]
            if name == "--":
                return
            if name.startswith("--") and not any(option.startswith(name) for option in known):
                self.error(f"unrecognized arguments: {name}{self._meant(name)}")

    def _dashed(self, message: str) -> str:
        """For an option whose value is missed because it begins with a dash."""
        options = {option for action in self._actions for option in action.option_strings}
        missed = _MISSED.match(message)
        names = missed["option"].split("/") if missed else []
        values = [value for name, value in itertools.pairwise(self._typed) if name in names and value[0:1] == "-"]
        wanted = [action.type for action in self._actions if names and names[0] in action.option_strings]
        if not values or values[0] == "--" or (values[0] in options and wanted != [arguments.names]):
            return ""
        what = f"a column named {values[0]}" if values[0] in options else "a value that begins with a dash"
        return f"; {what} is written {shlex.quote(f'{names[0]}={values[0]}')}"

    def _reads_no_data(self, arguments) -> str:
        """For a file given to a command that takes none but a schema."""
        takes = {option for action in self._actions for option in action.option_strings}
        file = any(os.path.exists(argument) for argument in arguments)
        return "; this command reads no data: give --schema S.toml" if file and "--schema" in takes else ""

    def _meant(self, argument: str) -> str:
        known = [option for action in self._actions for option in action.option_strings]
        close = difflib.get_close_matches(argument.partition("=")[0], known, 1)
        return f"; did you mean {close[0]}?" if close else ""


class _Version(argparse.Action):
    """--version: one line, without JAX."""

    def __call__(self, parser, namespace, values, option_string=None):
        from jaxdp._base.version import version

        print(f"jaxdp {version()}")
        parser.exit()


def build_parser() -> Parser:
    """The parser of every command whose file exists."""
    parser = Parser(
        prog="jaxdp",
        description="Differentially private dependence tests and causal discovery.",
        epilog="example: jaxdp demo --out out/demo",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS.values():
        path = f"jaxdp.cli.{module}"
        if importlib.util.find_spec(path) is not None:
            importlib.import_module(path).add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, 2 (user's mistake), 3 (budget exhausted), 1 (a bug) or 130 (interrupted)."""
    own_process = argv is None  # else the caller's, who may have changed what programs are made of
    argv = sys.argv[1:] if argv is None else list(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's own remarks would hide the one line of an error
    try:
        args = build_parser().parse_args(argv or ["--help"])
        args.own_process = own_process
        args.typed = shlex.join(["jaxdp", *argv])
        with _owner_warnings():
            code = importlib.import_module(f"jaxdp.cli.{COMMANDS[args.command]}").run(args)
        sys.stdout.flush()  # a full disk is told here, and not as Python ends
        return code
    except SystemExit as leaving:  # argparse leaves this way after --help
        return int(leaving.code or SUCCESS)
    except KeyboardInterrupt as interrupt:
        return _say(_with_charges("interrupted", interrupt), INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        message, code = _verdict(error)
        _leave_unwritable_output()
        return _say(_with_charges(message, error), code)


@contextlib.contextmanager
def _owner_warnings() -> Iterator[None]:
    """Warnings for the owner of a table as one line each on standard error, whatever Python's filters are."""
    from jaxdp._base.owner import OwnerWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", OwnerWarning)
        usual = warnings.showwarning

        def show(message, category, *where, **how):
            if issubclass(category, OwnerWarning):
                print(f"jaxdp: {message}", file=sys.stderr, flush=True)
            else:
                usual(message, category, *where, **how)

        warnings.showwarning = show
        yield


def _verdict(error: Exception) -> tuple[str, int]:
    """What to print about an exception, and the exit code."""
    if _is_exhausted_budget(error):
        return str(error), BUDGET_EXHAUSTED
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}", USER_ERROR
    if isinstance(error, OSError) and error.errno:  # of a write: it names no file
        return f"a file or standard output cannot be read or written: {reason(error)}", USER_ERROR
    if isinstance(error, UserError) or (isinstance(error, ValueError | TypeError) and _raised_by_package(error)):
        return str(error), USER_ERROR
    # The text of a foreign exception may quote data, so only its kind and place are shown.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error, {type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}; "
        f"set {TRACEBACK_VARIABLE}=1 for the traceback (it may quote data)",
        INTERNAL_ERROR,
    )


def _leave_unwritable_output() -> None:
    """What standard output did not take is dropped, else Python would fail on it again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_charges(message: str, error: BaseException) -> str:
    """The message, and what was charged before the error."""
    charge = sys.modules.get("jaxdp.charge")
    notes = "" if charge is None else charge.describe(error)
    return f"{message}. {notes}" if notes else message


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
    print(f"{coloured('jaxdp: error:', RED, sys.stderr)} {' '.join(message.split())}", file=sys.stderr)
    return code

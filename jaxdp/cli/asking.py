"""The one runner of commands that ask something of a table: options from keywords, the question, its answer written."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdp._base.arguments import Names
from jaxdp._base.keywords import Keyword, declared
from jaxdp.ask.calls import READING
from jaxdp.cli import options

EVERY = 10.0  # seconds between two lines about a run of many parts, where there is no terminal


def add_parser(subparsers: Any, name: str, *calls: Any, **texts: str) -> argparse.ArgumentParser:
    """Registers a command about a table whose options are the keywords of calls, TypedDicts of `jaxdp.ask.calls`.

    texts: help, description and epilog of `add_parser`.
    """
    parser = subparsers.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **texts)
    options.add_data(parser)
    add_keywords(parser, *calls)
    options.add_run(parser, f"out/{name}")
    return parser


def add_keywords(parser: Any, *calls: Any, required: bool = True) -> None:
    """The options of these calls. required: whether those are that no call can do without."""
    known = {name: said for call in reversed(calls) for name, (_, said) in declared(call).items() if said.help}
    for name in dict.fromkeys(name for call in calls for name in declared(call) if name in known):
        said, always = known[name], required and all(name in call.__required_keys__ for call in calls)
        value = {"type": said.read, "metavar": said.metavar, "choices": said.choices}
        how = value if said.metavar or said.choices else {"action": "store_true", "default": None}
        parser.add_argument(option(name, said), dest=name, help=said.help, required=always, **how, **said.more)


def option(name: str, said: Keyword) -> str:
    return said.flag or f"--{name.replace('_', '-')}"


def given(args: argparse.Namespace, call: Any, schema: Any = None) -> dict[str, Any]:
    """The keywords of a call that its options give, apart from ways of reading. schema: of the columns they name."""
    found = {}
    for name, (_, said) in declared(call).items():
        value = getattr(args, name, None)
        if value is None or not said.help or name in READING:
            continue
        named = [value] if isinstance(value, Names) else value
        if schema is not None and isinstance(named, list) and isinstance(named[0], Names):
            value = options.columns(schema, *named)
        found[name] = said.gather(value)
    return found


def require_one_kind(args: argparse.Namespace, one: Any, all_pairs: Any) -> None:
    """Raises `UserError` unless one pair or all pairs are asked about, with options of that call alone."""
    if args.all_pairs and (args.x or args.y):
        raise options.UserError("give --x and --y, or --all-pairs, not both.")
    call, other = (all_pairs, one) if args.all_pairs else (one, all_pairs)
    own = set(call.__annotations__) - (set() if args.all_pairs else {"columns"})
    for name, (_, said) in declared(other).items():
        if name not in own and getattr(args, name, None) is not None:
            side = "--x and --y" if args.all_pairs else "--all-pairs"
            raise options.UserError(f"{option(name, said)} goes with {side}.")
    alone = args.x and getattr(args, "method", None)  # a test of X alone has no Y
    if not args.all_pairs and not alone and not (args.x and args.y):
        raise options.UserError("give --x A and --y B, or --all-pairs.")


def run(args: argparse.Namespace, place: str) -> int:
    """Asks the query at a place, package.module:Class, about the table; the schema is read before JAX is imported."""
    options.require_known(args)
    return ask(args, *query_of(args, place))


def ways(args: argparse.Namespace) -> dict[str, Any]:
    """How the table is read, by the options."""
    return {way: value for way in READING if (value := getattr(args, way, None)) is not None}


def query_of(args: argparse.Namespace, place: str, **more: Any) -> tuple[Any, Any]:
    """The table and the query of the arguments. more: keywords that are no options."""
    from jaxdp.ask.reading import Table

    module, _, name = place.partition(":")
    query = getattr(importlib.import_module(module), name)
    options.prefer_cpu(args)
    options.keep_programs(args)
    table = Table.of(args.data, args.schema, **ways(args))
    return table, query.of(table.schema, **given(args, query.keywords, table.schema), **more)


def ask(args: argparse.Namespace, table: Any, query: Any) -> int:
    """The answer of a `jaxdp.ask.table_query.TableQuery` about the table, in a folder and on the screen."""
    key = options.make_key(args.seed)
    query.require_key(key)
    # what an interrupted run left may be paid for
    paid = args.out is not None and any((Path(args.out) / name).exists() for name in query.unfinished)
    ledger = options.open_ledger(args.ledger, args.seed, 0.0 if paid else query.epsilon)
    with options.result_folder(args, query.form.files, query.unfinished) as folder:
        return _ask_in(folder, args, table, query, key, ledger)


def _ask_in(folder: Path, args: argparse.Namespace, table: Any, query: Any, key: Any, ledger: Any) -> int:
    from jaxdp.ask.table_query import account_of

    account = account_of(ledger, table, query.short, folder)
    query = query.in_folder(folder)
    with options.stages(query.parts + 4, EVERY if query.parts > 1 else None) as on_stage:
        try:
            found = query.ask(table, key, account, on_stage=on_stage, on_estimate=options.note)
        except KeyboardInterrupt:
            if any((folder / name).exists() for name in query.unfinished):
                told = f"what was answered is kept: the same command with --out {folder} goes on."
                print(f"jaxdp: {told}", file=sys.stderr)
            raise
        with _keeping_the_answer(found, folder, args):
            content = write(found, folder, options.for_the_page(args, ledger), on_stage, getattr(args, "schema", ""))
    for name in query.unfinished:
        (folder / name).unlink(missing_ok=True)  # the results are on disk: the next run is a new one
    from jaxdp.report import sections

    files = ", ".join(str(folder / name) for name in found.files if (folder / name).exists())
    shown = f"{sections.screen(content, found.table())}\n  files      {files}{options.pictures()}"
    try:
        options.tell(args, content, shown)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise options.UserError(
            f"the answer is kept in {folder}, but standard output cannot be written: {error.strerror}."
        ) from None
    return 0


@contextlib.contextmanager
def _keeping_the_answer(found: Any, folder: Path, args: argparse.Namespace) -> Iterator[None]:
    """An answer that is there, and perhaps paid for, is shown where its files fail; the error says where it is."""
    result = folder / "result.json"
    before = _identity(result)
    try:
        yield
    except BaseException as error:
        where = f"in {result}"
        if _identity(result) in (before, None):
            where = "printed above, and not in a file"
            try:
                options.tell(args, found.to_dict(), str(found))
                sys.stdout.flush()
            except OSError:
                where = "lost, since standard output cannot be written either"
        told: BaseException = error
        if isinstance(error, OSError):
            told = options.UserError(f"{folder} cannot be written to: {error.strerror or type(error).__name__}")
        if args.seed is None:
            from jaxdp import charge

            told.add_note(f"{charge.STANDS}; the answer is {where}.")
        if told is error:
            raise
        raise told from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Of a file as it is now; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def write(found: Any, folder: Path, facts: dict, on_stage: Any, schema: str = "") -> dict:
    """Writes the files of a `TableAnswer` and report.html; returns what result.json holds."""
    from jaxdp._base import json_files
    from jaxdp.report import written
    from jaxdp.report.html import REPORT_NAME, write_report

    on_stage("computing the detectable effect")
    content = {**found.to_dict(), **found.missed(schema), **facts}
    on_stage("writing")
    files = {"result.json": (json_files.write, content), **found.written()}
    for name, (writer, *what) in files.items():
        written.put(folder, name, writer, *what)
    written.put_picture(folder, found.picture, found.draw)
    for name in set(found.files) - {*files, found.picture, REPORT_NAME}:
        written.drop(folder, name)  # of an earlier answer of another form
    write_report(folder, found.page_title(), found.files)
    return content

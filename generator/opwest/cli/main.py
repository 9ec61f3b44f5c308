# SPDX-License-Identifier: Apache-2.0
"""The command `opwest`: output and exit codes (0 success, 1 error in the input, 2 wrong usage)."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opwest.base import timing
from opwest.base.diagnostics import Diagnostic, Diagnostics, OpwestError, fault_of_system, internal_error, printable
from opwest.base.result import Result, counted
from opwest.cli.arguments import check_output_options, is_quiet, is_verbose
from opwest.cli.parser import UsageError, command_names, parse

FORMAT: Final = 1
"""Version of the JSON output. It increases if a field is removed or changes its meaning; fields may be added."""


def main(arguments: Sequence[str] | None = None, program: str = "opwest") -> int:
    """Run the command line and return the exit code; `program` is its name in help and messages."""
    if "_ARGCOMPLETE" in os.environ:
        from opwest.cli.completion import complete

        complete()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may be undecodable, and the terminal may lack a character
            stream.reconfigure(errors="backslashreplace")
    try:
        return _main(parse(program, _with_command(words)))
    except UsageError as error:
        if "--json" not in words:
            hint = f"\n  hint: {error.hint}" if error.hint else ""
            argparse.ArgumentParser.error(error.origin, error.message + hint)
        usage = " ".join(error.origin.format_usage().split())
        fault = Diagnostic("error", error.message, hint=f"{error.hint}; {usage}" if error.hint else usage)
        print(json_text(words[0] if words[0] in command_names() else None, 2, [fault], None))
        return 2


def _with_command(words: list[str]) -> list[str]:
    """Return the words of a command line with the kind of an import, and with an action of a command as one word."""
    if words[:1] == ["import"]:
        from opwest.cli.import_options import with_kind

        return with_kind(words)
    if words[:1] == ["bundle"] and len(words) > 1:
        from opwest.cli.bundle_options import BOARD_ACTIONS

        if words[1] in BOARD_ACTIONS:
            return [f"bundle {words[1]}", *words[2:]]
    return words


def _main(options: argparse.Namespace) -> int:
    faults = Diagnostics()
    result: Result | None = None
    status = 1
    try:
        result = _run(options, faults)
        status = 1 if faults.has_errors else result.status
    except OpwestError as error:
        for diagnostic in error.diagnostics:
            faults.add(diagnostic)
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:  # a file that the command did not check before
        faults.add(fault_of_system(error))
    except KeyboardInterrupt:
        print("opwest: interrupted", file=sys.stderr)
        return 130
    except UsageError:  # options that only the command can compare
        raise
    except Exception as error:
        faults.add(unexpected(error, options))
    diagnostics = faults.in_order()
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    try:
        if options.json:
            print(json_text(options.command.split()[0], status, diagnostics, result and result.as_json))
        else:
            if result is not None and result.as_text and (result.is_content or not is_quiet(options)):
                print(printable(result.as_text, "\n\t") if sys.stdout.isatty() else result.as_text)
            sys.stdout.flush()
            if diagnostics:
                _print(diagnostics, faults.sources, options)
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        return _unwritable(error)
    return status


def json_text(command: str | None, status: int, diagnostics: Sequence[Diagnostic], result: Any) -> str:
    """Return the output of a command in the form of schemas/output/COMMAND.schema.json; None: of an unknown command."""
    outcome = {
        "format": FORMAT,
        "command": command,
        "ok": status == 0,
        "diagnostics": [diagnostic.as_json() for diagnostic in diagnostics],
        "result": result,
    }
    return json.dumps(_finite(outcome), indent=2, allow_nan=False)


def _run(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Run the command; with --verbose, print its stages and commands on standard error."""
    check_output_options(options, faults)
    faults.raise_if_errors()
    with contextlib.ExitStack() as stack:
        if is_verbose(options):
            stack.enter_context(timing.reported(_print_activity))
        stack.enter_context(timing.stage(options.command))
        result: Result = options.function(options, faults)
    return result


def unexpected(error: Exception, options: argparse.Namespace) -> Diagnostic:
    """Return the error for an exception that no part of opwest handles; with --verbose, print the traceback."""
    from opwest import __version__

    hint = f"report this error with the command, its files and the version, opwest {__version__}"
    if is_verbose(options):
        import traceback

        traceback.print_exception(error)
    elif "verbose" in vars(options):
        hint += "; --verbose prints the traceback"
    return internal_error(error, hint=hint)


def _print_activity(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(diagnostics: Sequence[Diagnostic], sources: Mapping[str, bytes], options: argparse.Namespace) -> None:
    """Print diagnostics on standard error; with --quiet, only errors."""
    from opwest.cli.printing import shown, terminal_of  # only commands with diagnostics need it

    errors = [d for d in diagnostics if d.severity == "error"]
    terminal = terminal_of(sys.stderr, getattr(options, "color", None) or "auto")
    for text in shown(errors if is_quiet(options) else diagnostics, sources, terminal):
        print(text, file=sys.stderr)
    if len(errors) > 1:
        print(f"opwest: {counted(len(errors), 'error')}", file=sys.stderr)


def _unwritable(error: OSError) -> int:
    """Report that standard output cannot be written, for example on a full disk."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the interpreter flushes it on exit
    print(f"opwest: error: cannot write standard output: {error.strerror}", file=sys.stderr)
    return 1


def _finite(value: Any) -> Any:
    """Return a JSON value: NaN and the infinities become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _closed_pipe() -> int:
    """Exit without an error after the reader closed the pipe, as `| head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

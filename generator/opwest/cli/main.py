# SPDX-License-Identifier: Apache-2.0
"""The command `opwest`: its exit codes (0 fine, 1 the input is at fault, 2 usage) and its output."""

from __future__ import annotations

import argparse
import gc
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from opwest.cli.parser import UsageError, parser
from opwest.diagnostics import Diagnostic, Diagnostics, OpwestError


def main(arguments: Sequence[str] | None = None, program: str = "opwest") -> int:
    """Run the command line, which is called `program` in help and messages; return the exit code."""
    collecting = gc.isenabled()
    gc.disable()  # one run, no cycles worth collecting: a fourth of the time of a large model
    words = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files need not be text, nor text of the terminal's kind
            stream.reconfigure(errors="backslashreplace")
    try:
        return _main(parser(program).parse_args(words))
    except UsageError as error:
        if "--json" not in words:
            argparse.ArgumentParser.error(error.origin, error.message)
        fault = Diagnostic("error", error.message, hint=" ".join(error.origin.format_usage().split()))
        print(json.dumps({"ok": False, "diagnostics": [fault.as_json()], "result": None}, indent=2))
        return 2
    finally:
        if collecting:
            gc.enable()


def _main(options: argparse.Namespace) -> int:
    faults = Diagnostics()
    try:
        result = options.function(options, faults)
        status = 1 if faults.has_errors else result.status if result else 0
    except OpwestError as error:
        for diagnostic in error.diagnostics:
            faults.add(diagnostic)
        result = None
        status = 1
    except BrokenPipeError:
        return _closed_pipe()
    except KeyboardInterrupt:
        print("opwest: interrupted", file=sys.stderr)
        return 130
    found = faults.in_order()
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    try:
        if options.json:
            report = {
                "ok": status == 0,
                "diagnostics": [d.as_json() for d in found],
                "result": result and result.as_json,
            }
            print(json.dumps(_finite(report), indent=2, allow_nan=False))
        else:
            if result is not None and result.as_text:
                print(result.as_text)
            sys.stdout.flush()
            for diagnostic in found:
                print(diagnostic, file=sys.stderr)
            errors = sum(d.severity == "error" for d in found)
            if errors > 1:
                print(f"opwest: {errors} errors", file=sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        return _unwritable(error)
    return status


def _unwritable(error: OSError) -> int:
    """Say that the output could not be written: a full disk, say."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the interpreter flushes it at its end
    print(f"opwest: error: the output can't be written: {error.strerror}", file=sys.stderr)
    return 1


def _finite(value: Any) -> Any:
    """Return a value that JSON can hold: NaN and the infinities become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _closed_pipe() -> int:
    """Whoever read our output has gone, as `| head` does: no fault of the input."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

# SPDX-License-Identifier: Apache-2.0
"""`opwest init`: a draft, written where nothing was."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.drafting.draft import draft_manifest
from opwest.result import Result
from opwest.write.new_file import refuse_existing, write_new

_HINT = "-o names another file; `-o -` prints the draft"


def draft(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Draft a manifest and write it; for `-` print it."""
    to_stdout = str(options.output) == "-"
    output = Path("manifest.yaml") if to_stdout else options.output
    if not to_stdout:
        refuse_existing(output, _HINT)
    made = draft_manifest(options.files, output, options.model, options.target, faults)
    shown = {
        "manifest": None if to_stdout else str(output),
        "marks": made.marks,
        "operators": list(made.operators),
        "left_out": made.left_out,
        "text": made.text,
    }
    if to_stdout:
        return Result(made.text.removesuffix("\n"), shown)
    write_new(output, made.text, _HINT)
    count = len(made.operators)
    words = f"{output}: {count} operator{'' if count == 1 else 's'}, {made.marks} marks to fill in"
    return Result(f"{words}; `opwest check {output}` lists them", shown)

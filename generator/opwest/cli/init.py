# SPDX-License-Identifier: Apache-2.0
"""`opwest init`: draft a manifest; never overwrite a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.drafting.draft import draft_manifest
from opwest.result import Result
from opwest.write.new_file import refuse_existing, write_new

_HINT = "choose another file with -o, or print the draft with '-o -'"


def draft(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Draft a manifest and write it to a file, or to standard output for `-`."""
    to_stdout = str(options.output) == "-"
    output = Path("manifest.yaml") if to_stdout else options.output
    if not to_stdout:
        refuse_existing(output, _HINT)
    drafted = draft_manifest(options.files, output, options.model, options.target, faults, options.symbols)
    shown = {
        "manifest": None if to_stdout else str(output),
        "marks": drafted.marks,
        "operators": list(drafted.operators),
        "left_out": drafted.left_out,
        "text": drafted.text,
    }
    if to_stdout:
        return Result(drafted.text.removesuffix("\n"), shown, is_content=True)
    write_new(output, drafted.text, _HINT)
    count = len(drafted.operators)
    words = f"{output}: {count} operator{'' if count == 1 else 's'}, {drafted.marks} marks to fill in"
    return Result(f"{words} (listed by 'opwest check {output}')", shown)

# SPDX-License-Identifier: Apache-2.0
"""The judgements of `opwest inspect` and `opwest check` on one file.

Every object that `objects_factory` makes is compared, so both commands are compared on all objects of the test suite.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opwest import pipeline
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.cli.inspect import inspect
from opwest.model.checks.exportability import exportability
from opwest.model.inputs.targets import own_target
from opwest.objects.facts import Abi
from opwest.project.request import Request

NAMED = ("x86-64", "i386")
"""Machines with a target of the same name, which has the C library of the host."""
_MANIFEST = """\
version: 1
model: judged
targets: {targets}
objects: [{entry}]
operators: {operators}
run:
  inputs: {{x: {{dtype: int8, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: op0, args: [x]}}]
"""


def inspected(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Return the rows of `inspect` for a file, and the target of LLVM IR; for an unreadable file, the error."""
    faults = Diagnostics()
    done = inspect(argparse.Namespace(files=[path], target=None, libc=None), faults)
    if not done.as_json:
        return [{"reasons": [fault.message for fault in faults.in_order()], "state_bytes": None, "variables": []}], None
    (value,) = done.as_json
    rows = value.get("members", [value])
    if value["kind"] == "archive":
        rows = [{**row, "name": f"{path.name}({row['name']})"} for row in rows]
    return rows, value.get("target")


def checked(
    path: Path, abi: dict[str, Any] | None, target: str | None, functions: Sequence[str], keys: str = ""
) -> list[dict[str, Any]]:
    """Return the rows of `check` for a manifest with this file only, for a target of the ABI `abi`.

    `functions` are its operators: the linker extracts the members of an archive that define them.
    """
    own: dict[str, Any] = {}
    if abi is not None:
        target = abi["machine"] if abi["machine"] in NAMED else "own"
        if target == "own":
            own = {"own": _own_target(abi)}
    entry = f"{{files: [{json.dumps(path.name)}]{f', target: {target}' if target else ''}{keys}}}"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(path, Path(folder) / path.name)
        manifest = Path(folder) / "manifest.yaml"
        argument = {"name": "a", "dtype": "int8", "shape": [4], "direction": "inout"}
        operators = {f"op{n}": {"symbol": name, "args": [argument]} for n, name in enumerate(functions)}
        manifest.write_text(
            _MANIFEST.format(targets=json.dumps(own), entry=entry, operators=json.dumps(operators)), encoding="utf-8"
        )
        faults = Diagnostics()
        try:
            (found,) = pipeline.run(Request((manifest,)), faults, "plan").examinations
        except OpwestError as error:
            raise AssertionError("\n".join(map(str, error.diagnostics))) from None
        return [asdict(row) for row in exportability(found.model, found.objects)]


def _own_target(abi: dict[str, Any]) -> dict[str, Any]:
    return {**dict(own_target(Abi(**abi)).keys), "kconfig": {"CONFIG_X": "y"}}


def compare_judgements(path: Path, keys: str = "") -> list[dict[str, Any]]:
    """Compare both commands on a file, member by member, and return the rows of `inspect`."""
    rows, target = inspected(path)
    abi = rows[0].get("abi") if target is None else None
    if abi is None and target is None and rows[0].get("reasons") and path.suffix != ".c":
        target = "x86-64"  # an unreadable file
    functions = [symbol["name"] for row in rows for symbol in row.get("defined", ()) if symbol["kind"] == "function"]
    judged = {row["object"]: row for row in checked(path, abi, target, functions or ["relu"], keys)}
    for row in rows:
        other = judged.get(row["name"] if "(" in row.get("name", "") else path.name)
        if other is None:
            # A member without functions that no other member needs.
            assert "(" in row["name"] and not row["reasons"], f"{path.name} is not in the table of check"
            continue
        reasons = [text for text in other["reasons"] if "is also defined in" not in text]  # a fault of two objects
        assert reasons == row["reasons"], f"{other['object']}: check: {reasons}; inspect: {row['reasons']}"
        assert (other["state"], [*other["variables"]]) == (row["state_bytes"], row["variables"]), path.name
        assert other["exportable"].startswith("no") == bool(other["reasons"])
    return rows

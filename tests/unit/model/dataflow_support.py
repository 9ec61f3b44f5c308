# SPDX-License-Identifier: Apache-2.0
"""Steps as YAML, resolved without the rest of a manifest, and their diagnostics."""

from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.inputs.context import Context
from opwest.model.inputs.files import Files
from opwest.model.readers.dataflow import Dataflow, Flow
from opwest.model.readers.resolve import declared_names

MARK = "§"
"""Marks the positions in the YAML text where a diagnostic is expected."""

IN, OUT = "{name: data, dtype: int8, shape: [4]}", "{name: result, dtype: int8, shape: [4], direction: out}"
OPERATORS = f"""operators:
  relu: {{args: [{IN}, {OUT}]}}
  add: {{args: [{{name: a, dtype: int8, shape: [4]}}, {{name: b, dtype: int8, shape: [4]}}, {OUT}]}}
  backwards: {{args: [{OUT}, {IN}]}}
  both: {{args: [{IN}, {OUT}, {{name: more, dtype: int8, shape: [4], direction: out}}]}}
  grow: {{args: [{{name: data, dtype: int8, shape: [4], direction: inout}}]}}
  scale: {{args: [{IN}, {{name: by, dtype: int8, scalar: true}}, {OUT}]}}
  sort: {{args: [{IN}, {{name: room, dtype: int16, shape: [8], direction: scratch, align: 32}}, {OUT}]}}
  merge: {{args: [{IN}, {{name: one, dtype: int8, shape: [1], direction: scratch}},
                 {{name: two, dtype: int8, shape: [2], direction: scratch}}, {OUT}]}}
  start: {{device: {{}}, async: true, args: [{IN}, {OUT}]}}
  wide: {{args: [{{name: data, dtype: int8, shape: [8]}}, {{name: result, dtype: int8, shape: [8], direction: out}}]}}
  square: {{args: [{{name: data, dtype: int8, shape: [2, 2]}},
                  {{name: result, dtype: int8, shape: [2, 2], direction: out}}]}}
  words: {{args: [{{name: data, dtype: int16, shape: [2]}},
                 {{name: result, dtype: int16, shape: [2], direction: out}}]}}
  aligned: {{args: [{{name: data, dtype: int8, shape: [4], align: 64}},
                   {{name: result, dtype: int8, shape: [4], direction: out, align: 16}}]}}
  idle: {{args: []}}
  give: {{args: [{OUT}]}}
"""
UNTYPED = """  vague: {args: [{name: data, dtype: int16}, {name: result, dtype: int16, direction: out}]}
"""
"""An operator without shapes, which is reported at its declaration."""
DEVICES = """devices:
  left: {devicetree: {nodelabel: left}}
  right: {devicetree: {nodelabel: right}}
"""
X, Y = "x: {dtype: int8, shape: [4]}", "y: {dtype: int8, shape: [4]}"


def manifest(
    *steps: str, inputs: str = X, outputs: str = Y, tensors: str = "", constants: str = "", more: str = ""
) -> str:
    """Return a manifest of these steps, each as `relu: x, y` or `start on left: x, y`, with one tensor in and one out.

    The sections are in YAML's flow style, without braces; `more` follows the operators.
    """
    lines = [OPERATORS + more + "run:", f"  inputs: {{{inputs}}}", f"  outputs: {{{outputs}}}"]
    lines += [f"  tensors: {{{tensors}}}"] if tensors else []
    lines += ["  steps:"] if steps else ["  steps: []"]
    for step in steps:
        call, _, args = step.partition(": ")
        name, _, device = call.partition(" on ")
        on = f", device: {device}" if device else ""
        # A mark before the call is for the step as a whole.
        mark = MARK if name.startswith(MARK) else ""
        lines.append(f"    - {mark}{{call: {name.removeprefix(MARK)}{on}, args: {args}}}")
    lines += [f"constants: {{{constants}}}"] if constants else []
    return "\n".join(lines) + "\n"


def marks(text: str) -> tuple[str, list[str]]:
    """Return a text without its marks, and the position of each as `line:column`."""
    places = []
    for number, line in enumerate(text.splitlines(), start=1):
        at = line.find(MARK)
        while at >= 0:
            line = line[:at] + line[at + 1 :]
            places.append(f"{number}:{at + 1}")
            at = line.find(MARK)
    return text.replace(MARK, ""), places


def resolved(text: str, folder: Path = Path("nowhere")) -> tuple[Flow, list[str], list[str]]:
    """Return the flow of a marked text, its diagnostics as `line:column: error: ...`, and the marked positions."""
    plain, places = marks(text)
    faults = Diagnostics()
    found = read_yaml(plain.encode(), "m.yaml", faults)
    assert found is not None and not len(faults), list(map(str, faults))
    context = Context(found, folder, Diagnostics())
    names, _ = declared_names(context)
    said_before = [str(d) for d in context.faults]
    flow = Dataflow(context, names, Files()).resolve()
    assert all(d.hint is None or d.hint for d in context.faults), "no hint is None, not an empty one"
    output = [str(d).removeprefix("m.yaml:") for d in context.faults.in_order() if str(d) not in said_before]
    return flow, output, places


def types(flow: Flow) -> dict[str, str]:
    return {tensor.name: str(tensor.type) for tensor in flow.intermediates}

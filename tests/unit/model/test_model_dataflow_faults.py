# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of invalid steps, besides those of tests/invalid/steps.cases: text and position.

Each case lists all of its diagnostics, in the order of the marks in its manifest.
"""

import pytest
from dataflow_support import DEVICES, UNTYPED, X, manifest, resolved

ALIASED = (
    "error: tensor 't' is passed for {!r} and {!r} of a step that writes it\n  expected: separate tensors\n"
    "  hint: for an operator that works in place, declare one argument with direction: inout"
)
NEVER = "is read but never written\n  expected: an input, a constant, a state, or a tensor that an earlier step writes"
ORDER = "  hint: steps run in the listed order; to read the value of the last run, declare it under run.state"
TWOFOLD = "\n  expected: one declaration per name\n  hint: first defined at line {}"
WEIGHT = "w: {file: w.bin, dtype: int8, shape: [4]}"
UNREADABLE = "w: {file: no.bin}"

CASES: dict[str, tuple[str, list[str]]] = {
    "what an unknown operator names is left alone": (
        manifest("§rellu on left: [w, t]", "relu: [t, y]", tensors="t: {}", constants=UNREADABLE, more=DEVICES).replace(
            "- §{call: rellu", "- {call: §rellu"
        ),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "too many arguments for one": (
        manifest("relu: [x, y]", "grow: §[y, x]"),
        ["error: operator 'grow' takes 1 argument, the step passes 2\n  expected: data"],
    ),
    "arguments for an operator without any": (
        manifest("relu: [x, y]", "idle: §[x]"),
        ["error: operator 'idle' takes 0 arguments, the step passes 1\n  expected: none"],
    ),
    "scratch memory is listed": (
        manifest("relu: [x, y]", "merge: §[x, one, two, y]"),
        [
            "error: operator 'merge' takes 2 arguments, the step passes 4\n  expected: data, result\n"
            "  hint: omit scratch arguments (one, two): opwest plans their memory"
        ],
    ),
    "a constant that can't be read is written": (
        manifest("grow: [§w]", "relu: [x, y]", constants=UNREADABLE),
        ["error: constant 'w' is written by this step\n  expected: a tensor that is not a constant"],
    ),
    "a constant that can't be read agrees with everything": (
        manifest("wide: [w, t]", "words: [w, u]", "relu: [x, y]", constants=UNREADABLE),
        [],
    ),
    "a constant of another shape": (
        manifest("add: [x, w, y]", "wide: [§w, t]", constants=WEIGHT),
        ["error: shape mismatch: constant 'w' is int8 [4], argument 'data' takes int8 [8]\n  expected: int8 [8]"],
    ),
    "an intermediate tensor is written as another type": (
        manifest("relu: [x, t]", "wide: [v, §t]", "give: [u]", "relu: [u, y]").replace("[v,", "[§v,"),
        [
            f"error: tensor 'v' {NEVER}\n  hint: known names: t, x; if 'wide' writes 'data', declare direction: out",
            "error: shape mismatch: tensor 't' is int8 [4], argument 'result' takes int8 [8]\n  expected: int8 [8]",
        ],
    ),
    "of a tensor that is never written, nothing more is said": (
        manifest("add: [x, §t, y]", "wide: [t, u]", "words: [t, v]", "add: [t, t, w]", tensors="t: {dtype: int16}"),
        [f"error: tensor 't' {NEVER}\n  hint: known names: x; if 'add' writes 'b', declare direction: out"],
    ),
    "nor of one that an unknown operator may write": (
        manifest("§rellu: [x, t]", "add: [x, t, y]", "wide: [t, u]", "words: [t, v]").replace(
            "- §{call: rellu", "- {call: §rellu"
        ),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "one tensor is written twice": (manifest("both: [x, t, §t]", "relu: [t, y]"), [ALIASED.format("result", "more")]),
    "one tensor is written and read": (
        manifest("relu: [x, t]", "backwards: [t, §t]", "relu: [t, y]"),
        [ALIASED.format("result", "data")],
    ),
    "one tensor is read twice, and a later argument written": (
        manifest("relu: [x, t]", "add: [t, t, §t]", "relu: [t, y]"),
        [ALIASED.format("a", "result")],
    ),
    "reads come before writes, whatever the order of the arguments": (
        manifest("backwards: [t, §§t]", "relu: [x, y]"),
        [
            ALIASED.format("result", "data"),
            "error: tensor 't' is read by step 0 before it is written first by this step\n" + ORDER,
        ],
    ),
    "an alias beside a number": (
        manifest("relu: [x, t]", "scale: [t, 1, §t]", "relu: [t, y]"),
        [ALIASED.format("data", "result")],
    ),
    "a name with two meanings is reported alone": (
        manifest("relu: [x, y]", "grow: [x]", "words: [x, x]", "relu: [t, u]", tensors="§x: {}").replace(
            "[t, u]", "[§t, u]"
        ),
        [
            "error: 'x' is declared both as intermediate tensor and as input" + TWOFOLD.format("{inputs}"),
            f"error: tensor 't' {NEVER}\n  hint: known names: x, y; if 'relu' writes 'data', declare direction: out",
        ],
    ),
    "an output with two meanings counts as written": (
        manifest("relu: [x, y]", tensors="§y: {}"),
        ["error: 'y' is declared both as intermediate tensor and as output" + TWOFOLD.format("{outputs}")],
    ),
    "of a type that is not known nothing is said": (
        manifest(
            *("vague: [x, t]", "add: [x, t, u]", "wide: [§t, §u]", "relu: [x, y]"),
            tensors="t: {dtype: int8, shape: [9]}",
            more=UNTYPED,
        ),
        [
            "error: shape mismatch: tensor 't' is int8 [4], argument 'data' takes int8 [8]\n  expected: int8 [8]",
            "error: shape mismatch: tensor 'u' is int8 [4], argument 'result' takes int8 [8]\n  expected: int8 [8]",
        ],
    ),
    "a type that stays unknown": (
        manifest(
            "vague: [x, t]",
            "vague: [t, u]",
            "vague: [x, t]",
            "give: [t]",
            "wide: [§t, v]",
            "relu: [x, y]",
            more=UNTYPED,
        ),
        ["error: shape mismatch: tensor 't' is int8 [4], argument 'data' takes int8 [8]\n  expected: int8 [8]"],
    ),
    "what nothing uses": (
        manifest(
            "relu: [x, y]",
            "start on left: [x, §t]",
            inputs=f"{X}, §spare: {{dtype: int8, shape: [4]}}",
            constants="§w: {file: w.bin, dtype: int8, shape: [4]}",
            more=DEVICES.replace("right", "§right", 1),
        ),
        [
            "warning: unused device 'right'",
            "warning: unused input 'spare'",
            "warning: tensor 't' is written but never read",
            "warning: unused constant 'w'",
        ],
    ),
    "warnings wait until the errors are gone": (
        manifest("relu: [x, t]", outputs="§z: {dtype: int8, shape: [4]}", more=DEVICES),
        ["error: output 'z' is never written\n  expected: a step that writes it"],
    ),
    "a tensor that is grown is read": (manifest("relu: [x, t]", "grow: [t]", "relu: [x, y]"), []),
    "a tensor that is read before it is written again": (manifest("relu: [x, t]", "relu: [t, y]", "relu: [x, t]"), []),
}


@pytest.mark.parametrize("case", CASES)
def test_messages_and_positions_of_faults(case, tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text, expected = CASES[case]
    flow, said, places = resolved(text, tmp_path)
    for number, line in enumerate(text.splitlines(), start=1):
        key = line.strip().partition(":")[0]
        expected = [message.replace(f"{{{key}}}", str(number)) for message in expected]
    assert said == [f"{place}: {message}" for place, message in zip(places, expected, strict=True)]
    assert all(isinstance(name, str) for name in flow.agents), "numbers have no users"

# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of invalid steps: text and position.

Each case lists all of its diagnostics, in the order of the marks in its manifest.
"""

from pathlib import Path

import pytest
from dataflow_support import DEVICES, UNTYPED, X, Y, manifest, resolved

ALIASED = (
    "error: tensor 't' is passed for {!r} and {!r} of a step that writes it\n  expected: separate tensors\n"
    "  hint: for an operator that works in place, declare one argument with direction: inout"
)
READ_ONLY = (
    "is written by this step\n"
    "  expected: a tensor that is not an input\n"
    "  hint: inputs are read-only: write another tensor"
)
SAME_SIZE = "the sizes are equal: declare the same shape in both places, or pass a view with this shape"
NEVER = "is read but never written\n  expected: an input, a constant, a state, or a tensor that an earlier step writes"
ORDER = "  hint: steps run in the listed order; to read the value of the last run, declare it under run.state"
READ_ONLY = (
    "is written by this step\n"
    "  expected: a tensor that is not an input\n"
    "  hint: inputs are read-only: write another tensor"
)
TWOFOLD = "\n  expected: one declaration per name\n  hint: first defined at line {}"
WEIGHT = "w: {file: w.bin, dtype: int8, shape: [4]}"
UNREADABLE = "w: {file: no.bin}"

CASES: dict[str, tuple[str, list[str]]] = {
    "an unknown operator": (
        manifest("relu: [x, y]", "§rellu: [x, t]").replace("- §{call: rellu", "- {call: §rellu"),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "what an unknown operator names is left alone": (
        manifest("§rellu on left: [w, t]", "relu: [t, y]", tensors="t: {}", constants=UNREADABLE, more=DEVICES).replace(
            "- §{call: rellu", "- {call: §rellu"
        ),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "a result of an unknown operator": (
        manifest("§rellu: [x, y]").replace("- §{call: rellu", "- {call: §rellu"),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "too few arguments": (
        manifest("relu: [x, y]", "relu: §[x]"),
        ["error: operator 'relu' takes 2 arguments, the step passes 1\n  expected: data, result"],
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
    "after a step that could not be read, nothing is said of what seems to lack": (
        manifest("relu: §[x]", "relu: [t, u]", "add: [t, u, v]", tensors="a: {}"),
        ["error: operator 'relu' takes 2 arguments, the step passes 1\n  expected: data, result"],
    ),
    "a number for a tensor": (
        manifest("relu: [§3, y]", "relu: [x, z]", outputs=f"{Y}, z: {{dtype: int8, shape: [4]}}"),
        [
            "error: argument 'data' takes a tensor, the step passes 3\n  expected: the name of a tensor\n"
            "  hint: to pass a number, declare the argument with scalar: true"
        ],
    ),
    "a tensor for a number": (
        manifest("scale: [x, §x, y]"),
        ["error: argument 'by' is a scalar, the step passes 'x'\n  expected: a number of dtype int8"],
    ),
    "an input is written in place": (
        manifest("grow: [§x]", "relu: [x, y]"),
        [
            "error: input 'x' is written by this step\n  expected: a tensor that is not an input\n"
            "  hint: inputs are read-only: write another tensor"
        ],
    ),
    "an input is a result": (
        manifest("give: [§x]", "relu: [x, y]"),
        [
            "error: input 'x' is written by this step\n  expected: a tensor that is not an input\n"
            "  hint: inputs are read-only: write another tensor"
        ],
    ),
    "a constant is written": (
        manifest("give: [§w]", "relu: [x, y]", constants=WEIGHT),
        ["error: constant 'w' is written by this step\n  expected: a tensor that is not a constant"],
    ),
    "a constant that can't be read is written": (
        manifest("grow: [§w]", "relu: [x, y]", constants=UNREADABLE),
        ["error: constant 'w' is written by this step\n  expected: a tensor that is not a constant"],
    ),
    "a constant that can't be read agrees with everything": (
        manifest("wide: [w, t]", "words: [w, u]", "relu: [x, y]", constants=UNREADABLE),
        [],
    ),
    "an input of another dtype": (
        manifest("words: [§x, t]", "relu: [x, y]"),
        ["error: dtype mismatch: input 'x' is int8 [4], argument 'data' takes int16 [2]\n  expected: int16 [2]"],
    ),
    "an input of another shape": (
        manifest("wide: [§x, t]", "relu: [x, y]"),
        ["error: shape mismatch: input 'x' is int8 [4], argument 'data' takes int8 [8]\n  expected: int8 [8]"],
    ),
    "an input of another shape and the same size": (
        manifest("square: [§x, t]", "relu: [x, y]"),
        [
            "error: shape mismatch: input 'x' is int8 [4], argument 'data' takes int8 [2, 2]\n"
            f"  expected: int8 [2, 2]\n  hint: {SAME_SIZE}"
        ],
    ),
    "a constant of another shape": (
        manifest("add: [x, w, y]", "wide: [§w, t]", constants=WEIGHT),
        ["error: shape mismatch: constant 'w' is int8 [4], argument 'data' takes int8 [8]\n  expected: int8 [8]"],
    ),
    "an output of another shape": (
        manifest("give: [t]", "square: [§t, §y]", "relu: [x, z]", outputs=f"{Y}, z: {{dtype: int8, shape: [4]}}"),
        [
            "error: shape mismatch: tensor 't' is int8 [4], argument 'data' takes int8 [2, 2]\n"
            f"  expected: int8 [2, 2]\n  hint: {SAME_SIZE}",
            "error: shape mismatch: output 'y' is int8 [4], argument 'result' takes int8 [2, 2]\n"
            f"  expected: int8 [2, 2]\n  hint: {SAME_SIZE}",
        ],
    ),
    "an intermediate tensor is written as another type": (
        manifest("relu: [x, t]", "wide: [v, §t]", "give: [u]", "relu: [u, y]").replace("[v,", "[§v,"),
        [
            f"error: tensor 'v' {NEVER}\n  hint: known names: t, x",
            "error: shape mismatch: tensor 't' is int8 [4], argument 'result' takes int8 [8]\n  expected: int8 [8]",
        ],
    ),
    "a declared dtype and shape that the writer does not make": (
        manifest("relu: [x, t]", "relu: [t, y]", tensors="t: {dtype: §int16, shape: §[8]}"),
        [
            "error: tensor 't' is declared with dtype int16, "
            "but argument 'result' of the step that writes it is int8 [4]\n"
            "  expected: dtype: int8",
            "error: tensor 't' is declared with shape [8], "
            "but argument 'result' of the step that writes it is int8 [4]\n"
            "  expected: shape: [4]",
        ],
    ),
    "a tensor with a name that C can't have": (
        manifest("relu: [x, §int]", "relu: [int, y]"),
        [
            "error: tensor name 'int' is a keyword of C\n"
            "  expected: letters, digits and _, beginning with a letter, other than a keyword of C or C++\n"
            "  hint: use a name such as 't_int'"
        ],
    ),
    "a tensor is read before it is written": (
        manifest("relu: [§t, y]", "relu: [x, u]", "relu: [u, t]"),
        ["error: tensor 't' is read by step 0 before it is written by the later step 2\n" + ORDER],
    ),
    "a tensor is read before it is written, said once": (
        manifest("relu: [§t, y]", "relu: [t, u]", "relu: [u, v]", "add: [x, v, t]"),
        ["error: tensor 't' is read by step 0 before it is written by the later step 3\n" + ORDER],
    ),
    "a tensor is grown before it is written": (
        manifest("relu: [x, y]", "grow: [§t]", "relu: [t, u]", "add: [t, u, v]"),
        ["error: tensor 't' is read by step 1 before it is written first by this step\n" + ORDER],
    ),
    "an output is read before it is written": (
        manifest("relu: [§y, t]", "add: [x, t, y]"),
        ["error: output 'y' is read by step 0 before it is written by the later step 1\n" + ORDER],
    ),
    "an output is read and never written": (
        manifest("add: [x, §y, t]"),
        [f"error: output 'y' {NEVER}\n  hint: known names: x"],
    ),
    "a tensor is never written": (
        manifest("relu: [x, tall]", "add: [tall, §tal, y]", "relu: [tal, u]"),
        [f"error: tensor 'tal' {NEVER}\n  hint: did you mean 'tall'?"],
    ),
    "of a tensor that is never written, nothing more is said": (
        manifest("add: [x, §t, y]", "wide: [t, u]", "words: [t, v]", "add: [t, t, w]", tensors="t: {dtype: int16}"),
        [f"error: tensor 't' {NEVER}\n  hint: known names: x"],
    ),
    "nor of one that an unknown operator may write": (
        manifest("§rellu: [x, t]", "add: [x, t, y]", "wide: [t, u]", "words: [t, v]").replace(
            "- §{call: rellu", "- {call: §rellu"
        ),
        ["error: undefined operator 'rellu'\n  hint: did you mean 'relu'?"],
    ),
    "what may be read": (
        manifest("relu: [x, t]", "add: [t, §mystery, y]", constants=WEIGHT),
        [f"error: tensor 'mystery' {NEVER}\n  hint: known names: t, w, x"],
    ),
    "one tensor is read and written": (
        manifest("relu: [x, t]", "relu: [t, §t]", "relu: [t, y]"),
        [ALIASED.format("data", "result")],
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
    "an output is never written": (
        manifest("relu: [x, y]", outputs=f"{Y}, §z: {{dtype: int8, shape: [4]}}"),
        ["error: output 'z' is never written\n  expected: a step that writes it"],
    ),
    "a declared tensor that no step uses": (
        manifest("relu: [x, middle]", "relu: [middle, y]", tensors="§midle: {}"),
        ["error: unused tensor 'midle'\n  hint: did you mean 'middle'?"],
    ),
    "a name with two meanings is reported alone": (
        manifest("relu: [x, y]", "grow: [x]", "words: [x, x]", "relu: [t, u]", tensors="§x: {}").replace(
            "[t, u]", "[§t, u]"
        ),
        [
            "error: 'x' is declared both as intermediate tensor and as input" + TWOFOLD.format("{inputs}"),
            f"error: tensor 't' {NEVER}\n  hint: known names: x, y",
        ],
    ),
    "a constant that is declared as a tensor too": (
        manifest("add: [w, x, y]", constants=WEIGHT, tensors="§w: {}"),
        ["error: 'w' is declared both as intermediate tensor and as constant" + TWOFOLD.format("{constants}")],
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
    "an unknown device": (
        manifest("start on §lift: [x, t]", "start on right: [t, y]", more=DEVICES),
        ["error: undefined device 'lift'\n  hint: did you mean 'left'?"],
    ),
    "no device for an operator that takes one": (
        manifest("§start: [x, y]", more=DEVICES),
        [
            "error: operator 'start' takes a device, the step has none\n  expected: device: NAME\n"
            "  hint: known names: left, right"
        ],
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
def test_messages_and_positions_of_faults(case: str, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text, expected = CASES[case]
    flow, said, places = resolved(text, tmp_path)
    for number, line in enumerate(text.splitlines(), start=1):
        key = line.strip().partition(":")[0]
        expected = [message.replace(f"{{{key}}}", str(number)) for message in expected]
    assert said == [f"{place}: {message}" for place, message in zip(places, expected, strict=True)]
    assert all(isinstance(name, str) for name in flow.agents), "numbers have no users"

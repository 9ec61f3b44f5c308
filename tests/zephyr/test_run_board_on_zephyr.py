# SPDX-License-Identifier: Apache-2.0
"""`opwest run --board`: results from native_sim and QEMU equal those of the host, over the shell and over SMP."""

import json
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from compile.bfloat16_support import X, Y, bits_of, write_project
from cover import configured
from examples.example_files import held_out_of
from opwest.runs.connection import RunningImage
from requirements_support import need

pytestmark = pytest.mark.zephyr

# One transport per board: the shell; SMP over the shell (required by the UART's driver); SMP over a UART.
BOARDS = ["native_sim/native/64", "mps2/an385", "qemu_cortex_m3"]
EMULATED = "mps2/an386"
"""Zephyr has no QEMU runner for it."""
ELEMENTS = 6000
OPERATORS = """
#include <stdint.h>

int32_t shift(const int16_t *x, int16_t *y)
{
	if (x[0] == -1) {
		return 77;
	}
	for (int i = 0; i < ELEMENTS; i++) {
		y[i] = (int16_t)(x[i] ^ 0x5a5a);
	}
	return 0;
}
"""
MANIFEST = f"""\
version: 1
model: large
objects: [{{files: [shift.c]}}]
operators:
  shift:
    args:
      - {{name: x, dtype: int16, shape: [{ELEMENTS}]}}
      - {{name: y, dtype: int16, shape: [{ELEMENTS}], direction: out}}
run:
  inputs: {{x: {{dtype: int16, shape: [{ELEMENTS}]}}}}
  outputs: {{y: {{dtype: int16, shape: [{ELEMENTS}]}}}}
  steps: [{{call: shift, args: [x, y]}}]
"""


@pytest.fixture(scope="module")
def programs(opwest, digits, tmp_path_factory):
    """One application of digits, `large` and bfloat16's `brain`."""
    folder = tmp_path_factory.mktemp("größe")
    (folder / "shift.c").write_text(OPERATORS.replace("ELEMENTS", str(ELEMENTS)))
    (folder / "manifest.yaml").write_text(MANIFEST)
    brain = write_project(folder / "brain") / "manifest.yaml"
    manifests = [digits.parent / "example" / "manifest.yaml", folder / "manifest.yaml", brain]
    opwest("generate", *manifests, "-o", folder / "app")
    return folder / "app"


@configured("board", BOARDS)
def test_digits_equals_the_host_run(on_board, opwest, digits, programs, board, tmp_path):
    if board != "qemu_cortex_m3":  # its memory is too small for all models
        digits = programs
    images, _, predictions = held_out_of("digits")
    sources = {path: path.read_bytes() for path in digits.rglob("*") if path.is_file() and "build" not in path.parts}
    labels = []
    for number in range(3):
        np.save(tmp_path / "image.npy", images[number : number + 1])
        inputs = ["--model", "digits", "--input", f"image={tmp_path / 'image.npy'}"]
        opwest("run", digits, "--host", *inputs, "--output-dir", tmp_path / "host")
        given = [*inputs, "--reference", f"label={tmp_path / 'host' / 'label.npy'}", "--output-dir", tmp_path / "board"]
        done = on_board(digits, board, *given, *(["--no-build"] if number else []), "--repeat", 2)
        assert "label: equal to the reference" in done.stdout
        label = np.load(tmp_path / "board" / "label.npy")
        np.testing.assert_array_equal(label, np.load(tmp_path / "host" / "label.npy"))
        np.testing.assert_array_equal(label, predictions[number : number + 1])
        labels.append(int(label[0]))
        if board.startswith("native_"):
            assert "latency: unknown" in done.stdout
        else:
            assert re.search(r"^latency: [\d.]+ ms \(median of 2 runs, ", done.stdout, re.MULTILINE)
            assert "emulated time: it differs from the time on the board" in done.stdout
    assert len(set(labels)) > 1, "different images have different results"
    assert sources == {path: path.read_bytes() for path in sources}, "the application's files are unchanged"
    # Already built: west does not configure again.
    assert "configuring" not in done.stderr


@configured("board", ["native_sim/native/64", "mps2/an385", EMULATED])
def test_tensors_larger_than_a_frame_and_a_model_that_fails(on_board, programs, board, tmp_path):
    large = (programs, board, "--model", "large")
    x = np.random.default_rng(3).integers(0, 2**15 - 1, ELEMENTS, dtype=np.int16)
    np.save(tmp_path / "x.npy", x)
    done = on_board(*large, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path, "--json")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x ^ 0x5A5A)
    clock = json.loads(done.stdout)["result"]["clock"]
    assert clock == ("simulated" if board.startswith("native_") else "emulated")
    x[0] = -1
    np.save(tmp_path / "x.npy", x)
    done = on_board(*large, "--no-build", "--input", f"x={tmp_path / 'x.npy'}", code=1)
    assert "opwest: error: large_run returned EIO in step 0 (shift): the operator returned 77" in done.stderr


@configured(board="native_sim/native/64")
def test_bfloat16_results_are_numbers(on_board, programs, tmp_path):
    np.save(tmp_path / "x.npy", bits_of(X))
    words = ["--model", "brain", "--input", f"x={tmp_path / 'x.npy'}", "--json"]
    done = on_board(programs, "native_sim/native/64", *words)
    assert json.loads(done.stdout)["result"]["outputs"] == {"y": Y.tolist()}


CHAIN = """
#include <stdint.h>

#ifdef __ZEPHYR__ /* wrong for the board, right for the host */
#define FAULT(i) ((i) == 700 ? 3 : 0)
#else
#define FAULT(i) 0
#endif

void twice(const int16_t *x, int16_t *y)
{
	for (int i = 0; i < 1200; i++) {
		y[i] = (int16_t)(2 * x[i]);
	}
}

void offset(const int16_t *x, int16_t *y)
{
	for (int i = 0; i < 1200; i++) {
		y[i] = (int16_t)(x[i] + 5 + FAULT(i));
	}
}

void total(const int16_t *x, int32_t *y)
{
	y[0] = 0;
	for (int i = 0; i < 1200; i++) {
		y[0] += x[i];
	}
}
"""


@pytest.fixture(scope="module")
def chains(opwest, tmp_path_factory):
    """A model of four steps with metadata of each back end; the operator of the second step is wrong on boards."""
    folder = tmp_path_factory.mktemp("chain")
    tensor = "dtype: int16, shape: [3, 400]"
    operators = "".join(
        f"  {name}:\n    returns: void\n    args:\n"
        f"      - {{name: x, {tensor}}}\n      - {{name: y, {y}, direction: out}}\n"
        for name, y in (("twice", tensor), ("offset", tensor), ("total", "dtype: int32, shape: [1]"))
    )
    steps = [("twice", "[x, a]"), ("offset", "[a, b]"), ("twice", "[b, c]"), ("total", "[c, y]")]
    (folder / "chain.c").write_text(CHAIN)
    (folder / "manifest.yaml").write_text(
        f"version: 1\nmodel: chain\nobjects: [{{files: [chain.c]}}]\noperators:\n{operators}run:\n"
        f"  inputs: {{x: {{{tensor}}}}}\n  outputs: {{y: {{dtype: int32, shape: [1]}}}}\n  steps:\n"
        + "".join(f"    - {{call: {call}, args: {args}}}\n" for call, args in steps)
    )
    boards = [word for board in ("native_sim/native/64", "mps2/an385") for word in ("--board", board)]
    for back_end in ("c", "llvm"):
        need(*(["llvmlite"] if back_end == "llvm" else []))
        opwest("generate", folder / "manifest.yaml", *boards, "--metadata", back_end, "-o", folder / back_end)
    assert list((folder / "llvm").rglob("chain_metadata*.o"))
    return {back_end: folder / back_end for back_end in ("c", "llvm")}


@configured("back_end, board", [("c", "native_sim/native/64"), ("llvm", "mps2/an385")])
def test_check_steps_names_the_wrong_operator(on_board, chains, back_end, board, tmp_path):
    chain = chains[back_end]
    np.save(tmp_path / "x.npy", x := np.arange(1200, dtype=np.int16).reshape(3, 400))
    np.save(tmp_path / "a.npy", 2 * x)
    np.save(tmp_path / "b.npy", np.where(np.arange(1200) == 700, 8, 5).astype(np.int16).reshape(3, 400) + 2 * x)
    arguments = ["--check-steps", "--input", f"x={tmp_path / 'x.npy'}"]
    done = on_board(chain, board, *arguments, code=1)
    assert done.stdout.splitlines()[1] == (
        "step 1 (offset) differs: tensor b: 1 of 1200 elements differ from the reference: "
        "largest error 3 at [1, 300], mean 0.0025"
    )
    # No difference from given vectors, or within the tolerance.
    references = [word for name in "ab" for word in ("--reference", f"{name}={tmp_path / name}.npy")]
    done = on_board(chain, board, "--no-build", *arguments, *references)
    assert done.stdout.splitlines()[1] == "no difference in 2 of 4 steps: 2 results equal the given references"
    done = on_board(chain, board, "--no-build", "--json", *arguments, "--tolerance", 6)
    counts = {"tensor_count": 4, "step_count": 4, "all_step_count": 4}
    check = {"first": None, **counts, "reference": "those of the host"}
    assert json.loads(done.stdout)["result"]["check"] == check


@configured("back_end, board", [(back_end, board) for back_end in ("c", "llvm") for board in BOARDS[:2]])
def test_call_of_one_operator(on_board, chains, back_end, board, tmp_path):
    chain = chains[back_end]
    np.save(tmp_path / "x.npy", x := np.arange(1200, dtype=np.int16).reshape(3, 400))
    arguments = ["--arg", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path]
    done = on_board(chain, board, "offset", *arguments, verb="call")
    expected = x + 5
    expected[1, 300] += 3  # the planted fault
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    assert done.stdout.startswith(f"offset of chain on {board}, ") and "latency: " in done.stdout
    done = on_board(chain, board, "total", "--no-build", "--json", *arguments, verb="call")
    assert json.loads(done.stdout)["result"]["outputs"] == {"y": [int(x.sum())]}


@configured("board", ["mps2/an385", "native_sim/native/64"])
def test_image_without_the_service(on_board, workspace, programs, board, tmp_path):
    """First by its build directory, then by its responses."""
    np.save(tmp_path / "x.npy", np.zeros(ELEMENTS, np.int16))
    shell = ["-DCONFIG_SHELL=y"] if board.startswith("native_") else []
    built = workspace.build(programs, board, "-DQEMU_PTY=ON", *shell)
    arguments = ["--model", "large", "--no-build", "--input", f"x={tmp_path / 'x.npy'}", "--timeout", 5]
    done = on_board(programs, board, *arguments, "--build-dir", built.folder, code=1)
    assert f"the image in '{built.folder}' has no opwest service" in done.stderr
    command = [workspace.west, "build", "-d", str(built.folder), "-t", "run"]
    with RunningImage(command, workspace.base.parent, built.env) as image:
        device = image.device(60)
        arguments += ["--no-flash", "--serial", device, "--build-dir", tmp_path / "elsewhere"]
        done = on_board(programs, board, *arguments, code=1)
    assert done.stderr.count("error: ") == 1
    if board.startswith("native_"):
        answer = "has no opwest service: its shell has no command 'opwest describe'"
        assert f"the image on '{device}' {answer}" in done.stderr
    else:
        assert f"{device}: timeout after 5 s waiting for a response to an SMP request; " in done.stderr


@configured(board="native_sim/native/64")
def test_failed_build_output_is_shortened(on_board, programs, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(ELEMENTS, np.int16))
    main = programs / "src" / "main.c"
    content = main.read_text()
    try:
        main.write_text(content + "\nint broken = undeclared;\n")
        done = on_board(
            programs, "native_sim/native/64", "--model", "large", "--input", f"x={tmp_path / 'x.npy'}", code=1
        )
    finally:
        main.write_text(content)
    messages = [line for line in done.stderr.splitlines() if not line.startswith("== ")]
    assert re.match(rf"{re.escape(str(main))}:\d+:14: error: .*undeclared.* undeclared here", messages[0])
    assert messages[1] == "opwest: error: the build failed (west build, exit code 1)"
    log = messages[2].removeprefix("  hint: complete log: ")
    assert "undeclared here" in Path(log).read_text(errors="replace") and len(messages) < 6


@configured(board="native_sim/native/64")
def test_run_over_udp(on_board, programs, tmp_path):
    """The simulator uses the network of this machine; a closed port is an error."""
    np.save(tmp_path / "x.npy", x := np.arange(ELEMENTS, dtype=np.int16))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["--model", "large", "--input", f"x={tmp_path / 'x.npy'}", "--udp", place]
    done = on_board(programs, "native_sim/native/64", *words, "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x ^ 0x5A5A)
    assert done.stdout.startswith(f"large on native_sim/native/64, {place}\n")
    done = on_board(programs, "native_sim/native/64", *words, "--no-build", "--no-flash", "--timeout", 1, code=1)
    assert f"{place}: timeout after 1 s waiting for a response to an SMP request; received nothing" in done.stderr


@configured("board", ["native_sim/native/64", "qemu_cortex_m3"])
def test_application_unlocks_the_service(opwest, on_board, board, tmp_path):
    """Over the shell and over SMP."""
    (tmp_path / "shift.c").write_text(OPERATORS.replace("ELEMENTS", "4"))
    application = (
        "application: {sources: [main.c], kconfig: {CONFIG_OPWEST_SERVICE_LOCKED: y, CONFIG_OPWEST_SERVICE: y}}\n"
    )
    (tmp_path / "manifest.yaml").write_text(MANIFEST.replace(str(ELEMENTS), "4") + application)
    main = tmp_path / "main.c"
    main.write_text("int main(void)\n{\n\treturn 0;\n}\n")
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.int16))
    opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app")
    arguments = ["--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out"]
    done = on_board(tmp_path / "app", board, *arguments, code=1)
    assert "is locked\n  hint: the application unlocks it with opwest_service_permit(true)" in done.stderr, done.stderr
    unlocked = "#include <opwest/service.h>\nint main(void)\n{\n\topwest_service_permit(true);\n\treturn 0;\n}\n"
    (tmp_path / "app" / "src" / "main.c").write_text(unlocked)
    done = on_board(tmp_path / "app", board, *arguments)
    assert (np.load(tmp_path / "out" / "y.npy") == np.arange(4) ^ 0x5A5A).all()

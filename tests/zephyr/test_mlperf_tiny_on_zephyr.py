# SPDX-License-Identifier: Apache-2.0
"""examples/mlperf_tiny on native_sim and in QEMU; a sample of benchmarks/int8_models.py."""

import os
import re
import runpy
import select
import subprocess
import time
import tty
from types import SimpleNamespace

import numpy as np
import pytest
from cover import configured
from image_sizes import check_sizes, prefix_of, reported
from models.oracle import litert
from models.real import model_file, structured_and_random
from opwest.tuning.measure import built_plugin
from requirements_support import need
from zephyr_support import ROOT

need("tflite", "ai_edge_litert", "qemu-system-arm")

pytestmark = pytest.mark.zephyr
SECONDS = 30
NATIVE, EMULATED = "native_sim/native/64", "mps2/an386"
EMULATOR = "qemu-system-arm -M mps2-an386 -display none -monitor none -serial pty -kernel".split()
SHAPES = {"kws": (1, 49, 10, 1), "ic": (1, 32, 32, 3), "vww": (1, 96, 96, 3), "ad": (1, 640)}
CASES = [("vww", "vww_int8", EMULATED), ("kws", "kws_int8", NATIVE), ("kws", "kws_int8", EMULATED)]
CASES += [("ad", "ad01_int8", NATIVE), ("ic", "ic_int8", NATIVE)]


class Device:
    """An image in simulation, as the runner uses it: a command, then lines up to m-ready."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        line = self.process.stdout.readline().decode()
        found = re.search(r"(?:connected to pseudotty: |redirected to )(\S+)", line)
        assert found, line
        self.port = os.open(found[1], os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.port)

    def answer(self, last=b"m-ready\r\n"):
        text, end = b"", time.monotonic() + SECONDS
        while last not in text:
            assert time.monotonic() < end, f"no m-ready within {SECONDS} s: {text!r}"
            if select.select([self.port], [], [], 1)[0]:
                text += os.read(self.port, 4096)
        return text.decode().split("\r\n")[:-2]

    def command(self, text):
        os.write(self.port, f"{text}%".encode())
        return self.answer()

    def load(self, data):
        """Load an input in lines of 31 bytes, as the runner does."""
        assert self.command(f"db load {len(data)}") == [f"m-[Expecting {len(data)} bytes]"]
        for i in range(0, len(data), 31):
            last = self.command(f"db {data[i : i + 31].hex()}")
        assert last == ["m-load-done"]

    def close(self):
        os.close(self.port)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def check_report(model, image):
    """The figures of the report are those of nm, of the map file, and of the linker's table."""
    check_sizes(model, image.elf, prefix_of(image.board))
    assert model["variant"] == (None if image.board == NATIVE else "dsp")
    (linked,) = model["images"]
    used = {name: int(size) for name, size in re.findall(r"^ +(FLASH|RAM): +(\d+) B ", image.log, re.MULTILINE)}
    assert used == ({} if image.board == NATIVE else {"FLASH": linked["flash"], "RAM": linked["ram"]})


def numbers(lines):
    found = re.fullmatch(r"m-results-\[([-0-9.,]+)\]", lines[-1])
    assert found, lines
    return [float(word) for word in found[1].split(",")]


@configured("task, file, board", CASES)
def test_runner_measures_and_gets_results_of_litert(workspace, opwest, tmp_path, task, file, board):
    run = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "mlperf_tiny" / "run.py")))
    path = model_file(f"{file}.tflite")
    opwest("import", "tflite", path, "-o", tmp_path / "model", "--model", "mlperf_tiny")
    run.add_application(tmp_path / "model", run.TASKS[task])
    opwest("generate", tmp_path / "model" / "manifest.yaml", "-o", tmp_path / "app")
    header = dict(re.findall(r"#define (\w+) +\(?(.+?)[)f]?\n", (tmp_path / "model" / "benchmark.h").read_text()))
    scales = [(float(header[f"{role}_SCALE"]), int(header[f"{role}_ZERO_POINT"])) for role in ("INPUT", "OUTPUT")]
    properties = run.TASKS[task]
    inputs = [structured_and_random(SHAPES[task], "int8")[i] for i in ((1, 60) if task == "kws" else (60,))]
    expected = litert(path.read_bytes(), inputs)
    image = workspace.build(tmp_path / "app", board)
    check_report(reported(tmp_path / "app", image.folder), image)
    built = image.folder / "zephyr"
    device = Device([str(built / "zephyr.exe")] if board == NATIVE else [*EMULATOR, str(built / "zephyr.elf")])
    try:
        if board == NATIVE:
            assert device.answer()[-1] == "m-init-done"
        # QEMU drops the output at the start, or a part of it, if the terminal is not open yet.
        os.write(device.port, b"name%")
        assert device.answer(b"m-name-dut-[opwest]\r\nm-ready\r\n")[-1] == "m-name-dut-[opwest]"
        assert device.command("profile")[-1] == f"m-model-[{properties.model}]"
        for [given], [output] in zip(inputs, expected, strict=True):
            real = (given.astype(np.float32) - np.float32(scales[0][1])) * np.float32(scales[0][0])
            result = (output.astype(np.float32) - scales[1][1]) * scales[1][0]
            sent = (given.view(np.uint8) ^ properties.flip).tobytes()
            device.load(real.astype("<f4").tobytes() if properties.floats else sent)
            wanted = [float(np.mean((result - real) ** 2))] if properties.floats else result.ravel().tolist()
            accuracy = device.command("infer 1 0")
            np.testing.assert_allclose(numbers(accuracy), wanted, rtol=1e-5, atol=6e-4)
            performance = device.command("infer 7 2")
            assert performance[:3] == ["m-warmup-start-2", "m-warmup-done", "m-infer-start-7"]
            laps = [int(line.removeprefix("m-lap-us-")) for line in performance if line.startswith("m-lap-us-")]
            assert len(laps) == 2 and laps[0] <= laps[1]
            assert numbers(performance) == numbers(accuracy)
        assert device.command("infre 1") == ["e-[Unknown command: infre]"]
        assert device.command("db load 99999")[0].startswith("e-[The buffer has ")
        assert device.command("infer 1 0") == ["e-[The input does not fit the model: 0 bytes]"]
    finally:
        device.close()


@configured(board=EMULATED)
@pytest.mark.needs("arm-none-eabi-gcc", "arm-none-eabi-objdump", "cc")
def test_keyword_model_is_within_its_limits(workspace, tmp_path, monkeypatch):
    """A sample of benchmarks/int8_models.py, on a Cortex-M4."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import int8_models
    from zephyr_images import Images

    board, name = int8_models.M4, "kws_int8"
    for variable, value in workspace.environment(board).items():
        monkeypatch.setenv(variable, value)
    words = int8_models.import_words(int8_models.SPEED, board)
    images, plugin = Images(board), built_plugin(tmp_path)
    found = int8_models.measured(model_file(f"{name}.tflite"), words, images, plugin, tmp_path, [])
    assert len(found.steps) == 12
    steps = sum(one.instructions for _, one in found.steps)
    assert 0.99 * found.whole.instructions < steps <= found.whole.instructions
    key, peer = (board, name, int8_models.SPEED), int8_models.PEERS[board, name]
    assert 1_000_000 < found.whole.instructions <= int8_models.MAX_INSTRUCTIONS[key]
    assert found.whole.instructions < found.whole.cycles <= int8_models.MAX_CYCLES[key]
    assert found.flash <= peer.flash
    assert found.ram <= peer.ram * int8_models.MAX_RAM

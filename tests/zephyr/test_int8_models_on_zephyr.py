# SPDX-License-Identifier: Apache-2.0
"""A sample of benchmarks/int8_models.py: the keyword model on a Cortex-M4, within its limits."""

import sys
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need

need("tflite", "arm-none-eabi-gcc", "arm-none-eabi-objdump", "qemu-system-arm", "cc")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import int8_models  # noqa: E402
from models.real import model_file  # noqa: E402
from opwest.tuning.emulator import built_plugin  # noqa: E402
from zephyr_images import Images  # noqa: E402

pytestmark = pytest.mark.zephyr


@configured(board="mps2/an386")
def test_keyword_model_is_within_its_limits(workspace, tmp_path, monkeypatch):
    board, name = int8_models.M4, "kws_int8"
    for variable, value in workspace.environment(board).items():
        monkeypatch.setenv(variable, value)
    images, plugin = Images(board), built_plugin(tmp_path)
    words = int8_models.import_words(int8_models.SPEED, board)
    found = int8_models.measured(model_file(f"{name}.tflite"), words, images, plugin, tmp_path, [])
    assert len(found.steps) == 12
    steps = sum(one.instructions for _, one in found.steps)
    assert 0.99 * found.whole.instructions < steps <= found.whole.instructions
    key, peer = (board, name, int8_models.SPEED), int8_models.PEERS[board, name]
    assert 1_000_000 < found.whole.instructions <= int8_models.MOST_INSTRUCTIONS[key]
    assert found.whole.instructions < found.whole.cycles <= int8_models.MOST_CYCLES[key]
    assert found.flash <= peer.flash
    assert found.ram <= peer.ram * int8_models.MOST_RAM

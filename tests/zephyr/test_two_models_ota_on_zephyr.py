# SPDX-License-Identifier: Apache-2.0
"""examples/two_models_ota: three installations into a running image, by the one command of its page."""

import re
import subprocess
import sys

import pytest
from cover import configured
from models.real import model_file
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr


@configured("board", ["mps2/an385", "mps3/corstone300/an547"])
def test_one_command_replaces_models(workspace, board):
    need("arm-none-eabi-gcc", "qemu-system-arm", "openssl", "cryptography", "smpclient", "tflite")
    run = ROOT / "examples" / "two_models_ota" / "run.py"
    done = subprocess.run(
        [sys.executable, run, model_file("kws_int8.tflite"), "--board", board],
        env=workspace.opwest_environment(board),
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    slots = {"mps2/an385": ("0x21000000", "0x21040000"), "mps3/corstone300/an547": ("0x60000000", "0x60040000")}[board]
    shown = "\n".join(lines[lines.index("== installing digits") :])
    for text in (
        f"digits 1.0.0 runs from slot 0 at {slots[0]}",
        f"slot 0 at {slots[0]}, 262144 bytes (next): digits 2.0.0",
        f"keyword_spotting 1.0.0 runs from slot 1 at {slots[1]}",
        "before: digits 1.0.0 in slot 0",
        "the board refuses digits 2.0.0 (vector): the outputs of golden vector 0 differ from the expected ones",
    ):
        assert text in shown, shown
    assert lines[-3:-1] == [
        f"slot 1 at {slots[1]}, 262144 bytes (active): keyword_spotting 1.0.0",
        "the latest trial ended with: vector",
    ], shown
    assert re.fullmatch(r"done in [\d.]+ s", lines[-1]), shown

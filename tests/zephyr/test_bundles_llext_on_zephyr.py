# SPDX-License-Identifier: Apache-2.0
"""Bundles that Zephyr's LLEXT loads into RAM, in QEMU: the loader alone, and behind the manager of slots."""

import re
import struct
from collections.abc import Callable

import pytest
from bundle_support import MACHINES, TARGETS, Board, bundle, digits_model, held_out_cases, private_key
from campaign import sized
from cover import configured
from requirements_support import need
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
OVERLAYS = ROOT / "examples" / "two_models_ota" / "application" / "boards"
LOADER = ROOT / "tests" / "zephyr" / "programs" / "bundles_llext"
MPU = "-DCONFIG_USERSPACE=y"
NO_MPU = "-DCONFIG_ARM_MPU=n"
BOARDS = [(board, mpu) for board in MACHINES if "/" in board for mpu in (MPU, NO_MPU)]
LOADS = sized(150, 3000)
"""Loads of images with a changed byte."""


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """Make a bundle for LLEXT of digits, of digits with other labels, or of vibration."""
    need("arm-none-eabi-gcc", "cryptography")
    folder = tmp_path_factory.mktemp("bundles")
    key = private_key(folder, "trusted")
    manifests = {
        "digits": digits_model(folder / "digits"),
        "rolled": digits_model(folder / "rolled", 1),
        "vibration": ROOT / "examples" / "vibration" / "manifest.yaml",
    }

    def made(name: str, board: str, version: str = "1.0.0", *options: str) -> bytes:
        out = folder / f"{name}.bundle"
        given = ["--llext", "--target", TARGETS[board], "--model-version", version, "--vectors", 20, *options]
        return bundle(manifests[name], *given, "--key", key, "-o", out).read_bytes()

    return made


def count(text: str, number: int) -> str:
    """Return the line of a run in which all images are right."""
    return f"{text}: {number} of {number}"


@configured("board, mpu", BOARDS)
def test_loads_installs_and_replaces(workspace: Workspace, make: Callable[..., bytes], board: str, mpu: str) -> None:
    overlay = OVERLAYS / f"{board.replace('/', '_')}.overlay"
    target = Board(board, workspace.build(LOADER, board, f"-DDTC_OVERLAY_FILE={overlay}", mpu))
    digits, vibration = make("digits", board), make("vibration", board)
    rolled = make("rolled", board, "1.1.0")
    signed = struct.unpack_from("<I", digits, 8)[0]
    changed = bytearray(digits)
    changed[signed // 2] ^= 4
    script = "\n".join(
        [
            *("options 0 1", "start", "install 2", "cases 5", "install 4", "cases 6", "rollback", "cases 5"),
            *("install 7", "cases 5", "install 3", "install 2", "cases 5", "list", "stack", "reset"),
            *("start", "cases 5", "rollback", "install 4", "cases 6"),
        ]
    )
    parts = [struct.pack("<I", LOADS), digits, vibration, rolled, held_out_cases(), held_out_cases(1), bytes(changed)]
    lines = target.run(script, parts)
    text = "\n".join(lines)
    print(board, mpu, *(line for line in lines if line.startswith(("load:", "damaged:", "stack:"))), sep="\n")
    assert "FAILED" not in text
    assert "loader: 0 failed" in lines, text
    places = re.findall(r"constants (.*)$", text, re.MULTILINE)
    assert places and set(places) == {"in place"}
    installs = [line.split()[1:3] for line in lines if line.startswith(("install:", "rollback:"))]
    assert installs[3] == ["-77", "signature"], text
    del installs[3]
    assert all(row == ["0", "good"] for row in installs), text
    assert len(installs) == 7
    results = [line for line in lines if line.startswith("cases:")]
    assert results == [count("cases", 360)] * 7, text


@configured(
    "board, option, reason",
    [
        ("mps2/an385", "-DCONFIG_USERSPACE=n", "!MPU || USERSPACE"),
        ("native_sim/native/64", "-DCONFIG_OPWEST_BUNDLE=y", "CPU_CORTEX_M"),
    ],
)
def test_options_that_are_not_safe_have_no_loader(workspace: Workspace, board: str, option: str, reason: str) -> None:
    slots = [f"-DDTC_OVERLAY_FILE={OVERLAYS / 'mps2_an385.overlay'}"] if board == "mps2/an385" else []
    _, built = workspace.try_build(LOADER, board, "-DCONFIG_OPWEST_BUNDLE_LLEXT=y", option, *slots, target="")
    assert "OPWEST_BUNDLE_LLEXT" in built.log
    assert reason in re.sub(r"\s+", " ", built.log)
    assert "CONFIG_OPWEST_BUNDLE_LLEXT=y" not in (built.folder / "zephyr" / ".config").read_text()

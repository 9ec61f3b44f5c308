# SPDX-License-Identifier: Apache-2.0
"""Bundles in QEMU: loaded into RAM by Zephyr's LLEXT, with two accelerators, and written code on RISC-V."""

import hashlib
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest
from bundle_support import (
    MACHINES,
    TARGETS,
    Board,
    bundle,
    digits_model,
    held_out_cases,
    private_key,
    run_image,
    slots_of,
)
from campaign import sized
from cover import configured
from examples.example_files import held_out_of
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
PROGRAMS = ROOT / "tests" / "zephyr" / "programs"
LOADER = PROGRAMS / "bundles_llext"
MPU = "-DCONFIG_USERSPACE=y"
NO_MPU = "-DCONFIG_ARM_MPU=n"
BOARDS = [(board, mpu) for board in MACHINES for mpu in (MPU, NO_MPU)]
LOADS = sized(150, 3000)
"""Loads of images with a changed byte."""


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Make a bundle for LLEXT of digits, of digits with other labels, or of vibration."""
    need("arm-none-eabi-gcc", "cryptography")
    folder = tmp_path_factory.mktemp("bundles")
    key = private_key(folder, "trusted")
    manifests = {
        "digits": digits_model(folder / "digits"),
        "rolled": digits_model(folder / "rolled", 1),
        "vibration": ROOT / "examples" / "vibration" / "manifest.yaml",
    }

    def made(name, board, version="1.0.0", *options):
        out = folder / f"{name}.bundle"
        given = ["--llext", "--target", TARGETS[board], "--model-version", version, "--vectors", 20, *options]
        return bundle(manifests[name], *given, "--key", key, "-o", out).read_bytes()

    return made


@configured("board, mpu", BOARDS)
def test_loads_installs_and_replaces(workspace, make, board, mpu):
    target = Board(board, workspace.build(LOADER, board, f"-DDTC_OVERLAY_FILE={slots_of(board)}", mpu))
    digits, vibration = make("digits", board), make("vibration", board)
    rolled = make("rolled", board, "1.1.0")
    signed = struct.unpack_from("<I", digits, 8)[0]
    changed = bytearray(digits)
    changed[signed // 2] ^= 4
    script = "options 0 1\nstart\ninstall 2\ncases 5\ninstall 4\ncases 6\nrollback\ncases 5\ninstall 7\ncases 5\n"
    script += "install 3\ninstall 2\ncases 5\nlist\nstack\nreset\nstart\ncases 5\nrollback\ninstall 4\ncases 6\n"
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
    assert [line for line in lines if line.startswith("cases:")] == ["cases: 360 of 360"] * 7, text


@configured(
    "board, option, reason",
    [
        ("mps2/an385", "-DCONFIG_USERSPACE=n", "!MPU || USERSPACE"),
        ("native_sim/native/64", "-DCONFIG_OPWEST_BUNDLE=y", "CPU_CORTEX_M"),
    ],
)
def test_options_that_are_not_safe_have_no_loader(workspace, board, option, reason):
    slots = [f"-DDTC_OVERLAY_FILE={slots_of(board)}"] if board == "mps2/an385" else []
    _, built = workspace.try_build(LOADER, board, "-DCONFIG_OPWEST_BUNDLE_LLEXT=y", option, *slots, target="")
    assert "OPWEST_BUNDLE_LLEXT" in built.log
    assert reason in re.sub(r"\s+", " ", built.log)
    assert "CONFIG_OPWEST_BUNDLE_LLEXT=y" not in built.options


@configured("board", ["mps2/an385", "mps3/corstone300/an547"])
def test_a_bundle_uses_the_devices_of_the_firmware(workspace, tmp_path, board):
    """Devices by type and name, and drivers through the devices of the context."""
    example = ROOT / "examples" / "two_npus"
    manifest = shutil.copytree(example, tmp_path / "model") / "manifest.yaml"
    images, _, labels = held_out_of("two_npus")
    np.savez(manifest.with_name("vectors.npz"), image=images[:3, None], label=labels[:3, None])
    manifest.write_text(manifest.read_text() + "\ntests: {vectors: vectors.npz}\n")
    key = private_key(tmp_path, "trusted")
    words = ["--slot", Board(board, None).slot(0), "--target", TARGETS[board], "--key", key]
    file = bundle(manifest, *words, "-o", tmp_path / "npus.bundle")
    content = file.read_bytes()
    rows = ",\n".join("{" + ", ".join(map(str, image.ravel())) + "}" for image in images)
    (tmp_path / "cases.h").write_text(
        f"static const uint8_t bundle[] = {{{', '.join(map(str, content))}}};\n"
        f"static const uint8_t digest[] = {{{', '.join(map(str, hashlib.sha512(content).digest()))}}};\n"
        f"static const int32_t labels[] = {{{', '.join(map(str, labels))}}};\n"
        f"static const int8_t images[][64] = {{{rows}}};\n"
    )
    overlays = f"-DEXTRA_DTC_OVERLAY_FILE={slots_of(board)};{example / 'overlays' / 'npus.overlay'}"
    built = workspace.build(PROGRAMS / "bundle_devices", board, overlays, f"-DCASES={tmp_path / 'cases.h'}")
    lines = run_image(board, built.elf, "^END$")
    assert "install: 1 devices 0" in lines  # npu1 is the second device of the bundle; nothing fits the first one
    assert "install: 0 good 0" in lines
    assert f"right: {len(labels)} of {len(labels)}" in lines
    # The program of each branch was loaded into the device of its name.
    loaded = next(line for line in lines if line.startswith("loaded: ")).split()[1:]
    assert all(int(count) > 0 for count in loaded), lines


WRITTEN = {
    "qemu_riscv32": ("7 1234", True),
    # -ENOTSUP: Zephyr 4.2 has no work items for other processors.
    "qemu_riscv32/qemu_virt_riscv32/smp": ("-134 -134", False),
}


@configured("board", WRITTEN, cost=9)
@pytest.mark.needs("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
def test_written_code(workspace, board):
    """Code that a processor writes and executes in the storage of bundles, with one hart and with several."""
    output, has_fence = WRITTEN[board]
    built = workspace.build(PROGRAMS / "instructions", board)
    assert output in built.run("END").splitlines()
    command = ["riscv64-unknown-elf-objdump", "-d", str(built.elf)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ("fence.i" in text) == has_fence

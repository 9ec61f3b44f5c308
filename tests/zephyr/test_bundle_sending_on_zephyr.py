# SPDX-License-Identifier: Apache-2.0
"""Bundles are sent to images over SMP and over the shell, through a relay that loses, repeats and delays lines."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bundle_support import MACHINES, SLOT_SIZE, bundle, digits_model, private_key
from cover import configured
from opwest.board.image import RunningImage
from opwest.cli.main import main
from relay import Relay
from requirements_support import need, skip_here
from zephyr_support import ROOT, Built, Workspace

pytestmark = pytest.mark.zephyr
PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "bundle_service"
ARM, NATIVE = "mps2/an385", "native_sim/native/64"
FLASH = {ARM: 0x2100_0000, NATIVE: 0x2000_0000}
TARGETS = {ARM: "cortex-m3", NATIVE: "x86-64"}
TRANSPORTS = {ARM: ("smp", "shell"), NATIVE: ("shell", "shell")}
"""The UART of native_sim has no interrupts, which SMP needs."""
Run = Callable[..., SimpleNamespace]


@pytest.fixture
def opwest(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: another one would report that this one uses the device."""

    def run(*arguments: object) -> SimpleNamespace:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return SimpleNamespace(code=code, out=shown.out, err=shown.err)

    return run


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The manifests: digits, digits with other labels, and digits with a wrong golden vector."""
    need("cryptography")
    folder = tmp_path_factory.mktemp("models")
    found = {"first": digits_model(folder / "first"), "second": digits_model(folder / "second", 3)}
    found["wrong"] = digits_model(folder / "wrong")
    vectors = dict(np.load(found["wrong"].parent / "vectors.npz"))
    vectors["label"] = (vectors["label"] + 1) % 10
    np.savez(found["wrong"].parent / "vectors.npz", **vectors)
    return found


@pytest.fixture(scope="module")
def make(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that makes a signed bundle for a slot of a board."""
    folder = tmp_path_factory.mktemp("bundles")
    key = private_key(folder, "trusted")

    def one(board: str, model: str, version: str, slot: int, *options: str) -> Path:
        file = folder / f"{TARGETS[board]}-{model}-{slot}{''.join(options)}.bundle"
        if not file.exists():
            place = f"{FLASH[board] + slot * SLOT_SIZE:#x}:{SLOT_SIZE:#x}"
            bundle(
                *(models[model], "--slot", place, "--target", TARGETS[board], "--key", key),
                *("--model-version", version, "--vectors", 2, *options, "-o", file),
            )
        return file

    return one


def built(workspace: Workspace, board: str) -> Built:
    if board == NATIVE:
        return workspace.build(PROGRAM, board)
    need("smpclient", "qemu-system-arm")
    if not (workspace.base.parent / "modules" / "lib" / "zcbor").is_dir():
        skip_here("the workspace has no zcbor: west update zcbor")
    return workspace.build(PROGRAM, board, "-DCONFIG_OPWEST_BUNDLE_SHELL=y")


@contextmanager
def started(image: Built, folder: Path, *options: str) -> Iterator[str]:
    """Start an image in a directory, which contains the flash of native_sim; yield its serial device.

    `options` are those of QEMU.
    """
    command = [str(image.folder / "zephyr" / "zephyr.exe")]
    if image.board != NATIVE:
        kernel = str(image.folder / "zephyr" / "zephyr.elf")
        command = ["qemu-system-arm", *MACHINES[image.board], "-display", "none", "-monitor", "none"]
        command += ["-serial", "pty", "-kernel", kernel, *options]
    with RunningImage(command, folder, os.environ) as running:
        yield running.device(30)


PAUSED = ("-S", "-qmp", "unix:qmp,server=on,wait=off")


def resume(image: Built, folder: Path) -> None:
    """Start the processor of a paused image. QEMU drops all output before its pseudo terminal is open."""
    if image.board == NATIVE:
        return
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "qmp"))
        with connection.makefile("rw", encoding="utf-8") as lines:
            assert "QMP" in json.loads(lines.readline())
            for command in ("qmp_capabilities", "cont"):
                lines.write(json.dumps({"execute": command}) + "\n")
                lines.flush()
                while "return" not in (answer := json.loads(lines.readline())):
                    assert "event" in answer, answer


def label_of(relay: Relay, board: str, version: str) -> int | None:
    """Wait until the program runs a version; return its output. native_sim prints elsewhere."""
    if board == NATIVE:
        return None
    return int(relay.wait(rf"now version {re.escape(version)}: (-?\d+)\b")[1])


@configured("board, seed", [(board, seed) for board in (ARM, NATIVE) for seed in range(1, 21)])
def test_life_of_a_bundle_over_a_line_with_faults(
    opwest: Run, workspace: Workspace, make: Callable[..., Path], board: str, seed: int, tmp_path: Path
) -> None:
    image = built(workspace, board)
    first, second = make(board, "first", "1.0.0", 0, "--steps"), make(board, "second", "2.0.0", 1)
    wrong = make(board, "wrong", "3.0.0", 1)
    with (
        started(image, tmp_path, *PAUSED) as device,
        Relay(device, tmp_path / "board", seed, lose=0.03, repeat=0.05, delay=0.02) as relay,
    ):
        relay.unplug_at = {40}
        resume(image, tmp_path)
        ways = [["bundle", "--serial", relay.device, "--transport", transport] for transport in TRANSPORTS[board]]
        one, other = ways if seed % 2 else ways[::-1]
        assert label_of(relay, board, "0.0.0") in (-1, None)

        done = opwest(*one, "--install", second, first)
        assert done.code == 0, done.err
        assert done.out.startswith(f"digits 1.0.0 runs from slot 0 at {FLASH[board]:#x} of "), done.out
        label = label_of(relay, board, "1.0.0")
        done = opwest(*one, "--check-steps")
        assert (done.code, done.out) == (0, "no step differs from those in the bundle\n"), done.err

        done = opwest(*other, "--install", first, second)
        assert done.code == 0, done.err
        assert done.out.splitlines()[1] == "before: digits 1.0.0 in slot 0"
        assert label is None or label_of(relay, board, "2.0.0") == (label + 3) % 10

        relay.console = b""
        done = opwest(*one, "--roll-back")
        assert (done.code, done.out) == (0, "current: digits 1.0.0 in slot 0\n"), done.err
        assert label_of(relay, board, "1.0.0") == label

        relay.console = b""
        done = opwest(*other, "--install", first, wrong)
        assert done.code == 1
        assert (
            "the board refuses digits 3.0.0 (vector): the outputs of golden vector 0 differ from the expected ones\n"
            "  hint: compare the compilers and options of both builds" in done.err
        )
        done = opwest(*one, "--list", "--json")
        state = json.loads(done.out)["result"]
        assert (state["active"], state["trying"], state["previous"], state["fault"]) == (0, None, None, "vector")
        assert [slot["model"]["version"] for slot in state["slots"]] == ["1.0.0", "3.0.0"]
        if board != NATIVE:  # which prints elsewhere
            assert b"now version" not in relay.console, "the current model did not change"
        assert relay.counts["lost"] > 0 and relay.counts["repeated"] > 0 and relay.counts["unplugged"] == 1
    if board == NATIVE:
        flash = (tmp_path / "flash_emul.bin").read_bytes()
        for slot, file in enumerate((first, wrong)):
            content = file.read_bytes()
            assert flash[slot * SLOT_SIZE :][: len(content)] == content


@configured("board", [NATIVE, ARM])
def test_bad_bundles_are_explained_and_the_state_lasts(
    opwest: Run,
    workspace: Workspace,
    make: Callable[..., Path],
    models: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    board: str,
    tmp_path: Path,
) -> None:
    """The command builds the image, and starts it for one installation."""
    if board == ARM:
        need("smpclient", "qemu-system-arm")
    first = make(board, "first", "1.0.0", 0, "--steps")
    for name, value in workspace.opwest_environment(board).items():
        monkeypatch.setenv(name, value)
    image = Built("", tmp_path / "build", board, dict(os.environ), workspace.west)
    done = opwest("bundle", "--board", board, "--application", PROGRAM, "--build-dir", image.folder, "--install", first)
    assert done.code == 0, done.err
    assert done.out.startswith(f"digits 1.0.0 runs from slot 0 at {FLASH[board]:#x} of /dev/pts/")
    assert "== starting " in done.err

    second = make(board, "second", "2.0.0", 1, "--observable")
    damaged = tmp_path / "damaged.bundle"
    content = bytearray(second.read_bytes())
    content[900] ^= 1
    damaged.write_bytes(content)
    with started(image, tmp_path) as device:
        way = ["bundle", "--serial", device, "--transport", TRANSPORTS[board][0]]
        assert opwest(*way, "--install", first).code == 0
        done = opwest(*way, "--install", damaged)
        assert done.code == 1
        assert "the board refuses digits 2.0.0 (signature): no signature is valid for a key of the firmware" in done.err
        done = opwest(*way, "--install", first)
        assert done.code == 1 and "no file for slot 1 at " in done.err
        assert f"'{first}' for {FLASH[board]:#x}; slots: slot 0 at {FLASH[board]:#x}, slot 1 at" in done.err
        done = opwest(*way, "--confirm")
        assert done.code == 1 and "no model waits for its confirmation" in done.err
        assert opwest(*way, "--install", second).code == 0
        done = opwest(*way, "--check-steps")
        assert done.code == 1 and "the bundle contains no results of steps" in done.err
        done = opwest("bundle", models["second"], "--check-steps", *way[1:])
        assert (done.code, done.out) == (0, "no step differs from those of this machine\n"), done.err
        done = opwest("bundle", models["first"], "--check-steps", *way[1:])
        assert done.code == 1 and "the board runs another model or version of it: 'digits', hash " in done.err
    if board != NATIVE:
        return  # QEMU has no flash
    with started(image, tmp_path) as device:
        way = ["bundle", "--serial", device, "--transport", "shell"]
        done = opwest(*way, "--list")
        assert "slot 1 at 0x20040000, 262144 bytes (active): digits 2.0.0" in done.out, done.out + done.err
        done = opwest(*way, "--roll-back")
        assert (done.code, done.out) == (0, "current: digits 1.0.0 in slot 0\n")

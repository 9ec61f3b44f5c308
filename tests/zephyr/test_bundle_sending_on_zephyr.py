# SPDX-License-Identifier: Apache-2.0
"""Bundles are sent to images over SMP and over the shell, through a relay that loses, repeats and delays lines."""

import json
import os
import random
import re
import select
import socket
import threading
import time
import tty
from contextlib import contextmanager

import numpy as np
import pytest
from bundle_support import MACHINES, SLOT_SIZE, bundle, digits_model, private_key
from cover import configured
from opwest.cli.main import main
from opwest.runs.connection import RunningImage
from requirements_support import need
from zephyr_support import ROOT, Built, need_smp

pytestmark = pytest.mark.zephyr
PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "bundle_service"
ARM, NATIVE = "mps2/an385", "native_sim/native/64"
FLASH = {ARM: 0x2100_0000, NATIVE: 0x2000_0000}
TARGETS = {ARM: "cortex-m3", NATIVE: "x86-64"}
TRANSPORTS = {ARM: ("smp", "shell"), NATIVE: ("shell", "shell")}
"""The UART of native_sim has no interrupts, which SMP needs."""


SHELL = (
    *("-DCONFIG_OPWEST_BUNDLE_SHELL=y", "-DCONFIG_SHELL_CMD_BUFF_SIZE=1024"),
    "-DCONFIG_SHELL_BACKEND_SERIAL_RX_RING_BUFFER_SIZE=4096",
)
"""The commands of the shell, besides SMP."""
IDLE = 0.01
"""Seconds after which an incomplete line, such as a prompt, is passed on."""


class Relay:
    """A pseudo terminal behind a symbolic link: it loses, repeats and delays lines, and can be unplugged."""

    def __init__(self, device, link, seed, lose, repeat, delay):
        self.device = str(link)
        self.console = b""
        """What the image has sent."""
        self.counts = {"lost": 0, "repeated": 0, "unplugged": 0}
        self.unplug_at = set()
        """The numbers of lines of the host at which the relay is unplugged."""
        self._link = link
        self._random = random.Random(seed)
        self._rates = (lose, repeat, delay)
        self._lines = 0
        self._image = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._image)
        self._master = self._slave = -1
        self._plug()
        self._rest = {True: b"", False: b""}
        self._late = {True: b"", False: b""}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(5)
        for file in (self._image, self._master, self._slave):
            os.close(file)

    def _plug(self):
        """Make a new pseudo terminal, in place of the present one."""
        old = (self._master, self._slave)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        draft = self._link.with_suffix(".draft")
        draft.symlink_to(os.ttyname(self._slave))
        draft.replace(self._link)
        for file in old:
            if file >= 0:
                os.close(file)

    def _serve(self):
        while not self._stop.is_set():
            ready = select.select([self._image, self._master], [], [], IDLE)[0]
            if not ready:
                for from_host in (True, False):
                    self._pass(from_host, self._late[from_host] + self._rest[from_host])
                    self._late[from_host] = self._rest[from_host] = b""
            for file in ready:
                from_host = file == self._master
                try:
                    data = os.read(file, 4096)
                except OSError:
                    if not from_host:
                        return  # the image has ended
                    continue
                if not from_host:
                    self.console += data
                lines = (self._rest[from_host] + data).split(b"\n")
                self._rest[from_host] = lines.pop()
                for line in lines:
                    self._line(from_host, line + b"\n")

    def _line(self, from_host, line):
        lose, repeat, delay = self._rates
        late, self._late[from_host] = self._late[from_host], b""
        self._lines += from_host
        if from_host and self._lines in self.unplug_at:
            self.counts["unplugged"] += 1
            self._plug()
            return
        if self._random.random() < lose:
            self.counts["lost"] += 1
            line = b""
        elif self._random.random() < repeat:
            self.counts["repeated"] += 1
            line += line
        elif self._random.random() < delay:
            self._late[from_host], line = line, b""
        self._pass(from_host, line + late)

    def _pass(self, from_host, data):
        file = self._image if from_host else self._master
        while data and not self._stop.is_set():
            try:
                data = data[os.write(file, data) :]
            except BlockingIOError:
                time.sleep(IDLE)
            except OSError:
                return

    def wait(self, pattern, seconds=60):
        """Wait for the last match of a pattern in the output of the image."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = list(re.finditer(pattern, self.console.decode(errors="replace")))
            if found:
                return found[-1]
            time.sleep(0.02)
        pytest.fail(f"no {pattern!r} within {seconds} s:\n{self.console.decode(errors='replace')[-3000:]}")


@pytest.fixture
def opwest(capsys):
    """Run the command line in this process: another one would report that this one uses the device."""

    def run(*arguments, code=0):
        capsys.readouterr()
        found = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        assert found == code, shown.err
        return shown

    return run


@pytest.fixture(scope="module")
def models(tmp_path_factory):
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
def make(models, tmp_path_factory):
    """Return a function that makes a signed bundle for a slot of a board."""
    folder = tmp_path_factory.mktemp("bundles")
    key = private_key(folder, "trusted")

    def one(board, model, version, slot, *options):
        file = folder / f"{TARGETS[board]}-{model}-{slot}{''.join(options)}.bundle"
        if not file.exists():
            place = f"{FLASH[board] + slot * SLOT_SIZE:#x}:{SLOT_SIZE:#x}"
            bundle(
                *(models[model], "--slot", place, "--target", TARGETS[board], "--key", key),
                *("--model-version", version, "--vectors", 2, *options, "-o", file),
            )
        return file

    return one


def built(workspace, board):
    snippet = "-DSNIPPET=opwest-bundle-service"
    if board == NATIVE:
        return workspace.build(PROGRAM, board, snippet)
    need("qemu-system-arm")
    need_smp(workspace)
    return workspace.build(PROGRAM, board, snippet, *SHELL)


@contextmanager
def started(image, folder, *options):
    """Start an image in a directory, which contains the flash of native_sim; yield its serial device.

    `options` are those of QEMU.
    """
    command = [str(image.folder / "zephyr" / "zephyr.exe")]
    if image.board != NATIVE:
        command = ["qemu-system-arm", *MACHINES[image.board], "-display", "none", "-monitor", "none"]
        command += ["-serial", "pty", "-kernel", str(image.elf), *options]
    with RunningImage(command, folder, os.environ) as running:
        yield running.device(30)


PAUSED = ("-S", "-qmp", "unix:qmp,server=on,wait=off")


def resume(image, folder):
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


def label_of(relay, board, version):
    """Wait until the program runs a version; return its output. native_sim prints elsewhere."""
    if board == NATIVE:
        return None
    return int(relay.wait(rf"now version {re.escape(version)}: (-?\d+)\b")[1])


@configured("board, seed", [(board, seed) for board in (ARM, NATIVE) for seed in range(1, 21)])
def test_life_of_a_bundle_over_a_line_with_faults(opwest, workspace, make, board, seed, tmp_path):
    image = built(workspace, board)
    first, second = make(board, "first", "1.0.0", 0, "--steps"), make(board, "second", "2.0.0", 1)
    wrong = make(board, "wrong", "3.0.0", 1)
    with (
        started(image, tmp_path, *PAUSED) as device,
        Relay(device, tmp_path / "board", seed, lose=0.03, repeat=0.05, delay=0.02) as relay,
    ):
        relay.unplug_at = {40}
        resume(image, tmp_path)
        ways = [["--serial", relay.device, "--transport", transport] for transport in TRANSPORTS[board]]
        one, other = ways if seed % 2 else ways[::-1]
        assert label_of(relay, board, "0.0.0") in (-1, None)

        done = opwest("bundle", "install", *one, second, first)
        assert done.out.startswith(f"digits 1.0.0 runs from slot 0 at {FLASH[board]:#x} of "), done.out
        label = label_of(relay, board, "1.0.0")
        assert opwest("bundle", "check-steps", *one).out == "no step differs from those in the bundle\n"

        done = opwest("bundle", "install", *other, first, second)
        assert done.out.splitlines()[1] == "before: digits 1.0.0 in slot 0"
        assert label is None or label_of(relay, board, "2.0.0") == (label + 3) % 10

        relay.console = b""
        assert opwest("bundle", "roll-back", *one).out == "current: digits 1.0.0 in slot 0\n"
        assert label_of(relay, board, "1.0.0") == label

        relay.console = b""
        done = opwest("bundle", "install", *other, first, wrong, code=1)
        assert (
            "the board refuses digits 3.0.0 (vector): the outputs of golden vector 0 differ from the expected ones\n"
            "  hint: compare the compilers and options of both builds" in done.err
        )
        done = opwest("bundle", "list", *one, "--json")
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
def test_bad_bundles_are_explained_and_the_state_lasts(opwest, workspace, make, models, monkeypatch, board, tmp_path):
    """The command builds the image, and starts it for one installation."""
    if board == ARM:
        need("smpclient", "qemu-system-arm")
    first = make(board, "first", "1.0.0", 0, "--steps")
    for name, value in workspace.opwest_environment(board).items():
        monkeypatch.setenv(name, value)
    image = Built("", tmp_path / "build", board, dict(os.environ), workspace.west)
    done = opwest("bundle", "install", "--board", board, "--application", PROGRAM, "--build-dir", image.folder, first)
    assert done.out.startswith(f"digits 1.0.0 runs from slot 0 at {FLASH[board]:#x} of /dev/pts/")
    assert "== starting " in done.err

    second = make(board, "second", "2.0.0", 1, "--observable")
    damaged = tmp_path / "damaged.bundle"
    content = bytearray(second.read_bytes())
    content[900] ^= 1
    damaged.write_bytes(content)
    with started(image, tmp_path) as device:
        way = ["--serial", device, "--transport", TRANSPORTS[board][0]]
        opwest("bundle", "install", *way, first)
        done = opwest("bundle", "install", *way, damaged, code=1)
        assert "the board refuses digits 2.0.0 (signature): no signature is valid for a key of the firmware" in done.err
        done = opwest("bundle", "install", *way, first, code=1)
        assert "no file for slot 1 at " in done.err
        assert f"'{first}' for {FLASH[board]:#x}; slots: slot 0 at {FLASH[board]:#x}, slot 1 at" in done.err
        assert "no model waits for its confirmation" in opwest("bundle", "confirm", *way, code=1).err
        opwest("bundle", "install", *way, second)
        assert "the bundle contains no results of steps" in opwest("bundle", "check-steps", *way, code=1).err
        done = opwest("bundle", "check-steps", models["second"], *way)
        assert done.out == "no step differs from those of this machine\n"
        done = opwest("bundle", "check-steps", models["first"], *way, code=1)
        assert "the board runs another model or version of it: 'digits', hash " in done.err
    if board != NATIVE:
        return  # QEMU has no flash
    with started(image, tmp_path) as device:
        way = ["--serial", device, "--transport", "shell"]
        done = opwest("bundle", "list", *way)
        assert "slot 1 at 0x20040000, 262144 bytes (active): digits 2.0.0" in done.out, done.out + done.err
        assert opwest("bundle", "roll-back", *way).out == "current: digits 1.0.0 in slot 0\n"

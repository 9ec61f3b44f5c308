# SPDX-License-Identifier: Apache-2.0
"""Bundles over SMP and over the shell, against boards on pseudo terminals that damage what they receive and send."""

import fcntl
import random
import re
import struct

import pytest
from board_support import RUNTIME, failure, numbers
from requirements_support import need

need("smpclient", "serial")

import serial  # noqa: E402
from campaign import sized  # noqa: E402
from fake_board import Model, SmpBoard, UdpBoard  # noqa: E402
from fake_bundles import Bundles, Faults, ShellBundles, client_of  # noqa: E402
from opwest.bundles import faults as bundle_faults  # noqa: E402
from opwest.bundles import link as bundle_link  # noqa: E402
from opwest.bundles import transports  # noqa: E402
from opwest.bundles.link import Job, Request  # noqa: E402
from opwest.bundles.transports import ShellBundleLink, SmpBundleLink  # noqa: E402
from opwest.runs.places import Serial  # noqa: E402
from smp import packet  # noqa: E402
from smp.header import OP  # noqa: E402

DATA = random.Random(6).randbytes(5003)
NONE = Faults()


class SmpBundles(SmpBoard):
    """The SMP server of an image with bundles; lines are lost, repeated and damaged."""

    def __init__(self, bundles, faults, seed, *, group=28536):
        super().__init__(Model(), groups=(group, 0))
        self.bundles = bundles
        self.faults = faults
        self.random = random.Random(seed)
        self.typed = b""

    def __call__(self, data):
        self.typed += data
        back = b""
        while b"\n" in self.typed:
            line, self.typed = self.typed.split(b"\n", 1)
            for copy in self._passed(line):
                for out in self._line(copy + b"\n").split(b"\n")[:-1]:
                    back += b"".join(one + b"\n" for one in self._passed(out))
        return back

    def _line(self, line):
        """Return the response after the last line of a frame; a damaged frame ends, as in MCUmgr."""
        if line.startswith(packet.START_DELIMITER):
            self.decoder = packet.decode()
            next(self.decoder)
        try:
            self.decoder.send(line)
        except StopIteration as whole:
            return self._frame(whole.value) if whole.value is not None else b""
        except Exception:  # of the decoder, various ones
            self.decoder = packet.decode()
            next(self.decoder)
        return b""

    def _passed(self, line):
        return self.faults.passed(line, self.random, b"ABCabc012+/=", first=2)

    def _frame(self, frame):
        try:
            return super()._frame(frame)
        except (KeyError, struct.error, ValueError):
            return b""

    def _answer(self, header, request):
        if header.group_id == 0 or header.group_id not in self.groups:
            return super()._answer(header, request)
        if not self.bundles.serves:
            return {"rc": 11}
        match header.command_id, header.op:
            case 0, OP.READ:
                return self.bundles.info
            case 1, OP.WRITE:
                return self.bundles.job({"sha": b"", **request})
            case 2, OP.WRITE:
                return self.bundles.part(request["off"], request["data"], request["check"])
        return {"rc": 8}


def server(kind, bundles, faults=NONE, seed=1):
    return SmpBundles(bundles, faults, seed) if kind == "smp" else ShellBundles(bundles, faults, seed)


@pytest.fixture
def client(kind):
    """A function that returns a client of a board over the transport, which is disconnected after the test."""
    clients = []

    def make(board, timeout=10.0):
        link = SmpBundleLink(Serial(board.device), timeout) if kind == "smp" else ShellBundleLink(board.device, timeout)
        clients.append(client_of(link, session=0xFFFFFFFF, timeout=timeout, reconnects=False))
        return clients[-1]

    yield make
    for one in clients:
        one.disconnect()


def test_upload_and_installation(plug, client, kind):
    bundles = Bundles(slow=2)
    one = client(plug(server(kind, bundles)))
    assert one.info == bundle_link.Info(1, 2, 512)
    assert one.upload(DATA) == 1
    assert bundles.received == DATA
    assert one.do(Job.INSTALL, "the end").result == 0
    found = one.do(Job.LIST, "the slot", slot=1).fields
    assert (found.text("name"), found.number("interface")) == ("model1", 2**64 - 2)
    assert len(found.bytes("model")) == 32 and found.text("fault_name") == "good"
    assert one.do(Job.LIST, "the slot", slot=0).fields.number("address") == 0x8000


def test_upload_over_udp():
    bundles = Bundles(slow=2)
    with UdpBoard(server("smp", bundles), lose={3, 9}, twice={4, 5}) as place:
        one = client_of(SmpBundleLink(place, 5.0), session=1, timeout=5.0, reconnects=False)
        assert (one.upload(DATA), bundles.received) == (1, DATA)
        assert one.do(Job.INSTALL, "the end").result == 0 and one.device == str(place)
        one.disconnect()


def test_upload_over_a_line_that_damages_messages(plug, client, kind):
    # Of SMP, each line of a frame can be lost.
    faults = Faults(lose=0.01, repeat=0.02, damage=0.01) if kind == "smp" else Faults(0.03, 0.04, 0.04, 0.04)
    for seed in range(sized(2, 40)):
        bundles = Bundles(slow=1)
        one = client(plug(server(kind, bundles, faults, seed)))
        one.upload(DATA)
        assert one.do(Job.INSTALL, "the end").result == 0
        assert bundles.memory[1] == DATA
        assert bundles.done.count(Job.INSTALL) == 1
        assert bundles.parts <= 3 * len(DATA) / 96 + 20


def test_names_of_files_that_nobody_signed(plug, client, kind):
    """Faults have names with spaces; a name with a control character is escaped."""
    bundles = Bundles()
    one = client(plug(server(kind, bundles)))
    assert one.do(Job.LIST, "the slot", slot=1).fields.text("fault_name") == "no bundle"
    bundles.answers[Job.LIST] = ("", {"name": "a%b \x1b[31m"})
    assert one.do(Job.LIST, "the slot", slot=1).fields.text("name") == "a%b \\x1b[31m"


def test_application_that_does_not_serve_bundles(plug, client, kind):
    board = plug(server(kind, Bundles(serves=False)))
    found = failure(client, board, timeout=3)
    assert found.message == f"the application on '{board.device}' does not serve its bundles"
    assert found.hint == "the application calls opwest_bundles_serve() after opwest_bundles_start()"


def test_image_without_bundles(plug, client, kind):
    lacks = {
        "smp": (SmpBundles(Bundles(), NONE, 1, group=28535), "its SMP server has no command group 28536"),
        "shell": (ShellBundles(Bundles(), NONE, 1, has_service=False), "its shell has no command 'opwest bundle'"),
    }
    answer, reason = lacks[kind]
    board = plug(answer)
    found = failure(client, board, timeout=3)
    assert found.message == f"the image on '{board.device}' does not accept bundles: {reason}"
    if kind == "smp":
        assert found.hint == "build the image with CONFIG_OPWEST_BUNDLE_SERVICE=y, or give its number with --group"
    else:
        found = failure(client, plug(lambda _: b"temperature: 21\r\n"), timeout=0.3).message
        assert re.search("timeout after .* waiting for a description of the slots; received", found), found


TCGETS2, TERMIOS2 = 0x802C542A, "4IB19s2I"
"""The request of Linux for the speeds of a terminal as numbers, and its structure (asm-generic/termbits.h)."""


@pytest.mark.parametrize("baud", [9600, 12345, 250000, 921600])
def test_baud_rate_of_the_shell(plug, baud):
    board = plug(server("shell", Bundles()))
    link = ShellBundleLink(board.device, 3, baud)
    found = fcntl.ioctl(board._slave, TCGETS2, bytes(struct.calcsize(TERMIOS2)))
    assert struct.unpack(TERMIOS2, found)[-2:] == (baud, baud)
    assert link.info(3) is not None
    link.disconnect()


def test_devices_that_the_system_refuses(plug, monkeypatch):
    device = plug(server("shell", Bundles())).device

    def refuse(self, baud):
        raise ValueError(f"Failed to set custom baud rate ({baud}): [Errno 22] Invalid argument")

    monkeypatch.setattr(serial.Serial, "_set_special_baudrate", refuse)
    found = failure(ShellBundleLink, device, 3, 12345)
    assert found.message == f"--baud: the serial device '{device}' does not support the baud rate 12345"
    assert failure(ShellBundleLink, "/dev/null", 3, 9600).message == "'/dev/null' is not a serial device"


def test_errors_of_the_smp_server(plug):
    board = server("smp", Bundles())
    link = SmpBundleLink(Serial(plug(board).device), 10.0)
    board._answer = lambda header, request: {"rc": 7}
    for call, awaited in (
        (lambda: link.info(1.0), "a response to an SMP request"),
        (lambda: link.job(Request(Job.ROLL_BACK, 1, 1), 1.0), "the end of roll back"),
        (lambda: link.part(4, b"data", 0, 1.0), "the receipt of the part at 4"),
    ):
        assert f"received SMP error EMSGSIZE, expected {awaited}" in failure(call).message
    link.disconnect()


def test_numbers_are_those_of_the_runtime():
    folder = "bundle/zephyr"
    jobs = numbers(f"{folder}/service_internal.h", r"OPWEST_BUNDLE_JOB_(\w+) = (\d+),")
    assert jobs == {job.name: int(job) for job in Job}
    commands = numbers(f"{folder}/smp.c", r"COMMAND_(\w+) = (\d+),")
    assert commands == {name: vars(transports)[f"_{name}"] for name in ("INFO", "JOB", "PART")}
    states = numbers(f"{folder}/service.c", r"\t(RUNNING|DONE|REFUSED) = (\d+),")
    assert states == {name: vars(bundle_link)[name] for name in ("RUNNING", "DONE", "REFUSED")}
    version = numbers("include/opwest/bundle_service.h", r"#define OPWEST_BUNDLE_SERVICE_(VERSION) (\d+)")
    assert version == {"VERSION": bundle_link.VERSION}
    group = numbers(f"{folder}/Kconfig.sending", r"config OPWEST_BUNDLE_SMP_(GROUP)\n(?:\t.*\n)*?\tdefault (\d+)")
    assert group == {"GROUP": transports.DEFAULT_GROUP}
    checked = numbers(f"{folder}/service.c", r"#define (CHECKED_DIGEST) (\d+)U")
    assert checked == {"CHECKED_DIGEST": bundle_link.CHECKED_DIGEST}


def test_every_fault_of_the_runtime_has_words():
    text = (RUNTIME / "include" / "opwest" / "bundle_format.h").read_text()
    listed = re.search(r"enum opwest_bundle_fault \{(.*?)\};", text, re.DOTALL)
    assert listed is not None
    faults = {name: int(value) for name, value in re.findall(r"OPWEST_BUNDLE_(\w+) = (\d+),", listed[1])}
    assert len(faults) >= 23
    assert faults == {name: vars(bundle_faults)[name] for name in faults}
    for name, fault in faults.items():
        verdict = bundle_faults.Verdict(fault, name, 146 if name == "LAYOUT" else 1, 2, 4)
        assert verdict.reason and "unknown" not in verdict.reason and verdict.reason[-1] != "."
        assert (verdict.hint is None) == (name == "GOOD")

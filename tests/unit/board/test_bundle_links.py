# SPDX-License-Identifier: Apache-2.0
"""Bundles over SMP and over the shell, against boards on pseudo terminals that damage what they receive and send."""

import fcntl
import random
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from requirements_support import need

need("smpclient", "serial")

import serial  # noqa: E402
from campaign import sized  # noqa: E402
from fake_board import FakeBoard, SmpBoard  # noqa: E402
from fake_board import Model as ServedModel  # noqa: E402
from fake_bundles import Bundles, Faults, ShellBundles  # noqa: E402
from opwest.board import bundle_faults, bundle_link, bundle_smp  # noqa: E402
from opwest.board.bundle_client import BundleClient  # noqa: E402
from opwest.board.bundle_link import Job, Request  # noqa: E402
from opwest.board.bundle_shell import ShellBundleLink  # noqa: E402
from opwest.board.bundle_smp import SmpBundleLink  # noqa: E402
from opwest.board.link import LinkError  # noqa: E402
from opwest.board.progress import Progress  # noqa: E402
from smp import packet  # noqa: E402
from smp.header import OP, Header  # noqa: E402

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
DATA = random.Random(6).randbytes(5003)
Plug = Callable[..., FakeBoard]


class SmpBundles(SmpBoard):
    """The SMP server of an image with bundles; lines are lost, repeated and damaged."""

    def __init__(self, bundles: Bundles, faults: Faults, seed: int, *, group: int = 28536) -> None:
        super().__init__(ServedModel(), groups=(group, 0))
        self.bundles = bundles
        self.faults = faults
        self.random = random.Random(seed)
        self.typed = b""

    def __call__(self, data: bytes) -> bytes:
        self.typed += data
        back = b""
        while b"\n" in self.typed:
            line, self.typed = self.typed.split(b"\n", 1)
            for copy in self._passed(line):
                for out in self._line(copy + b"\n").split(b"\n")[:-1]:
                    back += b"".join(one + b"\n" for one in self._passed(out))
        return back

    def _line(self, line: bytes) -> bytes:
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

    def _passed(self, line: bytes) -> list[bytes]:
        happens = self.random.random
        if happens() < self.faults.lose:
            return []
        if happens() < self.faults.damage and len(line) > 4:
            at = self.random.randrange(2, len(line))
            line = line[:at] + bytes([self.random.choice(b"ABCabc012+/=")]) + line[at + 1 :]
        return [line] * (2 if happens() < self.faults.repeat else 1)

    def _frame(self, frame: bytes) -> bytes:
        try:
            return super()._frame(frame)
        except (KeyError, struct.error, ValueError):
            return b""

    def _answer(self, header: Header, request: dict) -> dict:  # type: ignore[type-arg]
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


@pytest.fixture
def plug() -> Iterator[Plug]:
    boards = []

    def make(answer: Callable[[bytes], bytes]) -> FakeBoard:
        boards.append(FakeBoard(answer))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


def server(kind: str, bundles: Bundles, faults: Faults = Faults(), seed: int = 1) -> SmpBundles | ShellBundles:  # noqa: B008
    return SmpBundles(bundles, faults, seed) if kind == "smp" else ShellBundles(bundles, faults, seed)


def connection(kind: str, device: str, timeout: float = 10.0) -> SmpBundleLink | ShellBundleLink:
    return SmpBundleLink(device, 115200, timeout) if kind == "smp" else ShellBundleLink(device, timeout)


def client_of(kind: str, board: FakeBoard, timeout: float = 10.0) -> BundleClient:
    return BundleClient(
        lambda: connection(kind, board.device, timeout),
        session=0xFFFFFFFF,
        timeout=timeout,
        progress=Progress(None),
        reconnects=False,
    )


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_upload_and_installation(plug: Plug, kind: str) -> None:
    bundles = Bundles(slow=2)
    client = client_of(kind, plug(server(kind, bundles)))
    try:
        assert client.info == bundle_link.Info(1, 2, 512)
        assert client.upload(DATA) == 1
        assert bundles.received == DATA
        assert client.do(Job.INSTALL, "the end").result == 0
        found = client.do(Job.LIST, "the slot", slot=1).fields
        assert (found.text("name"), found.number("interface")) == ("model1", 2**64 - 2)
        assert len(found.bytes("model")) == 32 and found.text("fault_name") == "good"
        assert client.do(Job.LIST, "the slot", slot=0).fields.number("address") == 0x8000
    finally:
        client.disconnect()


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_upload_over_a_line_that_damages_messages(plug: Plug, kind: str) -> None:
    for seed in range(sized(2, 40)):
        bundles = Bundles(slow=1)
        # Of SMP, each line of a frame can be lost.
        faults = Faults(lose=0.01, repeat=0.02, damage=0.01) if kind == "smp" else Faults(0.03, 0.04, 0.04, 0.04)
        client = client_of(kind, plug(server(kind, bundles, faults, seed)))
        try:
            client.upload(DATA)
            assert client.do(Job.INSTALL, "the end").result == 0
        finally:
            client.disconnect()
        assert bundles.memory[1] == DATA
        assert bundles.done.count(Job.INSTALL) == 1
        assert bundles.parts <= 3 * len(DATA) / 96 + 20


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_names_of_files_that_nobody_signed(plug: Plug, kind: str) -> None:
    """Faults have names with spaces; a name with a control character is escaped."""
    bundles = Bundles()
    client = client_of(kind, plug(server(kind, bundles)))
    try:
        assert client.do(Job.LIST, "the slot", slot=1).fields.text("fault_name") == "no bundle"
        bundles.answers[Job.LIST] = ("", {"name": "a%b \x1b[31m"})
        assert client.do(Job.LIST, "the slot", slot=1).fields.text("name") == "a%b \\x1b[31m"
    finally:
        client.disconnect()


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_application_that_does_not_serve_bundles(plug: Plug, kind: str) -> None:
    board = plug(server(kind, Bundles(serves=False)))
    with pytest.raises(LinkError) as caught:
        client_of(kind, board, timeout=3)
    assert caught.value.message == f"the application on '{board.device}' does not serve its bundles"
    assert caught.value.hint == "the application calls opwest_bundles_serve() after opwest_bundles_start()"


def test_image_without_bundles(plug: Plug) -> None:
    board = plug(SmpBundles(Bundles(), Faults(), 1, group=28535))
    with pytest.raises(LinkError) as caught:
        client_of("smp", board, timeout=3)
    assert caught.value.message == (
        f"the image on '{board.device}' does not accept bundles: its SMP server has no command group 28536"
    )
    assert caught.value.hint == ("build the image with CONFIG_OPWEST_BUNDLE_SERVICE=y, or give its number with --group")
    board = plug(ShellBundles(Bundles(), Faults(), 1, has_service=False))
    with pytest.raises(LinkError) as caught:
        client_of("shell", board, timeout=3)
    assert caught.value.message == (
        f"the image on '{board.device}' does not accept bundles: its shell has no command 'opwest bundle'"
    )
    board = plug(lambda _: b"temperature: 21\r\n")
    with pytest.raises(LinkError, match=r"timeout after .* waiting for a description of the slots; received"):
        client_of("shell", board, timeout=0.3)


TCGETS2, TERMIOS2 = 0x802C542A, "4IB19s2I"
"""The request of Linux for the speeds of a terminal as numbers, and its structure (asm-generic/termbits.h)."""


@pytest.mark.parametrize("baud", [9600, 12345, 250000, 921600])
def test_baud_rate_of_the_shell(plug: Plug, baud: int) -> None:
    board = plug(ShellBundles(Bundles(), Faults(), 1))
    link = ShellBundleLink(board.device, 3, baud)
    found = fcntl.ioctl(board._slave, TCGETS2, bytes(struct.calcsize(TERMIOS2)))
    assert struct.unpack(TERMIOS2, found)[-2:] == (baud, baud)
    assert link.info(3) is not None
    link.disconnect()


def test_baud_rate_that_the_system_refuses(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    board = plug(ShellBundles(Bundles(), Faults(), 1))

    def refuse(self: serial.Serial, baud: int) -> None:
        raise ValueError(f"Failed to set custom baud rate ({baud}): [Errno 22] Invalid argument")

    monkeypatch.setattr(serial.Serial, "_set_special_baudrate", refuse)
    with pytest.raises(LinkError, match=r"^--baud: the serial device '.*' does not support the baud rate 12345$"):
        ShellBundleLink(board.device, 3, 12345)


def test_shell_of_a_file_that_is_no_serial_device() -> None:
    with pytest.raises(LinkError, match=r"^'/dev/null' is not a serial device$"):
        ShellBundleLink("/dev/null", 3, 9600)


def test_errors_of_the_smp_server(plug: Plug) -> None:
    board = SmpBundles(Bundles(), Faults(), 1)
    link = connection("smp", plug(board).device)
    try:
        board._answer = lambda header, request: {"rc": 7}  # type: ignore[method-assign]
        with pytest.raises(LinkError, match="received SMP error EMSGSIZE, expected a response to an SMP request"):
            link.info(1.0)
        with pytest.raises(LinkError, match="received SMP error EMSGSIZE, expected the end of roll back"):
            link.job(Request(Job.ROLL_BACK, 1, 1), 1.0)
        with pytest.raises(LinkError, match="received SMP error EMSGSIZE, expected the receipt of the part at 4"):
            link.part(4, b"data", 0, 1.0)
    finally:
        link.disconnect()


def numbers(file: str, pattern: str) -> dict[str, int]:
    text = (RUNTIME / file).read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(pattern, text)}


def test_numbers_are_those_of_the_runtime() -> None:
    folder = "bundle/zephyr"
    jobs = numbers(f"{folder}/service_internal.h", r"OPWEST_BUNDLE_JOB_(\w+) = (\d+),")
    assert jobs == {job.name: int(job) for job in Job}
    commands = numbers(f"{folder}/smp.c", r"COMMAND_(\w+) = (\d+),")
    assert commands == {name: vars(bundle_smp)[f"_{name}"] for name in ("INFO", "JOB", "PART")}
    states = numbers(f"{folder}/service.c", r"\t(RUNNING|DONE|REFUSED) = (\d+),")
    assert states == {name: vars(bundle_link)[name] for name in ("RUNNING", "DONE", "REFUSED")}
    version = numbers("include/opwest/bundle_service.h", r"#define OPWEST_BUNDLE_SERVICE_(VERSION) (\d+)")
    assert version == {"VERSION": bundle_link.VERSION}
    group = numbers(f"{folder}/Kconfig.sending", r"config OPWEST_BUNDLE_SMP_(GROUP)\n(?:\t.*\n)*?\tdefault (\d+)")
    assert group == {"GROUP": bundle_smp.DEFAULT_GROUP}
    assert numbers(f"{folder}/service.c", r"#define (CHECKED_DIGEST) (\d+)U") == {
        "CHECKED_DIGEST": bundle_link.CHECKED_DIGEST
    }


def test_every_fault_of_the_runtime_has_words() -> None:
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

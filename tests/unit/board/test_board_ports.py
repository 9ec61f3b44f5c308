# SPDX-License-Identifier: Apache-2.0
"""Serial devices that are absent, busy, forbidden, or no serial devices."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from requirements_support import need

need("serial")

from opwest.board import ports  # noqa: E402
from opwest.board.link import LinkError  # noqa: E402


@pytest.fixture
def device() -> Iterator[str]:
    master, slave = os.openpty()
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def fault(device: str) -> LinkError:
    with pytest.raises(LinkError) as caught:
        ports.check_device(device)
    return caught.value


def test_a_free_device(device: str) -> None:
    ports.check_device(device)
    ports.check_device(device)


def test_an_absent_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "serial_devices", lambda: ["/dev/ttyACM1"])
    found = fault("/dev/ttyNONE0")
    assert found.message == "the serial device /dev/ttyNONE0 is not there"
    assert found.hint == "is the board plugged in? there is: /dev/ttyACM1"


def test_a_device_that_another_program_has_open(device: str) -> None:
    code = f"import os, time; os.open({device!r}, os.O_RDWR | os.O_NOCTTY); print('open', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        found = fault(device)
        assert found.message.startswith(f"the serial device {device} is busy: python")
        assert f"(process {other.pid}) has it open" in found.message
    finally:
        other.kill()
        other.communicate()


def test_a_device_that_is_locked(device: str) -> None:
    file = os.open(device, os.O_RDWR | os.O_NOCTTY)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        assert fault(device).message == f"the serial device {device} is busy: another program has locked it"
    finally:
        os.close(file)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "you may not use the serial device"),
        (OSError(16, "Device or resource busy"), "is busy"),
        (OSError(19, "No such device"), "is not there"),
        (OSError(5, "Input/output error"), "can't be opened: Input/output error"),
    ],
)
def test_a_device_that_the_system_refuses(
    device: str, monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(ports.os, "open", refuse)
    assert message in fault(device).message and device in fault(device).message


def test_a_file_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert fault(str(tmp_path / "file")).message.endswith("is no serial device")


def test_the_only_device_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr(ports, "serial_devices", lambda: found)
    assert ports.choose_device("/dev/ttyS3") == "/dev/ttyS3"
    with pytest.raises(LinkError, match="no serial device of a board was found"):
        ports.choose_device(None)
    found.append("/dev/ttyACM0")
    assert ports.choose_device(None) == "/dev/ttyACM0"
    found.append("/dev/ttyUSB0")
    with pytest.raises(LinkError, match="there are several serial devices: /dev/ttyACM0, /dev/ttyUSB0"):
        ports.choose_device(None)


def test_waiting_for_a_device_that_comes_back(tmp_path: Path) -> None:
    late = tmp_path / "ttyACM0"
    timer = threading.Timer(0.3, late.touch)
    timer.start()
    begin = time.monotonic()
    ports.wait_for_device(str(late), 5)
    assert time.monotonic() - begin < 2
    with pytest.raises(LinkError, match=r"ttyACM1 is not there \(waited 0.2 s for it\)"):
        ports.wait_for_device(str(tmp_path / "ttyACM1"), 0.2)

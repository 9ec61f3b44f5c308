# SPDX-License-Identifier: Apache-2.0
"""Serial devices that are missing, in use, not permitted or not serial devices."""

import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest
from board_support import failure
from requirements_support import need

need("serial")

import serial  # noqa: E402
from opwest.runs import ports  # noqa: E402
from serial import serialposix  # noqa: E402


@pytest.fixture
def device():
    master, slave = os.openpty()
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def fault(device):
    return failure(ports.check_device, device)


def test_available_device(device):
    ports.check_device(device)
    ports.check_device(device)


def test_missing_device(monkeypatch):
    monkeypatch.setattr(ports, "serial_devices", lambda **_: ["/dev/ttyACM1"])
    found = fault("/dev/ttyNONE0")
    assert found.message == "serial device '/dev/ttyNONE0' not found"
    assert found.hint == "check that the board is plugged in; found: /dev/ttyACM1"


def test_device_opened_by_another_program(device):
    code = f"import os, time; os.open({device!r}, os.O_RDWR | os.O_NOCTTY); print('open', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        found = fault(device)
        assert found.message.startswith(f"serial device '{device}' is in use by python")
        assert f"(process {other.pid})" in found.message
    finally:
        other.kill()
        other.communicate()


def test_locked_device(device):
    file = os.open(device, os.O_RDWR | os.O_NOCTTY)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        assert fault(device).message == f"serial device '{device}' is locked by another program"
    finally:
        os.close(file)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "permission denied for serial device"),
        (OSError(16, "Device or resource busy"), "is in use by another program"),
        (OSError(19, "No such device"), "not found"),
        (OSError(5, "Input/output error"), ": Input/output error"),
    ],
)
def test_device_without_permission(device, monkeypatch, error, message):
    def refuse(*_):
        raise error

    monkeypatch.setattr(serialposix.os, "open", refuse)
    assert message in fault(device).message and device in fault(device).message


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("PermissionError(13, 'Access is denied.', None, 5)", "serial device 'COM3' is in use by another program"),
        ("FileNotFoundError(2, 'The system cannot find the file specified.', None, 2)", "'COM3' not found"),
        ("OSError(22, 'The semaphore timeout period has expired.', None, 121)", "cannot open serial device 'COM3': "),
    ],
)
def test_errors_of_windows(monkeypatch, reason, message):
    """The texts are those of serialwin32.py, whose exceptions have no number."""

    def refuse(*_, **__):
        raise serial.SerialException(f"could not open port 'COM3': {reason}")

    monkeypatch.setattr(ports, "serial_devices", lambda **_: ["COM3"])
    monkeypatch.setattr(ports, "is_present", lambda _: True)
    monkeypatch.setattr(serial, "Serial", refuse)
    assert message in fault("COM3").message


@pytest.mark.parametrize("given", ["COM12", "com12", r"\\.\COM12"])
def test_devices_of_windows_are_not_files(monkeypatch, given):
    found = ["COM3"]
    with monkeypatch.context() as patch:  # ends before pytest uses paths
        patch.setattr(ports, "serial_devices", lambda **_: found)
        patch.setattr(ports.os, "name", "nt")
        assert not ports.is_present(given)
        found.append("COM12")
        assert ports.is_present(given)


def test_regular_file_is_not_a_device(tmp_path):
    (tmp_path / "file").write_text("")
    assert fault(str(tmp_path / "file")).message.endswith("is not a serial device")


def test_only_device_is_selected(monkeypatch):
    found = []
    monkeypatch.setattr(ports, "serial_devices", lambda **_: found)
    assert ports.choose_device("/dev/ttyS3") == "/dev/ttyS3"
    absent = failure(ports.choose_device, None)
    assert "no serial device of a board found" in absent.message
    assert absent.hint == "plug in the board, or give its device: --serial DEV"
    found.append("/dev/ttyACM0")
    assert ports.choose_device(None) == "/dev/ttyACM0"
    found.append("/dev/ttyUSB0")
    several = failure(ports.choose_device, None)
    assert "several serial devices found: /dev/ttyACM0, /dev/ttyUSB0" in several.message
    assert several.hint == "select the board's device: --serial DEV"


def test_waiting_for_a_reconnected_device(tmp_path):
    late = tmp_path / "ttyACM0"
    timer = threading.Timer(0.3, late.touch)
    timer.start()
    begin = time.monotonic()
    ports.wait_for_device(str(late), 5)
    assert time.monotonic() - begin < 2
    absent = failure(ports.wait_for_device, str(tmp_path / "ttyACM1"), 0.2)
    assert "ttyACM1' not found within 0.2 s" in absent.message

# SPDX-License-Identifier: Apache-2.0
"""The service over UDP, with a server on this machine, and over Bluetooth, with a replacement of smpclient's transport.

No test uses a radio.
"""

import asyncio
import socket
import sys
import types

import numpy as np
import pytest
from board_support import QUIET, failure
from fake_board import SHAPE, Model, SmpBoard, UdpBoard, answer_of
from opwest.runs.arrays import Runs
from opwest.runs.link import LostError
from opwest.runs.places import Ble, Udp, udp_place
from opwest.runs.session import find_model, run_model
from requirements_support import need

need("smpclient", "serial")

from opwest.runs.smp import SmpLink  # noqa: E402

X = np.arange(SHAPE[0] * SHAPE[1], dtype=np.int16).reshape(SHAPE)


def outputs_of(place, timeout=3.0):
    link = SmpLink(place, timeout)
    try:
        return run_model(
            link, find_model(link.describe(), "twice", link.device), Runs({"x": X}), progress=QUIET
        ).outputs
    finally:
        link.disconnect()


@pytest.mark.parametrize("buffer", [384, 1452, 4096])
def test_run_over_udp(buffer):
    """A frame fits in the buffer of the server and in one packet of Ethernet; responses are lost and repeated."""
    board = SmpBoard(Model(), buffer=buffer)
    with UdpBoard(board, lose={4}, twice={2, 3, 5}) as place:
        np.testing.assert_array_equal(outputs_of(place, 1.0)["y"], 2 * X)
    assert board.model.runs == 1
    longest = max(len(request["data"]) for _, _, request in board.requests if "data" in request)
    assert min(buffer, 1472) - 60 < longest < min(buffer, 1472)


def test_faults_of_udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        place = Udp(*unused.getsockname())
    found = failure(outputs_of, place, 1.0)
    assert found.message == f"{place}: timeout after 1 s waiting for a response to an SMP request; received nothing"
    assert "its port (CONFIG_MCUMGR_TRANSPORT_UDP_PORT)" in found.hint
    found = failure(outputs_of, Udp("no.host.invalid"), 2.0)
    assert found.message.startswith("cannot send to 'no.host.invalid:1337' over UDP: ")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("192.0.2.1", "192.0.2.1:1337"),
        ("board.local:99", "board.local:99"),
        ("[fe80::1%eth0]:7", "[fe80::1%eth0]:7"),
        ("[::1]", "[::1]:1337"),
        *((wrong, None) for wrong in ("::1", "host:", "host:0", "host:65536", "a b", "")),
    ],
)
def test_places_of_udp(text, shown):
    if shown is not None:
        assert str(udp_place(text)) == shown
    else:
        with pytest.raises(ValueError, match="expected HOST or HOST:PORT"):
            udp_place(text)


class FakeBleTransport:
    """The interface of smpclient's SMPBLETransport, with a server behind it."""

    board: SmpBoard
    fault: Exception | None = None
    """What connect() raises."""
    send_fault: Exception | None = None
    max_unencoded_size = 244

    async def connect(self, address, timeout_s):
        assert (address, timeout_s) == ("opwest-board", 3.0)
        self.received = asyncio.Queue()
        if self.fault is not None:
            raise self.fault

    async def disconnect(self):
        raise RuntimeError("bleak reports a device that is gone")

    async def send(self, data):
        if self.send_fault is not None:
            raise self.send_fault
        await self.received.put(answer_of(self.board, data))

    async def receive(self):
        return await self.received.get()

    def initialize(self, smp_server_transport_buffer_size):
        self.size = smp_server_transport_buffer_size


def named(name, text=""):
    """Return an exception of a class with a name: those of smpclient and bleak."""
    return type(name, (Exception,), {})(text)


@pytest.fixture
def ble(monkeypatch):
    fake = type("Fake", (FakeBleTransport,), {"board": SmpBoard(Model())})
    module = types.ModuleType("smpclient.transport.ble")
    module.SMPBLETransport = fake
    monkeypatch.setitem(sys.modules, "smpclient.transport.ble", module)
    return fake


def test_run_over_a_replacement_of_bluetooth(ble):
    np.testing.assert_array_equal(outputs_of(Ble("opwest-board"))["y"], 2 * X)
    assert ble.board.model.runs == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (named("SMPBLETransportDeviceNotFound"), "Bluetooth device 'opwest-board' not found within 3 s"),
        (TimeoutError(), "Bluetooth device 'opwest-board' not found within 3 s"),
        (named("SMPBLETransportNotSMPServer"), "the Bluetooth device 'opwest-board' has no SMP service"),
        (named("BleakError", "No adapter"), "cannot connect to 'opwest-board' over Bluetooth: No adapter"),
    ],
)
def test_faults_of_bluetooth(ble, fault, message):
    ble.fault = fault
    found = failure(outputs_of, Ble("opwest-board"))
    assert found.message == message and found.hint


def test_lost_bluetooth_device_and_missing_package(ble, monkeypatch):
    ble.send_fault = named("BleakError", "Not connected")
    lost = failure(outputs_of, Ble("opwest-board"), kind=LostError).message
    assert lost.startswith("lost the connection to 'opwest-board' while waiting for ") and "Not connected" in lost
    monkeypatch.setitem(sys.modules, "smpclient.transport.ble", None)
    found = failure(outputs_of, Ble("opwest-board"))
    assert "bleak is required" in found.message and found.hint == 'run pip install "smpclient[ble]"'

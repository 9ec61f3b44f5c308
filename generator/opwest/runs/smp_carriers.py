# SPDX-License-Identifier: Apache-2.0
"""What carries SMP frames: a serial device, UDP or Bluetooth, each by a transport of smpclient.

smpclient is an optional dependency: import this module only on demand.
"""

from __future__ import annotations

from typing import Protocol

from smpclient.transport import SMPTransportDisconnected

from opwest.base.commands import pip_install
from opwest.base.diagnostics import first_line
from opwest.runs.link import NO_SERVICE_HINT, LinkError, LostError
from opwest.runs.places import Ble, Place, Serial, Udp

_DEFAULT_BAUD = 115200


class Transport(Protocol):
    """The part of smpclient's transports that opwest uses."""

    @property
    def max_unencoded_size(self) -> int:
        """The longest frame that is sent in one piece, bytes."""

    async def connect(self, address: str, timeout_s: float) -> None:
        """Connect."""

    async def disconnect(self) -> None:
        """Disconnect."""

    async def send(self, data: bytes) -> None:
        """Send a frame."""

    async def receive(self) -> bytes:
        """Return the next frame."""

    def initialize(self, smp_server_transport_buffer_size: int) -> None:
        """Set the size of the server's buffer."""


class Carrier:
    """A connection that carries frames. Its errors name the place."""

    transport: Transport
    silent_hint: str
    """What to do if nothing is received."""
    damaged_hint: str
    """What to do if a frame is damaged."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.place = place
        self.timeout = timeout
        self._buffer: int | None = None

    async def connect(self) -> None:
        """Connect. Raises LinkError."""
        raise NotImplementedError

    async def send(self, data: bytes) -> None:
        """Send a frame. Raises OSError or SMPTransportDisconnected if the connection ended."""
        await self.transport.send(data)

    async def console(self) -> bytes:
        """Return the output of the image since the last call: only a serial device can carry it, too."""
        return b""

    def learn_size(self, size: int) -> None:
        """Note the size of the server's buffer."""
        self._buffer = size
        self.transport.initialize(size)

    @property
    def space(self) -> int:
        """The longest frame, bytes: smpclient's transport for UDP does not read the size of the buffer."""
        own = self.transport.max_unencoded_size
        return own if self._buffer is None else min(own, self._buffer)

    def lost(self, error: Exception, awaited: str) -> LinkError:
        """Return the error for a connection that ended."""
        return LostError(f"lost the connection to '{self.place}' while waiting for {awaited}: {first_line(error)}")


class SerialCarrier(Carrier):
    """A serial device, which carries the console of the image, too."""

    silent_hint = (
        "check that the device is the board's UART for MCUmgr and that the image is running, or " + NO_SERVICE_HINT
    )
    damaged_hint = "check that --baud matches the board"

    def __init__(self, place: Serial, timeout: float) -> None:
        super().__init__(place, timeout)
        from smpclient.transport.serial import SMPSerialTransport

        baud = _DEFAULT_BAUD if place.baud is None else place.baud
        self._serial = SMPSerialTransport(baudrate=baud, exclusive=True, write_timeout=timeout)
        self.transport = self._serial

    async def connect(self) -> None:
        """Open the device. Raises LinkError."""
        try:
            await self._serial.connect(str(self.place), 0.1)
        except (OSError, TimeoutError) as error:
            raise LinkError(f"cannot open the serial device '{self.place}'; it exists and is not in use") from error

    async def console(self) -> bytes:
        """Return the output of the image since the last call."""
        return await self._serial.read_serial()

    @property
    def space(self) -> int:
        """The longest frame, bytes: the buffer contains the encoded one."""
        return self.transport.max_unencoded_size

    def lost(self, error: Exception, awaited: str) -> LinkError:
        """Return the error for a device that disappeared, or that accepts no data."""
        if "imeout" in f"{error.__cause__}":
            return LinkError(
                f"{self.place}: cannot send a request within {self.timeout:g} s: the board does not read its UART"
            )
        return LostError(
            f"lost the serial device '{self.place}' while waiting for {awaited}: the board was unplugged or "
            "the emulator exited"
        )


class UdpCarrier(Carrier):
    """UDP: a frame is a datagram, which can be lost."""

    silent_hint = (
        "check the address of the board, its port (CONFIG_MCUMGR_TRANSPORT_UDP_PORT) and the network, or "
        + NO_SERVICE_HINT
    )
    damaged_hint = "another program may use the port"

    def __init__(self, place: Udp, timeout: float) -> None:
        super().__init__(place, timeout)
        from smpclient.transport.udp import SMPUDPTransport

        self._udp, self._to = SMPUDPTransport(), place
        self.transport = self._udp

    async def connect(self) -> None:
        """Find the address of the host: UDP has no connection. Raises LinkError."""
        try:
            await self._udp.connect(self._to.host, self.timeout, self._to.port)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LinkError(f"cannot send to '{self.place}' over UDP: {reason}", "check the name or address") from error


class BleCarrier(Carrier):
    """Bluetooth: a device that advertises the SMP service."""

    silent_hint = "check that the board is in reach and that no other host is connected, or " + NO_SERVICE_HINT
    damaged_hint = "another host may use the device"

    def __init__(self, place: Ble, timeout: float) -> None:
        super().__init__(place, timeout)
        try:
            from smpclient.transport.ble import SMPBLETransport
        except ImportError as error:
            text = "missing Python package: bleak is required to connect over Bluetooth"
            raise LinkError(text, f"run {pip_install('smpclient[ble]')}") from error
        self.transport = SMPBLETransport()

    async def connect(self) -> None:
        """Find the device by its name or address, and connect. Raises LinkError."""
        try:
            await self.transport.connect(str(self.place), self.timeout)
        except Exception as error:  # those of bleak differ by system, and have no common class
            kind = type(error).__name__
            if kind == "SMPBLETransportDeviceNotFound" or isinstance(error, TimeoutError):
                text = f"Bluetooth device '{self.place}' not found within {self.timeout:g} s"
                hint = "check that the board advertises, and that no other host is connected"
                raise LinkError(text, hint) from error
            if kind == "SMPBLETransportNotSMPServer":
                text = f"the Bluetooth device '{self.place}' has no SMP service"
                raise LinkError(text, "build the image with CONFIG_MCUMGR_TRANSPORT_BT=y") from error
            text = f"cannot connect to '{self.place}' over Bluetooth: {first_line(error)}"
            raise LinkError(text, "check that this machine has Bluetooth and that it is enabled") from error

    async def send(self, data: bytes) -> None:
        """Send a frame. Raises SMPTransportDisconnected if the connection ended."""
        try:
            await self.transport.send(data)
        except Exception as error:  # of bleak
            raise SMPTransportDisconnected(first_line(error)) from error


def carrier_of(place: Place, timeout: float) -> Carrier:
    """Return what carries frames to a place. Raises LinkError for a missing package."""
    if isinstance(place, Udp):
        return UdpCarrier(place, timeout)
    return BleCarrier(place, timeout) if isinstance(place, Ble) else SerialCarrier(place, timeout)

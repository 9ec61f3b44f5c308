# SPDX-License-Identifier: Apache-2.0
"""Where a host reaches an image: a serial device, a UDP port, or a Bluetooth device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from opwest.base.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from opwest.runs.options import ImageOptions

UDP_PORT = 1337
"""The default of CONFIG_MCUMGR_TRANSPORT_UDP_PORT."""


@dataclass(frozen=True)
class Serial:
    """A serial device; without a baud rate, a pseudo terminal."""

    device: str
    baud: int | None = None

    def __str__(self) -> str:
        return self.device


@dataclass(frozen=True)
class Udp:
    """The UDP port of an SMP server."""

    host: str
    port: int = UDP_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Ble:
    """A Bluetooth device with the SMP service: its name, or its address."""

    name: str

    def __str__(self) -> str:
        return self.name


Wireless = Udp | Ble
Place = Serial | Wireless


class Requirement(NamedTuple):
    """The option of an image that a place requires."""

    option: str
    purpose: str
    hint: str


REQUIRED: Mapping[type[Wireless], Requirement] = {
    Udp: Requirement(
        "CONFIG_MCUMGR_TRANSPORT_UDP",
        "serve hosts over UDP",
        "it depends on the driver of a network interface of the board",
    ),
    Ble: Requirement(
        "CONFIG_MCUMGR_TRANSPORT_BT",
        "serve hosts over Bluetooth",
        "the application enables Bluetooth and advertises: set CONFIG_BT=y, CONFIG_BT_PERIPHERAL=y, "
        "CONFIG_MCUMGR_TRANSPORT_BT=y and CONFIG_MCUMGR_TRANSPORT_BT_REASSEMBLY=y in prj.conf",
    ),
}


def udp_place(text: str) -> Udp:
    """Return the place HOST, HOST:PORT or [HOST]:PORT of the command line. Raises ValueError."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:\[\]]+))(?::(\d{1,5}))?", text)
    port = int(match[3]) if match and match[3] else UDP_PORT
    if match is None or not 1 <= port <= 65535:
        raise ValueError(f"'{text}'; expected HOST or HOST:PORT, an IPv6 address in brackets")
    return Udp(match[1] or match[2], port)


def wireless_place(options: ImageOptions) -> Wireless | None:
    """Return the place of --udp or --ble; None without them."""
    if options.udp is not None:
        return options.udp
    return None if options.ble is None else Ble(options.ble)

# SPDX-License-Identifier: Apache-2.0
"""The names of a new driver: of its C functions, its Kconfig options and its devicetree nodes."""

from __future__ import annotations

import re
from typing import Final

from opwest.diagnostics import Diagnostics
from opwest.model.identifiers import fault_of_name
from opwest.records import dataclass
from opwest.system.paths import fault_on_windows

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_COMPATIBLE: Final = re.compile(r"(?P<vendor>[a-z0-9][a-z0-9-]*),[a-z0-9][a-z0-9._-]*")
_MOST_LETTERS: Final = 32
_RESERVED: Final = "opwest"


@dataclass(frozen=True, slots=True)
class DriverNames:
    """The names of a driver, checked."""

    name: str
    """The prefix of its C functions and of its files."""
    compatible: str
    """The compatible of its devicetree nodes (Devicetree Specification 2.3.1)."""

    @property
    def vendor(self) -> str:
        """The vendor's prefix."""
        return self.compatible.partition(",")[0]


def driver_names(name: str, compatible: str | None, faults: Diagnostics) -> DriverNames:
    """Check the names of a new driver; report each fault. Without a compatible it is `vnd,NAME`, of no real vendor."""
    form = f"at most {_MOST_LETTERS} lower-case letters, digits and single underscores, such as my_npu"
    if not _NAME.fullmatch(name) or len(name) > _MOST_LETTERS:
        faults.error(f"invalid name {name!r} of a driver", expected=form)
    elif reason := fault_on_windows(name):
        faults.error(f"Windows does not permit files with the name {name!r}: {reason}", hint="choose another name")
    elif name.split("_")[0] == _RESERVED or fault_of_name(name):
        faults.error(f"the name {name!r} is reserved", expected=form, hint="choose another name")
    if compatible is not None and not _COMPATIBLE.fullmatch(compatible):
        faults.error(f"invalid compatible {compatible!r}", expected="VENDOR,DEVICE, such as acme,my-npu")
    return DriverNames(name, compatible or f"vnd,{name.replace('_', '-')}")

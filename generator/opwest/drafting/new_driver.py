# SPDX-License-Identifier: Apache-2.0
"""A new accelerator driver: an external Zephyr module from the templates of this package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import jinja2

from opwest.base.c_format import format_c
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import fault_on_windows, spelled
from opwest.model.types.c_names import fault_of_name

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_COMPATIBLE: Final = re.compile(r"[a-z0-9][a-z0-9-]*,[a-z0-9][a-z0-9._-]*")
_MAX_LETTERS: Final = 32
_RESERVED: Final = "opwest"


@dataclass(frozen=True, slots=True)
class DriverNames:
    """The names of a driver, checked."""

    name: str
    """The prefix of its C functions and of its files."""
    compatible: str
    """The compatible of its devicetree nodes (Devicetree Specification 2.3.1)."""


def driver_names(name: str, compatible: str | None, faults: Diagnostics) -> DriverNames:
    """Check the names of a new driver; report each fault. Without a compatible it is `vnd,NAME`, of no real vendor."""
    form = f"at most {_MAX_LETTERS} lower-case letters, digits and single underscores, such as my_npu"
    if not _NAME.fullmatch(name) or len(name) > _MAX_LETTERS:
        faults.error(f"invalid name {name!r} of a driver", expected=form)
    elif reason := fault_on_windows(name):
        faults.error(f"Windows does not permit files with the name {name!r}: {reason}", hint="choose another name")
    elif name.split("_")[0] == _RESERVED or fault_of_name(name):
        faults.error(f"the name {name!r} is reserved", expected=form, hint="choose another name")
    if compatible is not None and not _COMPATIBLE.fullmatch(compatible):
        faults.error(f"invalid compatible {compatible!r}", expected="VENDOR,DEVICE, such as acme,my-npu")
    return DriverNames(name, compatible or f"vnd,{name.replace('_', '-')}")


_TEMPLATES: Final = Path(__file__).parent / "templates"
_SUFFIX: Final = ".jinja"


def driver_files(names: DriverNames) -> dict[str, bytes]:
    """Return the text of each file by its path, relative to the directory of the driver."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # C and Kconfig; all names are checked
        keep_trailing_newline=True,
    )
    identifier = re.sub(r"[^a-z0-9]", "_", names.compatible)
    values = {
        "name": names.name,
        "upper": names.name.upper(),
        "compatible": names.compatible,
        "compatible_c": identifier,
        "compatible_upper": identifier.upper(),
        "vendor": names.compatible.partition(",")[0],
    }
    paths = sorted(spelled(path.relative_to(_TEMPLATES)) for path in _TEMPLATES.rglob(f"*{_SUFFIX}"))
    texts = {_place(path, names): environment.get_template(path).render(values) for path in paths}
    return {path: (format_c(text) if path.endswith((".c", ".h")) else text).encode() for path, text in texts.items()}


def _place(template: str, names: DriverNames) -> str:
    path = Path(template.removesuffix(_SUFFIX))
    if path.name == "binding.yaml":
        return spelled(path.parent / f"{names.compatible}.yaml")
    return spelled(path.parent / re.sub(r"^name(?=[._])", names.name, path.name))

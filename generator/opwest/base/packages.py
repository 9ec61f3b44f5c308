# SPDX-License-Identifier: Apache-2.0
"""The packages of opwest without which most commands work, and the error where one is missing."""

from __future__ import annotations

OF_FEATURES = {
    "numpy": "numpy",
    "capstone": "capstone",
    "llvmlite": "llvmlite",
    "serial": "pyserial",
    **dict.fromkeys(("smpclient", "smp", "cbor2", "pydantic"), "smpclient"),
    "west": "west",
    "argcomplete": "argcomplete",
}
"""The modules that only some features import, and their packages."""


def missing_package(error: BaseException) -> str | None:
    """Return the package whose module an exception did not find; None for another exception."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    return OF_FEATURES.get(error.name.partition(".")[0])

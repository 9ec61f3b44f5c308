# SPDX-License-Identifier: Apache-2.0
"""Zephyr's modules that boards and models need, by the names of their west projects."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.model import Model
from opwest.zephyr.version import Version

SERVICE = "zcbor"
"""What the service of `opwest run --board` needs in QEMU and on boards: MCUmgr is built on it."""
_CMSIS_6 = (4, 1)


def cortex_m(version: Version | None) -> str:
    """Return what Cortex-M boards need: cmsis_6 from Zephyr 4.1 on, cmsis before."""
    return "cmsis_6" if version is None or version.pair >= _CMSIS_6 else "cmsis"


def full_libc(models: Sequence[Model]) -> dict[str, str]:
    """Return the C library's module where models need one; native_sim takes the host's. Values say who needs it."""
    if any(model.needs_full_libc for model in models):
        return {"picolibc": "operators that use the C library's mathematics"}
    return {}


def of_externals(models: Sequence[Model]) -> dict[str, str]:
    """Return modules that bring the symbols that models declare as externals; values say who needs each."""
    needed: dict[str, str] = {}
    for model in models:
        for external in model.externals:
            if external.kconfig == "CONFIG_CMSIS_NN":
                needed |= {"cmsis-nn": external.provider, "cmsis-dsp": external.provider}
            if external.kconfig in ("CONFIG_ETHOS_U", "CONFIG_OPWEST_ETHOS_U"):
                needed["hal_ethos_u"] = external.provider
    return needed

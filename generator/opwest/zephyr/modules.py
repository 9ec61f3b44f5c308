# SPDX-License-Identifier: Apache-2.0
"""Zephyr modules that boards and models require, by the names of their west projects."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.model import Model
from opwest.zephyr.version import Version

SERVICE = "zcbor"
"""The module for MCUmgr, which the service of `opwest run --board` uses in QEMU and on boards."""
TF_M = ("trusted-firmware-m", "mbedtls")
"""The modules for boards whose application is the non-secure image of TF-M (CONFIG_BUILD_WITH_TFM)."""
_CMSIS_6 = (4, 2)


def cortex_m(version: Version | None) -> str:
    """Return the module that Cortex-M boards require: cmsis_6 since Zephyr 4.2 (its migration guide), else cmsis."""
    return "cmsis_6" if version is None or version.pair >= _CMSIS_6 else "cmsis"


def full_libc(models: Sequence[Model]) -> dict[str, str]:
    """Return the module of the C library, with its users, if models require one; native_sim uses the host's."""
    if any(model.needs_full_libc for model in models):
        return {"picolibc": "operators that use libm"}
    return {}


def of_externals(models: Sequence[Model]) -> dict[str, str]:
    """Return the modules, with their users, of the symbols that models declare as externals."""
    needed: dict[str, str] = {}
    for model in models:
        for external in model.externals:
            if "CONFIG_CMSIS_NN" in external.kconfig:
                needed |= {"cmsis-nn": external.provider, "cmsis-dsp": external.provider}
            if not {"CONFIG_ETHOS_U", "CONFIG_OPWEST_ETHOS_U"}.isdisjoint(external.kconfig):
                needed["hal_ethos_u"] = external.provider
    return needed

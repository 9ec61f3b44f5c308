# SPDX-License-Identifier: Apache-2.0
"""Versions of Zephyr and their board names (source: Zephyr's release notes and migration guides)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from opwest.model.types.model import Model

NATIVE_SIM = (3, 5)
"""Introduced native_sim."""
QUALIFIERS = (3, 7)
"""Introduced hardware model 2: boards with qualifiers (board/soc/variant)."""
NO_NATIVE_POSIX = (4, 2)
"""Removed native_posix."""
UNIFIED_TESTS = (4, 5)
"""Replaced sample.yaml and testcase.yaml by tests.yaml, with the same content (Zephyr's pull request 107155)."""
FORMER_BOARDS = {"mps3/corstone300/an547": "mps3_an547"}
"""The names before Zephyr 3.7 of boards that do not follow the rule: underscores between the qualifiers."""
BOARD_NAME = re.compile(r"[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?(/[A-Za-z0-9_.-]*)*")
"""The pattern of `boards` in schemas/device-manifest.schema.json; a test compares them."""
OLDEST = (3, 4)
"""The oldest version tested with emitted projects."""


class Version(NamedTuple):
    """Major, minor, patch."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + (f".{self.patch}" if self.patch else "")

    @property
    def pair(self) -> tuple[int, int]:
        """The part of the version that board names depend on."""
        return (self.major, self.minor)


class TwisterFiles(NamedTuple):
    """The names of twister's files: that of an application, and that of a model's tests."""

    application: str
    suite: str


SEPARATE = TwisterFiles("sample.yaml", "testcase.yaml")
"""Zephyr 4.5 reads these names, too."""
UNIFIED = TwisterFiles("tests.yaml", "tests.yaml")


def twister_files(version: Version | None) -> TwisterFiles:
    """Return the names that a version of Zephyr wants; those that all versions read if it is unknown."""
    return UNIFIED if version is not None and version.pair >= UNIFIED_TESTS else SEPARATE


def parse_version(text: str) -> Version | None:
    """Parse a version such as `4.2`, `v3.7.0` or `4.2.0-rc1`; return None if it is invalid."""
    match = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?:[.-].*)?", text.strip())
    return Version(*(int(part or 0) for part in match.groups())) if match else None


def is_board_name(name: str) -> bool:
    """Whether a text has the form of a board's name, as the schema of manifests requires it."""
    return BOARD_NAME.fullmatch(name) is not None


def board_fault(board: str, version: Version) -> tuple[str, str] | None:
    """Return why a version of Zephyr has no board of that name, and its other name; None if it may have it."""
    name, *qualifiers = re.sub(r"@[^/]*", "", board).split("/")
    pair = version.pair
    if name == "native_sim" and pair < NATIVE_SIM:
        new = "native_posix_64" if "64" in qualifiers else "native_posix"
        return (f"native_sim requires Zephyr 3.5 or newer, found {version}", new)
    if qualifiers and pair < QUALIFIERS:
        words = [name, *(q for q in qualifiers if q not in ("", "native"))]
        plain = FORMER_BOARDS.get("/".join(words), "_".join(words))
        return (f"qualifiers ({board}) require Zephyr 3.7 or newer, found {version}", plain)
    if name in ("native_posix", "native_posix_64") and pair >= NO_NATIVE_POSIX:
        new = "native_sim/native/64" if name.endswith("64") else "native_sim"
        return (f"{name} was removed in Zephyr 4.2, found {version}", new)
    if name == "native_sim_64" and pair >= QUALIFIERS:
        return (f"native_sim_64 was renamed in Zephyr 3.7, found {version}", "native_sim/native/64")
    if name == "native_sim_64" and pair < NATIVE_SIM:
        return (f"native_sim requires Zephyr 3.5 or newer, found {version}", "native_posix_64")
    return None


def successors(board: str, full_names: Iterable[str], renamed: Mapping[str, str]) -> list[str]:
    """Return the boards of hardware model 2 that a name of Zephyr 3.6 or older can stand for.

    `full_names`: the boards of the tree with their qualifiers; `renamed`: the former names that the tree records.
    """
    if board in renamed:
        return [renamed[board]]
    former = [name for name, old in FORMER_BOARDS.items() if old == board]
    known = sorted(name for name in full_names if "/" in name and "//" not in name and "*" not in name)
    equal = [name for name in known if board in (name.replace("/", "_"), _without_soc(name))]
    return former or equal or [name for name in known if name.replace("/", "_").startswith(f"{board}_")]


def _without_soc(name: str) -> str:
    board, _, *rest = name.split("/")
    return "_".join([board, *rest])


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

# SPDX-License-Identifier: Apache-2.0
"""The Kconfig symbols of a board target, evaluated by Zephyr's own Kconfig library, without CMake and devicetree.

This is the truth that the sweep over all boards compares opwest with: opwest reads the same files with its own rules.
The evaluated files are those of the board, its SoC and all architectures. Drivers and subsystems are left out: a symbol
that only they define is n, as are functions of devicetree. No condition of a target depends on them.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

ARCHITECTURES = ("ARC", "ARM", "ARM64", "ARCH_POSIX", "MIPS", "RISCV", "RX", "SPARC", "X86", "XTENSA")
_ROOT = """
source "Kconfig.constants"
osource "$(KCONFIG_BOARD_DIR)/Kconfig.defconfig"
source "$(KCONFIG_BINARY_DIR)/soc/Kconfig.defconfig"
config OPWEST
\tdef_bool y
{models}
source "boards/Kconfig"
source "soc/Kconfig.v2"
osource "$(KCONFIG_BINARY_DIR)/soc/Kconfig"
osource "soc/common/Kconfig"
source "arch/Kconfig"
source "kernel/Kconfig"
"""


@dataclass(frozen=True)
class BoardTarget:
    """A board with its qualifiers, as Zephyr's list_boards.py lists it."""

    name: str
    qualifiers: str
    revision: str
    directories: tuple[Path, ...]

    @property
    def full(self) -> str:
        return f"{self.name}/{self.qualifiers}"

    @property
    def soc(self) -> str:
        return self.qualifiers.split("/")[0]


class Tree:
    """A Zephyr tree: its boards, and the symbols of each board target."""

    def __init__(self, base: Path, scratch: Path) -> None:
        self.base, self.scratch = base, scratch
        for folder in (base / "scripts" / "kconfig", base / "scripts"):
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
        import list_boards  # type: ignore[import-not-found]
        import list_hardware  # type: ignore[import-not-found]

        roots = argparse.Namespace(board_roots=[base], soc_roots=[base], arch_roots=[base], board=None, board_dir=[])
        boards = list_boards.find_v2_boards(roots).values()
        self.boards = len(boards)
        self.targets = [
            BoardTarget(board.name, qualifiers, str(board.revision_default or ""), tuple(board.directories))
            for board in boards
            for qualifiers in list_boards.board_v2_qualifiers(board)
        ]
        systems = list_hardware.find_v2_systems(roots)
        self._folders = {soc.name: self._of(soc, systems) for soc in systems.get_socs()}
        arch = scratch / "arch"
        arch.mkdir(parents=True, exist_ok=True)
        sourced = "".join(f'osource "{file}"\n' for file in sorted((base / "arch").glob("*/Kconfig")))
        (arch / "Kconfig").write_text(sourced)

    def _of(self, soc: Any, systems: Any) -> list[Path]:
        """Return the directories of a SoC, of its series and its family."""
        found = list(soc.folder)
        for group, name in ((systems.get_series(), soc.series), (systems.get_families(), soc.family)):
            found += [folder for one in group if one.name == name for folder in one.folder]
        return sorted({Path(folder) for folder in found})

    def symbols(self, target: BoardTarget, kconfig: Sequence[Path] = (), options: Sequence[str] = ()) -> dict[str, str]:
        """Return the values of all symbols of a firmware, with the Kconfig files of models and lines of prj.conf.

        The directories of all SoCs are read only for boards that select a symbol of another SoC than their own.
        """
        with patch.dict(os.environ):  # kconfiglib reads the environment
            kconf = self._evaluated(target, self._folders[target.soc], kconfig, options)
            if any(one.name.startswith("SOC_") and _is_selected(one) for one in kconf.syms.values() if not one.nodes):
                every = sorted({folder for folders in self._folders.values() for folder in folders})
                kconf = self._evaluated(target, every, kconfig, options)
            return {symbol.name: symbol.str_value for symbol in kconf.unique_defined_syms}

    def _evaluated(
        self, target: BoardTarget, folders: Sequence[Path], kconfig: Sequence[Path], options: Sequence[str]
    ) -> Any:
        soc, board = self.scratch / "soc", self.scratch / "boards"
        for place in (soc, board):
            place.mkdir(exist_ok=True)
        for name in ("Kconfig.defconfig", "Kconfig", "Kconfig.soc"):
            _sources(soc / name, folders, name)
        for name in ("Kconfig.defconfig", f"Kconfig.{target.name}", "Kconfig"):
            _sources(board / name, target.directories, name)
        root = self.scratch / "Kconfig"
        root.write_text(_ROOT.format(models="\n".join(f'source "{file}"' for file in kconfig)))
        base, scratch = str(self.base), str(self.scratch)
        os.environ |= {"srctree": base, "ZEPHYR_BASE": base, "ARCH": "*", "ARCH_DIR": str(self.base / "arch")}
        os.environ |= {"KCONFIG_BINARY_DIR": scratch, "APPLICATION_SOURCE_DIR": scratch}
        os.environ |= {"BOARD": target.name, "BOARD_QUALIFIERS": f"/{target.qualifiers}", "HWM_SCHEME": "v2"}
        os.environ |= {"BOARD_REVISION": target.revision, "KCONFIG_BOARD_DIR": str(board), "CONFIG_": "CONFIG_"}
        os.environ |= {"KERNELVERSION": "0", "APPVERSION": "", "ZEPHYR_TOOLCHAIN_VARIANT": "zephyr"}
        os.environ |= {"TOOLCHAIN_HAS_NEWLIB": "n", "TOOLCHAIN_HAS_PICOLIBC": "y"}
        import kconfiglib  # type: ignore[import-not-found]

        kconf = kconfiglib.Kconfig(str(root), warn=False, suppress_traceback=True)
        file = _defconfig(target)
        if file is not None:
            kconf.load_config(str(file), replace=False)
        if options:
            (self.scratch / "prj.conf").write_text("".join(f"{line}\n" for line in options))
            kconf.load_config(str(self.scratch / "prj.conf"), replace=False)
        return kconf


def _is_selected(symbol: Any) -> bool:
    import kconfiglib

    return bool(kconfiglib.expr_value(symbol.rev_dep))


def _sources(file: Path, folders: Sequence[Path], name: str) -> None:
    file.write_text("".join(f'osource "{Path(folder) / name}"\n' for folder in folders))


def _defconfig(target: BoardTarget) -> Path | None:
    """Return the defconfig of a board target: that with all qualifiers, without the SoC, or with the name only."""
    parts = target.qualifiers.split("/")
    names = ["_".join([target.name, *parts]), "_".join([target.name, *parts[1:]])]
    for name in names:
        for folder in target.directories:
            if (Path(folder) / f"{name}_defconfig").is_file():
                return Path(folder) / f"{name}_defconfig"
    return None

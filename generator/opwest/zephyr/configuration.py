# SPDX-License-Identifier: Apache-2.0
"""The configuration of a board's firmware: which symbols of Kconfig are y, before its build."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from opwest.zephyr.hardware import read_text
from opwest.zephyr.kconfig import KconfigFiles, KconfigValues, expression
from opwest.zephyr.version import QUALIFIERS
from opwest.zephyr.workspace import Workspace

_KCONFIG = "arch/riscv/Kconfig.isa"
_BASE, _EXTENSIONS = "riscv,isa-base", "riscv,isa-extensions"
_PLACES = ("dts/riscv", "dts/common", "dts/vendor", "dts")
"""The directories of `#include <...>` in devicetree sources, in Zephyr's order (cmake/modules/pre_dt.cmake)."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"\n]+)[>"]', re.MULTILINE)


def isa_symbols(target: str, boards: Iterable[Path], base: Path) -> frozenset[str]:
    """Return the symbols of Kconfig (without CONFIG_) that Zephyr derives from the devicetree of a board.

    They are RISCV_ISA_RV32I and the like, and RISCV_ISA_EXT_M and the like. `target` is the name of the board with
    its SoC, and `boards` are its directories. The result is empty for a tree that declares the instruction set
    elsewhere. Of several declarations, such as those of several cores, the common extensions count, as in Zephyr.
    Overwritten and deleted properties are not evaluated.
    """
    if _BASE not in read_text(base / _KCONFIG):
        return frozenset()
    source = _file_of_board(target, boards, ".dts")
    if source is None:
        return frozenset()
    text = "\n".join(_with_includes(source, base, set()))
    bases = {f"RISCV_ISA_{name.upper()}" for name in _common_values(_BASE, text)}
    extensions = {f"RISCV_ISA_EXT_{name.upper()}" for name in _common_values(_EXTENSIONS, text) if name != "i"}
    return frozenset(bases | extensions)


def _file_of_board(target: str, folders: Iterable[Path], suffix: str) -> Path | None:
    """Return the file of a board with all its qualifiers in the name, else that without the SoC; None without one."""
    name, _, *rest = target.split("/")
    for stem in (target.replace("/", "_"), "_".join([name, *rest])):
        for folder in folders:
            if (folder / f"{stem}{suffix}").is_file():
                return folder / f"{stem}{suffix}"
    return None


def _with_includes(file: Path, base: Path, done: set[Path]) -> Iterator[str]:
    """Yield the text of a devicetree source and of the files that it includes, each once."""
    if file in done:
        return
    done.add(file)
    text = _COMMENT.sub(" ", read_text(file))
    yield text
    for name in _INCLUDE.findall(text):
        places = (file.parent / name, *(base / place / name for place in _PLACES))
        included = next((place for place in places if place.is_file()), None)
        if included is not None:
            yield from _with_includes(included, base, done)


def _common_values(name: str, text: str) -> frozenset[str]:
    """Return the strings that all assignments to a property contain."""
    assigned = re.findall(rf"{re.escape(name)}\s*=([^;]*);", text)
    values = [frozenset(re.findall(r'"([^"]*)"', value)) for value in assigned]
    return frozenset.intersection(*values) if values else frozenset()


_MAX_SOCS = 4
_FLOATS = """
config FPU
	bool "FPU"
	depends on CPU_HAS_FPU
choice
	prompt "ABI"
	default FP_HARDABI
	depends on FPU && !64BIT && !RISCV
config FP_HARDABI
	bool "hard"
config FP_SOFTABI
	bool "soft"
endchoice
config FLOAT_HARD
	bool "hard float of RISC-V"
	default y
	depends on FPU && RISCV
"""
"""The options of the FPU, in the form of Zephyr's arch/, for processors that are known without a tree."""


class Configuration:
    """The symbols of a board's Kconfig files."""

    def __init__(self, values: KconfigValues, forced: Iterable[str], assigned: Mapping[str, bool]) -> None:
        self._values, self._forced, self._assigned = values, tuple(forced), dict(assigned)
        self._results: dict[object, frozenset[str]] = {}

    def true(self, options: Mapping[str, bool] | None = None, implied: Iterable[str] = ()) -> frozenset[str]:
        """Return the symbols (without CONFIG_) that are y.

        `options` are assigned by the application, after those of the board. `implied` are the conditions under which a
        model implies FPU.
        """
        conditions = tuple(("FPU", expression(condition)) for condition in implied)
        key = (frozenset((options or {}).items()), conditions)
        if key not in self._results:
            self._results[key] = self._values.true(self._forced, self._assigned | dict(options or {}), conditions)
        return self._results[key]

    def undefined(self) -> set[str]:
        """Return the symbols that the board selects and that its files do not define."""
        return self._values.undefined(self.true())


@lru_cache(maxsize=16)
def board_configuration(board: str, workspace: Workspace) -> Configuration | None:
    """Return the configuration of a board of a tree; None if the tree has no such board."""
    if workspace.version is None:
        return None
    if workspace.version.pair < QUALIFIERS:
        return _of_defconfig(board, workspace)
    target = _full_name(board, workspace)
    if target is None:
        return None
    name, soc = target.split("/")[0], target.split("/")[1]
    known = workspace.socs.get(soc)
    folders = set(known.folders if known else ())
    _, _, revision = board.partition("/")[0].partition("@")
    variables = {"BOARD": name, "BOARD_REVISION": revision or workspace.default_revision(name)}
    for _ in range(_MAX_SOCS):
        configuration = _of_folders(target, workspace, folders, variables)
        others = {folder for symbol in configuration.undefined() for folder in workspace.soc_symbols.get(symbol, ())}
        if others <= folders:
            break
        folders |= others  # the SoC of this name selects another one, such as the SoC of its package
    return configuration


def _of_folders(
    target: str, workspace: Workspace, folders: Iterable[Path], variables: Mapping[str, str]
) -> Configuration:
    name = target.split("/")[0]
    boards, socs = workspace.board_folders(name), sorted(folders)
    files = KconfigFiles(_variables(workspace) | dict(variables), _common(workspace.base))
    files.read([folder / "Kconfig.defconfig" for folder in (*boards, *socs)])
    files.read([folder / file for folder in boards for file in (f"Kconfig.{name}", "Kconfig")])
    files.read([folder / "Kconfig.soc" for folder in socs])
    files.read([folder / "Kconfig" for folder in socs])
    values, names = KconfigValues(files), (_symbol(name), _symbol(target))
    defconfig = _file_of_board(target, boards, "_defconfig")
    assigned = {} if defconfig is None else _assigned(defconfig)
    configuration = Configuration(values, names, assigned)
    if "RISCV" not in configuration.true():
        return configuration
    isa = isa_symbols(target, boards, workspace.base)
    return Configuration(values, (*names, *isa), assigned) if isa else configuration


def selects_no_processor(board: str, workspace: Workspace) -> bool:
    """Whether the Kconfig files of a board of hardware model 2 are complete, and select no core.

    A SoC outside of the tree can have files elsewhere, and Zephyr's own files always define its architecture.
    """
    target = _full_name(board, workspace)
    if target is None or workspace.version is None or workspace.version.pair < QUALIFIERS:
        return False
    known = workspace.socs.get(target.split("/")[1])
    return known is not None and (workspace.base / "arch" / "Kconfig").is_file()


def standalone(symbols: Iterable[str]) -> Configuration:
    """Return the configuration of a processor that selects the symbols, with the options of its FPU."""
    files = KconfigFiles({})
    files.add(_FLOATS)
    return Configuration(KconfigValues(files), symbols, {})


def _of_defconfig(board: str, workspace: Workspace) -> Configuration | None:
    """Return the configuration of a board before Zephyr 3.7: its defconfig assigns the SoC."""
    for file in sorted((workspace.base / "boards").glob(f"*/*/{board}_defconfig")):
        files = KconfigFiles(_variables(workspace) | {"ARCH": file.parents[1].name}, _common(workspace.base))
        soc = workspace.base / "soc" / file.parents[1].name
        files.read([file.parent / "Kconfig.defconfig", *sorted(soc.glob("*/Kconfig.defconfig"))])
        files.read([file.parent / "Kconfig.board", workspace.base / "soc" / "Kconfig"])
        return Configuration(KconfigValues(files), (), _assigned(file))
    return None


def _variables(workspace: Workspace) -> dict[str, str]:
    base = str(workspace.base)
    toolchain = os.environ.get("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr")
    places = {"ZEPHYR_BASE": base, "srctree": base, "SOC_DIR": "soc", "ARCH_DIR": "arch"}
    return places | {"ZEPHYR_TOOLCHAIN_VARIANT": toolchain}


@lru_cache(maxsize=2)
def _common(base: Path) -> KconfigFiles:
    """Return the files of architectures and of the kernel, which follow those of boards and SoCs."""
    files = KconfigFiles({"ZEPHYR_BASE": str(base), "srctree": str(base), "ARCH_DIR": "arch"})
    arch = base / "arch"
    files.read([*sorted(arch.glob("*/Kconfig")), arch / "Kconfig", base / "kernel" / "Kconfig"])
    return files


def _full_name(board: str, workspace: Workspace) -> str | None:
    """Return the name of a board with its SoC; None if it has none, or several."""
    name, _, qualifiers = re.sub("@[^/]*", "", board).partition("/")
    full = workspace.boards.get(name, frozenset())
    socs = {full_name.split("/")[1] for full_name in full if full_name.count("/") and full_name.split("/")[1]}
    soc, _, rest = qualifiers.partition("/")
    soc = soc or (next(iter(socs)) if len(socs) == 1 else "")
    return "/".join([name, soc, *([rest] if rest else [])]) if soc else None


def _symbol(target: str) -> str:
    return "BOARD_" + re.sub(r"\W", "_", target).upper()


def _assigned(file: Path) -> dict[str, bool]:
    """Return the values that a defconfig assigns."""
    text = read_text(file)
    values = {name: value == "y" for name, value in re.findall(r"^CONFIG_(\w+)=([yn])\s*$", text, re.MULTILINE)}
    return values | dict.fromkeys(re.findall(r"^# CONFIG_(\w+) is not set", text, re.MULTILINE), False)

# SPDX-License-Identifier: Apache-2.0
"""The memory regions in the devicetree of a board, read by Zephyr's devicetree library, without CMake and modules.

    python tests/boards/memory_regions.py BOARD_DTS...

Headers of modules that are absent are empty, and unknown macros are 0: they are numbers of pins and clocks. Regions do
not depend on them.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KINDS = ("zephyr,memory-region", "mmio-sram", "arm,dtcm", "arm,itcm", "st,stm32-ccm")
_WORD = re.compile(r"(?<![&\w\"/,.-])[A-Za-z_]\w*\b(\s*\([^()]*\))?")


@dataclass(frozen=True)
class Region:
    """A node of memory."""

    labels: tuple[str, ...]
    compatible: tuple[str, ...]
    address: int
    size: int
    name: str | None
    """The value of zephyr,memory-region: a manifest's pool can be placed in it."""
    is_main: bool
    """Whether the node is zephyr,sram."""


def regions(dts: Path, base: Path) -> list[Region]:
    """Return the memory regions of a board whose nodes are enabled."""
    if str(base / "scripts/dts/python-devicetree/src") not in sys.path:
        sys.path.insert(0, str(base / "scripts/dts/python-devicetree/src"))
    from devicetree import dtlib  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        text = _preprocessed(dts, base, Path(folder))
        text = re.sub(r"<([^<>]*)>", lambda found: f"<{_WORD.sub('0', found[1])}>", text)
        file = Path(folder) / "board.dts"
        file.write_text(text)
        tree: Any = dtlib.DT(str(file), force=True)
    chosen = tree.get_node("/chosen").props["zephyr,sram"].to_path().path
    found = []
    for node in tree.node_iter():
        kinds = tuple(node.props["compatible"].to_strings()) if "compatible" in node.props else ()
        if set(kinds).isdisjoint(_KINDS) or "reg" not in node.props:
            continue
        if "status" in node.props and node.props["status"].to_string() not in ("okay", "ok"):
            continue
        name = node.props.get("zephyr,memory-region")
        address, size = node.props["reg"].to_nums()[:2]
        parsed = name.to_string() if name else None
        found.append(Region(tuple(node.labels), kinds, address, size, parsed, node.path == chosen))
    return found


def _preprocessed(dts: Path, base: Path, folder: Path) -> str:
    """Return a devicetree source after the preprocessor, with an empty file for each header that is absent."""
    places = ["include", "include/zephyr", "dts/common", "dts", "dts/vendor", "dts/arm", "dts/riscv", "dts/xtensa"]
    flags = [f"-I{base / place}" for place in places]
    flags += [f"-I{base.parent / 'modules/hal/stm32/dts'}", f"-I{folder}"]
    for _ in range(50):
        command = ["gcc", "-E", "-P", "-x", "assembler-with-cpp", "-nostdinc", "-D__DTS__", *flags, str(dts)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        absent = re.search(r"fatal error: ([^:]+): No such file", done.stderr)
        if done.returncode == 0:
            return done.stdout
        if absent is None or absent[1].startswith(("/", "..")):
            raise RuntimeError(done.stderr)
        (folder / absent[1]).parent.mkdir(parents=True, exist_ok=True)
        (folder / absent[1]).write_text("")
    raise RuntimeError("too many absent headers")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument).resolve()
        print(path.stem)
        for one in regions(path, Path.home() / "zephyrproject" / "zephyr"):
            name = "zephyr,sram" if one.is_main else one.name
            print(f"  {'/'.join(one.labels)} {one.size // 1024} KiB at {one.address:#x}, {name}, {one.compatible}")

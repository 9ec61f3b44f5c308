# SPDX-License-Identifier: Apache-2.0
"""The sizes of a report, compared with nm and the linker's map file."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from opwest.cli.main import main

INITIAL = "initial values of "


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def sizes_by_nm(image: Path, prefix: str = "") -> dict[str, list[int]]:
    """Return the sizes of symbols, by name."""
    sizes: dict[str, list[int]] = {}
    for line in run(f"{prefix}nm", "-S", "--size-sort", image, cwd=image.parent).splitlines():
        _, size, _, name = line.split()
        sizes.setdefault(name, []).append(int(size, 16))
    return sizes


def bytes_by_archive(image: Path, prefix: str = "") -> dict[str, int]:
    """Return the bytes of each archive in sections with content, from the map file, with the padding before them."""
    rows = run(f"{prefix}objdump", "-h", "-w", image, cwd=image.parent).splitlines()
    loaded = {row.split()[1] for row in rows if "CONTENTS" in row and "ALLOC" in row}
    text = image.with_suffix(".map").read_text().partition("\nLinker script and memory map\n")[2]
    text = re.sub(r"^( ?[^ \n*]\S*)\n +0x", r"\1 0x", text, flags=re.MULTILINE)
    totals: dict[str, int] = {}
    output, fill = "", 0
    for line in text.splitlines():
        if found := re.match(r"(\S+)(?:\s|$)", line):
            output, fill = found[1], 0
        elif found := re.match(r" \*fill\*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)", line):
            fill += int(found[1], 16)
        elif (found := re.match(r" [^ *]\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)", line)) and int(found[1], 16):
            archive = Path(found[2].partition("(")[0]).name
            if output in loaded:
                totals[archive] = totals.get(archive, 0) + int(found[1], 16) + fill
            fill = 0
    return totals


def by_kind(image: dict[str, Any], items: str = "items") -> dict[str, dict[str, int]]:
    """Return the bytes of the items of a report's image, by kind and name."""
    kinds: dict[str, dict[str, int]] = {}
    for item in image[items]:
        names = kinds.setdefault(item["kind"], {})
        names[item["name"]] = names.get(item["name"], 0) + item["bytes"]
    return kinds


def prefix_of(board: str) -> str:
    """Return the prefix of the binutils for a board."""
    return "" if board.startswith("native_") else "arm-none-eabi-"


def reported(app: Path, build: Path) -> dict[str, Any]:
    """Return the only model of the report of a build directory."""
    output = build / "report.json"
    assert main(["report", str(app), "--firmware", str(build), "-o", str(output), "--quiet"]) == 0
    (model,) = json.loads(output.read_text())["models"]
    return dict(model)


def check_sizes(model: dict[str, Any], elf: Path, prefix: str = "") -> dict[str, dict[str, int]]:
    """Compare all figures of a model's image in a report with nm and the map file; return its flash by kind."""
    flash = check_symbols(model, elf, prefix)
    archives = bytes_by_archive(elf, prefix)
    of_map = archives[f"libopwest_{model['name']}.a"] + archives["libopwest.a"]
    initial = sum(size for key, size in flash["other"].items() if key.startswith(INITIAL))
    total = sum(sum(sizes.values()) for kind, sizes in flash.items() if kind != "library")
    assert total - initial == of_map, "every byte of the objects of model and runtime"
    return flash


def check_symbols(model: dict[str, Any], elf: Path, prefix: str = "") -> dict[str, dict[str, int]]:
    """Compare the figures of symbols with nm; return the flash by kind."""
    (image,) = model["images"]
    name = model["name"]
    flash, memory = by_kind(image), by_kind(image, "memory")
    symbols = {symbol: sum(sizes) for symbol, sizes in sizes_by_nm(elf, prefix).items()}
    plain: dict[str, int] = {}
    for symbol, size in symbols.items():
        plain[symbol.partition(".")[0]] = plain.get(symbol.partition(".")[0], 0) + size
    linked = {one["name"]: symbols.get(f"{name}_constant_{one['name']}") for one in model["constants"]}
    assert flash["constant"] == {key: size for key, size in linked.items() if size is not None}
    operators: dict[str, list[str]] = {}
    for operator in model["operators"]:
        operators.setdefault(operator["symbol"], []).append(operator["name"])
    code = {", ".join(names): plain.get(f"{name}__{symbol}") for symbol, names in operators.items()}
    assert flash["code"] == {key: size for key, size in code.items() if size is not None}
    for kernel, size in flash.get("kernel", {}).items():
        assert size == plain.get(kernel, plain.get(f"{name}__{kernel}")), kernel
    for key, size in flash["other"].items():
        if key.startswith(INITIAL):
            assert size == symbols[key.removeprefix(INITIAL)]
    assert sorted(memory.get("pool", {}).values()) == sorted(pool["planned"] for pool in model["pools"])
    for kind in ("pool", "workspace"):
        for key, size in memory.get(kind, {}).items():
            assert size == symbols[key]
    for key, size in memory.get("state", {}).items():
        assert size == symbols.get(key, symbols.get(f"{name}__{key}")), key
    assert memory.get("stack", {}).get("stack of main()") == symbols.get("z_main_stack")
    return flash

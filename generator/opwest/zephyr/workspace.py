# SPDX-License-Identifier: Apache-2.0
"""Read the version, boards, modules and Kconfig symbols of a Zephyr workspace, without running its tools."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.zephyr.hardware import Soc, is_name, named, parse_yaml, path_of_project, read_socs, read_text, read_yaml
from opwest.zephyr.version import QUALIFIERS, Version

_HAL = {"st": "hal_stm32", "raspberrypi": "hal_rpi_pico", "gd": "hal_gigadevice", "bflb": "hal_bouffalolab"}
"""Modules of vendors with a different directory name below soc/."""
_NEED_NO_HAL = ("ti_lm3s6965", "intel")
"""A SoC and a vendor whose boards build without the module (QEMU's Cortex-M3; hal_intel is for few boards)."""
_NO_OPTIONS = ("doc", "samples", "tests", "node_modules", "twister-out")
_LIMITS = {
    "python": ("python.cmake", r"set\(PYTHON_MINIMUM_REQUIRED\s+([\d.]+)\)"),
    "cmake": ("zephyr_default.cmake", r"cmake_minimum_required\(VERSION\s+([\d.]+)"),
    "dtc": ("dts.cmake", r"find_package\(Dtc\s+([\d.]+)"),
    "west": ("west.cmake", r"MIN_WEST_VERSION\s+([\d.]+)\)"),
    "sdk": ("FindHostTools.cmake", r"find_package\(Zephyr-sdk\s+([\d.]+)"),
}
"""Where Zephyr declares the oldest version of a program, below cmake/modules."""
_MAX_DEPTH = 8
"""Limit on the levels of a board's variants: YAML lists can be recursive."""


@dataclass(frozen=True)
class Workspace:
    """The Zephyr tree at `base`, with or without a west workspace."""

    base: Path
    roots: tuple[Path, ...] = ()
    """Directories whose `boards/` can contain boards of the user."""

    @cached_property
    def version(self) -> Version | None:
        """The version in the file VERSION."""
        text = read_text(self.base / "VERSION")
        numbers = dict(re.findall(r"^(VERSION_MAJOR|VERSION_MINOR|PATCHLEVEL)\s*=\s*(\d{1,4})", text, re.MULTILINE))
        if "VERSION_MAJOR" not in numbers or "VERSION_MINOR" not in numbers:
            return None
        return Version(int(numbers["VERSION_MAJOR"]), int(numbers["VERSION_MINOR"]), int(numbers.get("PATCHLEVEL", 0)))

    @property
    def top(self) -> Path:
        """The directory of the west workspace: that with .west, else the parent of the tree."""
        for folder in self.base.parents:
            if (folder / ".west").is_dir():
                return folder
        return self.base.parent

    @cached_property
    def limits(self) -> dict[str, str]:
        """The oldest versions of python, cmake, dtc, west and the SDK (`sdk`) that this Zephyr accepts."""
        limits = {}
        for name, (file, pattern) in _LIMITS.items():
            match = re.search(pattern, read_text(self.base / "cmake" / "modules" / file))
            if match:
                limits[name] = match[1].removesuffix(".0") if match[1].count(".") > 1 else match[1]
        return limits

    @property
    def has_sdk_command(self) -> bool:
        """Whether its west has the command `sdk`."""
        return (self.base / "scripts" / "west_commands" / "sdk.py").is_file()

    @cached_property
    def toolchains(self) -> tuple[str, ...]:
        """The names that ZEPHYR_TOOLCHAIN_VARIANT can have, without what follows a slash; empty if unknown."""
        return tuple(sorted(path.name for path in (self.base / "cmake" / "toolchain").glob("*") if path.is_dir()))

    @cached_property
    def boards(self) -> dict[str, frozenset[str]]:
        """All boards by name, each with its full names including qualifiers."""
        if self.version is not None and self.version.pair < QUALIFIERS:
            files = (self.base / "boards").glob("*/*/*_defconfig")
            return {name: frozenset([name]) for name in (f.name.removesuffix("_defconfig") for f in files)}
        names: dict[str, set[str]] = {}
        for _, board in self._board_entries:
            if is_name(board.get("name")):
                names.setdefault(str(board["name"]), set()).update(_full_names(board, self.socs))
        return {name: frozenset(full) for name, full in names.items()}

    @cached_property
    def renamed_boards(self) -> dict[str, str]:
        """The former names of boards that the tree records, each with the present one."""
        text = read_text(self.base / "boards" / "deprecated.cmake")
        return dict(re.findall(r"^set\(([^\s()]+)_DEPRECATED\s+([^\s()]+)\s*\)", text, re.MULTILINE))

    @cached_property
    def _board_entries(self) -> list[tuple[Path, dict[str, Any]]]:
        """The entries of all board.yml, each with its directory."""
        entries = []
        for root in (self.base, *self._board_roots()):
            for file in sorted((root / "boards").rglob("board.yml")):
                entries += [(file.parent, board) for board in _board_entries(file)]
        return entries

    @cached_property
    def socs(self) -> dict[str, Soc]:
        """The SoCs of the tree by name, since hardware model 2."""
        return read_socs(self.base)

    @cached_property
    def soc_symbols(self) -> dict[str, set[Path]]:
        """The symbols of SoCs, and the directories whose Kconfig.soc defines each."""
        folders: dict[str, set[Path]] = {}
        for folder in {folder for soc in self.socs.values() for folder in soc.folders}:
            for file in folder.rglob("Kconfig.soc"):
                for name in re.findall(r"^\s*config\s+(SOC_\w+)\s*$", read_text(file), re.MULTILINE):
                    folders.setdefault(name, set()).add(folder)
        return folders

    def board_folders(self, name: str) -> list[Path]:
        """Return the directories of a board with hardware model 2: more than one if another extends it."""
        return [folder for folder, board in self._board_entries if name in (board.get("name"), board.get("extend"))]

    def default_revision(self, name: str) -> str:
        """Return the revision of a board that builds use if they name none; empty if it has none."""
        for _, board in self._board_entries:
            revision = board.get("revision")
            if str(board.get("name")) == name and isinstance(revision, dict) and is_name(revision.get("default")):
                return str(revision["default"])
        return ""

    def _board_roots(self) -> list[Path]:
        """Directories with boards outside the tree, from $BOARD_ROOT, modules and west projects."""
        roots = [*self.roots, *(Path(part) for part in os.environ.get("BOARD_ROOT", "").split(";") if part)]
        for pattern in ("*", "modules/*", "modules/*/*"):
            for file in sorted(self.top.glob(f"{pattern}/zephyr/module.yml")):
                match = re.search(r"^\s*board_root:\s*(\S+)", read_text(file), re.MULTILINE)
                if match:
                    roots.append(file.parents[1] / match[1].strip("'\""))
        return roots

    def architecture(self, board: str) -> str | None:
        """Return the architecture of a board in twister's file (arm, posix, riscv), None if absent."""
        file = self._twister_files.get(f"{board.partition('@')[0].replace('/', '_')}.yaml")
        match = re.search(r"^arch:\s*(\S+)", read_text(file), re.MULTILINE) if file else None
        return match[1] if match else None

    @cached_property
    def _twister_files(self) -> dict[str, Path]:
        return {file.name: file for file in sorted((self.base / "boards").rglob("*.yaml"))}

    @cached_property
    def projects(self) -> dict[str, str]:
        """The projects of the tree's west manifest, and the path of each in the workspace."""
        return _projects(read_text(self.base / "west.yml"))

    def has_module(self, name: str) -> bool:
        """Whether a module is installed; `name` is that of its west project."""
        listed = self.projects.get(name)
        places = [self.top / listed] if listed else []
        places += [self.top / "modules" / kind / name for kind in ("hal", "lib", "tee", "crypto", "debug", "fs")]
        places.append(self.top / "modules" / "hal" / name.removeprefix("hal_"))
        # Unlike pathlib's, these return False for invalid paths.
        return any(os.path.isfile(p / "zephyr" / "module.yml") or os.path.exists(p / ".git") for p in places)  # noqa: PTH110, PTH113

    def ways_to_install(self, modules: Sequence[str]) -> dict[str, str]:
        """Return for each missing module the commands that install it."""
        if not modules:
            return {}
        from opwest.zephyr.west_manifest import read_west_manifest  # only for missing modules

        manifest = read_west_manifest(self.top)
        if manifest is None:
            return {
                name: f"run `west update {name}` (add {name} to the name-allowlist of your west.yml, if it has one)"
                for name in modules
            }
        return manifest.ways_to_install(modules)

    def vendor_module(self, board: str) -> str | None:
        """Return the HAL module that a board's SoC requires, None if none is known.

        The SoC is defined in soc/<vendor>/; the modules of most vendors are named hal_<vendor>.
        """
        names = {full.split("/")[1] for full in self.boards.get(re.split("[/@]", board)[0], ()) if "/" in full}
        names -= {*_NEED_NO_HAL}
        for name in sorted(names & set(self.socs)):
            for folder in self.socs[name].folders:
                vendor = folder.relative_to(self.base / "soc").parts[0]
                if vendor not in _NEED_NO_HAL:
                    known = self.projects
                    return next((hal for hal in (_HAL.get(vendor), f"hal_{vendor}") if hal in known), None)
        return None

    def lacks_symbols(self, symbols: Iterable[str], own: Iterable[Path] = ()) -> dict[str, str | None]:
        """Return the symbols (with CONFIG_) that no Kconfig file of the workspace or `own` defines, with similar ones.

        Accepts names that Zephyr creates from templates (`$(module)_LOG_LEVEL`) or from devicetree.
        """
        missing = {symbol.removeprefix("CONFIG_") for symbol in symbols}
        missing = {name for name in missing if not name.startswith("DT_HAS_")}
        known: set[str] = set()
        for file in self._kconfig_files(own):
            if not missing:
                break
            defined = set(re.findall(r"^\s*(?:menu)?config\s+([\w$()-]+)\s*(?:#.*)?$", read_text(file), re.MULTILINE))
            known |= defined
            missing -= defined
            for made in (name for name in defined if "$" in name and missing):
                like = re.compile(".+".join(map(re.escape, re.split(r"\$\([^)]*\)", made))))
                missing = {name for name in missing if not like.fullmatch(name)}
        from difflib import get_close_matches

        near = {name: get_close_matches(name, known, n=1, cutoff=0.85) for name in missing}
        return {f"CONFIG_{name}": f"CONFIG_{near[name][0]}" if near[name] else None for name in sorted(missing)}

    def _kconfig_files(self, own: Iterable[Path]) -> Iterator[Path]:
        roots = [self.base, *own, self.top / "modules"]
        if (self.top / ".west").is_dir():  # other repositories of the workspace
            roots += sorted(f for f in self.top.iterdir() if f.is_dir() and f not in roots and f.name[0] != ".")
        for root in roots:
            for folder, folders, files in os.walk(root):
                folders[:] = [f for f in folders if not f.startswith((".", "build")) and f not in _NO_OPTIONS]
                yield from (Path(folder) / f for f in files if f.startswith("Kconfig"))


def find_workspace(given: Path | None = None) -> Workspace | None:
    """Return the workspace at `given`, at $ZEPHYR_BASE, or around the working directory; None if there is none."""
    if given is not None:
        return Workspace(given)
    base = os.environ.get("ZEPHYR_BASE")
    if base:
        return None if fault_of_base() else Workspace(Path(base))
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / ".west").is_dir():
            config = read_text(folder / ".west" / "config")
            match = re.search(r"^\[zephyr\]\s*(?:^(?!\[).*$\s*)*?^base\s*=\s*(\S+)", config, re.MULTILINE)
            tree = folder / (match[1] if match else "zephyr")
            return Workspace(tree) if (tree / "VERSION").is_file() else None
    return None


def build_workspace(given: Path | None = None) -> Workspace:
    """Return the workspace for builds: the given one, that of the environment, or the usual one in the home."""
    return find_workspace(given) or Workspace(Path.home() / "zephyrproject" / "zephyr")


def fault_of_base() -> str | None:
    """Return the fault of $ZEPHYR_BASE: it is set, but no Zephyr tree. None if it is unset or a tree."""
    base = os.environ.get("ZEPHYR_BASE")
    if not base or os.path.isfile(os.path.join(base, "VERSION")):  # noqa: PTH113, PTH118 -- False if it is inaccessible
        return None
    return f"ZEPHYR_BASE is {base!r}, which is not a Zephyr tree: missing file 'VERSION'"


def _board_entries(file: Path) -> list[dict[str, Any]]:
    content = read_yaml(file)
    if not isinstance(content, dict):
        return []
    entries = content.get("boards") or [content.get("board")]
    return [board for board in (entries if isinstance(entries, list) else []) if isinstance(board, dict)]


def _full_names(board: dict[str, Any], known: Mapping[str, Soc]) -> Iterator[str]:
    """Yield a board's names with qualifiers; a single SoC without CPU clusters is optional."""
    name, socs = str(board["name"]), named(board.get("socs"))
    clusters = [cluster for soc in socs if str(soc["name"]) in known for cluster in known[str(soc["name"])].clusters]
    if len(socs) <= 1 and not clusters:
        yield name
    paths = [path for variant in named(board.get("variants")) for path in _variants(variant)]
    for soc in socs:
        paths += _paths(soc, known.get(str(soc["name"])))
    for path in paths:
        yield "/".join([name, *path])
        if len(socs) == 1 and len(path) > 1:
            yield "/".join([name, "", *path[1:]])


def _paths(soc: dict[str, Any], known: Soc | None) -> Iterator[list[str]]:
    """Yield the qualifiers of a SoC: with the names of its CPU clusters, if it has any, and of the board's variants."""
    if known is None or not known.clusters:
        # The clusters of a SoC outside of the tree are unknown.
        if known is None and all("cpucluster" in variant for variant in named(soc.get("variants"))):
            yield [str(soc["name"]), "*"]
        yield from _variants(soc)
        return
    for cluster in known.clusters:
        yield [str(soc["name"]), cluster]
        for variant in named(soc.get("variants")):
            if variant.get("cpucluster") == cluster:
                for path in _variants(variant):
                    yield [str(soc["name"]), cluster, *path]


def _variants(entry: dict[str, Any], depth: int = 0) -> Iterator[list[str]]:
    name = str(entry["name"])
    yield [name]
    for variant in named(entry.get("variants")) if depth < _MAX_DEPTH else ():
        for path in _variants(variant, depth + 1):
            yield [name, *path]


def _projects(manifest: str) -> dict[str, str]:
    """Return the projects of a west manifest, and the path of each, by default its name."""
    content = parse_yaml(manifest)
    inner = content.get("manifest") if isinstance(content, dict) else None
    projects = named(inner.get("projects")) if isinstance(inner, dict) else []
    return {str(project["name"]): path_of_project(project) for project in projects}


@dataclass(frozen=True, slots=True)
class ZephyrOptions:
    """The requested boards, and the version and workspace of Zephyr; None if unknown."""

    boards: tuple[str, ...] = ()
    version: Version | None = None
    workspace: Workspace | None = None

    @property
    def known_version(self) -> Version | None:
        """The requested version, else that of the workspace."""
        return self.version or (self.workspace.version if self.workspace is not None else None)

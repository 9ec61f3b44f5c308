# SPDX-License-Identifier: Apache-2.0
"""Snippets: parts of a manifest that declare one operator of the user, for `opwest import --operator NAME=FILE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.compiler.graph.types import Graph
from opwest.compiler.graph.user import Argument, UserOperator
from opwest.compiler.names import free_name
from opwest.manifest.load import MAX_BYTES
from opwest.manifest.located import Items
from opwest.manifest.located import Mapping as Located
from opwest.manifest.placeholders import report_placeholders
from opwest.manifest.schema import check_schema, check_version, expected_at
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.inputs.headers import includes, normal

KEYS = ("objects", "operators", "externals", "targets", "devices")
"""The sections of a snippet."""
_IGNORED = ("version", "model", "convention")
"""The keys that a snippet can have besides; `convention` is the default for its operator."""
_MAX_FILE_BYTES = 256 << 20
_SOURCES = (".c", ".h", ".cc", ".cpp", ".cxx")


def user_operators(given: Sequence[Sequence[str]], faults: Diagnostics) -> dict[str, UserOperator]:
    """Return the operators by their names in the model; `given` are pairs of a name and a path. Reports faults."""
    operators: dict[str, UserOperator] = {}
    read: dict[str, UserOperator | None] = {}
    taken: set[str] = set()
    for name, path in given:
        if name in operators:
            faults.error(f"duplicate --operator {name!r}", Location(path), expected="each name once")
            continue
        if path not in read:
            read[path] = _read(Path(path), taken, faults)
        operator = read[path]
        if operator is not None:
            operators[name] = operator
    return operators


def check_used(users: Mapping[str, UserOperator], graphs: Sequence[Graph], faults: Diagnostics) -> None:
    """Report the operators of the user that no operator of the model has the name of."""
    names = frozenset[str]().union(*(graph.names for graph in graphs))
    for name, user in users.items():
        if name not in names:
            text = f"--operator: the model has no operator {name!r}"
            expected = ", ".join(sorted(names)[:40]) or "a model with operators"
            faults.error(text, user.location, expected=expected, hint=nearest(name, names))


def _read(path: Path, taken: set[str], faults: Diagnostics) -> UserOperator | None:
    """Return the operator of a snippet; None with a fault in `faults`."""
    label = str(path)
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = f"cannot read the snippet of --operator: {error.strerror}"
        faults.error(reason, Location(label), expected="a YAML file", hint=path_suggestions.hint_for(path))
        return None
    if len(text) > MAX_BYTES:
        faults.error("the snippet is too large", Location(label), expected=f"at most {MAX_BYTES} bytes")
        return None
    faults.sources[label] = text
    own = Diagnostics()
    snippet = read_yaml(text, label, own)
    if snippet is not None and _conforms(snippet, own):
        operators = snippet["operators"]
        if len(operators) != 1:
            where = snippet.value_location("operators")
            own.error(f"'operators' has {len(operators)} entries", where, expected="one operator in each snippet")
    for diagnostic in own:
        faults.add(diagnostic)
    if snippet is None or own.has_errors:
        return None
    return _operator(snippet, path, taken, faults)


def _conforms(snippet: Located, faults: Diagnostics) -> bool:
    """Report keys and values that a manifest cannot have; return whether there are none."""
    for key in [name for name in snippet if name not in (*KEYS, *_IGNORED)]:
        where = snippet.key_location(key)
        faults.error(f"unknown key {key!r} in the snippet", where, expected=", ".join(KEYS), hint=nearest(key, KEYS))
        del snippet[key]
    if "version" in snippet and not check_version(snippet, faults):
        return False
    # The schema is that of a whole manifest.
    tensor = {"dtype": "int8", "shape": [1]}
    run = {"inputs": {"x": tensor}, "outputs": {"y": tensor}, "steps": [{"call": "f", "args": []}]}
    snippet.update({"version": 1, "model": "snippet", "run": run})
    marks = report_placeholders(snippet, faults, expected_at)
    return check_schema(snippet, faults, marks) and not faults.has_errors


def _operator(snippet: Located, path: Path, taken: set[str], faults: Diagnostics) -> UserOperator | None:
    [(name, entry)] = snippet["operators"].items()
    where = snippet["operators"].key_location(name)
    before = len(faults)
    arguments = list(_arguments(entry, faults))
    folder = free_name(name, taken)
    copied = _Copies(path.parent, folder, faults)
    sections = {key: snippet[key] for key in ("externals", "targets") if key in snippet}
    sections["objects"] = [kept for listed in snippet["objects"] if (kept := copied.entry(listed))]
    devices = {key: copied.device(device) for key, device in snippet.get("devices", {}).items()}
    if devices:
        sections["devices"] = devices
    if "device" in entry and len(devices) != 1:
        at = entry.key_location("device")
        faults.error(f"{name!r} takes a device, the snippet has {len(devices)}", at, expected="devices: one device")
    if len(faults) > before:
        return None
    keys = {key: value for key, value in entry.items() if key != "args"}
    keys.setdefault("symbol", name)
    if "convention" in snippet:
        keys.setdefault("convention", snippet["convention"])
    returned = entry.get("returns")
    if isinstance(returned, dict):
        arguments.append(_argument({"name": "result", "shape": [1], **returned, "direction": "out"}, where))
    device = next(iter(devices), None) if "device" in entry else None
    files = copied.files
    return UserOperator(name, where, tuple(arguments), isinstance(returned, dict), keys, device, sections, files)


def _arguments(entry: Located, faults: Diagnostics) -> Iterator[Argument]:
    items: Items = entry["args"]
    for number, keys in enumerate(items):
        argument = _argument(keys, items.item_location(number))
        if argument.direction == "scratch" and argument.shape is None:
            text = f"missing key 'shape' in the scratch argument '{argument.name}'"
            faults.error(text, argument.location, expected="shape: [...]")
        yield argument


def _argument(keys: Mapping[str, Any], where: Location) -> Argument:
    shape = tuple(keys["shape"]) if "shape" in keys else None
    direction = keys.get("direction", "in")
    return Argument(keys["name"], keys["dtype"], shape, direction, bool(keys.get("scalar")), where, keys)


class _Copies:
    """The files of a snippet, for a directory in the imported one."""

    def __init__(self, root: Path, folder: str, faults: Diagnostics) -> None:
        self._root = root
        self._folder = folder
        self._faults = faults
        self.files: dict[str, bytes] = {}

    def entry(self, entry: Located) -> dict[str, Any] | None:
        """Return an entry of `objects` with the new paths; None for an optional one without files."""
        if entry.get("optional") and not any((self._root / name).exists() for name in entry["files"]):
            return None
        copied = {key: value for key, value in entry.items() if key != "optional"}
        folders = [self._inside(name, at) for name, at in _items(entry, "include_dirs")]
        for key in ("files", "stack_usage"):
            if key in entry:
                copied[key] = [self._copied(name, at, folders) for name, at in _items(entry, key)]
        if folders:
            copied["include_dirs"] = [f"{self._folder}/{folder}" for folder in folders]
        return copied

    def device(self, device: Located) -> dict[str, Any]:
        """Return a device with the new path of its program."""
        copied = dict(device)
        if "program" in device:
            copied["program"] = self._copied(device["program"], device.value_location("program"), [])
        return copied

    def _inside(self, name: str, where: Location) -> str:
        path = normal(PurePosixPath(name))
        if path.startswith("..") or PurePosixPath(name).is_absolute():
            text = f"{name!r} is outside of the snippet's directory"
            self._faults.error(text, where, expected="a path inside the snippet's directory")
        return path

    def _copied(self, name: str, where: Location, folders: Sequence[str | None]) -> str:
        """Return the new path of a file; its content, and that of headers that it includes, are added to the files."""
        before = len(self._faults)
        path = self._inside(name, where)
        if len(self._faults) == before:
            file = self._root / path
            try:
                with file.open("rb") as stream:
                    content = stream.read(_MAX_FILE_BYTES + 1)
            except OSError as error:
                hint = path_suggestions.hint_for(file, name)
                text = f"cannot read {name!r}: {error.strerror}"
                self._faults.error(text, where, expected="an existing file", hint=hint)
                return name
            if len(content) > _MAX_FILE_BYTES:
                self._faults.error(f"{name!r} is too large", where, expected=f"at most {_MAX_FILE_BYTES} bytes")
            self.files[f"{self._folder}/{path}"] = content
            if path.endswith(_SOURCES):
                self._add_headers(PurePosixPath(path), content, [folder for folder in folders if folder is not None])
        return f"{self._folder}/{path}"

    def _add_headers(self, source: PurePosixPath, content: bytes, folders: Sequence[str]) -> None:
        """Add the headers in the snippet's directory that a source includes."""
        for _, name, quoted in includes(content):
            for folder in (*([source.parent] if quoted else []), *map(PurePosixPath, folders)):
                path = normal(folder / name)
                file = self._root / path
                if path.startswith("..") or PurePosixPath(path).is_absolute() or not file.is_file():
                    continue
                key = f"{self._folder}/{path}"
                if key not in self.files:
                    self.files[key] = file.read_bytes()
                    self._add_headers(PurePosixPath(path), self.files[key], folders)
                break


def _items(entry: Located, key: str) -> list[tuple[str, Location]]:
    """Return the items of a list with their locations."""
    return [(item, entry[key].item_location(i)) for i, item in enumerate(entry.get(key, ()))]

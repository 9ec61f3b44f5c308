# SPDX-License-Identifier: Apache-2.0
"""Convert YAML text to located data, according to the core schema of YAML 1.2 (section 10.3).

PyYAML's loaders implement YAML 1.1 (`on` is true, `010` is 8, `1e-3` a string); yamlcore provides the
resolver of the core schema, PyYAML's parser the events. The tree is built without recursion and with a
limit on aliases, so that hostile files cause an error message instead of a crash.
"""

from __future__ import annotations

from typing import Any

import yaml
import yamlcore

from opwest.base.diagnostics import Diagnostics, Location
from opwest.manifest.located import Items, Mapping, Position

MAX_DEPTH = 64
"""Levels of nested collections; a valid manifest has at most eight."""
MAX_BITS = 14_000
"""Bits of an integer. Python converts integers of at most 4,300 digits to text."""
MAX_EXPANSION = 100_000
"""Values that aliases may add to a file: enough to share a shape a thousand times."""

_FAST_LOADER = yamlcore.CCoreLoader if yaml.__with_libyaml__ else yamlcore.CoreLoader
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str")}


class _BrokenError(Exception):
    """Reading stopped; the error has been reported."""


def read_yaml(text: bytes, label: str, faults: Diagnostics) -> Mapping | None:
    """Return the top-level mapping of `text`, or None if an error was reported.

    `label` is the file name for messages.
    """
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.error(
            f"invalid UTF-8 byte {text[error.start]:#04x}",
            _place(label, text, error.start),
            expected="UTF-8 text",
            hint="save the file as UTF-8",
        )
        return None
    reported = Diagnostics()
    try:
        try:
            return _read(_FAST_LOADER, text, label, reported)
        except yaml.YAMLError:
            # libyaml's messages are shorter and differ between versions: take those of PyYAML's parser.
            reported = Diagnostics()
            return _read(yamlcore.CoreLoader, text, label, reported)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Location(label, mark.line + 1, mark.column + 1) if mark else Location(label)
        context = f" {error.context}" if error.context else ""
        problem = str(error.problem)
        hint = next((words for sign, words in _YAML_HINTS if sign in problem), None)
        faults.error(f"invalid YAML: {problem}{context}", where, hint=hint)
    except yaml.reader.ReaderError as error:
        faults.error(
            f"invalid YAML: {error.reason}", _place(label, text, error.position), expected="printable characters"
        )
    except yaml.YAMLError as error:
        faults.error(f"invalid YAML: {error}".replace("\n", " "), Location(label))
    except ValueError:  # from PyYAML's parser, which converts the version in %YAML to numbers
        faults.error(
            "invalid YAML: invalid version in the %YAML directive", Location(label, 1, 1), expected="%YAML 1.2"
        )
    finally:
        for diagnostic in reported:
            faults.add(diagnostic)
    return None


def _read(kind: Any, text: bytes, label: str, faults: Diagnostics) -> Mapping | None:
    loader = kind(text)
    try:
        return _Builder(loader, label, faults).document()
    except _BrokenError:
        return None
    finally:
        loader.dispose()


# Substrings of the parser's messages for common mistakes, and hints.
_YAML_HINTS = (
    (r"found character '\t'", "indent with spaces"),
    ("mapping values are not allowed", "quote strings that contain ': '"),
    ("expected <block end>", "check the indentation of this line and the lines before it"),
)


def _place(label: str, text: bytes, offset: int) -> Location:
    """Return the location of a byte offset."""
    line = text.count(b"\n", 0, offset) + 1
    start = text.rfind(b"\n", 0, offset) + 1
    return Location(label, line, len(text[start:offset].decode("utf-8", "replace")) + 1)


class _Builder:
    """Converts the events of one document to located data."""

    def __init__(self, loader: Any, label: str, faults: Diagnostics) -> None:
        self.loader = loader
        self.label = label
        self.faults = faults
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open_anchors: dict[str, Position] = {}
        self.expanded = 0
        self.values: dict[tuple[str, tuple[bool, bool]], Any] = {}
        """The values of scalars without a tag, by text and style; of strings, _STRING."""

    def document(self) -> Mapping | None:
        """Read the only document of the stream."""
        root: Any = None
        seen = False
        while True:
            event = self.loader.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                break
            if isinstance(event, yaml.DocumentStartEvent):
                if seen:
                    self._fail("the file contains a second document", event, expected="one document per file")
                seen = True
                root = self._tree(self.loader.get_event())
        if not isinstance(root, Mapping):
            what = "the file is empty" if root is None else f"the file contains {describe(root)}"
            self.faults.error(what, Location(self.label, 1, 1), expected="a mapping that begins with `version: 1`")
            return None
        return root

    def _tree(self, event: Any) -> Any:
        """Build the value that starts with `event`, with an explicit stack instead of recursion."""
        stack: list[_Frame] = []
        while True:
            if isinstance(event, yaml.ScalarEvent):  # the most frequent one
                position = _position(event)
                value, size = self._scalar(event), 1
                if event.anchor:
                    self.anchors[event.anchor] = (value, 1)
            elif isinstance(event, yaml.CollectionEndEvent):
                frame = stack.pop()
                value, size = frame.value, frame.size
                if frame.anchor:
                    del self.open_anchors[frame.anchor]
                    self.anchors[frame.anchor] = (value, size)
                position = frame.value.start
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                stack.append(self._open(event, len(stack)))
                event = self.loader.get_event()
                continue
            else:
                position = _position(event)
                value, size = self._alias(event)
            if not stack:
                return value
            self._add(stack[-1], value, position)
            stack[-1].size += size
            event = self.loader.get_event()

    def _open(self, event: Any, depth: int) -> _Frame:
        if depth >= MAX_DEPTH:
            self._fail("collections are nested too deeply", event, expected=f"at most {MAX_DEPTH} levels")
        if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self._fail(f"unknown tag {_tag(event.tag)!r}", event, expected="plain mappings, lists and values")
        position = _position(event)
        if event.anchor:
            self.open_anchors[event.anchor] = position
        kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Items
        return _Frame(kind(self.label, position), event.anchor)

    def _alias(self, event: Any) -> tuple[Any, int]:
        if event.anchor in self.open_anchors:
            self._fail(f"recursive alias '*{event.anchor}'", event, expected="an alias outside its anchor")
        if event.anchor not in self.anchors:
            self._fail(f"undefined alias '*{event.anchor}'", event)
        value, size = self.anchors[event.anchor]
        self.expanded += size
        if self.expanded > MAX_EXPANSION:
            self._fail(
                f"aliases expand to more than {MAX_EXPANSION} values",
                event,
                hint="use fewer aliases",
            )
        return value, size

    def _scalar(self, event: Any) -> Any:
        """Return the value of a scalar: of a string, that of the event."""
        if event.tag is not None:
            return self._tagged(event, "tag:yaml.org,2002:str" if event.tag == "!" else event.tag)
        spelling = (event.value, event.implicit)
        known = self.values.get(spelling, _NO_KEY)
        if known is _NO_KEY:
            value = self._tagged(event, self.loader.resolve(yaml.ScalarNode, *spelling))
            self.values[spelling] = _STRING if isinstance(value, str) else value
            return value
        return event.value if known is _STRING else known

    def _tagged(self, event: Any, tag: str) -> Any:
        if tag not in _CORE_TAGS:
            self._fail(f"unknown tag {_tag(tag)!r}", event, expected="plain mappings, lists and values")
        if tag == "tag:yaml.org,2002:str":
            if not event.value.isascii() and any("\ud800" <= char <= "\udfff" for char in event.value):
                self._fail(f"{event.value!r} contains an unpaired surrogate", event, expected="valid Unicode text")
            return event.value
        try:
            value = self.loader.construct_object(yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except (ValueError, OverflowError, yaml.YAMLError):
            self._fail(f"cannot convert {_shown(event.value)} to {tag.rsplit(':', 1)[1]}", event)
        if isinstance(value, int) and value.bit_length() > MAX_BITS:  # jsonschema_rs accepts it for any type
            self._fail(
                f"{_shown(event.value)} is an integer of {value.bit_length()} bits",
                event,
                expected=f"at most {MAX_BITS} bits",
            )
        return value

    def _add(self, frame: _Frame, value: Any, position: Position) -> None:
        """Add `value` to the collection on top of the stack."""
        collection = frame.value
        if isinstance(collection, Items):
            collection.append(value)
            collection.items_at.append(position)
        elif frame.key is _NO_KEY:
            if type(value) is not str or value in collection.keys_at:
                self._check_key(collection, value, position)
            frame.key, frame.key_at = value, position
        else:
            key, frame.key = frame.key, _NO_KEY
            if key in collection.keys_at:
                return  # a duplicate, reported: keep the first value
            collection[key] = value
            collection.keys_at[key] = frame.key_at
            collection.values_at[key] = position

    def _check_key(self, collection: Mapping, key: Any, position: Position) -> None:
        if not isinstance(key, str):
            hint = None if key is None or isinstance(key, (dict, list)) else "quote it"
            where = Location(self.label, *position)
            self.faults.error(f"the key is {describe(key)}", where, expected="a string", hint=hint)
            raise _BrokenError
        if key in collection.keys_at:
            line, column = collection.keys_at[key]
            self.faults.error(
                f"duplicate key {key!r}",
                Location(self.label, *position),
                expected="each key once",
                hint=f"first defined at line {line}, column {column}",
            )

    def _fail(self, message: str, event: Any, *, expected: str | None = None, hint: str | None = None) -> Any:
        self.faults.error(message, Location(self.label, *_position(event)), expected=expected, hint=hint)
        raise _BrokenError


_NO_KEY: Any = object()
_STRING: Any = object()


class _Frame:
    """An open collection."""

    __slots__ = ("anchor", "key", "key_at", "size", "value")

    def __init__(self, value: Mapping | Items, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.key_at: Position = value.start
        self.size = 1


def _position(event: Any) -> Position:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1)


def _tag(tag: str) -> str:
    """Return a tag in its short form, `!!int`."""
    core = "tag:yaml.org,2002:"
    return f"!!{tag.removeprefix(core)}" if tag.startswith(core) else tag


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def describe(value: Any) -> str:
    """Return a phrase with the YAML type of a value, and the value if it is short: "the integer 4"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int):
        # Python limits the conversion of long integers to text.
        return f"the integer {value}" if abs(value) < 10**40 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return f"the number {value:g}"
    if isinstance(value, str):
        return f"the string {_shown(value)}"
    return "a mapping" if isinstance(value, dict) else "a list"

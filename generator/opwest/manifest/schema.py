# SPDX-License-Identifier: Apache-2.0
"""Check a manifest against the JSON Schema; report violations with locations."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.resources import resource
from opwest.base.result import counted
from opwest.manifest.located import Mapping, locate, lookup
from opwest.manifest.placeholders import Path as ValuePath
from opwest.manifest.placeholders import spelled
from opwest.manifest.yaml_reader import describe

SUPPORTED_VERSIONS = (1,)


def schema_path() -> Path:
    """Return the path of the manifest's JSON Schema."""
    return resource("schemas") / "device-manifest.schema.json"


@cache
def _schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(schema_path().read_bytes())
    _select_mappings(loaded, loaded)
    return loaded


def _select_mappings(rule: Any, schema: dict[str, Any]) -> None:
    """Replace alternatives with kinds of mappings by conditions, in place: their errors are those of one kind.

    The file has alternatives, because editors complete the keys of all of them. A mapping has the kind whose first
    required key it contains, else the first kind.
    """
    for below in rule.values() if isinstance(rule, dict) else rule if isinstance(rule, list) else ():
        _select_mappings(below, schema)
    if not isinstance(rule, dict):
        return
    options = rule.get("anyOf", [])
    kinds = [option for option in options if "$ref" in option and _target(option, schema).get("type") == "object"]
    if kinds:
        others = [option for option in options if option not in kinds]
        first, *more = kinds
        condition = first
        if others:
            other = others[0] if len(others) == 1 else {"anyOf": others}
            condition = {"if": {"type": "object"}, "then": first, "else": other}
        for kind in more:
            key = _target(kind, schema)["required"][0]
            condition = {"if": {"required": [key]}, "then": kind, "else": condition}
        del rule["anyOf"]
        rule.update(condition)


def _target(reference: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    target: Any = schema
    for part in reference["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return dict(target)


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_schema())


def check_version(manifest: Mapping, faults: Diagnostics) -> bool:
    """Return whether the manifest's version is supported; report it if not."""
    if "version" not in manifest:
        faults.error("missing key 'version'", manifest.location, expected="version: 1")
        return False
    version = manifest["version"]
    if isinstance(version, bool) or version not in SUPPORTED_VERSIONS:
        known = " or ".join(str(v) for v in SUPPORTED_VERSIONS)
        hint = (
            "update opwest: the manifest has a newer version"
            if isinstance(version, int) and version > max(SUPPORTED_VERSIONS)
            else None
        )
        faults.error(
            f"'version' is {describe(version)}",
            manifest.value_location("version"),
            expected=f"version: {known}",
            hint=hint,
        )
        return False
    return True


OF_C = {"float": "float32", "double": "float64", "int": "int32", "short": "int16", "char": "int8", "half": "float16"}
"""The dtypes that names of C types denote, in place of the nearest name: `float` is not float64."""
_MERGE_KEY = "YAML 1.2 has no merge keys: write the keys out"

# Optional keys that do not affect the meaning of other keys: checks continue without them.
_SEPARATE = frozenset(
    "description boards libc externals application tests quantization align size optional console checks".split()
)


def check_schema(manifest: Mapping, faults: Diagnostics, known: Collection[ValuePath] = ()) -> bool:
    """Report every violation of the schema; return whether the manifest can still be resolved.

    `known` contains the paths of values that were reported before.

    To report further errors in the same run, faulty keys on which no other key depends (unknown keys included)
    are removed from `manifest`, and misspelt keys are renamed.
    """
    guessed: set[tuple[str | int, ...]] = set()
    continues = True
    while continues and (errors := violations(manifest, known)):
        meant = _misspelt(manifest, errors)
        # An invalid value under a renamed key indicates a wrong guess, not a wrong value.
        good = [error for error in errors if tuple(error.instance_path) not in guessed]
        for error in good:
            if not _is_explained(error, meant):
                _report(manifest, error, faults)
        separate = [_is_explained(error, meant) or _remove_key(manifest, error, meant) for error in good]
        guessed |= {(*path, key) for (path, _), key in meant.items()}
        continues = all(separate) and len(good) == len(errors)
    if not continues:
        return False
    convert_whole_numbers(manifest)
    return True


def violations(manifest: Mapping, known: Collection[ValuePath] = ()) -> list[Any]:
    """Return the errors of the validator, without those of the values at the paths `known`."""
    errors = _validator().iter_errors(manifest)
    return [error for error in errors if tuple(error.instance_path) not in known] if known else list(errors)


def convert_whole_numbers(root: Any) -> None:
    """Convert numbers such as 4.0 and 1e3 to int, in place: JSON Schema accepts them as integers."""
    pending, seen = [root], set()
    while pending:
        collection = pending.pop()
        if id(collection) in seen:  # shared by aliases
            continue
        seen.add(id(collection))
        for key, value in collection.items() if isinstance(collection, dict) else enumerate(collection):
            if isinstance(value, (dict, list)):
                pending.append(value)
            elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53 and str(value) != "-0.0":
                collection[key] = int(value)


_Meant = dict[tuple[tuple[str | int, ...], str], str]
"""Path and misspelt key to the intended key."""


def _misspelt(manifest: Mapping, errors: list[Any]) -> _Meant:
    """Return the likely intended key for each unknown key, among the absent keys."""
    intended: _Meant = {}
    for error in errors:
        if rule_name(error) == "AdditionalProperties":
            path = tuple(error.instance_path)
            owner = lookup(manifest, path)
            absent = {key for key in _properties(error) if key not in owner}
            for key in error.kind.unexpected:
                import difflib

                close = difflib.get_close_matches(key, absent, n=1)
                if close:
                    intended[path, key] = close[0]
                    absent.discard(close[0])
    return intended


def _is_explained(error: Any, meant: _Meant) -> bool:
    """Return whether a missing key is explained by a misspelt one, which is reported."""
    if rule_name(error) != "Required":
        return False
    path = tuple(error.instance_path)
    return any(at == path and key == error.kind.property for (at, _), key in meant.items())


def rule_name(error: Any) -> str:
    """Return the kind of the violated keyword, as "Enum"."""
    return type(error.kind).__name__.rsplit("_", 1)[-1]


def _remove_key(manifest: Mapping, error: Any, meant: _Meant) -> bool:
    """Remove the faulty key from `manifest`; return whether the meaning of the rest is unchanged."""
    path = list(error.instance_path)
    try:
        lookup(manifest, path)
    except LookupError:
        return True  # removed with a parent
    if rule_name(error) == "AdditionalProperties":
        owner = lookup(manifest, path)
        for key in error.kind.unexpected:
            # A misspelt `direction` affects other checks; a misspelt `align` does not.
            close = meant.get((tuple(path), key))
            if close is not None and close not in _SEPARATE and key in owner and close not in owner:
                owner[close] = owner.pop(key)
                owner.keys_at[close], owner.values_at[close] = owner.keys_at[key], owner.values_at[key]
            if key != "<<":  # the merged keys are unknown, so nothing can be concluded from their absence
                owner.pop(key, None)
        return "<<" not in error.kind.unexpected
    for length in range(len(path), 0, -1):
        if path[length - 1] in _SEPARATE:
            lookup(manifest, path[: length - 1]).pop(path[length - 1], None)
            return True
    return False


def _report(manifest: Mapping, error: Any, faults: Diagnostics) -> None:
    path = list(error.instance_path)
    kind = error.kind
    name = rule_name(error)
    where = locate(manifest, path)
    here = spelled(path)
    value = lookup(manifest, path)
    rule = violated_rule(error)
    if name == "AdditionalProperties":
        known = _properties(error)
        for key in kind.unexpected:
            hint = _MERGE_KEY if key == "<<" else nearest(key, known)
            faults.error(f"unknown key {key!r} in {here}", _key_location(manifest, path, key), hint=hint)
    elif name == "Required":
        entry = rule.get("properties", {}).get(kind.property)
        expected = f"{kind.property}: {_expected(follow(entry))}" if entry else None
        faults.error(f"missing key {kind.property!r} in {here}", where, expected=expected)
    elif name == "PropertyNames":
        key = kind.error.instance
        faults.error(
            f"a key in {here} is {describe(key) if key else 'empty'}",
            _key_location(manifest, path, key),
            expected=_expected(rule),
        )
    elif isinstance(value, float) and not math.isfinite(value):
        faults.error(f"{here} is {describe(value)}", where, expected="a finite number")
    elif name in ("Enum", "Constant"):
        options = rule.get("enum", [rule.get("const")])
        likely = likely_option(value, options)
        hint = None if likely is None else f"did you mean {str(likely)!r}?"  # otherwise `expected` lists all options
        faults.error(f"{here} is {describe(value)}", where, expected=_one_of(options), hint=hint)
    elif name in ("MinItems", "MinProperties", "MinLength"):
        faults.error(f"{here} is empty", where, expected=_expected(rule))
    elif name == "UniqueItems":
        twice = next(item for item in value if value.count(item) > 1)
        at = Location(value.file, *value.items_at[len(value) - 1 - value[::-1].index(twice)])
        faults.error(f"duplicate item {twice!r} in {here}", at, expected="each item once")
    elif name in ("MaxItems", "MaxProperties"):
        faults.error(f"{here} has {counted(len(value), 'item')}", where, expected=_expected(rule))
    else:
        faults.error(f"{here} is {describe(value)}", where, expected=_expected(rule))


def likely_option(value: Any, options: Sequence[Any]) -> Any:
    """Return the option that a misspelt value denotes, None if there is none."""
    if not isinstance(value, str):
        return None
    if OF_C.get(value) in options:
        return OF_C[value]
    import difflib

    close = difflib.get_close_matches(value, sorted(str(option) for option in options), n=1)
    return next((option for option in options if str(option) == close[0]), None) if close else None


def _key_location(manifest: Mapping, path: list[str | int], key: str) -> Location:
    parent = lookup(manifest, path)
    return parent.key_location(key) if isinstance(parent, Mapping) else manifest.location


def violated_rule(error: Any) -> dict[str, Any]:
    """Return the schema of the violated keyword of an error, with references resolved."""
    rule: Any = _schema()
    for part in error.schema_path[:-1]:
        if part == "$ref":
            rule = follow(rule)
            continue
        rule = follow(rule) if isinstance(rule, dict) and part not in rule else rule
        rule = rule[part]
    return follow(rule) if isinstance(rule, dict) else {}


def follow(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its reference resolved."""
    while "$ref" in rule:
        rule = {**_target(rule, _schema()), **{k: v for k, v in rule.items() if k != "$ref"}}
    return rule


def _properties(error: Any) -> list[str]:
    return list(violated_rule(error).get("properties", {}))


def expected_at(path: ValuePath) -> str | None:
    """Return the text for `expected:` at a path, None for a path outside the schema."""
    rule = _schema()
    for part in path:
        rule = follow(rule)
        below = rule.get("items") if isinstance(part, int) else rule.get("properties", {}).get(part)
        below = rule.get("additionalProperties") if below is None else below
        if not isinstance(below, dict):
            return None
        # Items without a description take that of their list.
        rule = {"description": rule.get("description", ""), **below} if isinstance(part, int) else below
    rule = follow(rule)
    if isinstance(rule.get("type"), list) and rule.get("description"):
        return str(rule["description"]).rstrip(".")
    return _expected(rule) or None


_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}


def _expected(rule: dict[str, Any]) -> str:
    """Return the accepted values of a schema as text: type, limits, description."""
    if "enum" in rule:
        return _one_of(rule["enum"])
    if "const" in rule:
        return str(rule["const"])
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    text = " or ".join(_TYPES[kind] for kind in kinds)
    if "minimum" in rule:
        text += f", at least {rule['minimum']}"
    if "maximum" in rule:
        text += f", at most {rule['maximum']}"
    if "maxItems" in rule:
        text += f", at most {rule['maxItems']} items"
    description = str(rule.get("description", "")).rstrip(".")
    return f"{text} ({description})" if text and description else text or description


def _one_of(options: list[Any]) -> str:
    return ", ".join(str(option) for option in options)

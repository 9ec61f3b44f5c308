# SPDX-License-Identifier: Apache-2.0
"""Manifests generated from the schema: the validator accepts them, and `check` reports diagnostics only."""

import json
from pathlib import Path
from typing import Any

import pytest
from fuzz_manifests import words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.manifest.load import load_manifest
from opwest.manifest.schema import schema_path
from projects import check

SCHEMA = json.loads(schema_path().read_bytes())
_TEXTS = st.sampled_from(
    "x y conv image a.c cortex-m3 any 64KiB npu0 int8 CONFIG_A native_sim/native/64 ä x.npz".split()
)
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXTS | st.text(max_size=8),
    "integer": st.sampled_from([0, 1, 2, 4, 64, -1, 1 << 31, 1 << 64]) | st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 300),
    "boolean": st.booleans(),
    "null": st.none(),
}


def follow(rule: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in rule:
        target: Any = SCHEMA
        for part in rule["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        rule = {**target, **{k: v for k, v in rule.items() if k != "$ref"}}
    return rule


def values(rule: dict[str, Any] | bool, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return a value that a schema permits with respect to types, keys, enumerations and counts."""
    if isinstance(rule, bool):
        return st.just("x")
    rule = follow(rule)
    if "const" in rule:
        return st.just(rule["const"])
    if "enum" in rule:
        return st.sampled_from(rule["enum"])
    for key in ("oneOf", "anyOf"):
        if key in rule and "properties" not in rule:
            return st.one_of(*(values(part, depth) for part in rule[key]))
    kinds = rule.get("type", "object" if "properties" in rule else "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of(*(of_kind(kind, rule, depth) for kind in kinds))


def of_kind(kind: str, rule: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    if kind == "array":
        most = min(rule.get("maxItems", 3), 3)
        least = min(rule.get("minItems", 0), most)
        return st.lists(values(rule.get("items", True), depth + 1), min_size=least, max_size=most)
    if kind == "object":
        known = {key: values(inner, depth + 1) for key, inner in rule.get("properties", {}).items()}
        needed = {key: known[key] for key in rule.get("required", ()) if key in known}
        optional = {key: value for key, value in known.items() if key not in needed}
        fixed = st.fixed_dictionaries(needed, optional=optional)
        more = rule.get("additionalProperties")
        if not isinstance(more, dict):
            return fixed
        others = st.dictionaries(st.sampled_from(["x", "y", "conv", "npu0", "a1"]), values(more, depth + 1), max_size=2)
        return st.builds(lambda one, two: {**two, **one}, fixed, others)
    if kind == "integer" and ("minimum" in rule or "maximum" in rule):
        return st.integers(rule.get("minimum"), rule.get("maximum"))
    if kind == "string" and "pattern" in rule:
        return _TEXTS | st.from_regex(rule["pattern"], fullmatch=True)
    return _KINDS[kind]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("schema")
    (made / "a.c").write_text("#include <stdint.h>\nint32_t conv(const int8_t *x, int8_t *y) { return x == y; }\n")
    return made


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(manifest=values(SCHEMA))
def test_manifests_of_the_schema(manifest: dict[str, Any], folder: Path) -> None:
    path = folder / "manifest.yaml"
    path.write_text(json.dumps({**manifest, "version": 1}), encoding="utf-8", errors="surrogatepass")
    faults = Diagnostics()
    try:
        check([path], faults)
    except OpwestError as error:
        assert error.diagnostics
    words(faults)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(value=values(SCHEMA), key=st.sampled_from(sorted(SCHEMA["properties"])))
def test_misplaced_values_are_reported_by_key(value: dict[str, Any], key: str, folder: Path) -> None:
    """A misplaced part of a manifest is reported with its line and its key."""
    path = folder / "manifest.yaml"
    path.write_text(json.dumps({"version": 1, "model": "m", key: value}), encoding="utf-8", errors="surrogatepass")
    faults = Diagnostics()
    load_manifest(path, faults)
    assert faults.has_errors
    assert all(one.location is not None and one.location.line > 0 for one in faults)
    words(faults)

# SPDX-License-Identifier: Apache-2.0
"""Views and states of manifests: boundaries, chains, and the first contents of states."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from dataflow_support import OPERATORS, X, manifest, resolved
from opwest.diagnostics import Diagnostics
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.context import Context
from opwest.model.states import states

X8 = "x: {dtype: int8, shape: [8]}"


def views(text: str) -> list[tuple[str, str, int]]:
    """Return the bindings through views of valid steps: view, tensor, offset in bytes."""
    flow, messages, _ = resolved(text)
    assert messages == []
    return [(b.view, b.name, b.offset) for step in flow.steps for b in step.bindings if b.view]


def test_view_ends_with_its_tensor() -> None:
    text = manifest("relu: [v, y]", inputs=X8, tensors="v: {view_of: x, offset: 4, shape: [4]}")
    assert views(text) == [("v", "x", 4)]
    _, messages, _ = resolved(text.replace("offset: 4", "offset: 5"))
    assert messages == []  # reported while the names are resolved: view_too_long in tests/invalid/state.cases


def test_views_of_views_are_found_in_any_order() -> None:
    wide = "c: {dtype: int16, shape: [16]}"
    tensors = (
        "v: {view_of: u, offset: 1, shape: [4], dtype: int8}, u: {view_of: t, offset: 3, shape: [6]},"
        "t: {view_of: c, offset: 2, shape: [24], dtype: int8}"
    )
    assert views(manifest("relu: [v, y]", inputs=wide, tensors=tensors)) == [("v", "c", 8)]


def test_offset_counts_elements_of_the_containing_tensor() -> None:
    tensors = (
        "v: {view_of: u, offset: 1, shape: [2], dtype: int16}, u: {view_of: x, offset: 2, shape: [3], dtype: int16}"
    )
    text = manifest("words: [v, t]", "words: [t, w]", inputs=X8, outputs="y: {dtype: int8, shape: [4]}",
                    tensors=f"{tensors}, w: {{view_of: y, shape: [2], dtype: int16}}")  # fmt: skip
    assert views(text) == [("v", "x", 4), ("w", "y", 0)]


def test_long_chain_of_views_has_no_limit() -> None:
    count = 3000
    chain = [f"v{i}: {{view_of: {f'v{i + 1}' if i + 1 < count else 'x'}, shape: [4]}}" for i in range(count)]
    assert views(manifest("relu: [v0, y]", tensors=", ".join(chain))) == [("v0", "x", 0)]
    broken = ", ".join(chain).replace("view_of: x", "view_of: v1500")
    _, messages, _ = resolved(manifest("relu: [v0, y]", tensors=broken))
    assert messages == []  # the cycle is reported once, while the names are resolved


def test_view_that_contains_only_unused_views_is_unused() -> None:
    tensors = "u: {view_of: x, shape: [4]}, v: {view_of: u, shape: [4]}"
    _, messages, _ = resolved(manifest("relu: [x, y]", tensors=tensors))
    assert [message.partition(" error: ")[2] for message in messages] == ["unused tensor 'u'", "unused tensor 'v'"]


def test_parts_of_an_output_are_written_by_several_steps() -> None:
    tensors = "a: {view_of: y, shape: [4]}, b: {view_of: y, offset: 4, shape: [4]}"
    wide = "y: {dtype: int8, shape: [8]}"
    assert views(manifest("relu: [x, b]", "relu: [x, a]", outputs=wide, tensors=tensors)) == [
        ("b", "y", 4),
        ("a", "y", 0),
    ]
    short = tensors.replace("offset: 4", "offset: 3")
    _, messages, _ = resolved(manifest("relu: [x, b]", "relu: [x, a]", outputs=wide, tensors=short))
    assert "bytes 7 to 7 of output 'y' are never written" in messages[0]


@pytest.mark.parametrize(
    ("dtype", "initial", "content"),
    [
        ("int8", "0", None),
        ("int8", "zeros", None),
        ("int8", "-128", b"\x80"),
        ("int8", "127", b"\x7f"),
        ("uint16", "65535", b"\xff\xff"),
        ("int32", "-2147483648", struct.pack("<i", -(2**31))),
        ("uint64", "18446744073709551615", b"\xff" * 8),
        ("float32", "0.1", struct.pack("<f", 0.1)),
        ("float32", "0.0", None),
        ("float32", "-0.0", struct.pack("<f", -0.0)),
        ("float64", "-1.5", struct.pack("<d", -1.5)),
        ("float16", "65504", struct.pack("<e", 65504)),
    ],
)
def test_first_content_is_one_element(dtype: str, initial: str, content: bytes | None) -> None:
    faults = Diagnostics()
    text = f"{OPERATORS}run:\n  inputs: {{{X}}}\n  state: {{s: {{dtype: {dtype}, shape: [3], initial: {initial}}}}}\n"
    found = read_yaml(text.encode(), "m.yaml", faults)
    assert found is not None and not len(faults)
    known, constants = states(Context(found, Path("nowhere"), faults))
    assert not len(faults)
    assert known["s"].initial == (None if content is None else "s_initial")
    assert [constant.content for constant in constants] == ([] if content is None else [content])

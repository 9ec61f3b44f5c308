# SPDX-License-Identifier: Apache-2.0
"""The hash of a model changes with its behaviour only."""

from __future__ import annotations

import re

import projects
import pytest
from opwest.diagnostics import Diagnostics
from opwest.model.fingerprint import model_hash

OPERATORS = """
#include <stdint.h>
int32_t scale(const int8_t *x, int32_t by, const int8_t *table, int8_t *y)
{
	y[0] = (int8_t)(x[0] * by + table[0]);
	return 0;
}
"""
MANIFEST = """
version: 1
model: hashed
description: A description
objects: [{files: [operators.c]}]
memory: {sram: {align: 8}}
operators:
  scale:
    args:
      - {name: x, dtype: int8, shape: [1]}
      - {name: by, dtype: int32, scalar: true}
      - {name: table, dtype: int8, shape: [1]}
      - {name: y, dtype: int8, shape: [1], direction: out}
constants: {table: {file: table.raw, dtype: int8, shape: [1]}}
run:
  inputs: {x: {dtype: int8, shape: [1]}}
  outputs: {y: {dtype: int8, shape: [1]}}
  steps:
    - {call: scale, args: [x, 3, table, a]}
    - {call: scale, args: [a, 5, table, y]}
"""


def hash_of(folder, manifest=MANIFEST, operators=OPERATORS, table=b"\7"):
    folder.mkdir()
    (folder / "table.raw").write_bytes(table)
    (folder / "operators.c").write_text(operators)
    (folder / "manifest.yaml").write_text(manifest)
    ((model, _),) = projects.check([folder / "manifest.yaml"], Diagnostics())
    return model_hash(model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A description", "Another description"),
        ("version: 1", "# A comment\nversion: 1"),
        ("[x, 3, table, a]", "[x,    3, table, a]"),
    ],
)
def test_texts_do_not_change_the_hash(tmp_path, old, new):
    assert hash_of(tmp_path / "a") == hash_of(tmp_path / "b", MANIFEST.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[x, 3, table, a]", "[x, 4, table, a]"),
        ("outputs: {y: {dtype: int8, shape: [1]}}", "outputs: {y: {dtype: int8, shape: [1], align: 4}}"),
        ("model: hashed", "model: other"),
        ("align: 8", "align: 16"),
    ],
)
def test_behaviour_changes_the_hash(tmp_path, old, new):
    assert hash_of(tmp_path / "a") != hash_of(tmp_path / "b", MANIFEST.replace(old, new))


def test_operators_and_constants_change_the_hash(tmp_path):
    first = hash_of(tmp_path / "a")
    assert first != hash_of(tmp_path / "b", operators=OPERATORS.replace("* by", "- by"))
    assert first != hash_of(tmp_path / "c", table=b"\10")
    assert re.fullmatch("[0-9a-f]{64}", first)

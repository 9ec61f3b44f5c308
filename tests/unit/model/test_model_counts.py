# SPDX-License-Identifier: Apache-2.0
"""Models with more elements than the indices of the metadata can number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from golden_support import copy_project
from opwest.diagnostics import Diagnostics
from opwest.model.counts import check_counts
from opwest.model.model import Model
from projects import check


@pytest.fixture
def model(tmp_path: Path) -> Model:
    found: Model = check(copy_project("many_kinds", tmp_path / "source"), Diagnostics())[0][0]
    return found


def faults_of(model: Model) -> str:
    faults = Diagnostics()
    check_counts(model, faults)
    return "\n".join(str(fault) for fault in faults)


def test_number_of_tensors_and_constants(model: Model) -> None:
    others = len(model.inputs) + len(model.outputs)
    most = replace(model, buffers=model.buffers[:1] * (65534 - others), constants=model.constants[:1] * 65534)
    assert faults_of(most) == ""
    more = replace(most, buffers=model.buffers[:1] * (65535 - others), constants=model.constants[:1] * 65535)
    name = model.name
    assert f"error: model '{name}' has 65535 inputs, outputs and tensors in the workspace\n" in faults_of(more)
    assert f"error: model '{name}' has 65535 constants\n  expected: at most 65534" in faults_of(more)


def test_number_of_scalars(model: Model) -> None:
    step = next(s for s in model.steps if any(b.role == "scalar" for b in s.bindings))
    scalar = next(b for b in step.bindings if b.role == "scalar")
    equal = replace(step, bindings=(scalar,) * 70000)
    assert faults_of(replace(model, steps=(equal,))) == ""
    other = replace(step, bindings=tuple(replace(scalar, value=number) for number in range(65535)))
    assert faults_of(replace(model, steps=(other,))).count("has 65535 different values of scalars") == 1

# SPDX-License-Identifier: Apache-2.0
"""Objects compiled from IR for every target."""

from __future__ import annotations

from pathlib import Path

import pytest
from llvm_support import NAMES, abi, everything, needs_llvmlite, target
from opwest.llvm.api import data_layout_of
from opwest.objects.compat import abi_faults
from opwest.objects.elf import parse_elf
from opwest.objects.inspect import inspect_object

pytestmark = needs_llvmlite


@pytest.mark.parametrize("optimize", ["size", "speed"])
@pytest.mark.parametrize("name", NAMES)
def test_every_target_passes_our_own_check(tmp_path: Path, name: str, optimize: str):
    made, _ = everything(name, optimize=optimize)
    path = tmp_path / "op.o"
    path.write_bytes(made)
    (member,) = inspect_object(path).members
    assert abi_faults(member.abi, abi(name)) == []
    assert member.faults == ()
    assert member.abi.float_abi == abi(name).float_abi
    assert set(member.defined) == {"add", "scale", "wide", "calls", "table", "names", "zeroed"}
    assert {"expf", "other"} <= set(member.undefined)
    assert not any(s.startswith(("__aeabi_unwind", "_GLOBAL_OFFSET", "__gxx")) for s in member.undefined)
    assert sorted(member.stateful_symbols) == ["counter", "zeroed"]


@pytest.mark.parametrize("name", NAMES)
def test_table_has_the_data_layout_of_llvm(name: str):
    assert data_layout_of(target(name)) == target(name).data_layout


@pytest.mark.parametrize("name", NAMES)
def test_sections_of_each_function_and_variable(name: str):
    made, _ = everything(name)
    sections = {s.name: s.size for s in parse_elf(made).sections}
    relocated = ".data.rel.ro.names" if name in ("x86-64", "aarch64-host") else ".rodata.names"
    assert {".text.add", ".text.calls", ".rodata.table", ".data.counter", ".bss.zeroed", relocated} <= sections.keys()
    assert all(sections.get(shared, 0) == 0 for shared in (".text", ".data", ".rodata", ".bss", ".sdata"))
    assert not any(s.startswith((".eh_frame", ".ARM.exidx", ".ARM.extab")) for s in sections)
    assert (".note.GNU-stack" in sections) == ("-linux-" in target(name).triple)

# SPDX-License-Identifier: Apache-2.0
"""IR for another target is rejected with both names, without llvmlite."""

from pathlib import Path

import pytest
from llvm_support import NAMES, target
from opwest.llvm.contradictions import contradictions, parse_triple
from opwest.llvm.facts import IrModule


def module(triple: str = "", data_layout: str = "", target_abi: str | None = None) -> IrModule:
    return IrModule(Path("op.bc"), b"", triple, data_layout, (), frozenset(), frozenset(), target_abi=target_abi)


@pytest.mark.parametrize("name", NAMES)
def test_module_without_target_matches_every_target(name: str):
    own = target(name)
    for triple in (own.triple, "", "unknown-unknown-unknown", own.triple.replace("-unknown", "", 1)):
        for layout in (own.data_layout, ""):
            assert contradictions(module(triple, layout, own.abi or None), own, own.data_layout) == []


@pytest.mark.parametrize(
    ("triple", "name", "words"),
    [
        ("x86_64-pc-linux-gnu", "cortex-m3", "another architecture"),
        ("x86_64-pc-linux-gnu", "i386", "another architecture"),
        ("aarch64-linux-gnu", "cortex-m4", "another architecture"),
        ("riscv64-unknown-elf", "rv32imac", "64-bit addresses, expected 32-bit"),
        ("x86_64-linux-gnux32", "x86-64", "32-bit addresses, expected 64-bit"),
        ("thumbebv7m-none-eabi", "cortex-m3", "big-endian, expected little-endian"),
        ("aarch64_be-none-elf", "cortex-a53", "big-endian, expected little-endian"),
        ("armv7a-none-eabi", "cortex-m3", "Arm profile A, expected M"),
        ("armv8r-none-eabi", "cortex-m33", "Arm profile R, expected M"),
        ("x86_64-pc-windows-msvc", "x86-64", "calling conventions of windows"),
        ("arm64-apple-darwin", "cortex-a53", "calling conventions of darwin"),
        ("thumbv7em-none-eabihf", "cortex-m4f-softfp", "hard float (eabihf), expected"),
        ("thumbv7em-none-unknown-eabihf", "cortex-m3", "hard float (eabihf), expected"),
        ("armv7m-none-eabi", "cortex-m4f", "integer registers (eabi), expected hard float"),
        ("wasm32-unknown-unknown", "cortex-m3", "another architecture"),
    ],
)
def test_contradictory_triples(triple: str, name: str, words: str):
    (fault,) = contradictions(module(triple), target(name))
    assert triple in fault.message and target(name).triple in fault.message and name in fault.message
    assert words in fault.message
    assert fault.expected and fault.hint


@pytest.mark.parametrize(
    ("triple", "name"),
    [
        ("thumbv7em-none-eabi", "cortex-m3"),
        ("arm-none-eabi", "cortex-m3"),
        ("armv7m-none-eabi", "cortex-m3"),
        ("thumb-unknown-unknown", "cortex-m4f"),
        ("i686-pc-linux-gnu", "i386"),
        ("amd64-unknown-linux-gnu", "x86-64"),
        ("arm64-none-elf", "cortex-a53"),
        ("aarch64-linux-gnu", "cortex-a53"),
    ],
)
def test_matching_triples(triple: str, name: str):
    assert contradictions(module(triple), target(name)) == []


@pytest.mark.parametrize(
    ("layout", "name", "words"),
    [
        ("E-m:e-p:32:32", "cortex-m3", "byte order big, expected little"),
        ("e-m:e-p:64:64", "cortex-m3", "pointer size in bits 64, expected 32"),
        ("e-m:o-p:32:32", "cortex-m3", "mangling o, expected e"),
        ("e-m:e-p:32:32-i64:32", "cortex-m3", "alignment of 64-bit integers in bits 32, expected 64"),
        ("e-m:e-p:32:32-f64:64", "i386", "alignment of 64-bit floats in bits 64, expected 32"),
    ],
)
def test_contradictory_data_layouts(layout: str, name: str, words: str):
    (fault,) = contradictions(module("", layout), target(name))
    assert words in fault.message and layout in fault.message and target(name).data_layout in fault.message


def test_partial_data_layouts_are_accepted():
    for layout in ("e", "e-p:32:32", "e-m:e-p:32:32-i64:64-v128:64:128-a:0:32-n8:16:32-S32"):
        assert contradictions(module("", layout), target("cortex-m3")) == []


def test_riscv_abi_of_the_module():
    (fault,) = contradictions(module("riscv32", target_abi="ilp32f"), target("rv32imac"))
    assert "ilp32f" in fault.message and "ilp32" in fault.expected
    assert contradictions(module("riscv32", target_abi="ilp32f"), target("rv32imafc")) == []


def test_profiles_of_arm():
    seen = {name: parse_triple(f"{name}-none-eabi").profile for name in (
        "thumbv6m", "thumbv7em", "armv8m.base", "thumbv8.1m.main", "armv7", "armv7a", "armv8.2a", "armv7r", "arm",
        "armv7l", "armv5te", "armv6k",
    )}  # fmt: skip
    assert seen == {
        "thumbv6m": "M", "thumbv7em": "M", "armv8m.base": "M", "thumbv8.1m.main": "M", "armv7": None, "armv7a": "A",
        "armv8.2a": "A", "armv7r": "R", "arm": None, "armv7l": None, "armv5te": None, "armv6k": None,
    }  # fmt: skip

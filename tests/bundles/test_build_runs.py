# SPDX-License-Identifier: Apache-2.0
"""Images of `opwest bundle`: linked for a slot, loaded there by QEMU or mapped into a process, and run."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from bundle_images import (
    DIGITS,
    EXAMPLES,
    HOST_SLOT,
    MACHINES,
    RUNS,
    bundle,
    float_model,
    run,
    run_on_host,
    small_model,
)
from opwest.bundles.build import BundleRequest, make_bundle
from opwest.bundles.capabilities import names
from opwest.bundles.format import LLEXT
from opwest.diagnostics import Diagnostics
from opwest.objects.elf import ET_REL, parse_elf
from requirements_support import need, need_x86_64

pytestmark = pytest.mark.usefixtures("digits_objects")
OPENED = ": open 0, again "
PLACED = """version: 1
model: placed
objects: [{files: [operators.c]}]
operators:
  add: {args: [{name: a, dtype: int8, shape: [4]}, {name: b, dtype: int8, shape: [4], direction: out}], returns: void}
run:
  inputs: {x: {dtype: int8, shape: [4], external: false}}
  outputs: {y: {dtype: int8, shape: [4], external: false}}
  steps: [{call: add, args: [x, y]}]
tests: {vectors: vectors.npz}
"""
COPY = "#include <stdint.h>\nvoid add(const int8_t *a, int8_t *b) { for (int i = 0; i < 4; i++) { b[i] = a[i]; } }\n"


def tools(target: str) -> None:
    machine = MACHINES[RUNS[target].core]
    need(machine.compiler[0], machine.emulator[0])


@pytest.mark.parametrize("target", list(RUNS))
def test_functions_of_libm_without_errno_give_the_results_of_the_ordinary_library(target: str, tmp_path: Path) -> None:
    tools(target)
    made = bundle(float_model(tmp_path), target, RUNS[target].slot)
    output = run(made, target, tmp_path, [tmp_path / "functions.c"])
    assert "differing from the ordinary library: 0\n" in output
    assert "good 1 of 1\n" in output


@pytest.mark.parametrize(
    ("target", "cpu"),
    [
        ("cortex-m3", ["ARMV7M"]),
        ("cortex-m7f", ["ARMV7M", "ARM_DSP", "ARM_FP_SINGLE"]),
        ("cortex-m55f-mve", ["ARMV81M_MAIN", "ARM_DSP", "ARM_FP_SINGLE", "ARM_FP_DOUBLE", "ARM_MVE", "ARM_MVE_FP"]),
        ("rv32imac", ["RISCV_M", "RISCV_A", "RISCV_C"]),
    ],
)
def test_a_model_with_state(target: str, cpu: list[str], tmp_path: Path) -> None:
    tools(target)
    steps = target == "cortex-m3"  # their results are those of a run on this machine
    made = bundle(EXAMPLES / "vibration" / "manifest.yaml", target, RUNS[target].slot, cases=100, steps=steps)
    output = run(made, target, tmp_path)
    assert "good 64 of 64\n" in output
    assert ("steps 4, wrong 0\n" in output) == steps
    assert names(made.content.abi.cpu) == cpu


def test_objects_of_the_manifest(tmp_path: Path) -> None:
    tools("cortex-m3")
    made = bundle(DIGITS, "cortex-m3", RUNS["cortex-m3"].slot, cases=1000)
    assert f"digits{OPENED}" in (output := run(made, "cortex-m3", tmp_path))
    assert f"good {made.vectors} of {made.vectors}\nclose 0" in output
    assert "steps" not in output


@pytest.mark.slow
def test_objects_on_this_machine(tmp_path: Path) -> None:
    need("cc")
    need_x86_64()
    made = bundle(DIGITS, "x86-64", HOST_SLOT, steps=True)
    output = run_on_host(made, tmp_path)
    assert f"digits{OPENED}" in output
    assert "good 10 of 10\nsteps 3, wrong 0\n" in output


def test_sources_with_state_on_this_machine(tmp_path: Path) -> None:
    need("cc")
    need_x86_64()
    made = bundle(EXAMPLES / "vibration" / "manifest.yaml", "x86-64", HOST_SLOT, cases=64)
    assert "good 64 of 64\n" in run_on_host(made, tmp_path)


def test_inputs_and_outputs_in_the_workspace_are_copied(tmp_path: Path) -> None:
    need("cc")
    need_x86_64()
    made = bundle(small_model(tmp_path, PLACED, {"operators.c": COPY}), "x86-64", HOST_SLOT)
    assert "good 2 of 2\n" in run_on_host(made, tmp_path)
    header = made.headers["placed_bundle.h"].decode()
    assert "struct placed_bundle_inputs {" in header
    assert "const struct placed_bundle_inputs *inputs" in header


def test_observable_images_contain_no_results(tmp_path: Path) -> None:
    need("cc")
    need_x86_64()
    manifest = DIGITS
    made = bundle(manifest, "x86-64", HOST_SLOT, observable=True)
    assert "steps 0, wrong 0\n" in run_on_host(made, tmp_path)
    assert made.content.abi.layout == 1
    assert bundle(manifest, "x86-64", HOST_SLOT).content.abi.layout == 0


def test_devices_and_placed_tensors_of_two_accelerators(tmp_path: Path) -> None:
    """Its runs on accelerators are tested on Zephyr."""
    need("arm-none-eabi-gcc")
    shutil.copytree(EXAMPLES / "two_npus", tmp_path / "npus")
    manifest = tmp_path / "npus" / "manifest.yaml"
    image, label = np.zeros((1, 1, 8, 8, 1), np.int8), np.zeros((1, 1), np.int32)
    np.savez(tmp_path / "npus" / "v.npz", image=image, label=label)
    manifest.write_text(f"{manifest.read_text()}\ntests: {{vectors: v.npz}}\n")
    made = bundle(manifest, "cortex-m3", HOST_SLOT)
    abi = made.content.abi
    assert (abi.device_count, abi.slot_size, abi.input_count, abi.output_count) == (2, 48, 1, 1)
    assert abi.pools_size == 320
    sources = [line.split()[2] for line in made.content.sbom.splitlines()]
    assert sources[:2] == ["operators/stretch.c", "operators/npu_conv.c"]


def test_images_for_llext_are_relocatable_objects() -> None:
    need("arm-none-eabi-gcc")
    request = BundleRequest(DIGITS, None, target="cortex-m3")
    content = make_bundle(request, Diagnostics()).content
    assert (content.kind, content.slot_address, content.descriptor) == (LLEXT, 0, 0)
    assert parse_elf(content.image).type == ET_REL

# SPDX-License-Identifier: Apache-2.0
"""Images of `opwest bundle`: linked for a slot, loaded there by QEMU or mapped into a process, and run."""

import io
import shutil
import subprocess

import numpy as np
import pytest
from bundle_images import (
    DIGITS,
    EXAMPLES,
    HOST_SLOT,
    RUNS,
    bundle,
    float_model,
    machines,
    need_host,
    run,
    run_on_host,
    small_model,
)
from elftools.elf.elffile import ELFFile
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.bundles.build import BundleRequest, make_bundle
from opwest.bundles.capabilities import names
from opwest.bundles.format import LLEXT
from opwest.bundles.llext import relocatable_image
from opwest.bundles.toolchain import Toolchain
from opwest.objects.elf import ET_REL, parse_elf
from requirements_support import need

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


def tools(target: str):
    machine = machines()[RUNS[target].core]
    need(machine.compiler[0], machine.emulator[0])


@pytest.mark.parametrize("target", list(RUNS))
def test_functions_of_libm_without_errno_give_the_results_of_the_ordinary_library(target: str, tmp_path):
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
def test_a_model_with_state(target: str, cpu: list[str], tmp_path):
    tools(target)
    steps = target == "cortex-m3"  # their results are those of a run on this machine
    made = bundle(EXAMPLES / "vibration" / "manifest.yaml", target, RUNS[target].slot, cases=100, steps=steps)
    output = run(made, target, tmp_path)
    assert "good 64 of 64\n" in output
    assert ("steps 4, wrong 0\n" in output) == steps
    assert names(made.content.abi.cpu) == cpu


def test_objects_of_the_manifest(tmp_path):
    tools("cortex-m3")
    made = bundle(DIGITS, "cortex-m3", RUNS["cortex-m3"].slot, cases=1000)
    assert f"digits{OPENED}" in (output := run(made, "cortex-m3", tmp_path))
    assert f"good {made.vectors} of {made.vectors}\nclose 0" in output
    assert "steps" not in output


@pytest.mark.slow
def test_objects_on_this_machine(tmp_path):
    need_host()
    made = bundle(DIGITS, "x86-64", HOST_SLOT, steps=True)
    output = run_on_host(made, tmp_path)
    assert f"digits{OPENED}" in output
    assert "good 10 of 10\nsteps 3, wrong 0\n" in output


def test_sources_with_state_on_this_machine(tmp_path):
    need_host()
    made = bundle(EXAMPLES / "vibration" / "manifest.yaml", "x86-64", HOST_SLOT, cases=64)
    assert "good 64 of 64\n" in run_on_host(made, tmp_path)


def test_inputs_and_outputs_in_the_workspace_are_copied(tmp_path):
    need_host()
    made = bundle(small_model(tmp_path, PLACED, {"operators.c": COPY}), "x86-64", HOST_SLOT)
    assert "good 2 of 2\n" in run_on_host(made, tmp_path)
    header = made.headers["placed_bundle.h"].decode()
    assert "struct placed_bundle_inputs {" in header
    assert "const struct placed_bundle_inputs *inputs" in header


def test_observable_images_contain_no_results(tmp_path):
    need_host()
    manifest = DIGITS
    made = bundle(manifest, "x86-64", HOST_SLOT, observable=True)
    assert "steps 0, wrong 0\n" in run_on_host(made, tmp_path)
    assert made.content.abi.layout == 1
    assert bundle(manifest, "x86-64", HOST_SLOT).content.abi.layout == 0


def test_devices_and_placed_tensors_of_two_accelerators(tmp_path):
    """Its runs on accelerators are tested on Zephyr."""
    need("arm-none-eabi-gcc")
    shutil.copytree(EXAMPLES / "two_npus", tmp_path / "npus")
    manifest = tmp_path / "npus" / "manifest.yaml"
    image, label = np.zeros((1, 1, 8, 8, 1), np.int8), np.zeros((1, 1), np.int32)
    np.savez(tmp_path / "npus" / "v.npz", image=image, label=label)
    manifest.write_text(f"{manifest.read_text()}\ntests: {{vectors: v.npz}}\n")
    made = bundle(manifest, "cortex-m3", HOST_SLOT)
    abi = made.content.abi
    assert (abi.devices, abi.slot_size, abi.inputs, abi.outputs) == (2, 48, 1, 1)
    assert abi.pools_size == 320
    sources = [line.split()[2] for line in made.content.sbom.splitlines()]
    assert sources[:2] == ["operators/stretch.c", "operators/npu_conv.c"]


def test_images_for_llext_are_relocatable_objects():
    need("arm-none-eabi-gcc")
    request = BundleRequest(DIGITS, None, target="cortex-m3")
    content = make_bundle(request, Diagnostics()).content
    assert (content.kind, content.slot_address, content.descriptor) == (LLEXT, 0, 0)
    assert parse_elf(content.image).type == ET_REL


# --- Relocatable images for LLEXT, and what LLEXT cannot load

CORTEX_M3 = ("-mcpu=cortex-m3", "-mthumb")
DESCRIPTOR = """
	.syntax unified
	.section .rodata.opwest_bundle, "a"
	.global opwest_bundle
	.type opwest_bundle, %object
opwest_bundle: .word run, absent, weights
	.size opwest_bundle, 12
	.section .rodata.weights, "a"
	.zero 8
weights: .word 7
	.weak absent
"""


@pytest.fixture
def chain():
    need("arm-none-eabi-gcc")
    return Toolchain(("arm-none-eabi-gcc",), CORTEX_M3)


def image(chain, folder, code):
    """Return the image of an assembler source with a descriptor."""
    source, whole = folder / "one.S", folder / "one.o"
    source.write_text(DESCRIPTOR + "\t.text\n\t.thumb\n\t.thumb_func\n\t.type run, %function\nrun:\n" + code)
    chain.run([*chain.machine, "-c", str(source), "-o", str(whole)])
    return ELFFile(io.BytesIO(relocatable_image(chain, whole, folder)))


def words_of(section):
    return [int.from_bytes(section.data()[at : at + 4], "little") for at in (0, 4, 8)]


def test_only_constants_are_without_relocations():
    need("arm-none-eabi-gcc")
    request = BundleRequest(EXAMPLES / "vibration" / "manifest.yaml", None, target="cortex-m3")
    made = make_bundle(request, Diagnostics())
    assert made == make_bundle(request, Diagnostics())
    elf = ELFFile(io.BytesIO(made.content.image))
    assert elf["e_type"] == "ET_REL"
    loaded = {one.name: one for one in elf.iter_sections() if one["sh_flags"] & 2}
    assert {name: one["sh_flags"] for name, one in loaded.items()} == {
        ".text": 6,
        ".llext.rodata.noreloc": 2,
        ".data.rel.ro": 3,
        ".exported_sym": 2,
    }
    for one in loaded.values():
        assert one["sh_offset"] % one["sh_addralign"] == 0
    changed = {elf.get_section(one["sh_info"]).name for one in elf.iter_sections() if one["sh_type"] == "SHT_REL"}
    assert changed == loaded.keys() - {".llext.rodata.noreloc"}
    table = elf.get_section_by_name(".symtab")
    assert [one.name for one in table.iter_symbols() if one["st_info"]["bind"] == "STB_GLOBAL"] == ["opwest_bundle"]
    undefined = [one for one in table.iter_symbols() if one["st_shndx"] == "SHN_UNDEF"]
    assert len(undefined) == 1  # the reserved one
    names = loaded[".llext.rodata.noreloc"].data()
    assert b"opwest_bundle\0" in names


def test_addresses_of_constants_and_of_weak_symbols(chain, tmp_path):
    elf = image(chain, tmp_path, "\tb.w absent\n\tbl absent\n\tbx lr\n")
    code = elf.get_section_by_name(".text")
    assert code.data().startswith(bytes.fromhex("aff30080") * 2)  # NOP.W
    tables = elf.get_section_by_name(".data.rel.ro")
    found = elf.get_section_by_name(".rel.data.rel.ro")
    places = {one["r_offset"]: one for one in found.iter_relocations()}
    symbols = elf.get_section_by_name(".symtab")
    sections = {
        at: elf.get_section(symbols.get_symbol(one["r_info_sym"])["st_shndx"]).name for at, one in places.items()
    }
    assert sections == {0: ".text", 8: ".llext.rodata.noreloc"}  # 4, the weak symbol, remains 0
    words = words_of(tables)
    assert words[:2] == [1, 0]  # bit 0 of a function: Thumb
    constants = elf.get_section_by_name(".llext.rodata.noreloc").data()
    assert constants[words[2] : words[2] + 4] == b"\x07\0\0\0"


def test_a_branch_that_llext_does_not_implement(chain, tmp_path):
    other = '\n\t.section .text.other, "ax"\n\t.global other\n\t.type other, %function\nother: bx lr\n'
    with pytest.raises(OpwestError) as caught:
        image(chain, tmp_path, "\tbne.w other\n\tbx lr\n" + other)
    assert "relocation 51 of symbol 'other' is not implemented by Zephyr's LLEXT" in str(caught.value)


def test_a_machine_without_loader():
    need("riscv64-unknown-elf-gcc")
    with pytest.raises(OpwestError) as caught:
        make_bundle(BundleRequest(EXAMPLES / "vibration" / "manifest.yaml", None, target="rv32imac"), Diagnostics())
    assert "no bundles for LLEXT on machine riscv" in str(caught.value)


def test_the_linker_accepts_the_image(chain, tmp_path):
    """The image linked at an address has the addresses of its symbols."""
    image(chain, tmp_path, "\tbl second\n\tbx lr\n\t.thumb_func\nsecond: bx lr\n")
    made, linked = tmp_path / "made.o", tmp_path / "linked.elf"
    made.write_bytes(relocatable_image(chain, tmp_path / "one.o", tmp_path))
    subprocess.run(["arm-none-eabi-ld", "-Ttext=0x8000", "-e", "opwest_bundle", made, "-o", linked], check=True)
    elf = ELFFile(io.BytesIO(linked.read_bytes()))
    constants = elf.get_section_by_name(".llext.rodata.noreloc")
    weights = constants["sh_addr"] + constants.data().index(7)
    assert words_of(elf.get_section_by_name(".data.rel.ro")) == [0x8001, 0, weights]

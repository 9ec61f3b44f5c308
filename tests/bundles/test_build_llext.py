# SPDX-License-Identifier: Apache-2.0
"""The relocatable images of `opwest bundle --llext`, and what LLEXT cannot load."""

import io
import subprocess
from pathlib import Path

import pytest
from bundle_images import EXAMPLES
from elftools.elf.elffile import ELFFile
from opwest.bundles.build import BundleRequest, make_bundle
from opwest.bundles.llext import relocatable_image
from opwest.bundles.toolchain import Toolchain
from opwest.diagnostics import Diagnostics, OpwestError
from requirements_support import need

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
def chain() -> Toolchain:
    need("arm-none-eabi-gcc")
    return Toolchain(("arm-none-eabi-gcc",), CORTEX_M3)


def image(chain: Toolchain, folder: Path, code: str) -> ELFFile:
    """Return the image of an assembler source with a descriptor."""
    source, whole = folder / "one.S", folder / "one.o"
    source.write_text(DESCRIPTOR + "\t.text\n\t.thumb\n\t.thumb_func\n\t.type run, %function\nrun:\n" + code)
    chain.run([*chain.machine, "-c", str(source), "-o", str(whole)])
    return ELFFile(io.BytesIO(relocatable_image(chain, whole, folder)))


def test_only_constants_are_without_relocations() -> None:
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
    assert table is not None
    assert [one.name for one in table.iter_symbols() if one["st_info"]["bind"] == "STB_GLOBAL"] == ["opwest_bundle"]
    undefined = [one for one in table.iter_symbols() if one["st_shndx"] == "SHN_UNDEF"]
    assert len(undefined) == 1  # the reserved one
    names = loaded[".llext.rodata.noreloc"].data()
    assert b"opwest_bundle\0" in names


def test_addresses_of_constants_and_of_weak_symbols(chain: Toolchain, tmp_path: Path) -> None:
    elf = image(chain, tmp_path, "\tb.w absent\n\tbl absent\n\tbx lr\n")
    code = elf.get_section_by_name(".text")
    assert code is not None
    assert code.data().startswith(bytes.fromhex("aff30080") * 2)  # NOP.W
    tables = elf.get_section_by_name(".data.rel.ro")
    found = elf.get_section_by_name(".rel.data.rel.ro")
    assert tables is not None and found is not None
    places = {one["r_offset"]: one for one in found.iter_relocations()}
    symbols = elf.get_section_by_name(".symtab")
    sections = {
        at: elf.get_section(symbols.get_symbol(one["r_info_sym"])["st_shndx"]).name for at, one in places.items()
    }
    assert sections == {0: ".text", 8: ".llext.rodata.noreloc"}  # 4, the weak symbol, remains 0
    words = [int.from_bytes(tables.data()[at : at + 4], "little") for at in (0, 4, 8)]
    assert words[:2] == [1, 0]  # bit 0 of a function: Thumb
    constants = elf.get_section_by_name(".llext.rodata.noreloc").data()
    assert constants[words[2] : words[2] + 4] == b"\x07\0\0\0"


def test_a_branch_that_llext_does_not_implement(chain: Toolchain, tmp_path: Path) -> None:
    other = '\n\t.section .text.other, "ax"\n\t.global other\n\t.type other, %function\nother: bx lr\n'
    with pytest.raises(OpwestError) as caught:
        image(chain, tmp_path, "\tbne.w other\n\tbx lr\n" + other)
    assert "relocation 51 of symbol 'other' is not implemented by Zephyr's LLEXT" in str(caught.value)


def test_a_machine_without_loader() -> None:
    need("riscv64-unknown-elf-gcc")
    with pytest.raises(OpwestError) as caught:
        make_bundle(BundleRequest(EXAMPLES / "vibration" / "manifest.yaml", None, target="rv32imac"), Diagnostics())
    assert "no bundles for LLEXT on machine riscv" in str(caught.value)


def test_the_linker_accepts_the_image(chain: Toolchain, tmp_path: Path) -> None:
    """The image linked at an address has the addresses of its symbols."""
    image(chain, tmp_path, "\tbl second\n\tbx lr\n\t.thumb_func\nsecond: bx lr\n")
    made = tmp_path / "made.o"
    made.write_bytes(relocatable_image(chain, tmp_path / "one.o", tmp_path))
    linked = tmp_path / "linked.elf"
    words = ["arm-none-eabi-ld", "-Ttext=0x8000", "-e", "opwest_bundle", str(made), "-o", str(linked)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    elf = ELFFile(io.BytesIO(linked.read_bytes()))
    tables = elf.get_section_by_name(".data.rel.ro")
    assert tables is not None
    run, absent, weights = (int.from_bytes(tables.data()[at : at + 4], "little") for at in (0, 4, 8))
    constants = elf.get_section_by_name(".llext.rodata.noreloc")
    assert constants is not None
    assert run == 0x8001
    assert absent == 0
    assert weights == constants["sh_addr"] + constants.data().index(7)

# SPDX-License-Identifier: Apache-2.0
"""The sizes of models in images by symbols: several models, damaged images, names of images.

tests/cli/test_cli_report_images.py compares the sizes of linked images with nm and map files.
"""

import subprocess
from dataclasses import replace

import pytest
from elf_writer import build_elf
from opwest.base.diagnostics import Diagnostics
from opwest.objects.images import NOTE_SECTION
from opwest.objects.library_symbols import is_float_code
from opwest.reports import data, sizes
from opwest.reports.changes import compare
from opwest.reports.images import check_models, read_images
from opwest.reports.page import page
from opwest.reports.sizes import add_images
from report_support import model, note_section, report_of, step
from requirements_support import need

SOURCE = """
const unsigned char made_constant_weights[96] = {1};
const unsigned char opwest_program_0123[40] = {1};
const unsigned char made_table[24] = {1};
const unsigned char opwest_more[8] = {1};
const unsigned char made_big__op0[200] = {1};  /* of a model whose name begins like this one's */
const unsigned char zephyr_own[500] = {1};
unsigned char made_workspace[1000];            /* no flash */
extern const unsigned char made__absent[];
const unsigned char *made_pointer(void) { return made__absent; }
const unsigned char made__op0[64] = {1}, made__helper[16] = {1};
const unsigned char made__op1[32] __asm__("made__op1.constprop.0") = {1};
"""
NAMES = ("made", "made_big")


def compiled(folder, source, name, *options):
    need("cc")
    (folder / "image.c").write_text(source)
    (folder / "notes").write_bytes(note_section(*NAMES))
    subprocess.run(["cc", "-c", *options, "image.c", "-o", name], cwd=folder, check=True)
    add = ["objcopy", "--add-section", f"{NOTE_SECTION}=notes", name]
    subprocess.run(add, cwd=folder, check=True)
    return folder / name


def added(models, paths, faults=None):
    """Return models with their sizes in images without map files."""
    found = Diagnostics() if faults is None else faults
    return add_images(models, read_images(paths, found), found)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("image"), SOURCE, "zephyr.elf", "-O1", "-fno-pic")


@pytest.fixture
def made():
    found = model([], [step(0, "op0"), step(1, "again"), step(2, "op1")])
    operators = tuple(replace(o, symbol="op0") if o.name == "again" else o for o in found.operators)
    constants = (data.Constant("weights", "int8", (96,), 96, None, ("op0",)),)
    programs = (data.Program("conv", "opwest_program_0123", 40),)
    return replace(found, operators=operators, constants=constants, programs=programs)


def test_symbols_are_shown_as_names_of_the_manifest(made, image):
    faults = Diagnostics()
    other = replace(made, name="made_big", constants=(), programs=())
    found, big = added([made, other], [image], faults)
    (note,) = faults
    assert note.message.startswith("the image has no map file (zephyr.map or zephyr_final.map): sizes are those")
    (linked,) = found.images
    assert linked.source == "zephyr.elf"
    assert linked.flash is None and linked.ram is None  # an object: not linked
    items = {(item.name, item.kind): item.bytes for item in linked.items}
    assert 24 < items.pop(("made_run.c", "other")) < 56  # and the function made_pointer
    code = {("op0, again", "code"): 64, ("op1", "code"): 32, ("helper", "table"): 16}
    others = {("weights", "constant"): 96, ("conv", "program"): 40, ("runtime", "runtime"): 8}
    assert items == {**code, **others}
    assert ("op0, again", "code", 200) in [(i.name, i.kind, i.bytes) for i in big.images[0].items]
    assert [i.bytes for i in linked.items] == sorted((i.bytes for i in linked.items), reverse=True)
    assert [(i.name, i.kind, i.bytes) for i in linked.memory] == [("made_workspace", "workspace", 1000)]


@pytest.fixture(scope="module")
def linked_image(image):
    linker = "MEMORY { F : ORIGIN = 0x1000000, LENGTH = 1M  R : ORIGIN = 0x2000000, LENGTH = 1M }\nSECTIONS {"
    linker += " .rodata : { *(.text*) *(.rodata*) *(.eh_frame) } >F  .data : { *(.data*) } >R AT>F"
    linker += " .bss (NOLOAD) : { *(.bss*) } >R  .note.opwest 0 : { *(.note.opwest) }"
    linker += " /DISCARD/ : { *(.note*) *(.comment) } }"
    (image.parent / "image.ld").write_text(linker)
    (image.parent / "more.c").write_text("int changing[25] = {1}; int made__absent;")
    command = ["cc", "-nostdlib", "-static", "-no-pie", "-fno-pic", "-fno-builtin", "-Wl,-T,image.ld", "-Wl,-e,0"]
    command += ["-Wl,--build-id=none", "zephyr.elf", "more.c", "-o", "linked.elf"]
    subprocess.run(command, cwd=image.parent, check=True, stderr=subprocess.DEVNULL)
    return image.parent / "linked.elf"


def test_whole_image_has_a_size(made, linked_image):
    (found,) = added([made], [linked_image])
    (linked,) = found.images
    constants = 96 + 40 + 24 + 8 + 200 + 500 + 64 + 16 + 32
    assert constants + 100 < linked.flash < constants + 400
    assert 1000 + 100 + 4 <= linked.ram < 1000 + 100 + 100
    text = page(report_of(found))
    assert f"of {linked.flash:,} in the whole image" in text and f"{linked.ram:,}" in text
    changes = compare(report_of(found), report_of(replace(found, images=(replace(linked, ram=linked.ram + 8),))))
    assert [(c.name.partition(" (")[0], c.verdict) for c in changes] == [("linked.elf", "worse")]


def test_sizes_of_an_image_are_shown_and_compared(made, image):
    (found,) = added([made], [image])
    (row,) = sizes.flash_rows(found)
    assert row["target"].startswith("zephyr.elf (")
    assert row["total"] == found.images[0].model_flash == sum(item.bytes for item in found.images[0].items)
    text = page(report_of(found))
    assert "Flash and RAM of this model, without Zephyr." in text and "op0, again" in text
    assert "from symbols only: the image has no map file" in text
    smaller = replace(found.images[0], items=found.images[0].items[1:])
    changes = compare(report_of(found), report_of(replace(found, images=(smaller,))))
    shown = [(c.group, c.verdict) for c in changes if c.name.startswith("the model in zephyr.elf")]
    assert shown == [("flash", "better")]


def test_another_variant_is_a_difference(made):
    changes = compare(report_of(made), report_of(replace(made, variant="dsp")))
    assert [(c.group, c.name, c.before, c.after) for c in changes] == [("model", "variant", "base", "dsp")]


def test_image_without_the_model(made, image, tmp_path):
    faults = Diagnostics()
    (tmp_path / "text.elf").write_text("hello")
    (tmp_path / "cut.elf").write_bytes(image.read_bytes()[:100])
    (tmp_path / "none.elf").write_bytes(build_elf(symbols=[("f", 1, 2, 1)], sections=[(".text", 1, 6, b"\x90" * 16)]))
    reasons = {
        tmp_path / "text.elf": "cannot read the image: not an ELF file",
        tmp_path / "cut.elf": "cannot read the image: truncated",
        tmp_path / "absent.elf": "cannot read the image: No such file or directory",
        tmp_path / "none.elf": "cannot read the image: the image contains no note of a model",
    }
    images = read_images([*reasons, image], faults)
    check_models(images, ["else"], faults)
    *others, last = faults
    for fault, reason in zip(others, reasons.values(), strict=True):
        assert reason in fault.message
        assert "such as build/zephyr/zephyr.elf" in fault.expected
    assert last.message == "the image has no model of the application: it has made, made_big"
    assert last.expected == "else"


def test_symbol_larger_than_its_file(made, image, tmp_path):
    content = bytearray(image.read_bytes())
    size = (200).to_bytes(8, "little")
    at = content.rindex(size)
    content[at : at + 8] = (1 << 63).to_bytes(8, "little")
    (tmp_path / "zephyr.elf").write_bytes(content)
    faults = Diagnostics()
    assert added([made], [tmp_path / "zephyr.elf"], faults) == [made]
    [fault] = faults
    message = f"symbol 'made_big__op0' of {1 << 63} bytes in a file of {len(content)} bytes"
    assert fault.message == f"cannot read the image: {message}"


def test_segments_larger_than_their_file(made, linked_image, tmp_path):
    content = bytearray(linked_image.read_bytes())
    offset = int.from_bytes(content[32:40], "little")  # e_phoff of a 64-bit ELF file; p_filesz is at 32 in a header
    content[offset + 32 : offset + 40] = (1 << 62).to_bytes(8, "little")
    (tmp_path / "broken.elf").write_bytes(content)
    faults = Diagnostics()
    added([made], [tmp_path / "broken.elf"], faults)
    (fault,) = faults
    assert fault.message.startswith("cannot read the image: segments of 46116860184")


def test_images_are_named_by_board_or_directory(made, image, tmp_path):
    """The file is called zephyr.elf in all builds."""
    builds = {"b1": 'CONFIG_BOARD="mps2"\nCONFIG_BOARD_TARGET="mps2/an385"\n', "b2": 'CONFIG_BOARD="old_board"\n'}
    builds |= {"b3": builds["b1"], "b4": "CONFIG_X=y\n", "b5": None}
    paths = []
    for name, config in builds.items():
        folder = tmp_path / name / "zephyr"
        folder.mkdir(parents=True)
        paths.append(folder / "zephyr.elf")
        paths[-1].write_bytes(image.read_bytes())
        if config is not None:
            (folder / ".config").write_text(config)
    (found,) = added([made], [*paths, image, image])
    names = ["mps2/an385", "old_board", "mps2/an385, b3", "b4", "b5", "zephyr.elf", "zephyr.elf (2)"]
    assert [one.source for one in found.images] == names


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        *((name, True) for name in "__aeabi_fadd __aeabi_dcmpeq __aeabi_f2iz __aeabi_ui2f __aeabi_h2f".split()),
        *((name, True) for name in "__addsf3 __mulhf3 __floatundidf __fixunssfsi __extendhfsf2 __unorddf2".split()),
        *((name, True) for name in "expf sqrt tanhf".split()),
        *((name, False) for name in "__aeabi_uidiv __aeabi_memcpy __divdi3 memcpy __floats fixture".split()),
    ],
)
def test_functions_of_libm_and_soft_float(symbol, found):
    assert is_float_code(symbol) == found


def test_float_code_of_objects_and_images_is_listed(made, tmp_path):
    """Aliases of a function count once."""
    source = "int made__op0(void) { return 1; }\nint __addsf3(void) { return 2; }\nfloat expf(float x) { return x; }\n"
    source += 'int __aeabi_fadd(void) __attribute__((alias("__addsf3")));\n'
    (found,) = added([made], [compiled(tmp_path, source, "a.elf", "-fno-builtin")])
    assert {item.name for item in found.images[0].float_code} == {"__addsf3", "expf"}
    called = data.Object("x.o", "ELF object", "cortex-m3", "yes", (), 8, 0, 0, "16", ("__aeabi_fadd", "expf"))
    shown = page(report_of(replace(found, objects=(called,))))
    assert "called by x.o" in shown and "__aeabi_fadd, expf" in shown and "in the whole image" in shown
    assert "libm and soft float" not in page(report_of(made))

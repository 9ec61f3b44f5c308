# SPDX-License-Identifier: Apache-2.0
"""The reader of files: every check of the header, of the signatures and of the ABI record."""

import random
import struct

import pytest
from bundle_files import (
    FIELDS,
    HEADER,
    INTERFACE,
    NAME,
    RESERVED,
    Signer,
    Variant,
    abi_of,
    get,
    image_of,
    put,
    signed_part,
    version_of,
    with_block,
)
from c_support import RUNTIME, run
from core_support import BUNDLE
from requirements_support import need

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
GOOD, NO_BUNDLE, FORMAT, BAD_HEADER, SIZE = range(5)
MACHINE, FLOAT_ABI, CPU, LAYOUT = 8, 9, 10, 11


@pytest.fixture
def read(make_board):
    """A function that returns the words of the core for files, with the keys that are trusted."""

    def words_of(files, *signers):
        board = make_board()
        board("set", "key_count", 0)
        for index, signer in enumerate(signers):
            board("key", index, signer.public.hex())
        return [board("parse", board.file(content)) for content in files]

    return words_of


@pytest.fixture
def faults(read):
    """A function that returns the faults of files."""
    return lambda files: [int(words[0]) for words in read(files)]


def changed(data, **fields):
    other = bytearray(data)
    for name, value in fields.items():
        put(other, name, value)
    return bytes(other)


def with_byte(data, offset, value):
    return data[:offset] + bytes([value]) + data[offset + 1 :]


def test_header_is_read(read):
    signer = Signer()
    data = signer.bundle(signed_part(Variant(), version=version_of(1, 2, 3)))
    [words] = read([data, data + b"more"], signer)[:1]
    total, signed, agrees = map(int, words[1:4])
    assert (int(words[0]), total, signed, agrees) == (GOOD, len(data), 1, 1)
    assert words[8:] == ["one", "1020003", f"{INTERFACE:x}", "0", str(len(data) - 88), "20"]


def test_every_shorter_file_is_refused(read):
    data = signed_part(Variant())
    whole = Signer().bundle(data)
    sizes = [*range(300), *range(len(data) - 20, len(whole))]
    answers = read([whole[:size] for size in sizes], Signer())
    for size, words in zip(sizes, answers, strict=True):
        expected = NO_BUNDLE if size < 4 else SIZE if size < len(data) else GOOD
        assert int(words[0]) == expected, size
        if expected == GOOD:
            assert words[1:3] == ["0", "0"], "the signatures are cut"


def test_magic_and_versions(faults):
    data = signed_part(Variant())
    files = [with_byte(data, at, data[at] ^ 1) for at in range(4)]
    files += [changed(data, format=2), changed(data, format=0), changed(data, header_size=255)]
    files += [b"\xff" * 400, bytes(400)]
    assert faults(files) == [NO_BUNDLE] * 4 + [FORMAT, FORMAT, BAD_HEADER, NO_BUNDLE, NO_BUNDLE]


def test_parts_outside_of_the_file(faults):
    data = signed_part(Variant())
    length, image, sbom = get(data, "length"), get(data, "image_size"), get(data, "sbom_size")
    end = HEADER + image
    most = 2**32 - 1
    cases = {
        "length": [0, 16, 255, length - 16, length + 8, most],
        "image_offset": [0, 64, 192, HEADER + 1, HEADER + 32, HEADER + 64, most - 63, 2**31],
        "image_size": [0, image + 1, length, most, most - HEADER + 1],
        "sbom_offset": [0, end - 1, length - sbom + 1, length + 1, most],
        "sbom_size": [length - end + 1, length, most, most - end + 1],
        "descriptor_offset": [0, HEADER - 4, end, end - 2, HEADER + 2, HEADER + 1, most, most - 3],
        "kind": [2, most],
        "slot_address": [1, 32, 2**64 - 1],
    }
    files = [changed(data, **{name: value}) for name, values in cases.items() for value in values]
    assert faults(files) == [BAD_HEADER] * len(files)
    longer = [changed(data, length=length + 16), changed(data, length=most - 15)]
    assert faults(longer) == [SIZE, SIZE]
    # sound ones
    assert faults([changed(data, sbom_size=0), changed(data, sbom_offset=length, sbom_size=0)]) == [GOOD] * 2
    llext = changed(data, kind=1, slot_address=0, descriptor_offset=0)
    wrong = [changed(llext, slot_address=64), changed(llext, descriptor_offset=HEADER), changed(llext, image_size=0)]
    wrong += [changed(llext, image_offset=HEADER + 32, image_size=64), changed(llext, image_offset=192)]
    assert faults([llext, *wrong]) == [GOOD] + [BAD_HEADER] * len(wrong)


def test_reserved_bytes_and_names(faults):
    data = signed_part(Variant())
    files = [with_byte(data, at, 1) for at in range(RESERVED, HEADER)] + [changed(data, abi_reserved=1)]
    files += [with_byte(data, NAME, 0), with_byte(data, NAME + 4, 1), with_byte(data, NAME + 47, 1)]
    files += [data[:NAME] + name + data[NAME + 48 :] for name in (b"a" * 48, bytes(48))]
    files += [changed(data, big_endian=2)]
    files += [changed(data, workspace_align=value) for value in (0, 3, 2**32 - 1)]
    files += [changed(data, pools_align=value) for value in (0, 3, 2**32 - 1)]
    assert faults(files) == [BAD_HEADER] * len(files)
    good = [
        data[:NAME] + b"a" * 47 + b"\0" + data[NAME + 48 :],
        changed(data, pools_align=0, pools_size=0),
        changed(data, pools_align=1),
    ]
    assert faults(good) == [GOOD] * 3


def test_blocks_of_signatures(read):
    signer = Signer()
    signed = signed_part(Variant())
    row = (signer.public, signer.sign(signed))
    good = with_block(signed, [row])
    at = len(signed)
    files = [with_byte(good, at + byte, good[at + byte] ^ 1) for byte in range(4)]
    files += [good[: at + 4] + struct.pack("<H", count) + good[at + 6 :] for count in (0, 2, 5, 65535)]
    files += [with_byte(good, at + byte, 1) for byte in (6, 7, 20, 21, 22, 23)]
    assert [words[1:3] for words in read(files, signer)] == [["0", "0"]] * len(files)
    # up to four, in any order, also of other keys and algorithms; one has to be valid
    other = Signer("other")
    false = (signer.public, bytes(64))
    foreign = (other.public, other.sign(signed))
    rows = [[false, foreign, foreign, row], [row, false], [foreign, row], [foreign] * 4, [false] * 3, [row] * 5]
    answers = read([with_block(signed, one) for one in rows], signer)
    assert [words[2] for words in answers] == ["1", "1", "1", "0", "0", "0"]
    assert [words[1] != "0" for words in answers] == [True] * 5 + [False]
    answers = read([with_block(signed, [row], algorithm=2), with_block(signed, [row], size=63)], signer)
    assert [words[2] for words in answers] == ["0", "0"]


def test_several_keys(read):
    signers = [Signer(str(number)) for number in range(3)]
    signed = signed_part(Variant())
    for signer in signers:
        assert read([signer.bundle(signed)], *signers)[0][2] == "1"
    assert read([signers[2].bundle(signed)], *signers[:2])[0][2] == "0"
    assert read([signers[2].bundle(signed)])[0][2] == "0"
    # the number of the key does not match the key that signed
    wrong_name = with_block(signed, [(signers[1].public, signers[0].sign(signed))])
    assert read([wrong_name], *signers)[0][2] == "0"


def test_every_changed_byte_is_refused(read):
    signer = Signer()
    data = signer.bundle(signed_part(Variant()))
    choice = random.Random(3)
    at = sorted({*range(HEADER), *choice.sample(range(HEADER, len(data) - 88), 100), *range(len(data) - 88, len(data))})
    answers = read([with_byte(data, byte, data[byte] ^ 1 << choice.randrange(8)) for byte in at], signer)
    assert len(answers) > 400
    for byte, words in zip(at, answers, strict=True):
        assert words[0] != "0" or words[2] == "0", f"byte {byte} is not covered"


def test_abi_records(read):
    data = signed_part(Variant())
    image = image_of(Variant())
    own = abi_of(Variant(), image)
    other = {
        "machine": (40, MACHINE),
        "pointer_size": (4, MACHINE),
        "big_endian": (1, MACHINE),
        "float_abi": (2, FLOAT_ABI),
        "cpu": (1, CPU),
        "metadata_version": (own["metadata_version"] + 1, LAYOUT),
        "host_version": (2, LAYOUT),
        "layout": (2, LAYOUT),
        "slot_size": (image.slot_size, LAYOUT),
        "device_count": (1, LAYOUT),
    }
    answers = read([changed(data, **{name: value}) for name, (value, _) in other.items()])
    for (name, (value, fault)), words in zip(other.items(), answers, strict=True):
        at = FIELDS["slot_size" if name == "device_count" else name][0]
        assert [int(word) for word in words[3:6]] == [0, fault, at], name
        if name != "device_count":
            assert int(words[6], 16) == value and int(words[7], 16) == own[name], name
    good = [changed(data, layout=1), changed(data, device_count=2, slot_size=image.slot_size)]
    assert [words[3] for words in read(good)] == ["1", "1"]
    refused = [changed(data, **{name: value}) for name, value in (("host_version", 0), ("layout", 4), ("cpu", 1 << 31))]
    refused += [changed(data, device_count=2, slot_size=image.slot_size + 8), changed(data, cpu=0x1000)]
    assert [words[3] for words in read(refused)] == ["0"] * 5


CORES = {
    # flags: capabilities, float ABI, short enumerations
    "arm-none-eabi-gcc -mcpu=cortex-m0": (0x1, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m3": (0x3, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m3 -fno-short-enums": (0x3, 1, False),
    "arm-none-eabi-gcc -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard": (0x3 | 0x20 | 0x80, 2, True),
    "arm-none-eabi-gcc -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=softfp": (0x3 | 0x20 | 0x80, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m4 -mfloat-abi=soft": (0x3 | 0x20, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard": (0x3 | 0x20 | 0x1C0, 2, True),
    "arm-none-eabi-gcc -mcpu=cortex-m23": (0x5, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m33+nodsp -mfloat-abi=soft": (0xF, 1, True),
    "arm-none-eabi-gcc -mcpu=cortex-m55 -mfloat-abi=hard": (0x1F | 0x20 | 0x1C0 | 0x600, 2, True),
    "arm-none-eabi-gcc -mcpu=cortex-m55+nomve -mfloat-abi=soft -DCONFIG_ARMV8_1_M_MAINLINE": (0x1F | 0x20, 1, True),
    "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32": (0x2000 | 0x4000 | 0x20000, 1, False),
    "riscv64-unknown-elf-gcc -march=rv32e -mabi=ilp32e": (0x1000, 1, False),
    "riscv64-unknown-elf-gcc -march=rv32imafdc -mabi=ilp32d": (0x2000 | 0x4000 | 0x8000 | 0x10000 | 0x20000, 4, False),
    "riscv64-unknown-elf-gcc -march=rv32imf -mabi=ilp32f": (0x2000 | 0x8000, 3, False),
    "riscv64-unknown-elf-gcc -march=rv32i_zba_zbb_zbs -mabi=ilp32": (0x40000, 1, False),
}


@pytest.mark.parametrize("command", CORES)
def test_own_abi_of_cores(command, tmp_path):
    """The constants are read from assertions that the compiler evaluates."""
    compiler, *flags = command.split()
    need(compiler)
    cpu, float_abi, short_enums = CORES[command]
    freestanding = ["-ffreestanding", f"-I{RUNTIME / 'include'}", f"-I{BUNDLE / 'src'}"]
    (tmp_path / "own.c").write_text(f"""
#include "{BUNDLE / "src/abi.c"}"
_Static_assert(CPU == {cpu:#x}U, "capabilities");
_Static_assert(OPWEST_ABI_FLOAT == {float_abi}, "float ABI");
_Static_assert(LAYOUT == {2 if short_enums else 0}, "enumerations");
_Static_assert(OPWEST_ABI_MACHINE == {40 if "arm" in compiler else 243}, "machine");
""")
    (tmp_path / "pthread.h").write_text("typedef int pthread_mutex_t, pthread_cond_t, pthread_t;\n")
    run([compiler, *flags, "-std=c11", "-I.", *freestanding, "-c", "own.c"], tmp_path)

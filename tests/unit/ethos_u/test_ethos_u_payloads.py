# SPDX-License-Identifier: Apache-2.0
"""The checks of an Ethos-U's payloads: of the generator, and of the driver, in C."""

import ctypes
import itertools
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from c_support import RUNTIME, run
from ethos_u_payloads import (
    CONFIG_U65_256,
    CONFIG_U85_256,
    COP1,
    REGIONS,
    STOP,
    VALID,
    convolution,
    copy,
    feature_map,
    payload,
    words_of,
)
from opwest.objects.ethos_u.payload import NPUS, npu_of_config
from opwest.objects.ethos_u.stream import examine
from requirements_support import need_compiler


def packed(*words):
    return struct.pack(f"<{len(words)}I", *words)


def faults(content, npu=None, regions=REGIONS):
    return [one.message for one in examine(content, NPUS[npu] if npu else None, regions).faults]


def stream_faults(commands, regions=REGIONS):
    return faults(payload([*words_of(commands), STOP]), regions=regions)


def test_valid_payload_has_its_operations_and_extents():
    found = examine(VALID, NPUS["ethos-u55-128"], REGIONS)
    assert not found.faults
    assert found.operations == {"CONV": 1, "STOP": 1}
    extents = [(use.what, use.region, use.begin, use.end, use.writes) for use in found.uses]
    assert extents == [
        ("the OFM", 1, 16, 32, True),
        ("the IFM", 1, 0, 16, False),
        ("the weights", 0, 0, 32, False),
        ("the scales", 0, 32, 192, False),
    ]


def test_npus_by_configuration():
    names = {config: npu_of_config(config) for config in (0x1807, CONFIG_U65_256, CONFIG_U85_256, 0x70000007)}
    assert [one.name if one else None for one in names.values()] == [
        "ethos-u55-128",
        "ethos-u65-256",
        "ethos-u85-256",
        None,
    ]


@pytest.mark.parametrize("length", range(len(VALID)))
def test_every_truncated_payload_is_an_error(length):
    assert faults(VALID[:length])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the payload is empty"),
        (b"COP2" + VALID[4:], "the payload has the format COP2"),
        (b"COP3" + VALID[4:], "the payload begins with 43 4f 50 33"),
        (VALID[:-1], f"the payload is truncated: {len(VALID) - 1} bytes"),
        (VALID[:-4], "the payload is truncated: the driver action at byte 28 has 252 bytes, 248 follow"),
        (packed(COP1, 0x100001, 0x1807), "the payload is truncated: the driver action at byte 4 has 8 bytes, 4 follow"),
        (packed(COP1, 5, 5, 0x10002, STOP), "the payload has no configuration of the NPU"),
        (VALID[:28], "the payload has 0 command streams"),
        (VALID + packed(5, 5, 5, 5) + VALID[28:], "the payload has 2 command streams"),
        (VALID[:16] + packed(9) + VALID[20:], "unknown driver action 9 at byte 16 of the payload"),
        (
            packed(COP1, 0x100001, 0x1807, 0x10066001, 0x10002, STOP),
            "the command stream begins at byte 20 of the payload",
        ),
        (payload([STOP], 0x70000007), "the payload is for product 7 with 2^7 MACs per cycle"),
        (
            packed(COP1, 1, 0x1807, 0x10066001, 1, 0x1808, 0x10066001, 0x10002, STOP),
            "the payload is for ethos-u55-128 and for ethos-u55-256",
        ),
        (payload([STOP], 0x1817), "the command stream has version 1"),
        (payload([STOP], 0x08001807), "the payload is for an NPU with a custom DMA"),
        (payload([STOP], revision=0x20000000), "the payload is for revision 2 of the architecture"),
        (payload([]), "the command stream ends with nothing"),
        (payload(words_of(convolution())), "the command stream ends with NPU_OP_CONV"),
        (payload([STOP, STOP]), "NPU_OP_STOP at byte 32 of the payload is followed by 1 word"),
        (payload([0x3FF]), "unknown command 0x03ff at byte 32 of the payload"),
        (payload([0x400 | 2]), "unknown command 0x0402 at byte 32 of the payload"),
        (payload([0x4010]), "the command stream ends inside of NPU_SET_OFM_BASE0 at byte 32 of the payload"),
        (
            payload([0x90 | 0x4000, 0, STOP]),
            "unknown command 0x4090 at byte 32 of the payload",  # a command of U65
        ),
        (payload([5 | 3 << 16, STOP]), "the parameter 0x3 of NPU_OP_POOL is invalid, at byte 32 of the payload"),
        (
            payload([0x10F | 8 << 16, STOP]),
            "the parameter 0x8 of NPU_SET_IFM_REGION is invalid, at byte 32 of the payload",
        ),
        (
            payload([0x23 | 0x4000, 1 << 20, STOP]),
            "the data 0x100000 of NPU_SET_SCALE_LENGTH is invalid, at byte 32 of the payload",
        ),
        (
            payload([0x20 | 0x4000, 8, STOP]),
            "the address 0x8 of NPU_SET_WEIGHT_BASE at byte 32 of the payload is not aligned",
        ),
        (
            payload([2, STOP]),
            "NPU_OP_CONV at byte 32 of the payload without "
            "NPU_SET_OFM_REGION, NPU_SET_OFM_BASE0, NPU_SET_OFM_STRIDE_X, ...",
        ),
    ],
    ids=lambda one: "" if isinstance(one, bytes) else one[:50],
)
def test_faults_have_messages(content, message):
    assert message in faults(content)


def test_all_faults_of_a_stream_are_reported_and_many_are_cut():
    two = payload([5 | 3 << 16, 0x10F | 8 << 16, STOP])
    assert len(faults(two)) == 2
    assert len(faults(payload([5 | 3 << 16] * 100 + [STOP]))) == 8


@pytest.mark.parametrize(
    ("commands", "regions", "message"),
    [
        (
            convolution(),
            (192, 31),
            "NPU_OP_CONV at byte {op} of the payload writes the OFM, bytes 16 to 31 of region 1, which has 31 bytes",
        ),
        (
            convolution(),
            (191, 32),
            "NPU_OP_CONV at byte {op} of the payload reads the scales, bytes 32 to 191 of region 0, "
            "which has 191 bytes",
        ),
        (convolution(), (192,), "NPU_OP_CONV at byte {op} of the payload writes the OFM, in region 1"),
        (
            convolution(at=(1 << 32) - 16),
            REGIONS,
            "NPU_OP_CONV at byte {op} of the payload reads the IFM, bytes -16 to -1 of region 1",
        ),
        (
            copy((0, 100), (1, 0), 93)[:-1],
            REGIONS,
            "NPU_OP_DMA_START at byte {op} of the payload reads the source of the DMA, bytes 100 to 192 of region 0, "
            "which has 192 bytes",
        ),
    ],
)
def test_accesses_outside_of_regions(commands, regions, message):
    position = 32 + 4 * (len(words_of(commands)) - 1)
    found = stream_faults(commands, regions)
    assert message.format(op=position) in found


def test_writes_to_constant_regions():
    content = payload([*words_of(copy((1, 16), (0, 32), 16)), STOP])
    assert not examine(content, regions=(192, 64)).faults
    [found] = examine(content, regions=(192, 64), constant={0, 2}).faults
    assert found.message == "it writes the destination of the DMA, bytes 32 to 47 of region 0, which is constant"
    assert not examine(content, regions=(192, 64), constant={1}).faults


def test_transfers_to_the_memory_of_the_npu_use_no_region():
    found = examine(payload([*words_of(copy((0, 0), (0x103, 0), 256)), STOP]), regions=(256,))
    assert not found.faults
    assert [(use.region, use.end) for use in found.uses] == [(0, 256)]


def test_bricks_and_tiles_have_their_extents():
    """A map of 3x5x20 int8 in NHCWB16, split after 2 rows and 4 columns, at four addresses."""
    tiled = {
        "OFM_PRECISION": 1 | 1 << 6,
        "OFM_STRIDE_C": 16 * 5,
        "OFM_STRIDE_Y": 2 * 16 * 5,
        "OFM_WIDTH0_M1": 3,
        "OFM_HEIGHT0_M1": 1,
        "OFM_HEIGHT1_M1": 1,
        "OFM_BASE0": 0,
        "OFM_BASE1": 1000,
        "OFM_BASE2": 2000,
        "OFM_BASE3": 3000,
    }
    commands = [(name, tiled.get(name, value)) for name, value in convolution((3, 5, 16), (3, 5, 20), at=4000)]
    found = examine(payload([*words_of(commands), STOP]))
    assert not found.faults
    extents = [(use.begin, use.end) for use in found.uses if use.writes]
    row = 80 + 16  # the second brick of a row, and the channels of its last element
    assert extents == [(0, 160 + 48 + row), (2000, 2000 + 48 + row), (1000, 1000 + 160 + row), (3000, 3000 + row)]


def test_second_operand_is_broadcast():
    commands = [one for one in convolution((2, 2, 8), (2, 2, 8), to=32)[:-1] if not one[0].startswith("WEIGHT")]
    commands += [*feature_map("IFM2", 2, 0, (1, 1, 8)), ("IFM2_BROADCAST", 3), ("ELEMENTWISE", 1)]
    found = examine(payload([*words_of(commands), STOP]), regions=(192, 64, 8))
    assert not found.faults
    assert [(use.what, use.begin, use.end) for use in found.uses][-1] == ("the IFM2", 0, 8)
    scalar = [(name, 0x80 if name == "IFM2_BROADCAST" else value) for name, value in commands]
    assert examine(payload([*words_of(scalar), STOP]), regions=(192, 64)).regions == {1}


def test_u65_has_more_commands_and_longer_addresses():
    commands = [("PARALLEL_MODE", 1), ("WEIGHT1_BASE", 1 << 32), ("WEIGHT1_LENGTH", 32), ("SCALE1_BASE", 0)]
    commands += [("SCALE1_LENGTH", 160), *convolution()]
    content = payload([*words_of(commands), STOP], CONFIG_U65_256)
    assert not examine(content).faults
    assert (
        examine(content, regions=REGIONS)
        .faults[0]
        .message.endswith("bytes 4294967296 to 4294967327 of region 0, which has 192 bytes")
    )


def test_payload_for_another_npu():
    assert faults(VALID, "ethos-u65-256") == ["the payload is for ethos-u55-128, the device is ethos-u65-256"]


def test_stream_of_u85_is_not_walked():
    found = examine(payload([0x3FF], CONFIG_U85_256, 0x20007000), NPUS["ethos-u85-256"])
    assert not found.faults and not found.uses


# --- The check of programs in the driver: portable C, called here on the host

Fault = Callable[..., str | None]

NAME, MACS, ARCHITECTURE, NOTHING = 0x31504F43, 7, 0x10100000, 5
STOP_WORD, WAIT, BASE = 0xFFFF0000, 0x11, 0x4000
CONFIG = (1, MACS, ARCHITECTURE)
HEAD = (NAME, *CONFIG, NOTHING, NOTHING, NOTHING)
STREAM = (BASE, 0x1234, WAIT, BASE | 1, 0xFFFF0000, STOP_WORD)
SOUND = (*HEAD, len(STREAM) << 16 | 2, *STREAM)


class Npu(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint8) for name in ("product", "macs", "stream_version", "arch_major", "arch_minor")),
        ("custom_dma", ctypes.c_bool),
    ]


@pytest.fixture(scope="module")
def fault_of(tmp_path_factory):
    """Return a function that returns the fault in words or bytes, for an Ethos-U55 with 128 MACs unless given."""
    need_compiler("gcc", link=True)
    folder: Path = tmp_path_factory.mktemp("ethos_u")
    source = RUNTIME / "drivers" / "ethos_u" / "ethos_u_payload.c"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    run(["gcc", *flags, source, "-o", "payload.so"], folder)
    function = ctypes.CDLL(str(folder / "payload.so")).ethos_u_payload_fault
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(Npu)]

    def fault_of(*words, content=None, offset=0, **changed):
        data = struct.pack(f"<{len(words)}I", *words) if content is None else content
        npu = Npu(**{"product": 0, "macs": MACS, "arch_major": 1, "arch_minor": 1, **changed})
        memory = ctypes.create_string_buffer(len(data) + 32)
        start = -ctypes.addressof(memory) % 16 + offset
        memory[start : start + len(data)] = data
        found = function(ctypes.addressof(memory) + start, len(data), ctypes.byref(npu))
        return None if found is None else found.decode()

    return fault_of


def test_sound_payloads(fault_of):
    assert fault_of(*SOUND) is None
    assert fault_of(*SOUND, NOTHING, NOTHING) is None
    assert fault_of(NAME, NOTHING, NOTHING, 1 << 16 | 2, STOP_WORD, *CONFIG) is None
    older = (NAME, 1, MACS, 0x10000000, *HEAD[4:], 1 << 16 | 2, STOP_WORD)
    assert fault_of(*older) is None
    assert fault_of(NAME, 1, MACS | 1 << 27, *SOUND[3:], custom_dma=1) is None
    # The vendor's driver does not compare the stream's version of an Ethos-U85.
    newest = (NAME, 1, 0x20000118, 0x20007000, *SOUND[4:])
    assert fault_of(*newest, product=2, macs=8, stream_version=0, arch_major=2, arch_minor=0) is None


def test_length_of_more_than_16_bits(fault_of):
    length = 0x10002
    head = (*HEAD, (length & 0xFFFF) << 16 | (length >> 16) << 8 | 2)
    assert fault_of(*head, *(WAIT,) * (length - 1), STOP_WORD) is None
    assert fault_of(*head, *(WAIT,) * (length - 2), STOP_WORD) == "it is truncated"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ((NAME + 1, *SOUND[1:]), "it is not a custom operator payload (COP1)"),
        ((), "it is not a custom operator payload (COP1)"),
        ((NAME,), "it does not have one command stream"),
        (HEAD, "it does not have one command stream"),
        ((*SOUND, NOTHING, *SOUND[7:]), "it does not have one command stream"),
        ((NAME, NOTHING, NOTHING, 1 << 16 | 2, STOP_WORD), "it has no configuration of the NPU"),
        ((*HEAD, 2), "its command stream is empty"),
        ((NAME, *CONFIG, 1 << 16 | 2, STOP_WORD), "its command stream is not aligned to 16 bytes"),
        ((NAME, 1, MACS), "it is truncated"),
        ((*HEAD, 0xFFFFFF02, STOP_WORD), "it is truncated"),
        ((NAME, 3, *SOUND[1:]), "it has an unknown action"),
        ((NAME, 1, MACS + 1, *SOUND[3:]), "it is for an NPU with another number of MACs"),
        ((NAME, 1, MACS | 1 << 28, *SOUND[3:]), "it is for another product"),
        ((NAME, 1, MACS | 1 << 4, *SOUND[3:]), "its command stream has another version than the NPU's"),
        ((NAME, 1, MACS | 1 << 27, *SOUND[3:]), "it is for an NPU with a custom DMA"),
        ((NAME, 1, MACS, 0x10200000, *SOUND[4:]), "it is for another version of the architecture"),
        ((NAME, 1, MACS, 0x20000000, *SOUND[4:]), "it is for another version of the architecture"),
        ((*HEAD, 2 << 16 | 2, WAIT, WAIT), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, WAIT, BASE), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, BASE, STOP_WORD), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, STOP_WORD, WAIT), "its command stream stops before its end"),
        ((*HEAD, 2 << 16 | 2, 0x8011, STOP_WORD), "its command stream has a damaged command"),
    ],
)
def test_faults_in_the_driver(fault_of, words, fault):
    assert fault_of(*words) == fault


def test_every_truncation_is_found(fault_of):
    content = struct.pack(f"<{len(SOUND)}I", *SOUND)
    assert fault_of(content=content) is None
    for size in range(len(content)):
        assert fault_of(content=content[:size]) is not None, size
    assert fault_of(content=content[:-1]) == "it is truncated: its size is not a multiple of 4 bytes"


def test_payload_at_another_address(fault_of):
    found = {offset: fault_of(*SOUND, offset=offset) for offset in range(16)}
    assert found.pop(0) is None
    assert set(found.values()) == {"its command stream is not aligned to 16 bytes"}


def test_only_data_of_commands_is_free(fault_of):
    """A flipped bit in the length of a command, in an action or in the configuration is found."""
    first = SOUND.index(BASE)
    data = {first + 1, first + 4}
    accepted = set()
    for index, bit in itertools.product(range(len(SOUND)), range(32)):
        words = [*SOUND]
        words[index] ^= 1 << bit
        if index not in data and fault_of(*words) is None:
            accepted.add((index, bit))
    # Parameters and opcodes of commands are checked on the host, and actions have fields for information.
    information = {(1, bit) for bit in range(8, 32)} | {(2, bit) for bit in range(8, 27)}
    information |= {(3, bit) for bit in (*range(20), 20)} | {(i, bit) for i in (4, 5, 6) for bit in range(8, 32)}
    commands = {(i, bit) for i in (first, first + 2, first + 3, first + 5) for bit in (*range(14), *range(16, 32))}
    assert accepted - commands == information

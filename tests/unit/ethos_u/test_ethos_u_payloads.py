# SPDX-License-Identifier: Apache-2.0
"""The check of payloads: each fault has its message, and every truncation of a valid payload is a fault."""

import struct

import pytest
from ethos_u_payloads import (
    CONFIG_U65_256,
    CONFIG_U85_256,
    COP1,
    REGIONS,
    STOP,
    VALID,
    Command,
    convolution,
    copy,
    feature_map,
    payload,
    words_of,
)
from opwest.ethos_u.check import examine
from opwest.ethos_u.npus import NPUS, npu_of_config


def packed(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def faults(content: bytes, npu: str | None = None, regions: tuple[int, ...] | None = REGIONS) -> list[str]:
    return [one.message for one in examine(content, NPUS[npu] if npu else None, regions).faults]


def stream_faults(commands: list[Command], regions: tuple[int, ...] = REGIONS) -> list[str]:
    return faults(payload([*words_of(commands), STOP]), regions=regions)


def test_valid_payload_has_its_operations_and_extents() -> None:
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


def test_npus_by_configuration() -> None:
    names = {config: npu_of_config(config) for config in (0x1807, CONFIG_U65_256, CONFIG_U85_256, 0x70000007)}
    assert [one.name if one else None for one in names.values()] == [
        "ethos-u55-128",
        "ethos-u65-256",
        "ethos-u85-256",
        None,
    ]


@pytest.mark.parametrize("length", range(len(VALID)))
def test_every_truncated_payload_is_an_error(length: int) -> None:
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
        (payload([STOP, STOP]), "NPU_OP_STOP at byte 32 of the payload is followed by 1 words"),
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
def test_faults_have_messages(content: bytes, message: str) -> None:
    assert message in faults(content)


def test_all_faults_of_a_stream_are_reported_and_many_are_cut() -> None:
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
def test_accesses_outside_of_regions(commands: list[Command], regions: tuple[int, ...], message: str) -> None:
    position = 32 + 4 * (len(words_of(commands)) - 1)
    found = stream_faults(commands, regions)
    assert message.format(op=position) in found


def test_writes_to_constant_regions() -> None:
    content = payload([*words_of(copy((1, 16), (0, 32), 16)), STOP])
    assert not examine(content, regions=(192, 64)).faults
    [found] = examine(content, regions=(192, 64), constant={0, 2}).faults
    assert found.message == "it writes the destination of the DMA, bytes 32 to 47 of region 0, which is constant"
    assert not examine(content, regions=(192, 64), constant={1}).faults


def test_transfers_to_the_memory_of_the_npu_use_no_region() -> None:
    found = examine(payload([*words_of(copy((0, 0), (0x103, 0), 256)), STOP]), regions=(256,))
    assert not found.faults
    assert [(use.region, use.end) for use in found.uses] == [(0, 256)]


def test_bricks_and_tiles_have_their_extents() -> None:
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


def test_second_operand_is_broadcast() -> None:
    commands = [one for one in convolution((2, 2, 8), (2, 2, 8), to=32)[:-1] if not one[0].startswith("WEIGHT")]
    commands += [*feature_map("IFM2", 2, 0, (1, 1, 8)), ("IFM2_BROADCAST", 3), ("ELEMENTWISE", 1)]
    found = examine(payload([*words_of(commands), STOP]), regions=(192, 64, 8))
    assert not found.faults
    assert [(use.what, use.begin, use.end) for use in found.uses][-1] == ("the IFM2", 0, 8)
    scalar = [(name, 0x80 if name == "IFM2_BROADCAST" else value) for name, value in commands]
    assert examine(payload([*words_of(scalar), STOP]), regions=(192, 64)).regions == {1}


def test_u65_has_more_commands_and_longer_addresses() -> None:
    commands = [("PARALLEL_MODE", 1), ("WEIGHT1_BASE", 1 << 32), ("WEIGHT1_LENGTH", 32), ("SCALE1_BASE", 0)]
    commands += [("SCALE1_LENGTH", 160), *convolution()]
    content = payload([*words_of(commands), STOP], CONFIG_U65_256)
    assert not examine(content).faults
    assert (
        examine(content, regions=REGIONS)
        .faults[0]
        .message.endswith("bytes 4294967296 to 4294967327 of region 0, which has 192 bytes")
    )


def test_payload_for_another_npu() -> None:
    assert faults(VALID, "ethos-u65-256") == ["the payload is for ethos-u55-128, the device is ethos-u65-256"]


def test_stream_of_u85_is_not_walked() -> None:
    found = examine(payload([0x3FF], CONFIG_U85_256, 0x20007000), NPUS["ethos-u85-256"])
    assert not found.faults and not found.uses

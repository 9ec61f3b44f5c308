# SPDX-License-Identifier: Apache-2.0
"""Damaged payloads: an error of the model with its position, never another one."""

import random

import pytest
from campaign import sized

from npu_model import Invalid, NpuError, Unsupported, execute
from npu_model.__main__ import main
from npu_model.assembled import CONFIG_128, activation, feature_map, kernel, payload, raw_weights, scales, words

STOP = ("NPU_OP_STOP", 0xFFFF)
WEIGHTS = scales([(5, 1 << 30, 33)] * 8) + raw_weights([number % 7 - 3 for number in range(8 * 4 * 8)])
LAYER = [
    *feature_map("IFM", 1, 0, (4, 4, 8), 1, 3),
    *feature_map("OFM", 1, 128, (3, 3, 8), 1),
    *kernel((2, 2), is_part_kernel=True),
    *(("WEIGHT_REGION", 0), ("WEIGHT_BASE", 80), ("WEIGHT_LENGTH", len(WEIGHTS) - 80)),
    *(("SCALE_REGION", 0), ("SCALE_BASE", 0), ("SCALE_LENGTH", 80)),
    *activation(-128, 127),
    *(("OFM_BLK_DEPTH_M1", 7), ("IFM_UPSCALE", 0), ("ACC_FORMAT", 0)),
]
SCALAR = [*LAYER, ("IFM2_BROADCAST", 0x80), ("IFM2_PRECISION", 1), ("IFM2_ZERO_POINT", 0)]
WHOLE = [
    *LAYER,
    "NPU_OP_CONV",
    *feature_map("IFM2", 1, 256, (4, 4, 8), 1),
    *feature_map("OFM", 1, 384, (4, 4, 8), 0x101),
    *(("IFM2_BROADCAST", 0), ("OPA_SCALE", 1), ("OPB_SCALE", 1), ("OFM_SCALE", 1), ("NPU_OP_ELEMENTWISE", 1)),
    *(("DMA0_SRC_REGION", 0), ("DMA0_SRC", 0), ("DMA0_DST_REGION", 0x103), ("DMA0_DST", 0x5800), ("DMA0_LEN", 64)),
    "NPU_OP_DMA_START",
    *(("OFM_PRECISION", 0x8101), ("ACTIVATION", 16), *kernel(), ("NPU_OP_POOL", 1), STOP),
]


def regions(weights=WEIGHTS):
    return [bytearray(weights), bytearray(512)]


def refused(content, kind, memory=None):
    with pytest.raises(kind) as caught:
        execute(content, memory or regions())
    assert type(caught.value) is kind and caught.value.position is not None
    return str(caught.value)


def test_truncated_payloads_are_refused():
    content = payload(words(*WHOLE))
    for size in range(len(content)):
        with pytest.raises(NpuError) as caught:
            execute(content[:size], regions())
        assert caught.value.position is not None and caught.value.position <= size


def _mutated(content, chance):
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = 4 * chance.randrange(len(data) // 4)
        if chance.random() < 0.5:
            data[at + chance.randrange(4)] ^= 1 << chance.randrange(8)
        elif chance.random() < 0.5:
            data[at : at + 4] = chance.choice((0, 1, 0x7FFF, 0xFFFF, 0xFFFFFFFF, 1 << 31)).to_bytes(4, "little")
        else:
            other = 4 * chance.randrange(len(data) // 4)
            data[at : at + 4] = data[other : other + 4]
    return bytes(data)


def test_mutated_payloads_are_run_or_refused():
    chance, content, outcomes = random.Random(3), payload(words(*WHOLE)), set()
    for number in range(sized(400, 50_000)):
        weights = _mutated(WEIGHTS, chance) if number % 4 == 0 else WEIGHTS
        damaged = content if number % 8 == 0 else _mutated(content, chance)
        try:
            execute(damaged, regions(weights))
            outcomes.add("run")
        except NpuError as error:
            assert error.position is not None, error
            outcomes.add(type(error).__name__)
    assert outcomes == {"run", "Invalid", "Unsupported"}


PAYLOADS = [
    (b"COP1\0", Invalid, "the payload has 5 bytes, not a multiple of 4"),
    (b"COP2" + bytes(28), Unsupported, "the payload is COP2, the model reads COP1"),
    (b"COP3" + bytes(28), Invalid, "begins with b'COP3' instead of b'COP1'"),
    (b"COP1" + bytes([9, 0, 0, 0]), Invalid, "9 is not an action of the driver"),
    (b"COP1" + bytes([3, 0, 0, 0]), Unsupported, "the action 3 reads the device"),
    (b"COP1" + bytes([5, 0, 0, 0]), Invalid, "the payload has no command stream"),
    (b"COP1" + bytes([1, 0, 0, 0]), Invalid, "ends within the action of the configuration"),
    (b"COP1" + bytes([2, 0, 0, 0]), Invalid, "has no configuration before it"),
    (payload([]), Invalid, "the stream ends without NPU_OP_STOP"),
    (payload([0xFFFF0000])[:-4], Invalid, "the command stream has 0 words, its action says 1"),
    (payload([0xFFFF0000], CONFIG_128 | 1 << 28), Unsupported, "for product 1, the model is of the Ethos-U55"),
    (payload([0xFFFF0000], CONFIG_128 | 1 << 4), Unsupported, "has version 1, the model reads 0"),
    (payload([0xFFFF0000], 0x3007), Invalid, "no Ethos-U55 has the configuration 0x00003007"),
    (payload([0x3FF]), Invalid, "byte 32 of the payload: 0x03FF is not a command of an Ethos-U55"),
    (payload([0x8000]), Invalid, "0x8000 is not a command: reserved bits are set"),
    (payload([0x4000]), Invalid, "NPU_SET_IFM_BASE0: the stream ends before the payload of the command"),
    (payload([0x0008_010F]), Invalid, "NPU_SET_IFM_REGION: the parameter 0x8 has bits outside of 0x7"),
    (payload([0, 0]), Invalid, "1 words follow NPU_OP_STOP"),
]
LAYERS = [
    ([("IFM_REGION", 3)], Invalid, "NPU_OP_CONV: region 3 is not given, there are 2"),
    ([("OFM_BASE0", 500)], Invalid, "OFM is at bytes 500 to 572 of region 1, which has 512"),
    ([("IFM_STRIDE_Y", -200)], Invalid, "IFM is at bytes -600 to"),
    ([("WEIGHT_LENGTH", 4096)], Invalid, "the weights in region 0: bytes 80 to 4176 of"),
    ([("SCALE_LENGTH", 64)], Invalid, "the scales have 64 bytes, 8 channels need 80"),
    ([("OFM_PRECISION", 4)], Invalid, "OFM_PRECISION 0x4 has no known type"),
    ([("OFM_PRECISION", 0xC001)], Invalid, "3 is not a rounding mode"),
    ([("OFM_PRECISION", 0x101)], Unsupported, "a convolution with the scale of OFM_SCALE"),
    ([("IFM_PRECISION", 0x81)], Invalid, "IFM_PRECISION 0x81 has no known format"),
    ([("OFM_PRECISION", 0x41), ("OFM_BASE0", 129)], Invalid, "in bricks and is not aligned to 16 bytes"),
    ([("IFM_PRECISION", 9), ("IFM_STRIDE_X", 32)], Invalid, "a convolution has an IFM of 32 bits"),
    ([("KERNEL_STRIDE", 0x1C)], Invalid, "a kernel of 2 x 2 has no dilation of 2 x 2"),
    ([("KERNEL_HEIGHT_M1", 3)], Invalid, "the stream has 256 weights, the operator 512 with padding"),
    ([("OFM_BLK_DEPTH_M1", 4)], Invalid, "the depth of a block is 5, expected a multiple of 8"),
    ([("KERNEL_HEIGHT_M1", 0xFFFF)], Unsupported, "an operator of 131072 taps, the model's limit is 65536"),
    ([("IFM_PAD_TOP", 9)], Invalid, "the kernel and its padding leave an IFM of -5 x 4"),
    ([("IFM_UPSCALE", 3)], Invalid, "3 is not a mode of IFM_UPSCALE"),
    ([("ACC_FORMAT", 2)], Unsupported, "accumulators of the format 2"),
    ([("ACTIVATION", 5)], Invalid, "ACTIVATION 0x5 has no known function"),
    ([("ACTIVATION", 0x1000)], Invalid, "ACTIVATION 0x1000 has no known range"),
    ([("ACTIVATION", 3)], Unsupported, "TANH or SIGMOID, whose tables in the device are not public"),
    ([("ACTIVATION_MIN", 100), ("ACTIVATION_MAX", 50)], Unsupported, "ACTIVATION_MIN 100 is above ACTIVATION_MAX 50"),
    ([("IFM_DEPTH_M1", 0xFFFF), ("OFM_WIDTH_M1", 0xFFF)], Unsupported, "the model's limit is"),
]
"""Registers that differ from those of LAYER."""


def copy(source, target, length, start=0):
    ends = [("DMA0_SRC_REGION", source), ("DMA0_DST_REGION", target), ("DMA0_SRC", 0), ("DMA0_DST", start)]
    return [*ends, ("DMA0_LEN", length), "NPU_OP_DMA_START"]


OPERATORS = [
    *(([*LAYER, *changes, "NPU_OP_CONV"], kind, message) for changes, kind, message in LAYERS),
    ([*LAYER, ("IFM_DEPTH_M1", 3), "NPU_OP_DEPTHWISE"], Invalid, "an IFM of depth 4 and an OFM of depth 8"),
    ([*LAYER, ("NPU_OP_POOL", 3)], Invalid, "3 is not a mode of a pool"),
    ([*LAYER, ("NPU_OP_POOL", 2)], Invalid, "a pool has an IFM of depth 8 and an OFM of depth 8"),
    ([*LAYER, ("NPU_OP_POOL", 1)], Unsupported, "an average without padding has no OFM_SCALE"),
    ([*LAYER, ("NPU_OP_ELEMENTWISE", 10)], Invalid, "10 is not a mode of an elementwise operator"),
    ([*LAYER, ("NPU_OP_ELEMENTWISE", 7)], Invalid, "CLZ has an IFM that is not of 32 bits"),
    ([*LAYER, ("NPU_OP_ELEMENTWISE", 1)], Invalid, "no command has set IFM2_BROADCAST"),
    ([*SCALAR, ("IFM2_SCALAR", 200), ("NPU_OP_ELEMENTWISE", 1)], Invalid, "IFM2_SCALAR 200 does not fit in the"),
    (["NPU_OP_DMA_START"], Invalid, "NPU_OP_DMA_START: no command has set DMA0_LEN"),
    (copy(0, 1, 20, 500), Invalid, "the DMA's target in region 1: bytes 500 to 520 of 512"),
    (copy(0x200, 1, 1), Unsupported, "a DMA of two or three dimensions"),
    (copy(0x103, 1, 1), Invalid, "a DMA reads the internal memory"),
    (copy(0, 1, 0), Invalid, "a DMA has no length"),
    (copy(0, 0x103, 10, 24570), Invalid, "a DMA to the internal memory: bytes 24570 to 24580 of 24576"),
]
REFUSED = [*PAYLOADS, *((payload(words(*commands, STOP)), kind, message) for commands, kind, message in OPERATORS)]


@pytest.mark.parametrize(("content", "kind", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_payloads_that_are_refused(content, kind, message):
    text = refused(content, kind)
    assert message in text and text.startswith("byte ")


def test_regions_of_bytes_are_read_only():
    content = payload(words(*LAYER, ("OFM_REGION", 0), ("OFM_BASE0", 0), "NPU_OP_CONV", STOP))
    memory = [WEIGHTS, bytearray(512)]
    assert "NPU_OP_CONV: OFM is in region 0, which is read-only" in refused(content, Invalid, memory)
    assert "IFM is at bytes 0 to 128 of region 1, which has 0" in refused(content, Invalid, [WEIGHTS, bytearray()])


def test_command_line(tmp_path, capsys):
    files = [tmp_path / name for name in ("payload", "weights", "scratch")]
    for file, content in zip(files, (payload(words(*WHOLE)), *regions()), strict=True):
        file.write_bytes(content)
    assert main([*map(str, files), "-o", str(tmp_path / "out"), "--trace"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == [
        *("NPU_OP_CONV", "NPU_OP_ELEMENTWISE", "NPU_OP_DMA_START", "NPU_OP_POOL", "NPU_OP_STOP")
    ]
    memory = regions()
    execute(files[0].read_bytes(), memory)
    assert (tmp_path / "out" / "region1.bin").read_bytes() == memory[1]
    assert any(memory[1][128:])
    files[0].write_bytes(files[0].read_bytes()[:-4])
    assert main([*map(str, files)]) == 1
    assert "payload: error: byte 28 of the payload: the command stream has" in capsys.readouterr().err

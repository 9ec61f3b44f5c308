# SPDX-License-Identifier: Apache-2.0
"""The execution of a payload."""

from collections.abc import Callable, Sequence

from npu_model import payload
from npu_model.commands import Command, Registers, commands
from npu_model.elementwise import elementwise
from npu_model.faults import Invalid, NpuError, Unsupported
from npu_model.layers import convolution, pool
from npu_model.memory import Memory, within
from npu_model.payload import Product

Observer = Callable[[Command, Registers, Memory], None]

_INTERNAL = 0x100
"""Bit of a DMA's region: the internal memory instead of a region."""
_STRIDES = 0x600
"""Bits of a DMA's region: more than one dimension."""


def execute(content: bytes, regions: Sequence[bytes | bytearray], observe: Observer | None = None) -> None:
    """Run a payload of the driver on regions of memory, which it changes in place.

    `regions[n]` is what the driver's base pointer n points at: of Vela's output the weights (0), the scratch (1) and
    the fast scratch (2). A region of bytes is read-only. `observe` is called after each operation with its command, the
    registers and the memory.

    Raises Invalid for a payload that no Ethos-U55 may be given, and Unsupported for one that the model cannot compute;
    both have the position of the command. Commands before it have been executed.
    """
    found = payload.read(bytes(content))
    memory, registers = Memory(regions, found.product), Registers()
    for command in commands(found.words, found.start):
        if not command.is_operation:
            registers[command.name] = command.value
            continue
        try:
            _operation(command, registers, memory, found.product)
        except NpuError as error:
            raise error.at(command.position, command.name) from None
        if observe is not None:
            observe(command, registers, memory)


def _operation(command: Command, registers: Registers, memory: Memory, product: Product) -> None:
    name = command.name
    if name in ("NPU_OP_CONV", "NPU_OP_DEPTHWISE"):
        convolution(registers, memory, product, name == "NPU_OP_DEPTHWISE")
    elif name == "NPU_OP_POOL":
        pool(registers, memory, command.parameter)
    elif name == "NPU_OP_ELEMENTWISE":
        elementwise(registers, memory, command.parameter)
    elif name == "NPU_OP_DMA_START":
        _copy(registers, memory)
    # The others order and report work, and the model does one thing after the other.


def _copy(registers: Registers, memory: Memory) -> None:
    length, (source, target) = registers["DMA0_LEN"], (registers[f"DMA0_{end}_REGION"] for end in ("SRC", "DST"))
    if (source | target) & _STRIDES:
        raise Unsupported("a DMA of two or three dimensions")
    if source & _INTERNAL:
        raise Invalid("a DMA reads the internal memory")
    if not length:
        raise Invalid("a DMA has no length")
    content = within(memory.region(source), registers["DMA0_SRC"], length, f"the DMA's source in region {source}")
    if target & _INTERNAL:
        place, use = memory.internal, "a DMA to the internal memory"
    else:
        place, use = memory.target(target, "the DMA's target"), f"the DMA's target in region {target}"
    within(place, registers["DMA0_DST"], length, use)[:] = content.copy()

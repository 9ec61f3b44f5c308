# SPDX-License-Identifier: Apache-2.0
"""The check of an Ethos-U's programs in its driver: portable C, called here on the host."""

import ctypes
import itertools
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from c_support import RUNTIME, run
from requirements_support import need_compiler

Fault = Callable[..., str | None]

NAME, MACS, ARCHITECTURE, NOTHING = 0x31504F43, 7, 0x10100000, 5
STOP, WAIT, BASE = 0xFFFF0000, 0x11, 0x4000
CONFIG = (1, MACS, ARCHITECTURE)
HEAD = (NAME, *CONFIG, NOTHING, NOTHING, NOTHING)
STREAM = (BASE, 0x1234, WAIT, BASE | 1, 0xFFFF0000, STOP)
SOUND = (*HEAD, len(STREAM) << 16 | 2, *STREAM)


class Npu(ctypes.Structure):
    """struct ethos_u_npu."""

    _fields_ = [
        *((name, ctypes.c_uint8) for name in ("product", "macs", "stream_version", "arch_major", "arch_minor")),
        ("custom_dma", ctypes.c_bool),
    ]


@pytest.fixture(scope="module")
def fault_of(tmp_path_factory: pytest.TempPathFactory) -> Fault:
    """Return a function that returns the fault in words or bytes, for an Ethos-U55 with 128 MACs unless given."""
    need_compiler("gcc", link=True)
    folder: Path = tmp_path_factory.mktemp("ethos_u")
    source = RUNTIME / "drivers" / "ethos_u" / "ethos_u_payload.c"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    run(["gcc", *flags, source, "-o", "payload.so"], folder)
    function = ctypes.CDLL(str(folder / "payload.so")).ethos_u_payload_fault
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(Npu)]

    def fault_of(*words: int, content: bytes | None = None, offset: int = 0, **changed: int) -> str | None:
        data = struct.pack(f"<{len(words)}I", *words) if content is None else content
        npu = Npu(**{"product": 0, "macs": MACS, "arch_major": 1, "arch_minor": 1, **changed})
        memory = ctypes.create_string_buffer(len(data) + 32)
        start = -ctypes.addressof(memory) % 16 + offset
        memory[start : start + len(data)] = data
        found = function(ctypes.addressof(memory) + start, len(data), ctypes.byref(npu))
        return None if found is None else found.decode()

    return fault_of


def test_sound_payloads(fault_of: Fault) -> None:
    assert fault_of(*SOUND) is None
    assert fault_of(*SOUND, NOTHING, NOTHING) is None
    assert fault_of(NAME, NOTHING, NOTHING, 1 << 16 | 2, STOP, *CONFIG) is None
    older = (NAME, 1, MACS, 0x10000000, *HEAD[4:], 1 << 16 | 2, STOP)
    assert fault_of(*older) is None
    assert fault_of(NAME, 1, MACS | 1 << 27, *SOUND[3:], custom_dma=1) is None
    # The vendor's driver does not compare the stream's version of an Ethos-U85.
    newest = (NAME, 1, 0x20000118, 0x20007000, *SOUND[4:])
    assert fault_of(*newest, product=2, macs=8, stream_version=0, arch_major=2, arch_minor=0) is None


def test_length_of_more_than_16_bits(fault_of: Fault) -> None:
    length = 0x10002
    head = (*HEAD, (length & 0xFFFF) << 16 | (length >> 16) << 8 | 2)
    assert fault_of(*head, *(WAIT,) * (length - 1), STOP) is None
    assert fault_of(*head, *(WAIT,) * (length - 2), STOP) == "it is truncated"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ((NAME + 1, *SOUND[1:]), "it is not a custom operator payload (COP1)"),
        ((), "it is not a custom operator payload (COP1)"),
        ((NAME,), "it does not have one command stream"),
        (HEAD, "it does not have one command stream"),
        ((*SOUND, NOTHING, *SOUND[7:]), "it does not have one command stream"),
        ((NAME, NOTHING, NOTHING, 1 << 16 | 2, STOP), "it has no configuration of the NPU"),
        ((*HEAD, 2), "its command stream is empty"),
        ((NAME, *CONFIG, 1 << 16 | 2, STOP), "its command stream is not aligned to 16 bytes"),
        ((NAME, 1, MACS), "it is truncated"),
        ((*HEAD, 0xFFFFFF02, STOP), "it is truncated"),
        ((NAME, 3, *SOUND[1:]), "it has an unknown action"),
        ((NAME, 1, MACS + 1, *SOUND[3:]), "it is for an NPU with another number of MACs"),
        ((NAME, 1, MACS | 1 << 28, *SOUND[3:]), "it is for another product"),
        ((NAME, 1, MACS | 1 << 4, *SOUND[3:]), "its command stream has another version than the NPU's"),
        ((NAME, 1, MACS | 1 << 27, *SOUND[3:]), "it is for an NPU with a custom DMA"),
        ((NAME, 1, MACS, 0x10200000, *SOUND[4:]), "it is for another version of the architecture"),
        ((NAME, 1, MACS, 0x20000000, *SOUND[4:]), "it is for another version of the architecture"),
        ((*HEAD, 2 << 16 | 2, WAIT, WAIT), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, WAIT, BASE), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, BASE, STOP), "its command stream does not stop"),
        ((*HEAD, 2 << 16 | 2, STOP, WAIT), "its command stream stops before its end"),
        ((*HEAD, 2 << 16 | 2, 0x8011, STOP), "its command stream has a damaged command"),
    ],
)
def test_faults(fault_of: Fault, words: tuple[int, ...], fault: str) -> None:
    assert fault_of(*words) == fault


def test_every_truncation_is_found(fault_of: Fault) -> None:
    content = struct.pack(f"<{len(SOUND)}I", *SOUND)
    assert fault_of(content=content) is None
    for size in range(len(content)):
        assert fault_of(content=content[:size]) is not None, size
    assert fault_of(content=content[:-1]) == "it is truncated: its size is not a multiple of 4 bytes"


def test_payload_at_another_address(fault_of: Fault) -> None:
    found = {offset: fault_of(*SOUND, offset=offset) for offset in range(16)}
    assert found.pop(0) is None
    assert set(found.values()) == {"its command stream is not aligned to 16 bytes"}


def test_only_data_of_commands_is_free(fault_of: Fault) -> None:
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

# SPDX-License-Identifier: Apache-2.0
"""Readers of what Vela writes: payloads of Ethos-U, .tflite files with subgraphs for the NPU, and raw .npz files."""

import shutil
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from ethos_u_payloads import CONFIG_U65_256, REGIONS, STOP, VALID, convolution, copy, feature_map, payload, words_of
from fuzz_mutators import mutate_bytes
from fuzz_readers import Read, Reader, plain
from opwest.base.diagnostics import OpwestError
from opwest.frontends.vela.request import Options
from opwest.imports.vela import import_vela
from opwest.objects.ethos_u.stream import examine


def _payload_seeds() -> Sequence[bytes]:
    elements = [one for one in convolution((2, 2, 8), (2, 2, 8), to=32)[:-1] if not one[0].startswith("WEIGHT")]
    elements += [*feature_map("IFM2", 0, 0, (1, 1, 8)), ("IFM2_BROADCAST", 3), ("ELEMENTWISE", 1)]
    second = [("PARALLEL_MODE", 1), ("WEIGHT1_BASE", 0), ("WEIGHT1_LENGTH", 32), ("SCALE1_BASE", 0)]
    second += [("SCALE1_LENGTH", 160), *convolution()]
    streams = ([*convolution(), *copy((0, 0), (1, 0), 32)], elements, convolution((4, 4, 16), (4, 4, 16), to=0))
    found = [payload([*words_of(one), STOP]) for one in streams]
    return [VALID, *found, payload([*words_of(second), STOP], CONFIG_U65_256)]


def mutate_payload(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a payload with changed words, mostly with a corrected length of the stream."""
    words = list(struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4]))
    if chance.random() < 0.2 or len(words) < 10:
        return mutate_bytes(content, chance, corpus)
    for _ in range(chance.randrange(1, 4)):
        is_command = len(words) > 8 and chance.random() < 0.9
        at = chance.randrange(8 if is_command else 0, len(words))
        kind = chance.randrange(5)
        if kind == 0:
            words[at] ^= 1 << chance.randrange(32)
        elif kind == 1:
            words[at] = chance.choice((0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFF0000, chance.getrandbits(32)))
        elif kind == 2:
            del words[at]
        elif kind == 3:
            words.insert(at, chance.choice(words))
        else:
            words[at] = words[at] & 0xFFFF | chance.getrandbits(16) << 16
    if chance.random() < 0.9 and len(words) > 8:
        length = len(words) - 8
        words[7] = 2 | (length >> 16) << 8 | (length & 0xFFFF) << 16
    return struct.pack(f"<{len(words)}I", *words)


def _start_payload(_: Path) -> Read:
    def read(content: bytes) -> str:
        found = examine(content, None, REGIONS)
        assert len(found.faults) <= 9 and all(one.message for one in found.faults)
        if not found.faults:
            assert found.npu is not None
            assert all(use.begin >= 0 and use.end <= REGIONS[use.region] for use in found.uses)
        words = [plain(one.message) for one in found.faults]
        return " ".join([found.npu.name if found.npu else "none", *found.operations, *sorted(set(words))])

    return read


def _tflite_seeds() -> Sequence[bytes]:
    from importers.vela_made import mixed, whole

    return [whole().build(), mixed().build()]


def _raw_seeds() -> Sequence[bytes]:
    from importers.vela_made import raw

    return [raw(), raw({"scratch_fast_size": 64, "scratch_fast_region": 2})]


def _start_import(name: str, folder: Path) -> Read:
    path = folder / name

    def read(content: bytes) -> str:
        path.write_bytes(content)
        try:
            done = import_vela(path, folder / "model", Options("m", "portable"))
        except OpwestError as error:  # its places name the file, which is in the working directory
            found = [one.message for one in error.diagnostics]
            assert found and all(found)
            return " ".join(map(plain, found))
        shutil.rmtree(done.folder)
        return f"{done.operators} {done.steps}"

    return read


READERS = (
    Reader("NPU payload", _payload_seeds, _start_payload, mutate_payload),
    Reader("vela tflite", _tflite_seeds, partial(_start_import, "m_vela.tflite"), needs="tflite"),
    Reader("vela raw", _raw_seeds, partial(_start_import, "m_vela.npz"), needs="tflite"),
)

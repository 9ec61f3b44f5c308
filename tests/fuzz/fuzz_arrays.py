# SPDX-License-Identifier: Apache-2.0
"""Readers of NumPy's files: constants, test vectors, and the files of `opwest run --input`."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
from fuzz_mutators import mutate_bytes, text_mutator
from fuzz_readers import Read, Reader, said
from opwest.base.diagnostics import Diagnostics
from opwest.cli.run import sources_of
from opwest.manifest.arrays import ArrayError, array_names, read_array
from opwest.runs.arrays import read_runs


def _npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def _npy_seeds() -> Sequence[bytes]:
    x = np.arange(6, dtype="<i2").reshape(2, 3)
    found = [_npy(x), _npy(x.astype(">f4"), (2, 0)), _npy(np.asfortranarray(x.astype("u1")), (3, 0))]
    return [*found, _npy(np.array([True, False])), _npy(np.zeros((0, 4))), _npy(np.array("text"))]


def _npz_seeds() -> Sequence[bytes]:
    found = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, x=np.arange(6, dtype=np.int16), y=np.ones((2, 2), np.float32))
        found.append(file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("x.npy", _npy(np.arange(4)))
        made.writestr("note.txt", "no array")
    return [*found, file.getvalue()]


_HEADER = text_mutator(
    "'descr' '<i2' '>f8' '|O' '|b1' 'fortran_order' True False 'shape' ( ) (,) (2,3) -1 0 99999999999999999999 "
    "1L { } [ ] [('a','<i2')] None 'M8[ns]' 'V8' '<U99999999' (2**9) __import__ ((((((((((".split(),
    pattern=r"[\w<>|]+|\S",
)


def mutate_npy(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a .npy file with a changed header (a Python literal), mostly with a corrected length."""
    end = content.find(b"\n") + 1
    if chance.random() < 0.4 or content[6:7] not in (b"\1", b"\2", b"\3") or not end:
        return mutate_bytes(content, chance, corpus)
    size = 2 if content[6] == 1 else 4
    start = 8 + size
    header = _HEADER(content[start:end].rstrip(), chance, [one[start:128] for one in corpus]) + b"\n"
    return content[:8] + (len(header) & 0xFFFF).to_bytes(size, "little") + header + content[end:]


def _start_constants(folder: Path) -> Read:
    path = folder / "x.npz"
    tensor = {"name": "x", "dtype": "int16", "shape": [2, 3], "role": "input"}

    def array(*, key_given: bool) -> str:
        found = read_array(path, "x", key_given=key_given)
        return f"{found.dtype} {len(found.shape or ())}"

    def read(content: bytes) -> str:
        path.write_bytes(content)
        found = []
        for use in (lambda: array(key_given=False), lambda: array(key_given=True), lambda: len(array_names(path))):
            try:
                found.append(f"{use()}")
            except ArrayError as fault:
                found.append(said(fault))
        faults = Diagnostics()
        read_runs(sources_of([f"x={path}"], "input", faults), [], 1, [tensor], faults)
        return " ".join([*found, *(d.message[:12] for d in faults)])

    return read


READERS = (Reader("npy", _npy_seeds, _start_constants, mutate_npy), Reader("npz", _npz_seeds, _start_constants))

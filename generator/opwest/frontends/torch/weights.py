# SPDX-License-Identifier: Apache-2.0
"""The tensors of an archive: raw bytes of a storage, with dtype, sizes, strides and offset.

Source: torch/_export/serde/schema.py (PayloadConfig, TensorMeta), torch/export/pt2_archive/_package_weights.py.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import MAX_ELEMENTS, Damaged, Unsupported
from opwest.frontends.torch.archive import Archive
from opwest.frontends.torch.typed import field_of, kind_of, whole

DTYPES: Mapping[int, str] = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
"""The names by ScalarType; those that numpy has are the names of numpy."""
_STRIDED = 7
_MAX_RANK = 8
_PARTS = (("data/weights/", "weights"), ("data/constants/", "constants"))


def dtype_of(code: Any, where: str) -> str:
    """Return the name of a dtype. Raises Damaged."""
    name = DTYPES.get(code) if isinstance(code, int) and not isinstance(code, bool) else None
    if name is None:
        raise Damaged(f"{where} has the unknown dtype {code!r}")
    return name


class Payloads:
    """The tensors by the name of the parameter, buffer or constant, read when they are used."""

    def __init__(self, archive: Archive, model: str) -> None:
        self._archive = archive
        self._entries: dict[str, tuple[str, dict[str, Any]]] = {}
        self._storages: dict[str, bytes] = {}
        self._uses = collections.Counter[str]()
        """The number of tensors of a storage."""
        for folder, kind in _PARTS:
            member = f"{folder}{model}_{kind}_config.json"
            if member not in archive:
                continue
            config = kind_of(archive.json(member).get("config"), dict, f"'config' of {member}")
            for name, entry in config.items():
                self._entries[name] = (folder, kind_of(entry, dict, f"the tensor '{name}'"))
                self._uses[f"{folder}{entry.get('path_name')}"] += 1
                if entry.get("use_pickle"):
                    raise _pickled(f"the tensor '{name}'")

    def tensor(self, name: str) -> Any:
        """Return the array of a tensor. Raises Damaged, Unsupported."""
        if name not in self._entries:
            raise Damaged(f"the archive has no tensor '{name}'")
        folder, entry = self._entries[name]
        where = f"the tensor '{name}'"
        path = f"{folder}{field_of(entry, 'path_name', str, where)}"
        meta = field_of(entry, "tensor_meta", dict, where)
        storage = self._storages.get(path)
        if storage is None:
            storage = self._archive.read(path)
        if self._uses[path] > 1:  # tensors that share a storage
            self._storages[path] = storage
        return array_of(storage, meta, where)


def _pickled(where: str) -> Unsupported:
    hint = "export a model with plain tensors: no tensor subclasses and no custom objects"
    return Unsupported(f"{where} is a pickle ('use_pickle': true), which is never opened", "raw bytes", hint)


def array_of(storage: bytes, meta: Mapping[str, Any], where: str) -> Any:
    """Return the array of a tensor in a storage. Raises Damaged, Unsupported."""
    dtype = dtype_of(meta.get("dtype"), where)
    sizes = [_dimension(size, where) for size in field_of(meta, "sizes", list, where)]
    strides = [_dimension(stride, where) for stride in field_of(meta, "strides", list, where)]
    offset = _dimension(meta.get("storage_offset", {"as_int": 0}), where)
    if meta.get("layout", _STRIDED) != _STRIDED:
        raise Unsupported(
            f"{where} has the layout {meta['layout']}", "a dense tensor", "call .to_dense() before export"
        )
    return strided(storage, dtype, sizes, strides, offset, where)


def strided(storage: bytes, dtype: str, sizes: Sequence[int], strides: Sequence[int], offset: int, where: str) -> Any:
    """Return a copy of the elements of a storage. Raises Damaged, Unsupported."""
    if len(sizes) > _MAX_RANK or len(sizes) != len(strides) or prod(sizes) > MAX_ELEMENTS:
        raise Damaged(f"{where} has the impossible shape {list(sizes)[:8]}")
    try:
        kind: Any = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    except TypeError:
        raise Unsupported(f"{where} is {dtype}", "float32 or integers", "convert the model with .float()") from None
    if 0 in sizes:
        return np.zeros(sizes, kind)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if (last + 1) * kind.itemsize > len(storage):
        raise Damaged(f"{where} has {len(storage)} bytes, fewer than its shape {list(sizes)}")
    flat = np.frombuffer(storage, kind, last + 1)
    steps = [stride * kind.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(flat[offset:], sizes, steps, writeable=False)
    array = np.array(view, order="C")
    if dtype == "bool":
        return array.view(np.uint8) != 0
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _dimension(value: Any, where: str) -> int:
    """Return a constant of the union SymInt."""
    if isinstance(value, dict) and "as_int" in value:
        number = whole(value["as_int"], where)
        if 0 <= number < 1 << 40:
            return number
    raise Damaged(f"{where} has a size, a stride or an offset that is no constant")

# SPDX-License-Identifier: Apache-2.0
"""The tensors of a file of torch.save, which PyTorch 2.6 to 2.8 put into archives of exported programs.

Its description of tensors is a pickle. It is read by the interpreter below, which imports nothing, calls nothing and
has no opcode besides those that torch.save writes for a dictionary of tensors: a name of a module is only a text.
Source: the opcodes in CPython's Lib/pickletools.py; torch/serialization.py, torch/_utils.py (_rebuild_tensor_v2).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Damaged, Unsupported
from opwest.frontends.torch.archive import RESAVE, Archive
from opwest.frontends.torch.weights import strided

_MAX_OBJECTS = 1 << 20
_DTYPES: Mapping[str, str] = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


@dataclass(frozen=True)
class _Name:
    """A name of a module, never imported."""

    text: str


@dataclass(frozen=True)
class _Storage:
    """A storage of the file."""

    key: str
    dtype: str


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the file."""

    storage: _Storage
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class SavedTensors:
    """The tensors of files of torch.save, by name. Errors of each method: Damaged, Unsupported."""

    def __init__(self, contents: list[bytes]) -> None:
        self._tensors: dict[str, tuple[Archive, _Tensor]] = {}
        for content in contents:
            if not content:
                continue
            archive = Archive(content)
            if "byteorder" in archive and archive.read("byteorder", 64) != b"little":
                raise Unsupported("tensors of a big-endian machine", "byteorder little", RESAVE)
            for name, value in _Pickle(archive.read("data.pkl")).read().items():
                if not isinstance(value, _Tensor):
                    raise Unsupported(f"'{name}' is no plain tensor", "a model of plain tensors", RESAVE)
                self._tensors[str(name)] = (archive, value)
        self._storages: dict[tuple[int, str], bytes] = {}

    def tensor(self, name: str) -> Any:
        """Return the array of a tensor."""
        if name not in self._tensors:
            raise Damaged(f"the archive has no tensor '{name}'")
        archive, tensor = self._tensors[name]
        place = (id(archive), tensor.storage.key)
        if place not in self._storages:
            self._storages[place] = archive.read(f"data/{tensor.storage.key}")
        where = f"the tensor '{name}'"
        return strided(self._storages[place], tensor.storage.dtype, tensor.sizes, tensor.strides, tensor.offset, where)


class _Pickle:
    """A stack machine for the pickle of a dictionary of tensors."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._codes: Mapping[int, Callable[[], None]] = {
            0x80: lambda: self._skip(1),  # PROTO
            0x95: lambda: self._skip(8),  # FRAME
            ord("}"): lambda: self._push({}),
            ord(")"): lambda: self._push(()),
            ord("N"): lambda: self._push(None),
            0x88: lambda: self._push(True),
            0x89: lambda: self._push(False),
            ord("("): lambda: self._marks.append(len(self._stack)),
            ord("q"): lambda: self._put(self._number("<B")),
            ord("r"): lambda: self._put(self._number("<I")),
            0x94: lambda: self._put(len(self._memo)),  # MEMOIZE
            ord("h"): lambda: self._get(self._number("<B")),
            ord("j"): lambda: self._get(self._number("<I")),
            ord("K"): lambda: self._push(self._number("<B")),
            ord("M"): lambda: self._push(self._number("<H")),
            ord("J"): lambda: self._push(self._number("<i")),
            0x8A: lambda: self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True)),  # LONG1
            ord("X"): lambda: self._push(self._text(self._number("<I"))),
            0x8C: lambda: self._push(self._text(self._number("<B"))),  # SHORT_BINUNICODE
            ord("c"): self._global,
            0x93: self._stack_global,
            ord("t"): lambda: self._push(tuple(self._marked())),
            0x85: lambda: self._tuple(1),
            0x86: lambda: self._tuple(2),
            0x87: lambda: self._tuple(3),
            ord("Q"): self._storage,  # BINPERSID
            ord("R"): self._reduce,
            ord("s"): lambda: self._set([self._pop() for _ in range(2)][::-1]),
            ord("u"): lambda: self._set(self._marked()),
            ord("b"): self._build,
        }

    def read(self) -> dict[str, Any]:
        """Return the dictionary."""
        while True:
            if len(self._stack) + len(self._memo) > _MAX_OBJECTS:
                raise Damaged("a pickle of too many objects")
            code = self._number("<B")
            if code == ord("."):
                made = self._pop()
                if not isinstance(made, dict):
                    raise Damaged("a pickle that is no dictionary of tensors")
                return made
            step = self._codes.get(code)
            if step is None:
                reason = f"the tensors have a pickle with the opcode {code:#04x}, which is not read"
                raise Unsupported(reason, "a dictionary of plain tensors", RESAVE)
            step()

    def _take(self, count: int) -> bytes:
        data = self._data[self._place : self._place + count]
        if len(data) != count:
            raise Damaged("a pickle that ends too early")
        self._place += count
        return data

    def _skip(self, count: int) -> None:
        self._take(count)

    def _number(self, form: str) -> int:
        [number] = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(number)

    def _text(self, count: int) -> str:
        return self._take(count).decode("utf-8", "replace")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            raise Damaged("a pickle without a value")
        return self._stack.pop()

    def _marked(self) -> list[Any]:
        if not self._marks or self._marks[-1] > len(self._stack):
            raise Damaged("a pickle without a mark")
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _tuple(self, count: int) -> None:
        self._push(tuple([self._pop() for _ in range(count)][::-1]))

    def _put(self, place: int) -> None:
        value = self._pop()
        self._memo[place] = value
        self._push(value)

    def _get(self, place: int) -> None:
        if place not in self._memo:
            raise Damaged("a pickle without a memo")
        self._push(self._memo[place])

    def _global(self) -> None:
        end = self._data.find(b"\n", self._place)
        last = self._data.find(b"\n", end + 1)
        if end < 0 or last < 0:
            raise Damaged("a pickle that ends too early")
        module, name = self._text(end - self._place), self._data[end + 1 : last].decode("utf-8", "replace")
        self._place = last + 1
        self._push(_Name(f"{module}.{name}"))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        self._push(_Name(f"{module}.{name}"))

    def _storage(self) -> None:
        given = self._pop()
        if not isinstance(given, tuple) or len(given) < 3 or given[0] != "storage" or not isinstance(given[1], _Name):
            raise Damaged("a pickle with another object than a storage")
        kind = given[1].text.rpartition(".")[2]
        if kind not in _DTYPES:
            raise Unsupported(f"a tensor of {given[1].text}", ", ".join(_DTYPES.values()), RESAVE)
        self._push(_Storage(str(given[2]), _DTYPES[kind]))

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        name = function.text if isinstance(function, _Name) else ""
        if not isinstance(arguments, tuple):
            raise Damaged("a pickle with a call without arguments")
        if name == "collections.OrderedDict" and not arguments:
            self._push({})
        elif name == "torch._utils._rebuild_parameter" and arguments and isinstance(arguments[0], _Tensor):
            self._push(arguments[0])
        elif name == "torch._utils._rebuild_tensor_v2" and len(arguments) >= 4:
            self._push(_tensor_of(*arguments[:4]))
        else:
            reason = f"the tensors have a pickle with a call of '{name[:60]}', which is not executed"
            raise Unsupported(reason, "a dictionary of plain tensors", RESAVE)

    def _set(self, values: list[Any]) -> None:
        target = self._stack[-1] if self._stack else None
        if not isinstance(target, dict) or len(values) % 2:
            raise Damaged("a pickle with a value without a dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str):
                raise Damaged("a pickle with a key that is no text")
            target[key] = value

    def _build(self) -> None:
        """Drop the attributes of a dictionary: the versions of modules."""
        self._pop()
        if not self._stack or not isinstance(self._stack[-1], dict):
            raise Damaged("a pickle with attributes of another object than a dictionary")


def _tensor_of(storage: Any, offset: Any, sizes: Any, strides: Any) -> _Tensor:
    numbers = [sizes, strides]
    if not isinstance(storage, _Storage) or not all(isinstance(some, tuple) for some in numbers):
        raise Damaged("a pickle with a tensor without a storage")
    if not all(type(n) is int and 0 <= n < 1 << 40 for n in (offset, *sizes, *strides)):
        raise Damaged("a pickle with a tensor of an impossible shape")
    return _Tensor(storage, offset, sizes, strides)

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lists of words
"""Readers of archives in Model Library Format, and of the texts and parameters in them."""

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import mlf_made as made
import numpy as np
from fuzz_mutators import LONGEST, mutate_bytes, text_mutator
from fuzz_readers import Read, Reader, messages, plain
from mlf_mutations import VARIANTS, content_of, examine, mutated
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import c_text, convert, wrapper
from opwest.frontends.mlf.code import corrected
from opwest.frontends.mlf.metadata import read_params
from opwest.frontends.mlf.ports import read_relay

_TOKENS = re.compile(rb"\w+|[^\w\s]|\s+")
_CHECKED = 8
"""One of this number of imports is checked as a project: other readers cover `check`."""


def mutate_library(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a valid tar with one mutation, or one of the corpus with one more mutation."""
    for _ in range(10):
        found = _mutate_once(content, chance, corpus)
        if len(found) <= LONGEST:
            return found
    return found[:LONGEST]


def _mutate_once(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    if chance.random() < 0.5:
        found: bytes = mutated(chance)
        return found
    if chance.random() < 0.2:
        return mutate_bytes(content, chance, corpus)
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = {one.name.removeprefix("./"): archive.extractfile(one) for one in archive if one.isreg()}
            whole = {name: file.read() for name, file in files.items() if file is not None}
        name = chance.choice(sorted(whole))
        whole[name] = content_of(name, whole[name], chance)
        rebuilt: bytes = made.tar_of(whole)
    except (tarfile.TarError, LookupError, ValueError, RecursionError, OSError, OverflowError):  # damaged before
        return mutate_bytes(content, chance, corpus)
    return rebuilt


def _start_library(folder: Path) -> Read:
    def read(content: bytes) -> str:
        whole = hashlib.sha256(content).digest()[0] % _CHECKED == 0
        return plain(examine(content, folder / "one", whole=whole))

    return read


def _texts() -> Sequence[bytes]:
    """Return the sources, headers and Relay texts of all variants."""
    found: dict[bytes, None] = {}
    for variant in VARIANTS:
        files = variant()
        found |= dict.fromkeys(files[name] for name in sorted(files) if name.endswith((".c", ".h", ".relay")))
    return list(found)


_WORDS = (
    "static const struct void int32_t uint8_t float signed int double tvmgen_default_run tvmgen_default___tvm_main__ inputs "
    "outputs workspace_pools constant_pools { } ( ) [ ] , ; = . * & -> #define __attribute__((aligned(16))) aligned(3) 0 1 -1 "
    "4096 99999999999999999999 0x7f 1e400 nan inf 0x1p3f def @main Tensor[(1, 4), float32] /* */ // \" ' \\ TVMValue args "
    "codes return switch (!status) ((int64_t)1 << 70) kTvmErrorNoError __SMLAD arm_convolve_s8 #include <x.h> ٣ \0"
).split(" ")


_change = text_mutator(_WORDS, pattern=r"\w+|[^\w\s]")
_RUNS = (*r'a 0x 9 * ( { } / /* " \ a, x. [1] // a('.split(), " ", "\t", "\n", "* ", "\\\n", "a ", "int ", "{}\n")


def mutate_texts(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a text with other words, or with many repetitions: searches must not take quadratic time."""
    if chance.random() < 0.9:
        return _change(content, chance, corpus)
    places = list(_TOKENS.finditer(content)) or [None]
    place = chance.choice(places)
    at = place.end() if place is not None else 0
    run = chance.choice(_RUNS).encode()
    return (content[:at] + run * (chance.choice((300, 3_000, 30_000)) // len(run)) + content[at:])[:LONGEST]


def _start_texts(folder: Path) -> Read:
    """Read a text as each of the possible formats."""
    os.chdir(folder)

    def read(content: bytes) -> str:
        text = content.decode("utf-8", "replace")
        found = []
        relay = read_relay(content)
        header = wrapper.read_header(text)
        found.append(f"{len(relay.parameters)} {relay.results is None} {len(header.inputs)} {len(header.sizes)}")
        functions = c_text.functions(text)
        for one in functions.values():
            assert 0 <= one.start < one.end <= len(text)
            if c_text.is_packed(one):
                found.append(str(len(c_text.packed_entries(one))))
            calls = list(c_text.packed_calls(one, dict.fromkeys(functions, 3)))
            found.append(str(min(len(calls), 4)))
        given = wrapper.read_wrapper(text, "default")
        found.append(str(given and [one.role for one in given.given]))
        try:
            pools = wrapper.read_pools(text, "x.c")
            for array in c_text.arrays(text):
                if array.start >= 0 and array.count < 1 << 20:
                    size = np.dtype(array.dtype).itemsize * array.count
                    assert len(c_text.values(text, array.start, array.dtype, array.count, "x.c")) == size
            found.append(str(len(pools)))
        except OpwestError as fault:
            found.append(messages(fault.diagnostics))
        needs = convert.needs_of([text], functions)
        _, remarks = corrected("x.c", text, list(functions)[:1], "", [])
        found.append(f"{len(c_text.foreign_calls(text)) > 2} {len(needs.cmsis_nn)} {len(remarks)}")
        return " ".join(found)

    return read


def _params_seeds() -> Sequence[bytes]:
    arrays = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([1, -2], np.int8),
        "s": np.array(3, np.int64),
    }
    return [made.params(arrays), made.params({}), made.params({"p0": made.W1, "p1": made.B1})]


def _start_params(folder: Path) -> Read:
    os.chdir(folder)

    def read(content: bytes) -> str:
        found = read_params(content, "x.params")
        assert sum(one.values.nbytes for one in found.values()) <= len(content)
        return str([str(one.dtype) for one in found.values()][:4])

    return read


READERS = (
    Reader("mlf", lambda: [made.tar_of(variant()) for variant in VARIANTS], _start_library, mutate_library),
    Reader("mlf texts", _texts, _start_texts, mutate_texts),
    Reader("mlf parameters", _params_seeds, _start_params, refuses=(OpwestError,)),
)

# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN as Zephyr's module: Kconfig symbols, and the part of a manifest that enables it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from opwest.base.diagnostics import fail
from opwest.objects.c_source import read_c_source
from opwest.objects.facts import CSource, ObjectError
from opwest.zephyr.workspace import find_workspace

PROVIDER = "CMSIS-NN, Zephyr's module modules/lib/cmsis-nn"
KCONFIG = {"CONFIG_CMSIS_NN": "y", "CONFIG_CMSIS_NN_NNSUPPORT": "y"}
"""Options that every function needs."""

_PREFIXES = {
    "CONVOLUTION": ("arm_convolve", "arm_depthwise", "arm_transpose_conv"),
    "TRANSPOSE": ("arm_transpose",),
    "FULLYCONNECTED": ("arm_fully_connected", "arm_vector_sum", "arm_batch_matmul"),
    "BASICMATH": ("arm_elementwise", "arm_maximum", "arm_minimum"),
    "SOFTMAX": ("arm_softmax",),
    "POOLING": ("arm_avgpool", "arm_max_pool"),
    "ACTIVATION": ("arm_relu", "arm_nn_activation"),
    "CONCATENATION": ("arm_concatenation",),
    "RESHAPE": ("arm_reshape",),
    "SVD": ("arm_svdf",),
    "LSTM": ("arm_lstm",),
    "PAD": ("arm_pad",),
    "NNSUPPORT": ("arm_nn",),
}
"""By option CONFIG_CMSIS_NN_<name> of Zephyr's modules/cmsis-nn: the beginnings of the functions that it enables.

The first match counts.
"""


def cmsis_nn_option(function: str) -> str | None:
    """Return the Kconfig symbol that enables a function; None: it is not one of CMSIS-NN."""
    return next((f"CONFIG_CMSIS_NN_{name}" for name, starts in _PREFIXES.items() if function.startswith(starts)), None)


def externals_of(functions: Iterable[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return functions of CMSIS-NN as external symbols with all options that enable them."""
    own = {name: cmsis_nn_option(name) for name in functions}
    return {name: (PROVIDER, tuple(dict.fromkeys([*KCONFIG, option or ""]))) for name, option in own.items()}


VARIABLE = "CMSIS_NN"
"""The environment variable with the directory."""
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"][\w./]*arm_nn\w*\.h[>\"]", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_EXPECTED = "a directory with Include/arm_nnfunctions.h and Source/"


def uses_cmsis_nn(sources: Iterable[Path]) -> bool:
    """Whether sources of operators include CMSIS-NN."""
    return any(_INCLUDE.search(path.read_bytes()) for path in sources)


def find_cmsis_nn(given: Path | None, model: str, project: Path) -> Path:
    """Return the directory of CMSIS-NN: `given`, $CMSIS_NN, or the module of the Zephyr workspace.

    Raises OpwestError, with the ways to specify it, if there is none.
    """
    named = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None:
        return checked_cmsis_nn(named, "--cmsis-nn" if given else f"${VARIABLE}")
    workspace = find_workspace()
    module = workspace.top / "modules" / "lib" / "cmsis-nn" if workspace is not None else None
    if module is not None and _is_cmsis_nn(module):
        return module
    raise fail(
        f"the operators of model '{model}' call CMSIS-NN, which is not part of the application",
        project,
        expected=f"--cmsis-nn DIR or ${VARIABLE}: {_EXPECTED}",
        hint="in a Zephyr workspace it is modules/lib/cmsis-nn (west update cmsis-nn); set ZEPHYR_BASE to use it",
    )


def checked_cmsis_nn(named: Path, where: str = "--cmsis-nn") -> Path:
    """Return a directory that the user names in an option or a variable. Raises OpwestError if it is not CMSIS-NN."""
    if not _is_cmsis_nn(named):
        raise fail(f"{where}: '{named}' is not CMSIS-NN", expected=_EXPECTED)
    return named


def required_sources(root: Path, users: Iterable[Path]) -> list[Path]:
    """Return the sources of CMSIS-NN that define what `users` call, directly or through other sources.

    A word that a source contains counts as a use, so that no preprocessor is needed.
    """
    contents = {path: path.read_bytes() for path in sorted((root / "Source").rglob("*.c"))}
    owners: dict[bytes, Path] = {}
    for path, content in contents.items():
        source = _read(path, content)
        for name in (*(f.name for f in source.c_functions), *source.globals):
            owners.setdefault(name.encode(), path)
    # Inline functions of the headers can call others.
    headers = [_read(path, path.read_bytes()) for path in sorted((root / "Include").rglob("*.h"))]
    inline = {name.encode() for header in headers for name in header.calls}
    required: dict[Path, None] = {}
    waiting = [inline, *(set(_WORD.findall(path.read_bytes())) for path in users)]
    while waiting:
        for name in sorted(waiting.pop() & owners.keys()):
            path = owners[name]
            if path not in required:
                required[path] = None
                waiting.append(set(_WORD.findall(contents[path])))
    return list(required)


def _read(path: Path, content: bytes) -> CSource:
    try:
        return read_c_source(path, content)
    except ObjectError as fault:
        raise fail(fault.message, path, expected=fault.expected) from fault


def _is_cmsis_nn(folder: Path) -> bool:
    return (folder / "Include" / "arm_nnfunctions.h").is_file() and (folder / "Source").is_dir()

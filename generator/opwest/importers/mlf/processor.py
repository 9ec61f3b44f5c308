# SPDX-License-Identifier: Apache-2.0
"""Dependencies of C operators: an Arm instruction set, and the libraries that they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from opwest.records import dataclass

Extension = Literal["none", "DSP", "MVE"]

_CPU = re.compile(r"-mcpu=([\w.+-]+)")
_ATTRIBUTES = re.compile(r"-mattr=(\S+)")
_DSP = frozenset("cortex-m4 cortex-m7 cortex-m33 cortex-m35p".split())
_MVE = frozenset("cortex-m52 cortex-m55 cortex-m85".split())
_INTRINSIC = re.compile(
    r"\b(__?(?:arm_)?(?:smlad|smlald|smuad|smlabb|smlatt|sxtb16|sxtab16|uxtb16|ssub16|sadd16|pkhbt|pkhtb|qadd16|usat16)"
    r"|__(?:SMLAD|SMLALD|SMUAD|SXTB16|SXTAB16|UXTB16|SSUB16|SADD16|PKHBT|PKHTB|QADD16|SSAT16))\s*\("
)
_ARM_CALL = re.compile(r"\b(arm_\w+)\s*\(")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_KNOWN_HEADERS = frozenset(
    """stdint.h stdio.h stdlib.h string.h math.h stdbool.h stddef.h inttypes.h assert.h limits.h float.h errno.h
    arm_acle.h""".split()
)
_TVM_HEADERS = re.compile(r"(tvm|dlpack|dmlc)/|tvmgen_\w+\.h\Z")
_CMSIS_NN_HEADERS = re.compile(r"arm_nn\w*\.h\Z")

# Kconfig symbols of Zephyr's modules/cmsis-nn, by the prefixes of the functions that they enable.
_CMSIS_NN = (
    ("arm_convolve", "CONFIG_CMSIS_NN_CONVOLUTION"),
    ("arm_depthwise", "CONFIG_CMSIS_NN_CONVOLUTION"),
    ("arm_transpose_conv", "CONFIG_CMSIS_NN_CONVOLUTION"),
    ("arm_transpose", "CONFIG_CMSIS_NN_TRANSPOSE"),
    ("arm_fully_connected", "CONFIG_CMSIS_NN_FULLYCONNECTED"),
    ("arm_vector_sum", "CONFIG_CMSIS_NN_FULLYCONNECTED"),
    ("arm_batch_matmul", "CONFIG_CMSIS_NN_FULLYCONNECTED"),
    ("arm_elementwise", "CONFIG_CMSIS_NN_BASICMATH"),
    ("arm_maximum", "CONFIG_CMSIS_NN_BASICMATH"),
    ("arm_minimum", "CONFIG_CMSIS_NN_BASICMATH"),
    ("arm_softmax", "CONFIG_CMSIS_NN_SOFTMAX"),
    ("arm_avgpool", "CONFIG_CMSIS_NN_POOLING"),
    ("arm_max_pool", "CONFIG_CMSIS_NN_POOLING"),
    ("arm_relu", "CONFIG_CMSIS_NN_ACTIVATION"),
    ("arm_nn_activation", "CONFIG_CMSIS_NN_ACTIVATION"),
    ("arm_concatenation", "CONFIG_CMSIS_NN_CONCATENATION"),
    ("arm_reshape", "CONFIG_CMSIS_NN_RESHAPE"),
    ("arm_svdf", "CONFIG_CMSIS_NN_SVD"),
    ("arm_lstm", "CONFIG_CMSIS_NN_LSTM"),
    ("arm_pad", "CONFIG_CMSIS_NN_PAD"),
    ("arm_nn", "CONFIG_CMSIS_NN_NNSUPPORT"),
)


@dataclass(frozen=True)
class Needs:
    """The dependencies of the sources besides the C library."""

    cmsis_nn: Mapping[str, str]
    """Functions of CMSIS-NN with the Kconfig symbol that enables each."""
    cmsis_nn_headers: bool
    intrinsics: tuple[str, ...]
    """The DSP intrinsics in use."""
    headers: tuple[str, ...]
    """Headers that are not part of C, TVM or CMSIS-NN."""


def needs_of(texts: Iterable[str], defined: Iterable[str]) -> Needs:
    """Return the dependencies of C sources; `defined` are the functions that they define."""
    own = set(defined)
    calls: dict[str, str] = {}
    headers: dict[str, None] = {}
    intrinsics: dict[str, None] = {}
    cmsis_headers = False
    for text in texts:
        for name in dict.fromkeys(_ARM_CALL.findall(text)):
            option = next((o for start, o in _CMSIS_NN if name.startswith(start)), None)
            if option is not None and name not in own and not _INTRINSIC.match(f"__{name}("):
                calls[name] = option
        intrinsics |= dict.fromkeys(name for name in _INTRINSIC.findall(text) if name not in own)
        for header in _INCLUDE.findall(text):
            if _CMSIS_NN_HEADERS.search(header):
                cmsis_headers = True
            elif header not in _KNOWN_HEADERS and not _TVM_HEADERS.match(header):
                headers[header] = None
    return Needs(calls, cmsis_headers, tuple(intrinsics), tuple(headers))


def extension_of(targets: Iterable[str]) -> tuple[Extension, str] | None:
    """Return the instruction set of TVM's target, and the processor's name; None if no target specifies one.

    The rules are those of TVM's CMSIS-NN code generator: `-mcpu`, and `+nomve`, `+nodsp` there or in `-mattr`.
    """
    texts = list(targets)
    # The target of the CMSIS-NN functions takes precedence over the host's.
    for text in sorted(texts, key=lambda t: "cmsis-nn" not in t):
        found = _CPU.search(text)
        if found is None:
            continue
        attributes = _ATTRIBUTES.search(text)
        flags = found[1] + (attributes[1] if attributes else "")
        cpu = found[1].split("+")[0].lower()
        if cpu in _MVE and "+nomve" not in flags:
            return "MVE", cpu
        if cpu in _DSP | _MVE and "+nodsp" not in flags:
            return "DSP", cpu
        return "none", cpu
    return None


def guard(extension: Extension, cpu: str, reason: str) -> str:
    """Return preprocessor lines that reject processors with another instruction set."""
    condition = {
        "none": "!defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)",
        "DSP": "defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)",
        "MVE": "defined(__ARM_FEATURE_MVE)",
    }[extension]
    words = {
        "none": "an Arm Cortex-M without DSP extension and without MVE",
        "DSP": "an Arm Cortex-M with the DSP extension and without MVE",
        "MVE": "an Arm Cortex-M with MVE (Helium)",
    }[extension]
    # On other machines CMSIS-NN is plain C, whose buffers are not larger than those for DSP; for MVE they can be.
    only = "" if extension == "MVE" else "defined(__arm__) && "
    return (
        f'#if {only}!({condition})\n#error "generated by TVM for {cpu}: requires {words}, because {reason}"\n#endif\n'
    )


def dsp_guard(intrinsic: str) -> str:
    """Return preprocessor lines that reject processors without the DSP extension."""
    words = f"{intrinsic} requires an Arm Cortex-M with the DSP extension (Cortex-M4, M7, M33, M55)"
    # Older CMSIS-NN headers included the CMSIS header that declares these names.
    core = "#else\n#include <cmsis_compiler.h>\n" if intrinsic[2:3].isupper() else ""
    return f'#if !defined(__ARM_FEATURE_DSP)\n#error "{words}"\n{core}#endif\n'

# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN as Zephyr's module: Kconfig symbols, and the part of a manifest that enables it."""

from __future__ import annotations

from collections.abc import Iterable

PROVIDER = "CMSIS-NN, Zephyr's module modules/lib/cmsis-nn"
KCONFIG = {"CONFIG_CMSIS_NN": "y", "CONFIG_CMSIS_NN_NNSUPPORT": "y"}
"""Options that every function needs."""

# Kconfig symbols of Zephyr's modules/cmsis-nn, by the prefixes of the functions that they enable.
_OPTIONS = (
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


def cmsis_nn_option(function: str) -> str | None:
    """Return the Kconfig symbol that enables a function; None: it is not one of CMSIS-NN."""
    return next((option for start, option in _OPTIONS if function.startswith(start)), None)


def externals_of(functions: Iterable[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return functions of CMSIS-NN as external symbols with all options that enable them."""
    own = {name: cmsis_nn_option(name) for name in functions}
    return {name: (PROVIDER, tuple(dict.fromkeys([*KCONFIG, option or ""]))) for name, option in own.items()}

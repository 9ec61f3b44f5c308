# SPDX-License-Identifier: Apache-2.0
"""The quantisers of PT2E: those of ExecuTorch for XNNPACK and Cortex-M, and those of torchao."""

import torchao.quantization.pt2e.quantizer.arm_inductor_quantizer as arm
import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as x86
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config


def _xnnpack(per_channel):
    quantiser = XNNPACKQuantizer()
    return quantiser.set_global(get_symmetric_quantization_config(is_per_channel=per_channel))


def _cortex_m():
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer

    return CortexMQuantizer()


QUANTISERS = {
    "xnnpack-channel": lambda: _xnnpack(True),
    "xnnpack-tensor": lambda: _xnnpack(False),
    "x86": lambda: x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config()),
    "arm": lambda: arm.ArmInductorQuantizer().set_global(arm.get_default_arm_inductor_quantization_config()),
    "cortex-m": _cortex_m,
}

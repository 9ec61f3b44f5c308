# SPDX-License-Identifier: Apache-2.0
from npu_model.faults import Invalid, NpuError, Unsupported
from npu_model.machine import execute

__all__ = ["Invalid", "NpuError", "Unsupported", "execute"]

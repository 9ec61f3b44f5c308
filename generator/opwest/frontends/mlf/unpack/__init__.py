# SPDX-License-Identifier: Apache-2.0
"""The calls of an ahead-of-time main in C as steps, with its memory as tensors."""

from opwest.frontends.mlf.unpack.functions import NotUnpackedError
from opwest.frontends.mlf.unpack.steps import Request, Unpacked, unpack

__all__ = ["NotUnpackedError", "Request", "Unpacked", "unpack"]

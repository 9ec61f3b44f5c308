# SPDX-License-Identifier: Apache-2.0
"""The calls of an ahead-of-time main in C as steps, with its memory as tensors."""

from opwest.importers.mlf.unpack.steps import Request, Unpacked, unpack
from opwest.importers.mlf.unpack.syntax import NotUnpackedError

__all__ = ["NotUnpackedError", "Request", "Unpacked", "unpack"]

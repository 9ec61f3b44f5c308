# SPDX-License-Identifier: Apache-2.0
"""Models that TVM reads (TFLite, ONNX, Relax) as operators with plain pointers. TVM is imported when it is used."""

from opwest.importers.tvm.convert import Imported, Options, import_model, import_module

__all__ = ["Imported", "Options", "import_model", "import_module"]

# SPDX-License-Identifier: Apache-2.0
"""Import of Relax modules. The package tvm is imported on first use."""

from opwest.frontends.tvm.convert import Imported, Options, import_module

__all__ = ["Imported", "Options", "import_module"]

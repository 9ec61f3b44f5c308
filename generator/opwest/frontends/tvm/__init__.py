# SPDX-License-Identifier: Apache-2.0
"""Import of Relax modules with the package tvm, which is imported on first use.

Enters: a Relax module. Leaves: a directory with a manifest, operators as C or objects, constants and golden vectors.
Never: the runtime of TVM in the operators."""

from opwest.frontends.tvm.convert import Imported, Options, import_module

__all__ = ["Imported", "Options", "import_module"]

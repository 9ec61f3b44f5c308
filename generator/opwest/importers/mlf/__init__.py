# SPDX-License-Identifier: Apache-2.0
"""Model Library Format, what microTVM wrote (TVM 0.8 to 0.18), into manifests. Needs no TVM."""

from opwest.importers.mlf.convert import Imported, Options, import_mlf

__all__ = ["Imported", "Options", "import_mlf"]

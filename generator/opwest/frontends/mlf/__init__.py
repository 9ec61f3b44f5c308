# SPDX-License-Identifier: Apache-2.0
"""Import Model Library Format, written by microTVM (TVM 0.8 to 0.18). Does not require TVM."""

from opwest.frontends.mlf.convert import Imported, Options, import_mlf

__all__ = ["Imported", "Options", "import_mlf"]

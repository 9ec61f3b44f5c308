# SPDX-License-Identifier: Apache-2.0
"""Import of Model Library Format, the archives of microTVM (TVM 0.8 to 0.18).

Enters: a tar file or a directory, as hostile input. Leaves: a directory with a manifest, C sources, objects and
constants. Never: TVM itself, or the execution of code of the archive."""

from opwest.frontends.mlf.convert import Imported, Options, import_mlf

__all__ = ["Imported", "Options", "import_mlf"]

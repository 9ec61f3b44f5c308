# SPDX-License-Identifier: Apache-2.0
"""Programs as C: a variant for each operation, calls of functions, the file of operators; the manifest.

Enters: a program. Leaves: C, constants, the text of a manifest. Never: the choice of a variant.
"""

from opwest.compiler.output import stripes

__all__ = ["stripes"]

# SPDX-License-Identifier: Apache-2.0
"""The passes: functions from a program to a program, which is the same one if nothing changes.

Every pass keeps the content of all outputs and of all states. `ir/verify.py` checks the program after each, and the
proof of an import runs it. A program has the name of the pass that made it.
"""

from __future__ import annotations

from opwest.importers.models.ir.program import LOWERING

UNUSED_CHANNELS, FUSED_SUMS = "unused channels", "fused sums"
JOINED_CHANNELS, STRIPES = "concatenations in place", "stripes"
INVARIANTS = {
    LOWERING: "each operator of the graph is one or more operations, or a view",
    UNUSED_CHANNELS: "a value that loses channels is read by layers only, which read none of these channels",
    FUSED_SUMS: "a convolution is removed only if a sum is the only reader of its result",
    JOINED_CHANNELS: "a result in place is one channel range of the concatenation, its only reader",
    STRIPES: "a block has the layers of the program in their order, and only its last result is read after it",
}
"""What each pass keeps, beside the results."""

# SPDX-License-Identifier: Apache-2.0
"""The instruction sets that CMSIS-NN has code for, and the names of the variants for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from opwest.importers.models.emit.function import Call, Parameter
from opwest.importers.models.emit.registry import emits
from opwest.records import dataclass

EXTENSIONS = ("none", "dsp", "mve")
"""Cortex-M0 to M3; M4, M7, M33; M52, M55, M85."""
VARIANTS = {"cmsis-nn": EXTENSIONS, **{f"cmsis-nn-{one}": (one,) for one in EXTENSIONS}}
"""The names of variants, and the instruction sets that their scratch memory is enough for."""
HEADERS = ("arm_nnfunctions.h", "errno.h")
ROUNDING = "cmsis_nn_rounding"
"""The helper that rejects a CMSIS-NN with another rounding."""


@dataclass(frozen=True)
class Buffer:
    """The scratch memory of a function of CMSIS-NN."""

    size: int
    """Bytes."""
    required: str
    """The call of CMSIS-NN that returns the size that the firmware requires."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The scratch argument: int32, for the alignment."""
        return (Parameter("buffer", "int32", "scratch", elements=-(-self.size // 4)),) if self.size else ()

    @property
    def context(self) -> str:
        """The declaration of the context."""
        return f"const cmsis_nn_context context = {{{'buffer' if self.size else 'NULL'}, {self.size}}};"

    def check(self, declarations: list[str]) -> str:
        """Return the body of the function that `open` calls: the size depends on CMSIS-NN's revision."""
        lines = [*declarations, "", f"return {self.required} <= {self.size} ? 0 : -ENOMEM;"]
        return "".join(f"\t{line}\n" if line else "\n" for line in lines)


def cmsis_nn(operation: type) -> Callable[[Callable[..., Call | None]], Callable[..., Call | None]]:
    """Register a function (operation, extensions) as the variants for every instruction set."""

    def register(render: Callable[..., Call | None]) -> Callable[..., Call | None]:
        for name, extensions in VARIANTS.items():
            emits(operation, name)(partial(render, extensions=extensions))
        return render

    return register

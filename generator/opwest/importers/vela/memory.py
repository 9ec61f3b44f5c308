# SPDX-License-Identifier: Apache-2.0
"""The pools of the NPU's memory in the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opwest.diagnostics import Diagnostics
from opwest.importers.models.emit.emit import Emitted
from opwest.importers.models.ir.program import Value
from opwest.importers.vela.request import ARENA, FAST, POOLS, SRAM_ONLY, WEIGHTS, Options
from opwest.manifest import writer
from opwest.records import dataclass

DEVICE = "npu0"
_LINE = 32
"""Bytes of a cache line of the processors with such NPUs, Cortex-M55 and M85."""
Regions = Mapping[str, Mapping[str, str]]
"""By pool and board: the node label of a memory region."""


def regions_of(options: Options, has_fast: bool) -> Regions:
    """Return the values of --pool. Raises OpwestError with all faults."""
    faults = Diagnostics()
    found: dict[str, dict[str, str]] = {}
    known = [one for one in POOLS if one != FAST or has_fast]
    for text in options.pools:
        pool, _, rest = text.partition("=")
        board, _, node = rest.rpartition(":")
        if not (pool and board and node):
            faults.error(f"invalid --pool {text!r}", expected=f"NAME=BOARD:NODELABEL, NAME one of {', '.join(known)}")
        elif pool not in known:
            faults.error(f"--pool {text}: the model has no memory '{pool}'", expected=" or ".join(known))
        else:
            found.setdefault(pool, {})[board] = node
    faults.raise_if_errors()
    return found


@dataclass(frozen=True, eq=False)
class NpuMemory:
    """The pools, and the constants in them."""

    regions: Regions
    has_fast: bool
    has_processor: bool
    """Whether operators run on the processor."""
    weights: Value | None
    """The weights; None: there are none."""
    weights_pool: str | None
    """The pool that the weights are copied to; None: they are read from flash."""

    @property
    def memory(self) -> Iterator[str]:
        """Yield the section `memory` of the manifest."""
        yield "memory:"
        if self.has_processor:
            yield "  # Tensors of the operators on the processor."
            yield "  sram: {reachable_by: [cpu]}"
        pools = [ARENA, *([FAST] if self.has_fast else []), *([WEIGHTS] if self.weights_pool == WEIGHTS else [])]
        for name in pools:
            yield f"  # {_COMMENTS[name]}"
            given = {writer.scalar(b): writer.flow_map({"nodelabel": n}) for b, n in self.regions.get(name, {}).items()}
            keys = {
                "reachable_by": writer.flow_list(["cpu", DEVICE]),
                "cache_line": str(_LINE),
                "boards": writer.flow_map(given) if given else None,
            }
            yield f"  {name}: {writer.flow_map(keys)}"

    def pools_of(self, emitted: Emitted) -> Mapping[Value, str]:
        """Return the pools of constants."""
        return {} if self.weights is None or self.weights_pool is None else {self.weights: self.weights_pool}


_COMMENTS = {
    ARENA: "Vela's scratch memory, with inputs and outputs: the NPU must reach it.",
    FAST: "Vela's fast scratch memory.",
    WEIGHTS: "A copy of the weights.",
}


def weights_pool(options: Options, regions: Regions) -> str | None:
    """Return the pool of the weights: that of --pool, else the arena's in the mode Sram_Only."""
    if WEIGHTS in regions:
        return WEIGHTS
    return ARENA if options.memory_mode == SRAM_ONLY else None


def boards_of(options: Options) -> Sequence[str]:
    """Return the boards of the manifest: those of --board, then those of --pool."""
    named = [text.partition("=")[2].rpartition(":")[0] for text in options.pools]
    return list(dict.fromkeys([*options.boards, *named]))

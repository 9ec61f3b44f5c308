# SPDX-License-Identifier: Apache-2.0
"""The memory of the constants of layers: read in place, or copied to a pool when the model is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.output.emit import Emitted
from opwest.manifest import writer

DEFAULT_POOL = "sram"
"""The pool of every manifest without `memory`."""


@dataclass(frozen=True)
class Placement:
    """The pools of constants by layer, and the pools besides the default one."""

    pools: Mapping[str, str]
    """By layer: the pool of its constants."""
    regions: Mapping[str, Mapping[str, str]]
    """By pool and board: the node label of the memory region."""

    @property
    def memory(self) -> Iterator[str]:
        """Yield the section `memory` of the manifest; nothing if all constants are read in place."""
        if not self.pools:
            return
        yield "memory:"
        yield f"  {DEFAULT_POOL}: {{}}"
        for name, boards in self.regions.items():
            nodes = {writer.scalar(board): writer.flow_map({"nodelabel": node}) for board, node in boards.items()}
            yield f"  {name}: {writer.flow_map({'boards': writer.flow_map(nodes)})}"

    def pools_of(self, emitted: Emitted) -> Mapping[Value, str]:
        """Return the pools of constants. The constants that two layers share are in the pool of either."""
        pools = {}
        for step in emitted.steps:
            for pool in (self.pools[layer] for layer in layers_of(step.label) if layer in self.pools):
                pools.update({argument: pool for argument in step.arguments if argument.role == "constant"})
        return pools


def layers_of(label: str) -> list[str]:
    """Return the numbers of the layers in the model, as in the table of the variants, from a label."""
    return label.split(" ", 1)[0].split(",")


def placed_layers(texts: Sequence[str]) -> frozenset[str]:
    """Return the numbers of the layers in the values of --place."""
    return frozenset(name for text in texts for name in _names(text.partition("=")[0]))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def placement(layers: Sequence[str], regions: Sequence[str]) -> Placement:
    """Return the placement of the values of --place and --pool. Raises OpwestError with all faults."""
    faults = Diagnostics()
    declared: dict[str, dict[str, str]] = {}
    for text in regions:
        pool, _, rest = text.partition("=")
        board, _, node = rest.rpartition(":")
        if not (pool.isidentifier() and board and node):
            faults.error(f"invalid --pool {text!r}", expected="NAME=BOARD:NODELABEL, such as dtcm=nucleo_h743zi:dtcm")
        elif pool == DEFAULT_POOL:
            faults.error(f"--pool {text}: '{DEFAULT_POOL}' is ordinary memory", expected="another name")
        else:
            declared.setdefault(pool, {})[board] = node
    pools: dict[str, str] = {}
    for text in layers:
        numbers, _, pool = text.partition("=")
        names = _names(numbers)
        if not (pool and all(names)):
            faults.error(f"invalid --place {text!r}", expected="LAYERS=POOL, such as 2,4=sram")
            continue
        if pool != DEFAULT_POOL and pool not in declared:
            faults.error(
                f"--place {text}: no pool '{pool}'",
                expected=" or ".join(map(repr, (DEFAULT_POOL, *declared))),
                hint=f"--pool {pool}=BOARD:NODELABEL declares it",
            )
        pools.update(dict.fromkeys(names, pool))
    for pool in declared:
        if pool not in pools.values():
            faults.error(f"--pool {pool}: no layer is in it", expected=f"--place LAYERS={pool}, or no --pool")
    faults.raise_if_errors()
    return Placement(pools, declared)


def check_layers(placed: Placement, program: Program, emitted: Sequence[Emitted]) -> None:
    """Refuse layers that the program does not have, or without constants. Raises OpwestError with all faults."""
    faults = Diagnostics()
    known = list(dict.fromkeys(layer for operation in program.operations for layer in layers_of(operation.label)))
    steps = [step for made in emitted for step in made.steps]
    constant = (step for step in steps if any(argument.role == "constant" for argument in step.arguments))
    filled = {layer for step in constant for layer in layers_of(step.label)}
    expected = f"one of: {', '.join(layer for layer in known if layer in filled)}"
    for layer in placed.pools:
        if layer not in known:
            faults.error(f"--place: the model has no layer '{layer}'", expected=expected)
        elif layer not in filled:
            faults.error(f"--place: layer {layer} has no constants", expected=expected)
    faults.raise_if_errors()

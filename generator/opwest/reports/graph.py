# SPDX-License-Identifier: Apache-2.0
"""The graph of a model: a box for each input, layer and output, from top to bottom; a line for each tensor.

A layered drawing after Sugiyama: ranks by the longest path, an order in each rank by the means of neighbours, and
positions that are as near to these means as the widths permit. All positions are pixels.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, Final

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data, words

MAX_STEPS: Final = 100
"""The most steps of a model that is drawn."""
LETTER: Final = 7.3
"""Pixels of one character, rounded up."""
GAP: Final = 28
"""Pixels between boxes of a rank."""
LANE: Final = 22
"""Pixels for a line that passes a rank."""
RANK_GAP: Final = 46
"""Pixels between ranks, for lines and the shapes of tensors."""
_MARGIN: Final = 12
_LINE: Final = 15
_PAD: Final = 9
_LETTERS: Final = 30
"""The most characters of a line in a box."""
_SWEEPS: Final = 8

KINDS: Final = (
    # The words of operators' names, the colour, and the name of the group.
    (r"conv|dense|fully|gemm|matmul|matrix|lstm|gru|rnn|svdf|einsum|filter", "intermediate", "layers with weights"),
    (r"pool|mean|reduce|arg|sum|norm|topk", "input", "pools and reductions"),
    (r"relu|softmax|sigmoid|logistic|tanh|elu|swish|clip|activat", "constant", "activations"),
    (r"reshape|transpose|concat|pad|slice|split|gather|resize|squeeze|tile|cast|copy|quant", "scratch", "movement"),
    (r"add|sub|mul|div|max|min|pow|sqrt|exp|log|abs|great|less|equal|select", "output", "arithmetic"),
)
_TENSORS: Final = ("state", "inputs, outputs and state")
_OTHER: Final = ("other", "other operators")


def group_of(kind: str) -> tuple[str, str]:
    """Return the colour and the name of the group of an operator: of its first one that is not padding."""
    part = re.search(r"\(([^()]*[a-z][^()]*)\)$", kind)  # of an operator that several steps compute
    kinds = [re.sub(r"[^a-z0-9]", "", word) for word in (part[1] if part else kind).lower().split("+")]
    first = next((word for word in kinds if not word.startswith("pad")), kinds[0])
    return next(((colour, name) for pattern, colour, name in KINDS if re.search(pattern, first)), _OTHER)


@dataclass(eq=False)
class Node:
    """A box, or without lines the place where an edge passes a rank."""

    key: str
    lines: tuple[str, ...] = ()
    colour: str = ""
    group: str = ""
    step: int | None = None
    """The step; None for inputs, outputs and state."""
    device: str | None = None
    text: str = ""
    """The description."""
    rank: int = 0
    x: float = 0
    """The middle."""
    y: float = 0
    """The upper edge."""
    drop: float = 0
    """The height of the rank that an edge passes."""
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)

    @property
    def is_box(self) -> bool:
        """Whether the node is drawn."""
        return bool(self.lines)

    @property
    def width(self) -> int:
        """The room that it needs."""
        return max(96, round(max(map(len, self.lines)) * LETTER) + 2 * _PAD) if self.is_box else LANE

    @property
    def height(self) -> int:
        """Pixels from the upper to the lower edge."""
        return 2 * _PAD + _LINE * len(self.lines) if self.is_box else 0


@dataclass(frozen=True, eq=False)
class Edge:
    """A tensor from a box to another one, by way of places in the ranks between them."""

    tensor: str
    way: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """A drawing."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def lay_out(model: data.Model) -> Graph:
    """Return the drawing of a model."""
    boxes = _boxes(model)
    pairs = _pairs(model)
    for _, source, target in pairs:
        boxes[target].rank = max(boxes[target].rank, boxes[source].rank + 1)
    last = max(node.rank for node in boxes.values())
    for key, node in boxes.items():
        if key.startswith("out "):
            node.rank = last
    ranks: list[list[Node]] = [[] for _ in range(last + 1)]
    for node in boxes.values():
        ranks[node.rank].append(node)
    edges = [_routed(tensor, boxes[source], boxes[target], ranks) for tensor, source, target in pairs]
    _order(ranks)
    _place(ranks)
    left = min(node.x - node.width / 2 for rank in ranks for node in rank)
    top = float(_MARGIN)
    for rank in ranks:
        height = max(node.height for node in rank)
        for node in rank:
            node.x += _MARGIN - left
            node.y = top + (height - node.height) / 2 if node.is_box else top
            node.drop = 0 if node.is_box else height
        top += height + RANK_GAP
    right = max(node.x + node.width / 2 for rank in ranks for node in rank)
    return Graph(tuple(boxes.values()), tuple(edges), right + _MARGIN, top - RANK_GAP + _MARGIN)


def _boxes(model: data.Model) -> dict[str, Node]:
    """Return the boxes by key: inputs and state, steps in their order, outputs and state."""
    boxes: dict[str, Node] = {}
    states = [buffer.name for buffer in model.buffers if buffer.role == "state"]
    inputs, outputs = ([t.name for t in model.tensors if t.role == role] for role in ("input", "output"))
    layers = {layer.step: layer for layer in model.layers}
    for name in inputs:
        boxes[f"in {name}"] = _tensor_box(model, f"in {name}", "input", name)
    for name in states:
        boxes[f"in {name}"] = _tensor_box(model, f"in {name}", "state", name)
    for step in model.steps:
        boxes[f"step {step.index}"] = _step_box(step, layers.get(step.index))
    for name in outputs:
        boxes[f"out {name}"] = _tensor_box(model, f"out {name}", "output", name)
    for name in states:
        boxes[f"out {name}"] = _tensor_box(model, f"out {name}", "next state", name)
    return boxes


def _tensor_box(model: data.Model, key: str, role: str, name: str) -> Node:
    title = model.titles.get(name, name)
    return Node(key, (role, _cut(title)), *_TENSORS, text=f"{role} {title}")


def _step_box(step: data.Step, layer: data.Layer | None) -> Node:
    """Return the box of a step: its kind, its window and multiplications, its name or the device."""
    kind = layer.kind if layer is not None else step.operator
    facts = []
    if layer is not None:
        facts = [layer.window] if layer.window else []
        facts += [f"{words.short_count(layer.macs)} MACs"] if layer.macs else []
    lines = [_cut(f"{step.index}  {kind}"), _cut(" · ".join(facts))]
    lines += [_cut(layer.name.split(";")[0])] if layer is not None and layer.name else []
    lines += [_cut(f"on {step.device}")] if step.device else []
    name = f"; {layer.name}" if layer is not None and layer.name else ""
    text = f"step {step.index}: {kind}{name}{f'; on {step.device}' if step.device else ''}"
    shown = tuple(filter(None, lines))
    return Node(f"step {step.index}", shown, *group_of(kind), step=step.index, device=step.device, text=text)


def _cut(text: str) -> str:
    """Return a line; a long one is cut in the middle, since names differ at their ends."""
    text = words.visible(text)
    if len(text) <= _LETTERS:
        return text
    tail = (_LETTERS - 1) // 2
    return f"{text[: _LETTERS - 1 - tail]}…{text[len(text) - tail :]}"


def _pairs(model: data.Model) -> list[tuple[str, str, str]]:
    """Return for each use of a tensor its name, and the keys of the boxes that write and read it.

    A tensor that several steps write in parts has a line from each of them.
    """
    writers: dict[str, list[str]] = defaultdict(list)
    states = [buffer.name for buffer in model.buffers if buffer.role == "state"]
    for name in [*(tensor.name for tensor in model.tensors if tensor.role == "input"), *states]:
        writers[name] = [f"in {name}"]
    pairs: dict[tuple[str, str, str], None] = {}
    for step in model.steps:
        key = f"step {step.index}"
        for name in step.reads:
            pairs.update(dict.fromkeys((name, source, key) for source in writers.get(name, ())))
        for name in step.writes:
            if name in step.reads or writers[name][:1] == [f"in {name}"]:
                writers[name] = []
            writers[name].append(key)
    for name in [*(tensor.name for tensor in model.tensors if tensor.role == "output"), *states]:
        pairs.update(dict.fromkeys((name, source, f"out {name}") for source in writers.get(name, ())))
    views = _views(model, {name for name, _, _ in pairs})
    # The writers of each tensor are before its readers: ranks are found in this order.
    return sorted([*pairs, *views], key=lambda pair: (not pair[1].startswith("in "), pair[2].startswith("out ")))


def _views(model: data.Model, drawn: set[str]) -> list[tuple[str, str, str]]:
    """Return the lines of inputs and outputs that are parts of another tensor, which the steps read and write."""
    lines = []
    for tensor in model.tensors:
        for layer in model.layers if tensor.name not in drawn else ():
            step = f"step {layer.step}"
            if tensor.role == "input" and any(one.name == tensor.name for one in layer.inputs):
                lines.append((tensor.name, f"in {tensor.name}", step))
            elif tensor.role == "output" and any(one.name == tensor.name for one in layer.outputs):
                lines.append((tensor.name, step, f"out {tensor.name}"))
    return lines


def _routed(tensor: str, source: Node, target: Node, ranks: Sequence[list[Node]]) -> Edge:
    """Return an edge with places in the ranks between its boxes."""
    way = [source]
    for rank in range(source.rank + 1, target.rank):
        place = Node(f"{source.key} {target.key} {rank}", rank=rank)
        ranks[rank].append(place)
        way.append(place)
    way.append(target)
    for one, other in pairwise(way):
        one.after.append(other)
        other.before.append(one)
    return Edge(tensor, tuple(way))


def _order(ranks: list[list[Node]]) -> None:
    """Order each rank by the means of the places of neighbours, downwards and upwards in turns."""
    places = {node: place for rank in ranks for place, node in enumerate(rank)}
    for sweep in range(_SWEEPS):
        for rank in ranks if sweep % 2 == 0 else reversed(ranks):
            means = {}
            for node in rank:
                near = node.before if sweep % 2 == 0 else node.after
                means[node] = sum(places[other] for other in near) / len(near) if near else places[node]
            rank.sort(key=lambda node: means[node])
            places.update((node, place) for place, node in enumerate(rank))


def _place(ranks: Sequence[Sequence[Node]]) -> None:
    """Set the middle of each node."""
    for rank in ranks:
        at = 0.0
        for node in rank:
            node.x = at + node.width / 2
            at += node.width + GAP
    for sweep in range(_SWEEPS):
        for rank in ranks if sweep % 2 == 0 else reversed(ranks):
            wanted = []
            for node in rank:
                near = (node.before if sweep % 2 == 0 else node.after) or [node]
                wanted.append(sum(other.x for other in near) / len(near))
            for node, x in zip(rank, _separated(rank, wanted), strict=True):
                node.x = x


def _separated(rank: Sequence[Node], wanted: Sequence[float]) -> list[float]:
    """Return positions with room for each node, with the least sum of squares of distances from the wanted ones."""
    shifts, shift = [], 0.0
    for number, node in enumerate(rank):
        if number:
            shift += (rank[number - 1].width + node.width) / 2 + GAP
        shifts.append(shift)
    blocks: list[tuple[float, int]] = []  # mean, nodes: neighbours that touch
    for x, by in zip(wanted, shifts, strict=True):
        mean, count = x - by, 1
        while blocks and blocks[-1][0] > mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    flat = [mean for mean, count in blocks for _ in range(count)]
    return [x + by for x, by in zip(flat, shifts, strict=True)]


def graph_row(model: data.Model) -> dict[str, Any] | None:
    """Return the figure; None without steps, or with too many."""
    if not 0 < len(model.steps) <= MAX_STEPS:
        return None
    found = lay_out(model)
    shapes = _shapes(model)
    several = Counter(source for _, source in {(edge.tensor, edge.way[0].key) for edge in found.edges})
    groups = dict.fromkeys((node.colour, node.group) for node in found.nodes)
    labelled: set[tuple[str, str]] = set()
    edges = []
    for edge in found.edges:
        key = (edge.tensor, edge.way[0].key)
        edges.append(
            _edge_row(edge, "" if key in labelled else shapes.get(edge.tensor, ""), model, several[key[1]] > 1)
        )
        labelled.add(key)
    return {
        "width": round(found.width),
        "height": round(found.height),
        "nodes": [_node_row(node, has_link=bool(model.layers)) for node in found.nodes],
        "edges": edges,
        "legend": [{"kind": colour, "label": name} for colour, name in groups],
        "devices": any(node.device for node in found.nodes),
    }


def _shapes(model: data.Model) -> Mapping[str, str]:
    """Return the shape of each tensor."""
    found = {tensor.name: tensor.shape for tensor in model.tensors}
    found |= {buffer.name: buffer.shape for buffer in model.buffers}
    return {name: "×".join(map(str, shape)) or "scalar" for name, shape in found.items()}


def _node_row(node: Node, *, has_link: bool) -> dict[str, Any]:
    x, y = round(node.x - node.width / 2), round(node.y)
    return {
        "kind": node.colour,
        "row": node.step if has_link else None,
        "device": node.device,
        "text": node.text,
        "x": x,
        "y": y,
        "width": node.width,
        "height": node.height,
        "round": 4 if node.step is not None else node.height // 2,
        "lines": [
            {"text": line, "x": round(node.x), "y": y + _PAD + _LINE // 2 + number * _LINE, "first": number == 0}
            for number, line in enumerate(node.lines)
        ],
    }


def _edge_row(edge: Edge, shape: str, model: data.Model, is_one_of_several: bool) -> dict[str, Any]:
    """Return a line from box to box, its arrow head, and the shape beside it.

    The shape is at the start of the line, or of one of several tensors of a box at the end of its first part.
    """
    first, last = edge.way[0], edge.way[-1]
    x, y = first.x, first.y + first.height
    parts = [f"M{round(x)} {round(y)}"]
    for node in edge.way[1:]:
        end = node.y - (5 if node is last else 0)
        middle = (y + end) / 2
        parts.append(f"C{round(x)} {round(middle)} {round(node.x)} {round(middle)} {round(node.x)} {round(end)}")
        x, y = node.x, end + node.drop
        parts += [f"V{round(y)}"] if node.drop else []
    head = f"M{round(last.x)} {round(last.y)}l-4-7h8z"
    at, y, left = first, first.y + first.height + 13, False
    if is_one_of_several:
        at, y = edge.way[1], edge.way[1].y - 14
    else:
        left = sum(other.x for other in first.after) / len(first.after) > first.x + 1
    return {
        "name": model.titles.get(edge.tensor, edge.tensor),
        "path": "".join(parts),
        "head": head,
        "shape": shape,
        "x": round(at.x + (-7 if left else 7)),
        "y": round(y),
        "anchor": "end" if left else "start",
    }

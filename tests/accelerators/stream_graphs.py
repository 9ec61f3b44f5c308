# SPDX-License-Identifier: Apache-2.0
"""Random models that stream: their manifests, their operators, and the C that plays them."""

import json
from pathlib import Path
from typing import Any

from random_graphs import PROGRAMS, RandomGraph


class StreamGraph(RandomGraph):
    """A random model with queues, whose steps take launches and whose operators compute."""

    def __init__(self, seed: int, *, cached: bool = False) -> None:
        super().__init__(seed, cached=cached, name=f"stream_{seed}", queues=True, values=True)

    @property
    def streams(self) -> bool:
        """Whether a step is launched; `stream: true` is an error otherwise."""
        return any(step["async"] for step in self.steps)

    def manifest(self) -> dict[str, Any]:
        """Return the manifest. If a step on a device has a program, all have: no result depends on an earlier owner."""
        found = super().manifest()
        found["run"]["stream"] = True
        for operator in found["operators"].values():
            if "device" in operator:
                operator["device"] = {"launch": True}
        for step in found["run"]["steps"]:
            if "program" in step or "program" in found["operators"][step["call"]]:
                found["devices"][step["device"]].setdefault("program", f"{PROGRAMS[0]}.bin")
        return found

    def write(self, folder: Path, operators: str | None = None) -> Path:
        return super().write(folder, operators or self.computing())

    def computing(self) -> str:
        """Return operators that compute their results from all their arguments."""
        lines = ["#include <stddef.h>", '#include "stream_play.h"']
        for index, step in enumerate(self.steps):
            head = self.head(index).replace("const struct device *dev", "const struct opwest_launch *launch")
            parts = []
            for number, (tensor, direction) in enumerate(step["args"]):
                if direction == "value":
                    parts.append(f"\t\t{{.passed = true, .value = a{number}}},")
                    continue
                source = f"(const uint8_t *)a{number}" if direction in ("in", "inout") else "NULL"
                target = f"(uint8_t *)a{number}" if direction != "in" else "NULL"
                parts.append(f"\t\t{{.in = {source}, .out = {target}, .size = {self.sizes[tensor]}U}},")
            verb = "launch" if step["async"] else "call" if step["device"] else "compute"
            number = f"stream_next({index}U)" if step["stateful"] else f"{index}U"
            launch = "launch" if step["device"] else "NULL"
            call = f"stream_{verb}(number, parts, {len(step['args'])}U, {launch})"
            lines += [head, "{", "\tconst struct part parts[] = {", *parts, "\t};"]
            lines += [f"\tconst uint32_t number = {number};", f"\tconst int32_t rc = {call};", ""]
            lines += ["\tif (rc == 0) {", "\t\tstream_keep(number);", "\t}"] if step["stateful"] else []
            lines += ["\treturn rc;", "}"]
        return "\n".join(lines) + "\n"

    def player(self, record: dict[str, Any]) -> str:
        """Return the C functions that play the model; `record` is that of the project's lock."""
        name, upper = self.name, self.name.upper()

        def tensors(role: str) -> list[tuple[int, str, bool]]:
            listed = [tensor for tensor in record["tensors"] if tensor["role"] == role]
            return [(number, tensor["name"], not tensor["placed"]) for number, tensor in enumerate(listed)]

        def members(role: str) -> str:
            given = [f".{tensor} = {tensor}_{role}[frame % 2U]" for _, tensor, external in tensors(role) if external]
            return ", ".join(given) or "0"

        lines = ["#include <errno.h>", "#include <stddef.h>", f"#include <{name}.h>", '#include "stream_play.h"']
        lines += [f"{upper}_WORKSPACE_DEFINE(workspace);", f"{upper}_STREAM_DEFINE(streams);"]
        handles = ", ".join(f"&stream_devices[{number}]" for number in range(len(self.device_names)))
        lines += [f"static const struct {name}_devices devices = {{{handles}}};"]
        lines += [
            f"OPWEST_ALIGNED(64) static uint8_t {tensor}_{role}[2][256];"
            for role in ("input", "output")
            for _, tensor, external in tensors(role)
            if external
        ]

        def place(role: str, tensor: str, external: bool, given: str) -> str:
            return f"{tensor}_{role}[frame % 2U]" if external else f"{given}->{role}.{tensor}"

        def fill(given: str) -> list[str]:
            return [
                f"\tfill_input({place('input', tensor, external, given)}, {self.sizes[tensor]}U, frame, {number}U);"
                for number, tensor, external in tensors("input")
            ]

        def digest(given: str) -> list[str]:
            return [
                f"\t\tadd_to_digest(digest, {place('output', tensor, external, given)}, {self.sizes[tensor]}U);"
                for _, tensor, external in tensors("output")
            ]

        arguments = ", ".join(f"&(struct {name}_{role}s){{{members(role)}}}" for role in ("input", "output"))
        lines += [
            "static int open_model(bool streaming)\n{",
            f"\treturn streaming ? {name}_stream_open(&streams, &devices) : {name}_open(&workspace, &devices);\n}}",
            "static int close_model(bool streaming)\n{",
            f"\treturn streaming ? {name}_stream_close(&streams) : {name}_close(&workspace, &devices);\n}}",
            "static int run(uint32_t frame, uint32_t *digest)\n{\n\tint rc;\n",
            *fill("(&workspace)"),
            f"\trc = {name}_run({arguments}, &workspace, &devices);",
            "\tif (rc == 0) {",
            *digest("(&workspace)"),
            "\t}\n\treturn rc;\n}",
            "static int submit(uint32_t frame)\n{",
            f"\tconst struct {name}_frame *const next = {name}_stream_frame(&streams);\n",
            "\tif (next == NULL) {\n\t\treturn -EAGAIN;\n\t}",
            *fill("next"),
            f"\treturn {name}_submit(&streams, {arguments});\n}}",
            "static int poll(int32_t timeout_ms, uint32_t frame, uint32_t *digest)\n{",
            f"\tconst struct {name}_frame *next;",
            f"\tconst int rc = {name}_poll(&streams, timeout_ms, &next);\n",
            "\t(void)frame;\n\tif (rc == 0) {",
            *digest("next"),
            "\t}\n\treturn rc;\n}",
            "static uint32_t state(bool streaming)\n{\n\tuint32_t digest = 0;",
        ]
        if self.states:
            lines += [
                f"\tstatic uint8_t saved[{upper}_STATE_SIZE];\n",
                f"\tif ({name}_save(streaming ? &streams.workspace : &workspace, saved, sizeof(saved)) != 0) {{",
                "\t\treturn 1;\n\t}\n\tadd_to_digest(&digest, saved, sizeof(saved));\n\treturn digest;\n}",
            ]
        else:
            lines.append("\n\t(void)streaming;\n\treturn digest;\n}")
        lines += [
            f"extern const struct player {name}_player;",
            f"const struct player {name}_player = {{",
            f'\t"{name}", open_model, run, submit, poll, close_model, state, &streams_state.stream,\n}};',
        ]
        return "\n".join(lines) + "\n"


def write_players(graphs: list[StreamGraph], app: Path, folder: Path) -> list[Path]:
    """Write the C files that play the models of an application; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    records = {one["name"]: one for one in json.loads((app / ".opwest" / "lock.json").read_text())["record"]["models"]}
    paths = []
    for graph in graphs:
        paths.append(folder / f"{graph.name}_player.c")
        paths[-1].write_text(graph.player(records[graph.name]))
    lines = ['#include "stream_play.h"', *(f"extern const struct player {graph.name}_player;" for graph in graphs)]
    table = ", ".join(f"&{graph.name}_player" for graph in graphs)
    lines += [f"const struct player *const all_players[] = {{{table}}};"]
    lines += [f"const uint32_t player_count = {len(graphs)}U;"]
    (folder / "players.c").write_text("\n".join(lines) + "\n")
    return [*paths, folder / "players.c"]

# SPDX-License-Identifier: Apache-2.0
"""The numbers of the service are the same in the runtime's C and in the host's part."""

from __future__ import annotations

import re
from pathlib import Path

from opwest.board import link
from opwest.render import arguments
from opwest.render.arguments import ENTRY
from requirements_support import need

need("smpclient", "serial")

from opwest.board import smp_link  # noqa: E402

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"


def numbers(file: str, pattern: str) -> dict[str, int]:
    text = (RUNTIME / file).read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(pattern, text)}


def test_commands_of_the_group() -> None:
    commands = numbers("src/service_smp.c", r"COMMAND_(\w+) = (\d+),")
    names = ("MODEL", "TENSOR", "DATA", "ACTION", "MEASURES", "POINT", "UNTIL", "CALL")
    assert commands == {name: vars(smp_link)[f"_{name}"] for name in names}


def test_actions_version_group_and_entries() -> None:
    actions = numbers("src/service_internal.h", r"OPWEST_SERVICE_(OPEN|RUN|CLOSE) = (\d+),")
    assert actions == {action.name: int(action) for action in link.Action}
    assert numbers("include/opwest/service.h", r"#define (OPWEST_SERVICE_VERSION) (\d+)").popitem()[1] == link.VERSION
    group = numbers("Kconfig", r"config (OPWEST_SERVICE_SMP_GROUP)\n(?:\t.*\n)*?\tdefault (\d+)")
    assert group == {"OPWEST_SERVICE_SMP_GROUP": smp_link.DEFAULT_GROUP}
    assert numbers("src/service_call.c", r"(memory)\[(\d+)U \* index") == {"memory": ENTRY}


def test_arguments_are_aligned_to_the_line_of_an_unknown_cache() -> None:
    lines = numbers("src/port_devices_zephyr.c", r"#define (LARGEST_LINE) (\d+)U")
    assert lines == {"LARGEST_LINE": arguments.LEAST_ALIGN}

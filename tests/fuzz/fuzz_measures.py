# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lists of words
"""Readers of measurements of images, over the shell, over SMP and on a host; and of build directories."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fuzz_boards import SEPARATOR, smp_answers, start_shell, start_smp
from fuzz_mutators import text_mutator
from fuzz_readers import Read, Reader, plain, said
from opwest.base.diagnostics import Diagnostics
from opwest.reports.measured import add_measured
from opwest.runs.digest import causes, end_of
from opwest.runs.link import LinkError
from opwest.runs.profile import Profile, parse_measures
from opwest.runs.progress import StageProgress
from opwest.runs.session import find_model
from opwest.runs.west import Build
from opwest.zephyr.workspace import Workspace
from report_support import model, step

_POINTS = (
    b"@opwest measures 4 25000000 812 4096\r\n@opwest point 0 run m 65535 65535 4 9 1 9 20\r\n@opwest point 1 launch f 0 0 4 9 1 9 20\r\n"
    b"@opwest point 2 step g 1 65535 4 9 1 9 20\r\n@opwest point 3 wait npu 0 0 4 9 1 9 20\r\n@opwest end\r\n",
    b"@opwest measures 1 1000000000 0 0\r\n@opwest point 0 run m 65535 65535 0 0 0 0 0\r\n@opwest end\r\n",
)
_DESCRIPTION = b"@opwest service 1 1 64\r\n@opwest model m\r\n@opwest end\r\n\0"
_WORDS = (
    "@opwest measures point end run launch step wait cache f m 0 1 -1 2 4 65535 65536 18446744073709551615 18446744073709551616 1e9 ٣ \0 \r\n "
    + "9" * 400
).split(" ")
_text = text_mutator([*_WORDS, ""], pattern=r"[\w@.-]+|\S")


def _use(profile: Profile, folder: Path) -> str:
    """Print a profile, write it, and generate a report from the file."""
    labelled_profile = profile.labelled("made", "board", "board", ["npu"])
    assert all(line.isprintable() for line in labelled_profile.as_text())
    path = folder / "profile.json"
    path.write_text(json.dumps(labelled_profile.as_json(), allow_nan=False))
    faults = Diagnostics()
    add_measured([model([], [step(0, "f", "npu"), step(1, "g")])], [path], faults)
    return f"{len(profile.measures)} {[one.message[-12:] for one in faults][:1]}"


def _ask(link: Any, *, folder: Path) -> str:
    try:
        profile = link.measures(find_model(link.describe(), "m", link.device))
    except LinkError as fault:
        return said(fault, 5_000)
    return _use(profile, folder)


def _start_host(folder: Path) -> Read:
    """Read the output of a host program, as `opwest run --profile` does."""

    def read(content: bytes) -> str:
        lines = content.decode("utf-8", "replace").splitlines()
        profile = parse_measures(line.removeprefix("@opwest ") for line in lines if line.startswith("@opwest "))
        return "none" if profile is None else _use(profile, folder)

    return read


def _smp_seeds() -> Sequence[bytes]:
    import cbor2

    times = {"runs": 4, "last": 9, "min": 1, "max": 9, "total": 20}
    point = {"kind": "run", "name": "m", "step": 65535, "device": 65535, **times}
    head = {"points": 3, "hz": 25_000_000, "used": 812, "stack": 4096}
    more = [
        {**point, "kind": "launch", "name": "f", "step": 0, "device": 0},
        {**point, "kind": "wait", "name": "npu", "device": 0},
    ]
    whole = [cbor2.dumps(one) for one in (*smp_answers()[:4], head, point, *more)]
    return [SEPARATOR.join(whole), SEPARATOR.join([*whole[:4], cbor2.dumps({**head, "points": 1}), whole[5]])]


_BUILDS = (
    b'CONFIG_OPWEST_SERVICE=y\nCONFIG_MCUMGR_TRANSPORT_UART=y\nCONFIG_OPWEST_SERVICE_SMP=y\n# CONFIG_X is not set\nCONFIG_BOARD="b"\n'
    b"/ {\n\tchosen {\n\t\tzephyr,console = &uart0; /* in x.dts:1 */\n\t\tzephyr,flash = &flash0;\n\t};\n};\n",
    b'CONFIG_MCUMGR_TRANSPORT_UART=y\n/ {\n\tchosen {\n\t\tzephyr,uart-mcumgr = "/soc/uart";\n\t};\n\tx {\n\t};\n};\n',
    b"CMake Error at x.cmake:3 (message):\n  no board\n\x1b[31mFATAL ERROR: command exited\nx.c:1: error: `y` overflowed by 3 bytes\n",
)
_BUILD_WORDS = (
    "CONFIG_OPWEST_SERVICE CONFIG_ARCH_POSIX CONFIG_OPWEST_SERVICE_SMP =y =n chosen { }; zephyr,console zephyr,shell-uart zephyr,uart-mcumgr = &uart0 ; "
    '/* */ error: warning: \x1b[0m [1/2] ccache CMake Error at a:1 (f): devicetree error: a.c:1:2: overflowed by 8 bytes "'
).split(" ")


def _start_build(folder: Path) -> Read:
    """Read a build directory of west and the output of west."""
    (folder / "zephyr").mkdir()
    build = Build(Workspace(folder), "west", folder, "b", folder, StageProgress(None), folder)

    def read(content: bytes) -> str:
        for name in (".config", "zephyr.dts"):
            (folder / "zephyr" / name).write_bytes(content)
        output = content.decode("utf-8", "replace")
        message = "\n".join([end_of(output), *map(str, causes(output, folder))])
        assert len(message) < 20_000
        found = [str(len(message.splitlines()))]
        for look in (build._check_service, build._missing_uart):
            try:
                found.append(str(look() is None))
            except LinkError as fault:
                found.append(plain(fault.message))
        return " ".join(found)

    return read


READERS = (
    Reader(
        "shell measures",
        lambda: [_DESCRIPTION + one for one in _POINTS],
        lambda folder: start_shell(folder, partial(_ask, folder=folder)),
        _text,
    ),
    Reader("host measures", lambda: _POINTS, _start_host, _text),
    Reader(
        "SMP measures", _smp_seeds, lambda folder: start_smp(folder, partial(_ask, folder=folder)), needs="smpclient"
    ),
    Reader("build", lambda: _BUILDS, _start_build, text_mutator(_BUILD_WORDS, pattern=r"\w+|\S")),
)

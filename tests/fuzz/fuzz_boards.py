# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lists of words
"""Readers of responses of boards, over Zephyr's shell and over SMP, and of files of a Zephyr workspace."""

import asyncio
import atexit
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_mutators import text_mutator
from fuzz_readers import Read, Reader
from fuzz_yaml import mutate_yaml
from opwest.runs.arrays import Runs
from opwest.runs.link import LinkError
from opwest.runs.progress import StageProgress
from opwest.runs.session import check_tensors, find_model, run_model
from opwest.runs.shell import ShellLink
from opwest.zephyr.kconfig import KconfigFiles, KconfigValues
from opwest.zephyr.workspace import Workspace

Use = Callable[[Any], str]
"""A use of a link to a board. Returns the result as text."""

_SHELL = (
    b"uart:~$ \x1b[1;32m@opwest service 1 1 64\r\n@opwest model m\r\n@opwest input x int16 4 2\r\n@opwest output y int16 4 2\r\n"
    b"@opwest end\r\n\0@opwest done 0 - 0 - - - -1 12345\r\n\0@opwest wrote 0 4\r\n\0@opwest done 0 - 0 - - - -1 99\r\n\0"
    b"@opwest data 0 4 01020304\r\n\0@opwest done 0 - 0 - - - -1 1\r\n",
    b"@opwest service 1 1 8\r\n@opwest model m\r\n@opwest output y bool 1 1\r\n@opwest end\r\n\0@opwest error -1 EPERM\r\n\0"
    b"@opwest done -5 EIO 7 open npu0 conv 3 77\r\n\0opwest: command not found\r\n\0",
)
_SHELL_WORDS = (
    "@opwest service model input output end done error wrote data - 0 1 -1 4294967296 99999999999999999999 x y int16 float32 "
    "object U 00 zz EIO \0 \r\n \x1b[0m 1e9 ٣ ² m"
).split(" ")


class _Shell(ShellLink):
    """The link of a shell with given responses: one for each command, then no response."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.device, self.timeout = "/dev/board", 0.01
        self._received, self._now = b"", b""
        self._answers, self._asked = list(answers), 0

    def _send(self, data: bytes) -> None:
        self._asked += 1
        assert self._asked < 2_000, "unlimited requests"
        self._now = self._answers.pop(0) if self._answers else b""

    def _receive(self, seconds: float) -> bool:
        if not seconds:  # there are no late responses
            return False
        if not self._now:
            raise self._lost_error()
        self._received = (self._received + self._now)[-(1 << 16) :]
        self._now = b""
        return True

    def disconnect(self) -> None:
        pass


_TENSORS = [
    {"role": "input", "name": "x", "dtype": "int16", "shape": [2]},
    {"role": "output", "name": "y", "dtype": "int16", "shape": [2]},
]


def _run(link: Any) -> str:
    """Run a model as `opwest run --board` does."""
    import numpy as np

    model = find_model(link.describe(), "m", link.device)
    check_tensors(model, _TENSORS, link.device)
    outcome = run_model(link, model, Runs({"x": np.zeros(2, np.int16)}), progress=StageProgress(None))
    return f"{sorted(outcome.outputs)}"


def start_shell(_folder: Path, use: Use = _run) -> Read:
    """Return the reader of a shell's responses: `use` uses the link."""
    return lambda content: use(_Shell(content.split(b"\0")))


def smp_answers() -> list[dict[str, Any]]:
    """Return the responses of a board that serves one model and runs it once."""
    done = {"result": 0, "error": "", "code": 0, "hook": "", "device": "", "operator": "", "step": -1, "ns": 5}
    return [
        {"buf_size": 384, "buf_count": 4},
        {"service": 1, "models": 1, "name": "m", "inputs": 1, "outputs": 1},
        {"name": "x", "dtype": "int16", "size": 4, "shape": [2]},
        {"name": "y", "dtype": "int16", "size": 4, "shape": [2]},
        done,
        {"off": 4},
        done,
        {"off": 0, "data": b"\1\2\3\4"},
        done,
    ]


def _smp_seeds() -> Sequence[bytes]:
    import cbor2

    whole = [cbor2.dumps(answer) for answer in smp_answers()]
    refused = [*whole[:2], cbor2.dumps({"rc": 5})]
    error = [cbor2.dumps({"err": {"group": 1, "rc": 3}})]
    return [SEPARATOR.join(answers) for answers in (whole, refused, whole[:5], error)]


SEPARATOR = b"\xff\xfe\xff"


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def start_smp(_folder: Path, use: Use = _run) -> Read:
    """Return the reader of an SMP server's responses: `use` uses the link."""
    from opwest.runs.places import Udp
    from opwest.runs.smp import DEFAULT_GROUP, SmpLink
    from opwest.runs.smp_carriers import UdpCarrier
    from smp.header import Flag, Header, Version
    from smpclient.transport import SMPTransportDisconnected

    class Transport:
        """Frames each given payload as the expected response."""

        max_unencoded_size = 64

        def __init__(self, payloads: list[bytes]) -> None:
            self.payloads, self.asked = payloads, 0
            self.header: Header | None = None

        async def send(self, frame: bytes) -> None:
            self.asked += 1
            assert self.asked < 2_000, "unlimited requests"
            self.header = Header.loads(frame[: Header.SIZE])

        async def receive(self) -> bytes:
            if not self.payloads or self.header is None:
                raise SMPTransportDisconnected("gone")
            payload, h = self.payloads.pop(0), self.header
            op = type(h.op)(h.op + 1)
            return bytes(Header(op, Version.V2, Flag(0), len(payload), h.group_id, h.sequence, h.command_id)) + payload

        def initialize(self, _size: int) -> None:
            pass

    runner = _runner()

    def read(content: bytes) -> str:
        link = SmpLink.__new__(SmpLink)
        link.device, link.timeout, link._sequence, link._group = "/dev/board", 1.0, 0, DEFAULT_GROUP
        link._malformed, link._console, link._runner = None, b"", runner
        link._carrier = UdpCarrier(Udp("board"), 1.0)
        link._carrier.transport = link._transport = Transport(content.split(SEPARATOR))  # type: ignore[assignment]
        return use(link)

    return read


_WORKSPACE = (
    b"VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n",
    b"board:\n  name: b\n  socs:\n    - name: s\n      variants:\n        - name: v\n          cpucluster: c\n",
    b"boards:\n  - name: a\n    socs: [{name: s}]\n  - {name: b, socs: [{name: s}, {name: t, variants: [{name: v}]}]}\n",
    b"manifest:\n  projects:\n    - name: hal_x\n      path: modules/hal/x\n",
)


def _start_workspace(folder: Path) -> Read:
    base = folder / "zephyr"
    for name in ("boards/v/b", "soc/v"):
        (base / name).mkdir(parents=True)

    def read(content: bytes) -> str:
        for name in ("VERSION", "west.yml", "boards/v/b/board.yml", "boards/v/b/b.yaml", "soc/v/soc.yml"):
            (base / name).write_bytes(content)
        found = Workspace(base)
        seen = (found.version is None, len(found.boards), found.architecture("b") is None, found.has_module("hal_x"))
        return str(seen)

    return read


_KCONFIG = (
    b'config BOARD_B\n\tselect SOC_S if BOARD_B_S || !(X && Y)\nif SOC_S\nrsource "*/Kconfig"\nendif\n',
    b'choice C\n\tprompt "P"\n\tdefault D if E\nconfig D\n\tbool "d"\n\tdepends on \\\n\tF\nendchoice\nconfig A\n'
    b'\tdef_bool y if "$(BOARD_REVISION)" != ""\n\timply FPU\n\thelp\n\t  text\nmenu "m"\n\tdepends on A\nendmenu\n',
)
_KCONFIG_WORDS = (
    'config choice endchoice if endif menu endmenu depends on select imply default def_bool bool prompt help source rsource "*" '
    '"**/K" "../*/Kconfig" /dev/zero $(X) $(dt_has,x) ( ) ! && || = != < y n # \\ "'
).split(" ")


def _start_kconfig(folder: Path) -> Read:
    (folder / "sub").mkdir()

    def read(content: bytes) -> str:
        for name in ("Kconfig", "sub/Kconfig"):
            (folder / name).write_bytes(content)
        files = KconfigFiles({"srctree": str(folder), "BOARD_REVISION": "a"})
        files.read([folder / "Kconfig"])
        return str(len(KconfigValues(files).true(["BOARD_B"], {"A": True})))

    return read


ANSWERS: dict[str, Any] = {"refuses": (LinkError,), "longest": 5_000}
READERS = (
    Reader("Kconfig", lambda: _KCONFIG, _start_kconfig, text_mutator(_KCONFIG_WORDS, pattern=r"[\w$-]+|\S")),
    Reader("shell answers", lambda: _SHELL, start_shell, text_mutator(_SHELL_WORDS, pattern=r"[\w@.-]+|\S"), **ANSWERS),
    Reader("SMP answers", _smp_seeds, start_smp, needs="smpclient", **ANSWERS),
    Reader("workspace", lambda: _WORKSPACE, _start_workspace, mutate_yaml),
)

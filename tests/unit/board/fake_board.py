# SPDX-License-Identifier: Apache-2.0
"""Boards emulated on pseudo terminals, with the service over SMP or the shell, and with injected faults."""

import os
import select
import socket
import struct
import threading
import tty
from collections.abc import Callable
from dataclasses import dataclass, field

import cbor2
import numpy as np
from opwest.runs.places import Udp
from smp import packet
from smp.header import OP, Flag, GroupId, Header, Version

GROUP = 28535
SHAPE = (3, 500)
SIZE = 2 * SHAPE[0] * SHAPE[1]
ARGUMENTS = 3 * 500
TENSORS = [("x", "int16", SIZE, SHAPE), ("y", "int16", SIZE, SHAPE)]
POINTS = [
    ("run", "twice", 65535, 65535, 3, 900, 800, 1000, 2700),
    ("launch", "double", 0, 0, 3, 10, 9, 11, 30),
    ("launch", "double", 1, 0, 3, 10, 9, 11, 30),
    ("step", "add", 2, 65535, 3, 2**40, 5, 2**40, 2**41),
    ("wait", "npu0", 0, 0, 3, 400, 300, 500, 1200),
    ("cache", "double", 1, 0, 0, 0, 0, 0, 0),
]
"""Kind, name, step, device; runs, last, min, max, total."""
HZ, STACK_USED, STACK_SIZE = 25000000, 420, 4096


class FakeBoard:
    """A pty served by a thread; `answer` turns received bytes into the response."""

    def __init__(self, answer: Callable[[bytes], bytes], greeting: bytes = b"") -> None:
        self.master, slave = os.openpty()
        tty.setraw(slave)
        self.device = os.ttyname(slave)
        self._slave = slave  # otherwise the master gets an error while the slave is closed
        self._answer = answer
        self._stop = threading.Event()
        os.write(self.master, greeting)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stop.is_set():
            if not select.select([self.master], [], [], 0.02)[0]:
                continue
            try:
                back = self._answer(os.read(self.master, 4096))
                while back:
                    back = back[os.write(self.master, back) :]
            except UnpluggedError:
                self._stop.set()
                os.close(self._slave)
                os.close(self.master)
                self.master = -1
            except OSError:
                return

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2)
        if self.master >= 0:
            os.close(self.master)
            os.close(self._slave)


class UnpluggedError(Exception):
    """Unplug the board."""


@dataclass
class Model:
    """A model that doubles its input, served by both kinds of boards."""

    memory: list[bytearray] = field(default_factory=lambda: [bytearray(SIZE), bytearray(SIZE)])
    opened: bool = False
    runs: int = 0
    fails: bool = False
    locked: bool = False
    checks: bool = False
    """Whether the model stops after steps: it has the tensor `half` in the workspace, written at the end of point 1."""
    point: int | None = None
    """The point at which a run has stopped."""
    calls: list[tuple[int, int]] | None = None
    """If calls of operators are served: the operator and device of each. They add `k` to `x` in the memory `args`."""
    args: bytearray = field(default_factory=lambda: bytearray(2 * ARGUMENTS))

    @property
    def tensors(self):
        half = [("half", "int16", SIZE, SHAPE)] if self.checks else []
        args = [("@arguments", "uint8", len(self.args), (len(self.args),))] if self.calls is not None else []
        return [*TENSORS, *half, *args]

    def bytes_of(self, tensor):
        """Return the memory of a tensor, given by index or name."""
        names = [name for name, *_ in self.tensors]
        index = names.index(tensor) if isinstance(tensor, str) else tensor
        return self.args if names[index] == "@arguments" else self.memory[index]

    def call(self, operator, device):
        """Call operator 0: x, k, y. Operator 1 fails."""
        assert self.calls is not None and self.opened
        self.calls.append((operator, device))
        if operator == 1:
            return (-116, "ETIMEDOUT", -116, "sync", "npu0", "", -1, 5)
        x, k, y = struct.unpack_from("<QqQ", self.args)
        values = struct.unpack_from(f"<{SHAPE[1]}h", self.args, x)
        struct.pack_into(f"<{SHAPE[1]}h", self.args, y, *(value + k for value in values))
        return (0, "", 0, "", "", "", -1, 2000)

    def until(self, point):
        """Run until a point; return None at the stop."""
        if point == 1 and not self.fails:
            self.point = point
            self.memory.append(self.memory[0][:])
            return None
        self.point = None
        return self.act(1)

    def act(self, action):
        if action == 1:
            self.runs += 1
            if self.fails:
                return (-5, "EIO", 77, "", "", "double", 3, 10)
            self.memory[1][:] = (2 * np.frombuffer(self.memory[0], np.int16)).tobytes()
        self.opened = action != 2
        return (0, "", 0, "", "", "", -1, 1234567 + self.runs)


REPORT = ("result", "error", "code", "hook", "device", "operator", "step", "ns")
"""The values that a model returns."""


class SmpBoard:
    """The SMP server of an image, like MCUmgr's."""

    def __init__(self, model, *, buffer=384, groups=(GROUP, 0)):
        self.model = model
        self.buffer = buffer
        self.groups = groups
        self.lines = b""
        self.decoder = packet.decode()
        next(self.decoder)
        self.requests: list[tuple[int, int, dict]] = []
        self.lose: set[int] = set()
        """The numbers of the requests without a response."""
        self.unplug_at: int | None = None
        self.chatter = b""
        """Console output before every response."""

    def __call__(self, data):
        self.lines += data
        back = b""
        while b"\n" in self.lines:
            line, self.lines = self.lines.split(b"\n", 1)
            start = max(line.find(packet.START_DELIMITER), line.find(packet.CONTINUE_DELIMITER))
            if start < 0:
                continue
            try:
                self.decoder.send(line[start:] + b"\n")
            except StopIteration as whole:
                self.decoder = packet.decode()
                next(self.decoder)
                back += self._frame(whole.value)
        return back

    def _frame(self, frame):
        assert len(frame) + 4 <= self.buffer, "longer than the server's buffer"
        header = Header.loads(frame[:8])
        request = cbor2.loads(frame[8:])
        self.requests.append((header.group_id, header.command_id, request))
        number = len(self.requests)
        if number == self.unplug_at:
            raise UnpluggedError
        payload = cbor2.dumps(self._answer(header, request))
        if number in self.lose:
            return b""
        place = (header.group_id, header.sequence, header.command_id)
        answer = Header(OP(header.op + 1), Version.V2, Flag(0), len(payload), *place)
        assert len(payload) + 8 <= self.buffer
        return self.chatter + b"".join(packet.encode(bytes(answer) + payload))

    def _answer(self, header, request):
        model = self.model
        if header.group_id not in self.groups:
            return {"rc": 8}
        if header.group_id == GroupId.OS_MANAGEMENT:
            return {"buf_size": self.buffer, "buf_count": 4}
        if model.locked:
            return {"rc": 11}
        if request.get("model", 0) != 0:
            return {"rc": 5}
        match header.command_id, header.op:
            case 0, OP.READ:
                buffers = {"buffers": 1} if model.checks else {}
                extra = {"arguments": 1} if model.calls is not None else {}
                return {"service": 1, "models": 1, "name": "twice", "inputs": 1, "outputs": 1, **buffers, **extra}
            case 1, OP.READ:
                name, dtype, size, shape = model.tensors[request["tensor"]]
                return {"name": name, "dtype": dtype, "size": size, "shape": list(shape)}
            case 2, OP.READ:
                data = model.bytes_of(request["tensor"])[request["off"] :][: self.buffer - 48]
                return {"off": request["off"], "data": bytes(data)}
            case 2, OP.WRITE:
                end = request["off"] + len(request["data"])
                model.bytes_of(request["tensor"])[request["off"] : end] = request["data"]
                return {"off": end}
            case 3, OP.WRITE:
                return dict(zip(REPORT, model.act(request["do"]), strict=True))
            case 4, OP.READ:
                return {"points": len(POINTS), "hz": HZ, "used": STACK_USED, "stack": STACK_SIZE}
            case 5, OP.READ:
                keys = ("kind", "name", "step", "device", "runs", "last", "min", "max", "total")
                return dict(zip(keys, POINTS[request["point"]], strict=True))
            case 6, OP.WRITE if model.checks:
                report = model.until(request["point"])
                rest = dict(zip(REPORT, report or (0, "", 0, "", "", "", -1, 0), strict=True))
                return {"stopped": int(report is None), **rest}
            case 7, OP.WRITE if model.calls is not None:
                return dict(zip(REPORT, model.call(request["operator"], request["device"]), strict=True))
        return {"rc": 8}


class ShellBoard:
    """The shell of an image, with prompt, colours and echo."""

    CHUNK = 100

    def __init__(self, model, *, has_service=True):
        self.model = model
        self.has_service = has_service
        self.typed = b""
        self.requests: list[str] = []
        self.lose: set[int] = set()
        self.garble: set[int] = set()
        """The numbers of the responses that lose a character."""
        self.unplug_at: int | None = None

    def __call__(self, data):
        self.typed += data
        back = data.replace(b"\n", b"\r\n")
        while b"\n" in self.typed:
            line, self.typed = self.typed.split(b"\n", 1)
            if not line:
                continue
            self.requests.append(line.decode())
            number = len(self.requests)
            if number == self.unplug_at:
                raise UnpluggedError
            answer = self._answer(line.decode().split()[1:])
            if number in self.lose:
                answer = ""
            if number in self.garble:
                answer = answer[:-2] + answer[-1]
            back += f"\x1b[8D\x1b[J{answer}\x1b[1;32muart:~$ \x1b[m".replace("\n", "\r\n").encode()
        return back

    def _answer(self, words):
        model = self.model
        if not self.has_service:
            return "opwest: command not found\n"
        if model.locked:
            return "@opwest error -13 EACCES\n"
        verbs = ["open", "run", "close"]
        match words:
            case ["describe"]:
                rows = [f"@opwest service 1 1 {self.CHUNK}", "@opwest model twice"]
                for name, dtype, size, shape in model.tensors:
                    role = {"x": "input", "y": "output", "half": "buffer"}.get(name, "arguments")
                    rows.append(f"@opwest {role} {name} {dtype} {size} {' '.join(map(str, shape))}")
                return "\n".join([*rows, "@opwest end", ""])
            case [verb, "twice"] if verb in verbs:
                return _done(model.act(verbs.index(verb)))
            case ["call", "twice", operator, device] if model.calls is not None:
                return _done(model.call(int(operator), int(device)))
            case ["until", "twice", point] if model.checks:
                report = model.until(int(point))
                return _done(report) if report is not None else f"@opwest stopped {point}\n"
            case ["measures", "twice"]:
                rows = [f"@opwest measures {len(POINTS)} {HZ} {STACK_USED} {STACK_SIZE}"]
                rows += [f"@opwest point {i} {' '.join(map(str, point))}" for i, point in enumerate(POINTS)]
                return "\n".join([*rows, "@opwest end", ""])
            case ["write", "twice", name, offset, text]:
                at = int(offset)
                model.bytes_of(name)[at : at + len(text) // 2] = bytes.fromhex(text)
                return f"@opwest wrote {at} {len(text) // 2}\n"
            case ["read", "twice", name, offset]:
                part = model.bytes_of(name)[int(offset) :][: self.CHUNK]
                return f"@opwest data {offset} {len(part)} {part.hex()}\n"
        return "@opwest error -2 ENOENT\n"


def _done(report):
    return f"@opwest done {' '.join(str(word) or '-' for word in report)}\n"


def server(kind, model):
    return SmpBoard(model) if kind == "smp" else ShellBoard(model)


def answer_of(board, frame):
    """Return the response of a server to a frame."""
    assert len(frame) <= board.buffer, "longer than the server's buffer"
    header, request = Header.loads(frame[:8]), cbor2.loads(frame[8:])
    board.requests.append((header.group_id, header.command_id, request))
    payload = cbor2.dumps(board._answer(header, request))
    place = (header.group_id, header.sequence, header.command_id)
    return bytes(Header(OP(header.op + 1), Version.V2, Flag(0), len(payload), *place)) + payload


class UdpBoard:
    """A server on this machine; `lose` are the numbers of the datagrams without a response, and `twice` of two."""

    def __init__(self, board, lose=(), twice=()):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._parts = (board, lose, twice)
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return Udp(*self._socket.getsockname())

    def _serve(self):
        board, lose, twice = self._parts
        number = 0
        while (received := self._socket.recvfrom(4096))[0] != b"end":
            number += 1
            answer = answer_of(board, received[0])
            for _ in range(0 if number in lose else 2 if number in twice else 1):
                self._socket.sendto(answer, received[1])
        self._socket.close()

    def __exit__(self, *_):
        self._socket.sendto(b"end", self._socket.getsockname())

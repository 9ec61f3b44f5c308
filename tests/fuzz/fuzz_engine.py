# SPDX-License-Identifier: Apache-2.0
"""The loop: mutate, read, keep new results, minimise and store failures. All in one process, with limits."""

import fcntl
import hashlib
import mmap
import os
import resource
import signal
import struct
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzz_mutators import LONGEST
from fuzz_readers import Read, Reader

REGRESSIONS = Path(__file__).parent / "regressions.zip"
"""Inputs that caused failures, as READER/DIGEST."""
CPU_SECONDS = 5.0
"""The limits of one input."""
MEMORY = 4 << 30
_CORPUS = 400
_MINIMISING = 2_000
"""The limit of executions to minimise one failure."""


class TooSlowError(Exception):
    """One input exceeded the limit of processor time."""


@dataclass(frozen=True)
class Failure:
    """An input that causes a failure of a reader."""

    reader: str
    key: str
    """The exception and the innermost position in opwest, which usually identify one defect."""
    content: bytes = field(repr=False)
    trace: str = field(repr=False)

    @property
    def name(self) -> str:
        """The name under which it is stored for the suite."""
        return f"{self.reader.replace(' ', '_')}/{hashlib.sha256(self.content).hexdigest()[:12]}"


def stored() -> dict[str, bytes]:
    """Return the stored inputs by name."""
    with zipfile.ZipFile(REGRESSIONS) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def store(name: str, content: bytes) -> None:
    """Store an input; several processes may do so at once."""
    with REGRESSIONS.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            if name not in archive.namelist():
                archive.writestr(name, content)


class Current:
    """The current input, in a file that is kept after a crash: LLVM, tree-sitter and libyaml are C."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(LONGEST + 24))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def note(self, number: int, content: bytes) -> None:
        """Store an input and its number."""
        self._map[16 : 16 + len(content)] = content
        self._map[:16] = struct.pack("<QQ", number, len(content))

    @staticmethod
    def read(path: Path) -> tuple[int, bytes]:
        """Return the stored number and input of an ended process."""
        data = path.read_bytes()
        number, size = struct.unpack_from("<QQ", data)
        return number, data[16 : 16 + size]


def limit_process() -> None:
    """Limit the resources of one input in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def slow(_signal: int, _frame: object) -> None:
        raise TooSlowError(f"more than {CPU_SECONDS} s")

    signal.signal(signal.SIGPROF, slow)


def attempt(reader: Reader, read: Read, content: bytes) -> str | Failure:
    """Read one input; return the result or the failure."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        return read(content)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a reader may not raise any other exception
        signal.setitimer(signal.ITIMER_PROF, 0)
        return Failure(reader.name, _key(error), content, "".join(traceback.format_exception(error))[-4000:])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _key(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if "/opwest/" in f.filename] or frames[-1:]
    where = f"{Path(inside[-1].filename).name}:{inside[-1].name}" if inside else "?"
    return f"{type(error).__name__} in {where}"


def fuzz(
    reader: Reader,
    folder: Path,
    *,
    seed: int,
    runs: int,
    seconds: float | None = None,
    start: int = 0,
    note: Callable[[int, bytes], None] = lambda _number, _content: None,
) -> Iterator[int | Failure]:
    """Run `reader` on `runs` inputs; yield each new failure, and at the end the number of inputs."""
    home = Path.cwd()
    read = reader.reading(folder)
    chance = Random(f"{reader.name}/{seed}/{start}")
    seeds = reader.inputs()
    corpus, outcomes, broken = list(seeds), set[str](), set[str]()
    end = None if seconds is None else time.monotonic() + seconds
    number = start
    try:
        for number in range(start, runs):
            if number - start < len(seeds):
                content = seeds[number - start]
            else:
                base = chance.choice(seeds) if chance.random() < 0.4 else corpus[chance.randrange(len(corpus))]
                content = reader.mutate(base, chance, corpus)
            note(number, content)
            result = attempt(reader, read, content)
            if isinstance(result, Failure):
                if result.key not in broken:
                    broken.add(result.key)
                    yield minimised(reader, read, result, note)
            elif result not in outcomes and len(corpus) < _CORPUS:
                outcomes.add(result)
                corpus.append(content)
            if end is not None and time.monotonic() > end:
                break
        yield number + 1
    finally:
        os.chdir(home)


def minimised(reader: Reader, read: Read, failure: Failure, note: Callable[[int, bytes], None]) -> Failure:
    """Return a minimised failure with the same key."""
    best, left = failure, _MINIMISING
    size = max(1, len(best.content) // 2)
    while size and left > 0:
        at, smaller = 0, False
        while at < len(best.content) and left > 0:
            content = best.content[:at] + best.content[at + size :]
            left -= 1
            note(0, content)
            found = attempt(reader, read, content)
            if isinstance(found, Failure) and found.key == best.key:
                best, smaller = found, True
            else:
                at += size
        if not smaller or size > len(best.content):
            size //= 2
    return best

# SPDX-License-Identifier: Apache-2.0
"""Random schedules of uploads, installations, resets and changes of flash, compared with a model of the manager."""

import dataclasses
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bundle_files import Signer, Variant, signed_part, version_of
from campaign import sized
from core_board import NONE, Board, Fault, State, code

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
SLOTS = 3
STAGES = "read_back format signature slot abi descriptor devices memory downgrade whole trial".split()
"""The order of the checks."""
EVENTS: Counter[str] = Counter()


@dataclass(frozen=True)
class File:
    """A file and what the manager finds in it."""

    content: bytes
    name: str = ""
    version: int = 0
    mark: int = 0
    slot: int = NONE
    stage: str | None = None
    fault: Fault = Fault.GOOD


def files() -> list[File]:
    """Good models of two names for every slot, and one of each bad kind for every slot."""
    signer, other = Signer(), Signer("other")
    found = []
    for slot in range(SLOTS):
        for mark, (name, version) in enumerate((("one", 1), ("one", 2), ("one", 3), ("two", 1), ("two", 5)), 1):
            variant = Variant(name=name, mark=100 * mark + slot, slot=slot)
            part = signed_part(variant, version=version_of(version))
            found.append(File(signer.bundle(part), name, version_of(version), variant.mark, slot))
        base = Variant(mark=900, slot=slot)
        bad: list[tuple[str, Fault, bytes]] = []
        for stage, fault, variant, fields in (
            ("format", Fault.FORMAT, base, {"format": 3}),
            ("format", Fault.HEADER, base, {"image_size": 1 << 30}),
            ("abi", Fault.MACHINE, base, {"machine": 40}),
            ("abi", Fault.MACHINE, base, {"pointer_size": 4}),
            ("abi", Fault.FLOAT_ABI, base, {"float_abi": 2}),
            ("abi", Fault.CPU, base, {"cpu": 2}),
            ("abi", Fault.LAYOUT, base, {"metadata_version": 99}),
            ("abi", Fault.LAYOUT, base, {"host_version": 9}),
            ("abi", Fault.LAYOUT, base, {"layout": 2}),
            ("descriptor", Fault.DESCRIPTOR, base, {"workspace_size": 8}),
            ("descriptor", Fault.DESCRIPTOR, dataclasses.replace(base, broken="BUFFERS"), {}),
            ("descriptor", Fault.NO_VECTOR, dataclasses.replace(base, vectors=0), {}),
            ("devices", Fault.DEVICES, dataclasses.replace(base, devices=1), {}),
            ("memory", Fault.MEMORY, dataclasses.replace(base, pool_size=2000), {}),
            ("trial", Fault.VECTOR, dataclasses.replace(base, wrong=2), {}),
            ("trial", Fault.RUN, dataclasses.replace(base, run_code=-71), {}),
            ("trial", Fault.RUN, dataclasses.replace(base, open_code=-19), {}),
        ):
            bad.append((stage, fault, signer.bundle(signed_part(variant, version=version_of(9), **fields))))
        part = signed_part(base, version=version_of(9))
        whole = signer.bundle(part)
        bad += [
            ("signature", Fault.SIGNATURE, other.bundle(part)),
            ("signature", Fault.SIGNATURE, whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:]),
            ("signature", Fault.SIGNATURE, whole[:700] + bytes([whole[700] ^ 1]) + whole[701:]),
            ("format", Fault.SIZE, whole[:600]),
            ("whole", Fault.SIZE, whole + bytes(16)),
            ("format", Fault.NO_BUNDLE, b"no bundle at all"),
        ]
        found += [File(content, "one", version_of(9), 900, slot, stage, fault) for stage, fault, content in bad]
    return found


@dataclass
class Model:
    """What the manager should do: written from the comments of opwest/bundles.h."""

    waits: bool
    allows: bool
    limit: int
    state: State = field(default_factory=State)
    slots: list[File | None] = field(default_factory=lambda: [None] * SLOTS)
    """The complete files; None for an erased or incomplete one."""
    damaged: set[int] = field(default_factory=set)
    floors: dict[str, int] = field(default_factory=dict)
    current: int = NONE
    upload: tuple[File, int, int] | None = None
    """The file, its slot, and the offset."""

    def set(self, **changes: int) -> None:
        self.state = dataclasses.replace(self.state, **changes)

    def is_usable(self, slot: int) -> bool:
        file = self.slots[slot] if slot != NONE else None
        return file is not None and slot not in self.damaged and (file.stage in (None, "trial"))

    def start(self) -> int:
        self.upload, self.current = None, NONE
        if self.state.trying != NONE:
            self.set(trying=NONE, fault=Fault.UNCONFIRMED)
        active, previous = self.state.active, self.state.previous
        if self.limit and self.state.crashes >= self.limit and self.is_usable(previous):
            self.current = previous
            self.set(active=previous, previous=NONE, crashes=0, fault=Fault.CRASHES)
        elif self.is_usable(active):
            self.current = active
        elif self.is_usable(previous):
            self.current = previous
            damaged = active in self.damaged
            assert damaged or active == NONE
            self.set(active=previous, previous=NONE, crashes=0, fault=Fault.SIGNATURE if damaged else Fault.GOOD)
        if self.current != NONE and self.state.crashes < self.limit:
            self.set(crashes=self.state.crashes + 1)
        return 0 if self.current != NONE else code("ENOENT")

    def target(self) -> int:
        free = [slot for slot in range(SLOTS) if slot not in (self.state.active, self.state.trying, self.current)]
        return min(free, key=lambda slot: (slot == self.state.previous, slot), default=NONE)

    def begin(self, slot: int, file: File) -> tuple[int, int]:
        if self.state.trying != NONE:
            return code("EBUSY"), 0
        if self.upload is not None and self.upload[0].content == file.content and slot in (NONE, self.upload[1]):
            return 0, self.upload[2]
        slot = self.target() if slot == NONE else slot
        if slot >= SLOTS:
            return code("ENOENT"), 0
        if slot in (self.state.active, self.current):
            return code("EBUSY"), 0
        if slot == self.state.previous:
            self.set(previous=NONE)
        self.slots[slot] = None
        self.damaged.discard(slot)
        self.upload = (file, slot, 0)
        return 0, 0

    def write(self, offset: int, size: int) -> tuple[int, int]:
        if self.upload is None:
            return code("EPERM"), 0
        file, slot, at = self.upload
        if offset + size > len(file.content):
            return code("EFBIG"), at
        if offset == at:
            at += size
            self.upload = (file, slot, at)
            if at == len(file.content):
                self.slots[slot] = file
        return 0, at

    def fault_of(self, slot: int, is_upload: bool) -> tuple[str, Fault] | None:
        file = self.slots[slot]
        if file is None:
            return ("format", Fault.NO_BUNDLE)
        found = []
        if slot in self.damaged:
            found.append(("read_back", Fault.READ_BACK) if is_upload else ("signature", Fault.SIGNATURE))
        if file.stage is not None and (is_upload or file.stage != "whole"):
            found.append((file.stage, file.fault))
        if file.slot != slot:
            found.append(("slot", Fault.SLOT))
        if file.version < self.floors.get(file.name, 0) and not self.allows:
            found.append(("downgrade", Fault.DOWNGRADE))
        return min(found, key=lambda one: STAGES.index(one[0]), default=None)

    def confirm_slot(self, slot: int, previous: int) -> None:
        file = self.slots[slot]
        assert file is not None
        self.floors[file.name] = max(file.version, self.floors.get(file.name, 0))
        self.set(active=slot, trying=NONE, previous=previous, crashes=0, fault=Fault.GOOD)

    def replace(self, slot: int, is_upload: bool) -> tuple[int, Fault]:
        fault = self.fault_of(slot, is_upload)
        if fault is not None:
            if fault[0] == "trial":
                self.set(fault=fault[1])
            return code("EBADMSG"), fault[1]
        if is_upload and self.waits:
            self.set(trying=slot)
        else:
            self.confirm_slot(slot, self.current)
        self.current = slot
        return 0, Fault.GOOD

    def install(self) -> tuple[int, Fault]:
        if self.state.trying != NONE:
            return code("EBUSY"), Fault.GOOD
        if self.upload is None or self.upload[2] < len(self.upload[0].content):
            return code("EPERM"), Fault.GOOD
        slot = self.upload[1]
        self.upload = None
        return self.replace(slot, True)

    def confirm(self) -> int:
        if self.state.trying == NONE:
            return code("EPERM")
        self.confirm_slot(self.state.trying, self.state.active)
        return 0

    def roll_back(self) -> tuple[int, Fault]:
        if self.state.trying != NONE:
            active = self.state.active
            if active != NONE and active in self.damaged:
                return code("EBADMSG"), Fault.SIGNATURE
            self.set(trying=NONE, fault=Fault.UNCONFIRMED)
            self.current = active
            return (0 if active != NONE else code("ENOENT")), Fault.GOOD
        if self.state.previous == NONE:
            return code("ENOENT"), Fault.GOOD
        return self.replace(self.state.previous, False)

    def mark(self) -> int:
        file = self.slots[self.current] if self.current != NONE else None
        return file.mark if file is not None else code("ENOENT")


def step(board: Board, model: Model, choice: random.Random, every: list[File], offset: int) -> int:
    """Execute one random operation on both; return the offset that a client assumes."""
    what = choice.choices(
        ("send", "begin", "write", "install", "confirm", "roll_back", "healthy", "reset", "flip", "run"),
        (30, 4, 10, 24, 8, 8, 3, 8, 2, 6),
    )[0]
    slot = choice.choice((NONE, NONE, NONE, 0, 1, 2, 3))
    target = model.target() if slot == NONE else slot
    suited = [file for file in every if file.slot == target] or every
    file = choice.choice(suited[:5] if choice.random() < 0.6 else suited if choice.random() < 0.9 else every)
    EVENTS[what] += 1
    if what == "send":
        expected, at = model.begin(slot, file)
        if expected == 0:
            model.write(at, len(file.content) - at)
        assert board.send(board.file(file.content), slot) == expected
    elif what == "begin":
        expected, at = model.begin(slot, file)
        assert board("begin", slot, board.file(file.content)) == [str(expected), str(at)]
    elif what == "write" and model.upload is not None:
        file = model.upload[0]
        at = choice.choice((model.upload[2], model.upload[2], offset, choice.randrange(len(file.content) + 1)))
        size = choice.choice((1, 50, 700, len(file.content) - at, len(file.content) - at + 1))
        size = max(size, 0)
        answer = model.write(at, size)
        assert board("write", board.file(file.content), at, size) == list(map(str, answer))
        return at
    elif what in ("install", "roll_back"):
        expected, fault = model.install() if what == "install" else model.roll_back()
        verdict = board.install() if what == "install" else board.roll_back()
        assert (verdict.rc, verdict.fault) == (expected, fault), (verdict, expected, fault)
        EVENTS[f"{what} {verdict.fault.name} {verdict.rc}"] += 1
    elif what == "confirm":
        assert board.rc("confirm") == model.confirm()
    elif what == "healthy":
        model.set(crashes=0)
        assert board.rc("healthy") == 0
    elif what == "reset":
        assert board.start() == model.start()
        assert board.session() == 0
    elif what == "flip":
        full = [one for one in range(SLOTS) if model.slots[one] is not None and one not in model.damaged]
        full = [one for one in full if one != model.current]
        if full:
            chosen = choice.choice(full)
            held = model.slots[chosen]
            assert held is not None
            if held.stage is None:  # a byte of its code, without an effect on the checks before
                model.damaged.add(chosen)
                board("flip", chosen, 600, 1)
    assert board.mark() == model.mark()
    assert board.state() == model.state
    return offset


def play(seed: int, turn: int, every: list[File], work: Path) -> None:
    choice = random.Random(f"{seed} {turn}")
    waits, allows, limit = bool(turn & 1), choice.random() < 0.25, choice.choice((0, 0, 2))
    write_size = choice.choice((1, 4, 32))
    board = Board(work, slots=SLOTS, write_size=write_size, waits=int(waits), downgrade=int(allows), crash_limit=limit)
    model = Model(waits, allows, limit)
    assert board.start() == model.start() and board.session() == 0
    offset = 0
    for _ in range(600):
        offset = step(board, model, choice, every, offset)
    for slot in range(SLOTS):
        letters = board.listed(slot)[2]
        assert ("A" in letters) == (slot == model.state.active) and ("N" in letters) == (slot == model.target())
    board.close()


@pytest.mark.slow
def test_random_schedules(tmp_path: Path) -> None:
    every = files()
    for seed in range(sized(6, 200)):
        for turn in range(4):
            play(seed, turn, every, tmp_path)
    print(EVENTS)
    reached = {key.split()[1] for key in EVENTS if key.startswith("install ")}
    missing = {fault.name for fault in Fault} - reached
    assert missing == {"KIND", "STORAGE", "UNCONFIRMED", "CRASHES"}, "those of other tests, and of no installation"
    assert EVENTS["install GOOD 0"] > 200 and EVENTS["roll_back GOOD 0"] > 50

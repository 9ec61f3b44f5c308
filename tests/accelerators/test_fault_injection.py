# SPDX-License-Identifier: Apache-2.0
"""Failures of each call of open, run and close, and of each pair: calls, errors and status are as specified."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import projects
import pytest
from accelerators_support import PROGRAMS, build, generate_quickly, play
from campaign import sized
from fault_models import SUBJECTS
from fault_named import Named, uses
from fault_oracle import AGAIN, BUSY, EXCLUSIVE, FREE, LOADS, TIMED_OUT, WOKEN, Oracle, Properties
from fault_subjects import ALL_HOOKS, Subject, glue
from opwest.base.diagnostics import Diagnostics
from session_support import made_once


@dataclass(frozen=True)
class Case:
    subject: Subject
    ending: str
    masks: tuple[int, int, int]
    faults: tuple[tuple[int, int, int], ...] = ()
    """Position, code, further calls of the same kind that fail; -1 for all."""
    cancel: int = -1
    properties: tuple[Properties, Properties, Properties] = (Properties(),) * 3
    uses: str = ""
    """Calls by name before the first run."""
    null: int = -1
    """The index of a member of the context that is NULL at the first open."""

    def changed(self, ending: str, faults: tuple[tuple[int, int, int], ...], cancel: int = -1) -> "Case":
        """Return another case; dataclasses.replace() takes four times as long, and most cases are left out."""
        return Case(self.subject, ending, self.masks, faults, cancel, self.properties, self.uses)

    @property
    def line(self) -> str:
        listed = "".join(f" {position} {code} {repeats}" for position, code, repeats in self.faults)
        masks = " ".join(f"{mask:x}" for mask in self.masks)
        devices = " ".join(f"{p.depth} {p.switching} {p.hidden}" for p in self.properties)
        head = f"{self.subject.name} {self.ending} {self.null} {self.cancel} {masks} {devices}"
        return f"{head} {self.uses or '-'} {len(self.faults)}{listed}"


def play_oracle(case: Case) -> Oracle:
    faults = {position: (code, repeats) for position, code, repeats in case.faults}
    oracle = Named(case.subject, case.masks, faults, case.ending, case.properties, case.cancel, case.uses, case.null)
    oracle.play()
    return oracle


def codes(subject: Subject, token: str) -> list[tuple[int, int]]:
    """Return the faults that are injected at a call, with their repeats."""
    if token.startswith("op"):
        found = [(-7, 0), (7, 0), (TIMED_OUT, 0), (-(2**31), 0)]
        return found + [(AGAIN, n) for n in (0, 1, -1)] if "@" in token else found
    if token[0] in "RHP":
        return [(-13 if token[0] == "P" else -1, 0)]
    if token[0] == "S":
        # Without wake() a driver is asked again until the end of its time: ten times for 100 ms.
        found = [(-71, 0), (TIMED_OUT, 0), (TIMED_OUT, 11), (WOKEN, 0), (WOKEN, 2)]
        return [*found, *([(AGAIN, 0)] * token.endswith(":0"))]
    if token[0] in "IKL":
        return [(-22, 0), *([(BUSY, 0)] * (token[0] == "L"))]
    found = [(-14, 0), (TIMED_OUT, 0), (3, 0)]
    if token[0] == "O":
        # A device whose own_timeout_ms is unlimited is not busy for ever.
        members = [m for m in subject.members if m.handle == int(token[1])]
        found += [(BUSY, 0), (BUSY, 1), *([(BUSY, -1)] * (members[0].own_timeout is not None))]
    return found if token[0] in "AOCD" else [(-14, 0)]


def calls_before_recovery(oracle: Oracle) -> int:
    """Return the number of calls before the last open, run and close, which must succeed."""
    return len(oracle.history) - sum(tokens(line) for line in oracle.lines[-3:])


def masks_of(subject: Subject) -> tuple[int, int, int]:
    """A device that is not an accelerator has no hooks."""
    plain = {m.handle for m in subject.members if m.kind == "plain"}
    return tuple(0 if handle in plain else ALL_HOOKS for handle in range(3))  # type: ignore[return-value]


def full(subject: Subject) -> Case:
    return Case(subject, "c", masks_of(subject))


def position_of(case: Case) -> int:
    """Return the position of the first fault, or of the cancellation."""
    return case.faults[0][0] if case.faults else case.cancel


def single(good: Case) -> Iterator[Case]:
    """One fault, or one cancellation, at each call."""
    oracle = play_oracle(good)
    for position, token in enumerate(oracle.history[: calls_before_recovery(oracle)]):
        for (code, repeats), ending in itertools.product(codes(good.subject, token), "cr"):
            yield good.changed(ending, ((position, code, repeats),), good.cancel)
        if oracle.running[position]:
            yield from (good.changed(ending, good.faults, position) for ending in "cr")


def some(cases: Iterable[Case], every: int, in_campaign: int = 1) -> Iterator[Case]:
    """Return one of `every` cases; in a campaign all of them, or one of `in_campaign`."""
    return itertools.islice(cases, 0, None, sized(every, in_campaign))


def double(good: Case) -> Iterator[Case]:
    """Two faults, or a fault and a cancellation: the second is in a call after the first."""
    for first in some(single(good), 23, 5):
        if first.ending == "c":
            after = play_oracle(first)
            for second in range(position_of(first) + 1, calls_before_recovery(after)):
                for code, repeats in codes(good.subject, after.history[second])[:2]:
                    yield first.changed(first.ending, (*first.faults, (second, code, repeats)), first.cancel)
                if first.cancel < 0 and after.running[second]:
                    yield first.changed(first.ending, first.faults, second)


def tokens(line: str) -> int:
    """Return the number of positions of a line: a call of wake() has none."""
    return sum(token[0] != "W" for token in line.partition(":")[2].split())


def two_runs(good: Case) -> Iterator[Case]:
    """Two consecutive failing runs: the first does not affect the second."""
    seen = set()
    for first in some(single(good), 7):
        after = play_oracle(replace(first, ending="s"))
        which = (position_of(first), first.cancel)
        if which in seen or not re.match(r"run -.*opened:", after.lines[1]):
            continue
        seen.add(which)
        start = sum(tokens(line) for line in after.lines[:2])
        for second in range(start, start + tokens(after.lines[2])):
            for code, repeats in codes(good.subject, after.history[second])[:2]:
                yield first.changed("s", (*first.faults, (second, code, repeats)), first.cancel)


def lacking(masks: tuple[int, int, int], handle: int) -> Iterator[tuple[int, int, int]]:
    """Return the masks without one or two hooks of a device, with only one of them, and with none."""
    bits = [1 << n for n in range(ALL_HOOKS.bit_length() - 1)]  # without notify(), which no run calls
    pairs = [a | b for a, b in itertools.combinations(bits, 2)]
    for mask in [*(ALL_HOOKS & ~b for b in (*bits, *pairs)), *bits, 0]:
        yield tuple(mask if n == handle else m for n, m in enumerate(masks))  # type: ignore[misc]


def varied(subject: Subject) -> Iterator[Case]:
    """Devices with queues of 1 to 3 jobs, described or not, and each cost of programs."""
    for depth, hidden, switching in itertools.product(range(4), range(4), (FREE, LOADS)):
        if (depth, hidden, switching) != (0, 0, LOADS):
            yield replace(full(subject), properties=(Properties(depth, switching, hidden),) * 3)


def named(subject: Subject) -> Iterator[Case]:
    """Calls by name, also with queues that the driver describes, and that it does not."""
    for calls in uses(subject):
        for properties in (Properties(), Properties(1), Properties(3, FREE), Properties(hidden=1)):
            yield replace(full(subject), uses=calls, properties=(properties,) * 3)


def cases() -> list[Case]:
    """Return a sample of all cases, or all of them in a campaign."""
    by_name = {subject.name: subject for subject in SUBJECTS}
    found: list[Case] = []
    for subject in SUBJECTS:
        good = full(subject)
        found += [replace(good, null=index) for index in range(len(subject.members))]
        found += [good, *some(single(good), 3), *some(double(good), 11), *some(two_runs(good), 5)]
        for case in some(varied(subject), 3):
            found += some(single(case), 31, 3)
        for number, case in enumerate(named(subject)):
            found += [case, *some(itertools.islice(single(case), number % 7, None), 61, 3)]
            found += some(itertools.islice(double(case), number % 7, None), 997, 17)
    for name, handle in (("one_async", 1), ("two_async", 2), ("two_sync", 0), ("programs", 1), ("falling", 2)):
        for masks in lacking(masks_of(by_name[name]), handle):
            found += some(single(replace(full(by_name[name]), masks=masks)), 41, 3)
            calls = uses(by_name[name])
            found.append(replace(full(by_name[name]), masks=masks, uses=calls[sum(masks) % len(calls)]))
    exclusive = replace(full(by_name["alone"]), properties=(Properties(switching=EXCLUSIVE),) * 3)
    return [*found, *some(single(exclusive), 3), *some(double(exclusive), 11)]


@pytest.fixture(scope="module")
def script():
    return [(case, play_oracle(case)) for case in cases()]


@pytest.fixture(scope="module")
def program(metadata):
    return made_once(f"accelerators/faults_{metadata}", lambda work: _build(work, metadata)) / "build" / "program"


def _build(work, metadata):
    manifests = [subject.write(work / "source" / subject.name) for subject in SUBJECTS]
    models = [model for model, _ in projects.check(manifests, Diagnostics())]
    placed = {m.name: {t.name for t in (*m.inputs, *m.outputs) if t.placed} for m in models}
    app = generate_quickly(manifests, work / "app", metadata=metadata)
    (work / "glue.c").write_text(glue(SUBJECTS, placed))
    sources = [work / "glue.c", PROGRAMS / "journal.c", PROGRAMS / "journal_device.c"]
    build(app, work / "build", sources, without=("port_host.c", "port_host_cache.c"))


def test_every_call_may_fail(program, script, record_property):
    text = play(program, "".join(case.line + "\n" for case, _ in script))
    assert "VIOLATION" not in text, next(line for line in text.splitlines() if "VIOLATION" in line)
    found = text.split(".\n")
    assert len(found) == len(script) + 1
    for (case, oracle), output in zip(script, found, strict=False):
        assert output.splitlines() == oracle.lines, f"{case.line}\n{output}\nexpected\n" + "\n".join(oracle.lines)
    singles = sum(len(case.faults) == 1 and case.cancel < 0 for case, _ in script)
    doubles = sum(len(case.faults) == 2 for case, _ in script)
    cancelled = sum(case.cancel >= 0 for case, _ in script)
    lost = sum(not case.uses and any("run -1 " in line for line in oracle.lines) for case, oracle in script)
    again = sum(any(code == AGAIN for _, code, _ in case.faults) for case, _ in script)
    print(f"{len(script)} cases: {singles} with one fault, {doubles} with two, {cancelled} cancelled, {again} -EAGAIN")
    record_property("cases", len(script))
    assert min(singles, doubles, cancelled, again) >= sized(300, 3_000)
    assert lost > sized(200, 2_000), "runs after a time-out, which closed the workspace"

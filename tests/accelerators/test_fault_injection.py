# SPDX-License-Identifier: Apache-2.0
"""Failures of each call of open, run and close, and of each pair: calls, errors and status are as specified."""

from __future__ import annotations

import errno
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import projects
import pytest
from accelerators_support import PROGRAMS, build, generate_quickly, made_once, play
from fault_oracle import GOOD, TIMED_OUT, Oracle
from fault_subjects import ALL_HOOKS, SUBJECTS, Subject, glue
from opwest.diagnostics import Diagnostics

FULL = (ALL_HOOKS, ALL_HOOKS, ALL_HOOKS)


@dataclass(frozen=True)
class Case:
    subject: Subject
    ending: str
    masks: tuple[int, int, int]
    faults: tuple[tuple[int, int], ...]

    @property
    def line(self) -> str:
        listed = "".join(f" {position} {code}" for position, code in self.faults)
        masks = " ".join(f"{mask:x}" for mask in self.masks)
        return f"{self.subject.name} {self.ending} -1 {masks} {len(self.faults)}{listed}"


def play_oracle(case: Case) -> Oracle:
    oracle = Oracle(case.subject, case.masks, dict(case.faults), case.ending)
    oracle.play()
    return oracle


def codes(token: str) -> tuple[int, ...]:
    """Return the faults that are injected at a call."""
    if token.startswith("op"):
        return (-7, 7, TIMED_OUT, -(2**31))
    if token[0] in "RH":
        return (-1,)
    if token[0] == "P":
        return (-13,)
    if token[0] == "S":
        return (-71, TIMED_OUT)
    return (-14, TIMED_OUT, 3) if token[0] in "AOCD" else (-14,)


def calls_before_recovery(oracle: Oracle) -> int:
    """Return the number of calls before the last open, run and close, which must succeed."""
    return len(oracle.history) - sum(tokens(line) for line in oracle.lines[-3:])


def masks_of(subject: Subject) -> tuple[int, int, int]:
    """A device that is not an accelerator has no hooks."""
    plain = {m.handle for m in subject.members if m.kind == "plain"}
    return tuple(0 if handle in plain else ALL_HOOKS for handle in range(3))  # type: ignore[return-value]


def single(subject: Subject, masks: tuple[int, int, int]) -> Iterator[Case]:
    good = play_oracle(Case(subject, "c", masks, ()))
    for position, token in enumerate(good.history[: calls_before_recovery(good)]):
        for code, ending in itertools.product(codes(token), "cr"):
            yield Case(subject, ending, masks, ((position, code),))


def double(subject: Subject, masks: tuple[int, int, int]) -> Iterator[Case]:
    """Two faults: the second is in a call after the first."""
    for first in single(subject, masks):
        if first.ending == "c":
            after = play_oracle(first)
            (position, _), *_ = first.faults
            for second in range(position + 1, calls_before_recovery(after)):
                for code in codes(after.history[second])[:2]:
                    yield Case(subject, "c", masks, (*first.faults, (second, code)))


def tokens(line: str) -> int:
    return len(line.partition(":")[2].split())


def two_runs(subject: Subject, masks: tuple[int, int, int]) -> Iterator[Case]:
    """Two consecutive failing runs: the first does not affect the second."""
    seen = set()
    for first in single(subject, masks):
        (position, code), *_ = first.faults
        after = play_oracle(Case(subject, "s", masks, first.faults))
        if position in seen or code == TIMED_OUT or not re.match(r"run -.*opened:", after.lines[1]):
            continue
        seen.add(position)
        start = sum(tokens(line) for line in after.lines[:2])
        for second in range(start, start + tokens(after.lines[2])):
            for other in codes(after.history[second])[:2]:
                yield Case(subject, "s", masks, (*first.faults, (second, other)))


def cases() -> list[Case]:
    found: list[Case] = []
    for subject in SUBJECTS:
        found.append(Case(subject, "c", masks_of(subject), ()))
        found += single(subject, masks_of(subject))
        found += double(subject, masks_of(subject))
        found += two_runs(subject, masks_of(subject))
    by_name = {subject.name: subject for subject in SUBJECTS}
    for mask in range(ALL_HOOKS):
        found += single(by_name["one_async"], (ALL_HOOKS, mask, ALL_HOOKS))
        found += single(by_name["two_async"], (mask, ALL_HOOKS, ALL_HOOKS))
        found += single(by_name["two_sync"], (ALL_HOOKS, ALL_HOOKS, mask))
    return found


@pytest.fixture(scope="module")
def script():
    """Return all cases with the expected output of each."""
    return [(case, play_oracle(case)) for case in cases()]


@pytest.fixture(scope="module")
def program(metadata, request):
    return made_once(request, f"faults_{metadata}", lambda work: _build(work, metadata)) / "build" / "program"


def _build(work, metadata):
    manifests = [subject.write(work / "source" / subject.name) for subject in SUBJECTS]
    models = [model for model, _ in projects.check(manifests, Diagnostics())]
    placed = {m.name: {t.name for t in (*m.inputs, *m.outputs) if t.placed} for m in models}
    app = generate_quickly(manifests, work / "app", metadata=metadata)
    (work / "glue.c").write_text(glue(SUBJECTS, placed))
    sources = [work / "glue.c", PROGRAMS / "journal.c"]
    build(app, work / "build", sources, without=("port_host.c", "port_host_cache.c"))


def test_every_call_may_fail(program, script, record_property):
    text = play(program, "".join(case.line + "\n" for case, _ in script))
    assert "VIOLATION" not in text, next(line for line in text.splitlines() if "VIOLATION" in line)
    found = text.split(".\n")
    assert len(found) == len(script) + 1
    for (case, oracle), output in zip(script, found, strict=False):
        assert output.splitlines() == oracle.lines, f"{case.line}\n{output}\nexpected\n" + "\n".join(oracle.lines)
    singles = sum(len(case.faults) == 1 for case, _ in script)
    doubles = sum(len(case.faults) == 2 for case, _ in script)
    print(f"{len(script)} cases: {singles} with one fault, {doubles} with two")
    record_property("cases", len(script))
    assert singles >= 10_000
    assert doubles >= 4_700


def test_successful_hooks_are_undone_once_in_reverse(program, script):
    """Checks only the recorded calls, without the oracle."""
    text = play(program, "".join(case.line + "\n" for case, _ in script))
    opposite = {"A": "D", "O": "C"}
    for (case, _), output in zip(script, text.split(".\n"), strict=False):
        injected = dict(case.faults)
        if case.masks != masks_of(case.subject):
            continue
        position = 0
        pending: dict[str, list[str]] = {"D": [], "C": []}
        faulty = True
        for number, line in enumerate(output.splitlines()):
            head, _, calls = line.partition(":")
            faulty = faulty and number < len(output.splitlines()) - 3
            if case.ending == "r" and number == 2:
                faulty = False
            for token in calls.split():
                failed = faulty and position in injected
                position += 1
                kind, device = token[0], token[1]
                if kind in opposite and not failed:
                    pending[opposite[kind]].append(device)
                elif kind in pending and token[1].isdigit():
                    assert pending[kind].pop() == device, f"{case.line}\n{output}"
                    assert kind == "C" or not pending["C"], f"deactivated while open: {case.line}\n{output}"
            assert not pending["C"], f"{case.line}\n{output}"
            if "closed" in head:
                assert not pending["D"], f"{case.line}\n{output}"
            rc = int(re.search(r" (-?\d+) \(", head)[1])
            code, _, _, _ = map(int, re.search(r"\((.*)\)", head)[1].split())
            assert rc in (code if code <= 0 else -errno.EIO, -errno.EPERM, -errno.EALREADY), line
        last = r"run, right 0 \(0 65535 0 255\) (moved\+1 )?opened:"
        assert re.match(last, output.splitlines()[-2]), f"{case.line}\n{output}"


def test_timeout_deactivates_all_devices(script):
    """The cases of the oracle cover the intended behaviour: every sync timed out, and the model was opened again."""
    lost = [oracle for case, oracle in script if any("run -1 " in line for line in oracle.lines)]
    waited = [t for oracle in lost for t in oracle.history if t.startswith("S")]
    assert len(lost) > 500
    assert {token[1] for token in waited} == {"0", "1", "2"}
    for oracle in lost:
        at = next(i for i, line in enumerate(oracle.lines) if line.startswith("run -1 "))
        assert oracle.lines[at].endswith("closed:")
        assert oracle.lines[at - 1].startswith("run -")
        assert oracle.status == GOOD


def test_missing_devices(program):
    for subject in SUBJECTS:
        for index, member in enumerate(subject.members):
            masks = " ".join(f"{mask:x}" for mask in masks_of(subject))
            output = play(program, f"{subject.name} c {index} {masks} 0\n").splitlines()
            head, _, calls = output[0].partition(":")
            assert head == f"null {-errno.ENODEV} ({-errno.ENODEV} 65535 1 {index}) closed"
            before = [m for m in subject.members[:index] if m.kind != "foreign"]
            listed = [t for m in before for t in (f"R{m.handle}", f"H{m.handle}")[: 1 + (m.kind == "accelerator")]]
            assert calls.split() == ([] if member.kind == "foreign" else [*listed, "Rnull"])
            assert output[2].startswith("run, right 0")

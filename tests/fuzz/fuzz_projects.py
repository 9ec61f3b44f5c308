# SPDX-License-Identifier: Apache-2.0
"""Readers of the files of opwest in a project: the lock, the journal of an interrupted run, the origin."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fuzz_mutators import mutate_json
from fuzz_readers import Read, Reader
from golden_support import lock_of
from opwest.api.update import UpdateRequest, update_project
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.base.files import ProjectFile
from opwest.project import disk
from opwest.project.journal import Change, Journal
from opwest.project.lock import Lock
from opwest.project.origin import Origin, read_origin
from opwest.project.writer import preview_project, recover
from opwest.runs.arrays import read_runs
from opwest.runs.compile import host_build
from opwest.runs.project_data import choose_model, project_record, tensors_of
from opwest.zephyr.workspace import ZephyrOptions
from write_support import gen, user, write

_WORDS = 12


def _words(fault: OpwestError) -> str:
    assert fault.diagnostics and all(d.message for d in fault.diagnostics)
    assert len(str(fault)) < 10_000
    return " ".join(w for d in fault.diagnostics for w in d.message.split()[:_WORDS] if w.isalpha())


def _lock_seeds() -> Sequence[bytes]:
    found = [lock_of(name) for name in ("minimal", "devices")]
    own = Lock({"models": []}, {"a.c": disk.digest(b"a")}, frozenset(["b.c"]), {"b.c": disk.digest(b"b")})
    return [*found, own.to_bytes()]


def _start_lock(folder: Path) -> Read:
    """Use locks as `opwest run` and `opwest update` do, in a project with a lock only."""
    app = folder / "app"
    (app / ".opwest").mkdir(parents=True)
    (app / "mine").write_bytes(b"mine")
    request = UpdateRequest(lambda boards, version: ZephyrOptions(boards), preview=True)

    def run() -> object:
        record = project_record(app)
        if record is not None:
            model = choose_model(None, app, record)
            host_build(app, model, "x86_64", 64)
            read_runs([], [], 1, tensors_of(model, "input"), Diagnostics())
        return record

    def read(content: bytes) -> str:
        (app / disk.LOCK).write_bytes(content)
        found = []
        for use in (
            run,
            lambda: preview_project(app, [gen("a.c"), user("b.c")], {}),
            lambda: update_project(app, request, Diagnostics()),
        ):
            try:
                found.append(f"{use() is None}")
            except OpwestError as fault:
                found.append(_words(fault))
        assert (app / "mine").read_bytes() == b"mine"
        return " ".join(found)

    return read


def _journal_seeds() -> Sequence[bytes]:
    old, new = disk.digest(b"old"), disk.digest(b"new")
    changes = (Change("a.c", old, new), Change("d/b.c", None, new), Change("gone.c", old, None))
    whole = Journal((*changes, Change(disk.LOCK, old, new)), ("d",), ("e",))
    return [whole.to_bytes(), Journal(changes, (), (), "back").to_bytes(), Journal((), (), ()).to_bytes()]


def _start_journal(folder: Path) -> Read:
    """Let `recover` execute journals: files outside of the project and unknown files may not change."""
    app, outside = folder / "app", folder / "outside"
    outside.write_bytes(b"old")

    def read(content: bytes) -> str:
        shutil.rmtree(app, ignore_errors=True)
        for name, text in {"a.c": b"old", "gone.c": b"old", "mine": b"mine", disk.LOCK: b"old"}.items():
            (app / name).parent.mkdir(parents=True, exist_ok=True)
            (app / name).write_bytes(text)
        (app / "e").mkdir()
        for kind, text in (("new", b"new"), ("old", b"old")):
            (app / disk.STAGE / kind).mkdir(parents=True)
            for number in range(4):
                (app / disk.STAGE / kind / str(number)).write_bytes(text)
        (app / disk.JOURNAL).write_bytes(content)
        try:
            result = recover(app)
        except OpwestError as fault:
            result = _words(fault)
        assert outside.read_bytes() == b"old" and sorted(p.name for p in folder.iterdir()) == ["app", "outside"]
        assert (app / "mine").read_bytes() == b"mine"
        return result

    return read


def _origin_seeds() -> Sequence[bytes]:
    whole = Origin((Path("m.yaml"), Path("n/m.yaml")), Path("templates"), ("native_sim",), "4.2.0")
    return [whole.file(Path("app")).content, Origin((Path("m.yaml"),)).file(Path("app")).content]


def _start_origin(folder: Path) -> Read:
    app = folder / "app"
    write(app, gen("a.c"), user("b.c"), ProjectFile(Path(".opwest/origin.json"), b"{}", "local"), record={"models": []})  # type: ignore[arg-type]
    os.chdir(folder)
    request = UpdateRequest(lambda boards, version: ZephyrOptions(boards), preview=True)

    def read(content: bytes) -> str:
        (app / ".opwest/origin.json").write_bytes(content)
        try:
            read_origin(app)
        except OpwestError as fault:
            words = _words(fault)
        else:
            words = "read"
        try:
            update_project(app, request, Diagnostics())
        except OpwestError as fault:
            return words + _words(fault)
        raise AssertionError("the update did not report the missing manifest")

    return read


READERS = (
    Reader("lock", _lock_seeds, _start_lock, mutate_json),
    Reader("journal", _journal_seeds, _start_journal, mutate_json),
    Reader("origin", _origin_seeds, _start_origin, mutate_json),
)

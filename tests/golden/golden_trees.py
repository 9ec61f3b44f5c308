# SPDX-License-Identifier: Apache-2.0
"""The emitted trees of the golden projects, in the form that is compared with the stored one.

A file is compared as text, as JSON, as a copy of an input or of a file of the runtime, or as the bytes of a small
binary file. Values that change with every version of opwest or with every change of a model are recomputed here and
replaced by names in capitals: checksums, the version, the version of the metadata and the hash of a model.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from golden_support import PROJECTS, copy_project, emitted
from json_rows import text_of
from opwest import __version__, pipeline
from opwest.base.diagnostics import Diagnostics
from opwest.model.readers.fingerprint import model_hash
from opwest.model.readers.tvmgen import system_library
from opwest.project.disk import digest
from opwest.project.lock import Lock
from opwest.project.request import Request
from opwest.render.application import Planned
from opwest.render.llvm.module import render_ir
from opwest.render.note import note_record
from opwest.render.project_files import project_record, render_project
from opwest.render.tables import layout
from opwest.runs.harness import own_renderer
from opwest.zephyr.runtime import vendored_files

RUNTIME = "modules/opwest/"
MODULE = Path(__file__).resolve().parents[2] / "zephyr_module"
LOCK = ".opwest/lock.json"
LLVM: Mapping[str, str] = {"conventions": "x86-64"}
"""The projects of the tree `llvm`, with a target each."""
TREES = (*PROJECTS, "llvm")

_MAX_HEX = 256
_NOTE_ROW = re.compile(r'(?:^\t\.ascii ".*"\n)+', re.MULTILINE)
_NOTE_WIDTH = 72


class Emission(NamedTuple):
    """The result of one generation."""

    source: Path
    """The directory with the manifests and the files that they name."""
    files: Mapping[str, bytes]
    planned: Sequence[Planned]


class File(NamedTuple):
    """A file as it is compared."""

    owner: str
    form: str
    """text, json, copy (of an input), runtime (a copy of a file of zephyr_module/), hex or sha256."""
    text: str


def emit(name: str, work: Path) -> Emission:
    """Generate a golden project, or the tree `llvm`, below `work`."""
    if name == "llvm":
        return _emit_llvm(work)
    manifests = copy_project(name, work / "source")
    faults = Diagnostics()
    found = pipeline.run(Request(tuple(manifests), work / "app"), faults).examinations
    return Emission(work / "source", emitted(work / "app"), [(one.model, one.plan) for one in found])


def _emit_llvm(work: Path) -> Emission:
    """Render an application whose metadata objects are texts of LLVM IR: they need no LLVM."""
    planned: list[Planned] = []
    for name, target in LLVM.items():
        request = Request(tuple(copy_project(name, work / name)), metadata="llvm", targets=(target,))
        faults = Diagnostics()
        found = pipeline.run(request, faults, "plan").examinations
        faults.raise_if_errors()
        planned += [(one.model, one.plan) for one in found]
    models = [model for model, _ in planned]
    library = system_library(models)
    objects = {
        (model.name, build.target.name): render_ir(model, plan, build.target, library).encode()
        for model, plan in planned
        for build in model.builds
        if build.target
    }
    files = render_project(own_renderer(), planned, vendored_files(models), objects)
    lock = Lock(
        project_record(planned, vendored=True, metadata="llvm"),
        {str(file.path): digest(file.content) for file in files if file.owner == "generator"},
        frozenset(str(file.path) for file in files if file.owner in ("user", "copy")),
    )
    contents = {str(file.path): file.content for file in files}
    return Emission(work, contents | {LOCK: lock.to_bytes()}, planned)


class Comparison:
    """The values of an emission with which its files are compared. Fails if a recomputed value is another one."""

    def __init__(self, emission: Emission) -> None:
        self.source = emission.source
        self.lock = json.loads(emission.files[LOCK])
        assert emission.files[LOCK] == canonical(self.lock), "the lock is not canonical"
        _check_files(self.lock, emission.files)
        metadata = self.lock["record"]["metadata"]
        record = project_record(emission.planned, vendored=True, metadata=metadata)
        assert self.lock["record"] == json.loads(json.dumps(record)), "the record of the lock is another one"
        users, own = (dict.fromkeys(self.lock[key], owner) for key, owner in (("user", "user"), ("files", "generator")))
        self.owners = users | own | {LOCK: "internal"}
        self.notes = [note_record(model, plan) for model, plan in emission.planned]
        self.hashes = {model_hash(model): "MODEL_HASH" for model, _ in emission.planned}
        self.inputs: dict[str, list[Path]] = {}
        for path in sorted(self.source.rglob("*")):
            self.inputs.setdefault(path.name, []).extend([path] if path.is_file() else [])

    def file(self, name: str, content: bytes) -> dict[str, File]:
        """Return a file in the form that is stored; that of a note is two files."""
        owner = self.owners[name]
        if name == LOCK:
            return {name: File(owner, "json", text_of(_lock_rows(self.lock, self.source)))}
        if name.startswith(RUNTIME):
            assert content == (MODULE / name.removeprefix(RUNTIME)).read_bytes(), f"{name} differs from zephyr_module/"
            return {name: File(owner, "runtime", "")}
        copied = [path for path in self.inputs.get(Path(name).name, ()) if path.read_bytes() == content]
        if copied:
            names = [path.relative_to(self.source).as_posix() for path in copied]
            return {name: File(owner, "copy", _nearest(name, names))}
        if name.endswith("_metadata.o"):
            return {f"{name}.ll": File(owner, "text", _without_hashes(content.decode(), self.hashes))}
        if name.endswith((".bin", ".o")):
            is_short = len(content) <= _MAX_HEX
            return {name: File(owner, *(("hex", content.hex(" ", 8)) if is_short else ("sha256", digest(content))))}
        if name.endswith("/note.S"):
            text, note = _split_note(content.decode())
            assert note in self.notes, f"the note of {name} is not that of a model"
            rows = File(owner, "json", text_of(_note_rows(note, self.hashes)))
            return {name: File(owner, "text", text), f"{name}.json": rows}
        return {name: File(owner, "text", _without_hashes(content.decode(), self.hashes))}


def compared(emission: Emission) -> dict[str, File]:
    """Return the files in the form that is stored. Fails if a recomputed value is another one."""
    comparison = Comparison(emission)
    files = [comparison.file(name, content) for name, content in emission.files.items()]
    return {name: file for part in files for name, file in part.items()}


def _nearest(name: str, copies: Sequence[str]) -> str:
    """Return the input that shares most of the end of its path with a copy."""
    parts = name.split("/")[::-1]

    def shared(copy: str) -> int:
        pairs = zip(copy.split("/")[::-1], parts, strict=False)
        return next((index for index, (one, other) in enumerate(pairs) if one != other), len(parts))

    return max(copies, key=shared)


def canonical(lock: Mapping[str, Any]) -> bytes:
    """Return a lock with its content as opwest writes it."""
    bases = {name: row[0] for name, row in lock["user"].items() if row}
    texts = {name: row[1] for name, row in lock["user"].items() if len(row) > 1}
    return Lock(lock["record"], lock["files"], frozenset(lock["user"]), bases, frozenset(), texts).to_bytes()


def _check_files(lock: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Compare the checksums in the lock with those of the files."""
    names = {name for name in files if name != LOCK}
    assert lock["files"].keys() | set(lock["user"]) == names and not lock["files"].keys() & set(lock["user"])
    assert lock["files"] == {name: hashlib.sha256(files[name]).hexdigest() for name in lock["files"]}
    for name, row in lock["user"].items():
        digests = [hashlib.sha256(text).hexdigest() for text in (files[name], *(text.encode() for text in row[1:]))]
        assert not row or {row[0]} == {*digests}, name


def _lock_rows(lock: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """Return the format, the version and the record; the files and their owners are stored elsewhere."""
    assert lock.keys() == {"files", "format", "opwest", "record", "user"}
    assert lock["opwest"] == __version__
    record = json.loads(json.dumps(lock["record"]))
    for model in [one for base in record["models"] for one in (base, *base.get("variants", ()))]:
        (folder,) = {path.parent for path in source.rglob(model["manifest"]) if _is_of(path, model["name"])}
        for path, value in model["inputs"].items():
            assert value == hashlib.sha256((folder / path).read_bytes()).hexdigest(), path
            model["inputs"][path] = "SHA256"
    return {"format": lock["format"], "opwest": "VERSION", "record": record}


def _is_of(manifest: Path, model: str) -> bool:
    return re.search(rf"^model: {model}$", manifest.read_text(encoding="utf-8"), re.MULTILINE) is not None


def _split_note(text: str) -> tuple[str, dict[str, Any]]:
    """Return note.S without its JSON, and the JSON."""
    (block,) = _NOTE_ROW.findall(text)
    rows = [json.loads(line.removeprefix("\t.ascii ")) for line in block.splitlines()]
    assert all(len(row) == _NOTE_WIDTH for row in rows[:-1]) and 0 < len(rows[-1]) <= _NOTE_WIDTH
    note = json.loads("".join(rows))
    assert json.dumps(note, separators=(",", ":")) == "".join(rows), "the JSON of the note is not canonical"
    return text.replace(block, "\tNOTE\n"), note


def _note_rows(note: dict[str, Any], hashes: Mapping[str, str]) -> dict[str, Any]:
    assert (note["opwest"], note["metadata"]) == (__version__, layout.METADATA_VERSION)
    return note | {"opwest": "VERSION", "metadata": "METADATA_VERSION", "hash": hashes[note["hash"]]}


def _without_hashes(text: str, hashes: Mapping[str, str]) -> str:
    for value, name in hashes.items():
        text = text.replace(value, name)
    text = text.replace(f"OPWEST_METADATA_VERSION == {layout.METADATA_VERSION},", "OPWEST_METADATA_VERSION == VERSION,")
    version = re.escape(__version__)
    text = re.sub(rf'\[[0-9]+ x i8\] c"{version}\\00"', r'[N x i8] c"VERSION\\00"', text)
    return re.sub(rf'= "{version}";$', '= "VERSION";', text, flags=re.MULTILINE)

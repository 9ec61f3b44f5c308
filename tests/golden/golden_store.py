# SPDX-License-Identifier: Apache-2.0
"""The stored form of the emitted trees: full trees, and differences from other trees.

expected/NAME.diff lists the files of trees; `=== tree NAME` starts a tree. A full tree has its texts in expected/NAME/.
Every other tree is stored as differences: the head names the reference of each part, then a section follows for every
file that is not equal to the file of the reference after substitution of the model's name. The sections:

    === stored PATH (OWNER)     a text in expected/NAME/
    === absent PATH             the reference has the file, the tree does not
    === edits PATH              edits of the reference (line_edits.py)
    === whole PATH              all lines of a text
    === rows PATH               JSON: the members that are empty or absent in all full trees (json_rows.py)
    === copy PATH = INPUT       a copy of a file of the project
    === hex PATH = BYTES, === sha256 PATH = SUM, === runtime PATH (a file of zephyr_module/)
    === tested PATH             a file whose content other tests check in every such tree (_TESTED)

The owner is that of the reference if it is not given. Differences compare views of texts: C without the line breaks
that depend on the lengths of names (c_lines.py) and without usual members of tables (c_tables.py), LLVM IR with the
profiling run as edits of the run and without metadata.
"""

import functools
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from c_lines import joined
from c_tables import Usual, brief_tables, usual_members
from golden_trees import File
from json_rows import filled_of, news, text_of
from line_edits import apply_edits, make_edits

EXPECTED = Path(__file__).resolve().parent / "expected"
FULL = ("minimal", "many_kinds")
BASES = {"llvm": "conventions", "asynchronous": "devices", "conventions": "devices", "tvmgen": "devices"}
"""The references of the trees that are not compared with the smallest one."""
PLACES = {"asynchronous": "devices", "streams": "devices", "several": "targets", "variants": "targets"}
"""The files of the trees that share one with a similar tree: a new member of the metadata changes few files."""
_TESTED = re.compile(r"models/(\w+)/(?:src/\1_metadata|tests/\1_suite)\.c")
"""Texts of full trees only: in each project, the metadata is read in C and compared with the manifest
(unit/runtime/test_runtime_metadata.py), and the suites run (compile/test_compile_suites.py)."""
_METADATA_OF_IR = re.compile(
    r"@(?!numbers_|dimensions_|codes\.|arrays\.|described\.|tvm_|\w+_run_string_|device_|\w+_device_|\w+_constant_)"
)
"""Definitions of constants except those of the functions."""
_NOT_RUN = ("targets", "variants", "asynchronous")
"""The trees that these tests read in part or not at all: their objects, processors or handles are of no host."""
_SECTION = "=== "
_TREE = f"{_SECTION}tree "
_OWN_FORMS = ("copy", "hex", "sha256", "json")
"""The forms that are not taken from a reference."""
_STORED = (".ll",)
"""Texts of differences that are files of their own."""
_HEAD = re.compile(r"=== ([a-z0-9]+) (\S+)(?: \((\w+)\))?(?: = (.*))?")

Tree = Mapping[str, File]
Filled = frozenset[str]


class Part(NamedTuple):
    """Files of a tree with one reference."""

    head: str
    """Its line in the head of the stored file."""
    folders: tuple[str, ...]
    """The directories of the part; none for the files outside the models."""
    is_own: bool
    """Whether the reference is in the same tree."""
    references: tuple[str, ...]
    """The directories of the reference, in the same order."""
    names: tuple[str, str]
    """The name of the reference's model, and the name that replaces it."""


class Section(NamedTuple):
    form: str
    path: str
    owner: str | None
    value: str
    lines: list[str]


def expected(name: str) -> dict[str, File]:
    """Return the stored tree: the view of a tree that is stored as differences. Raises EditError if they do not fit."""
    heads, sections = _read(name)
    if name in FULL:
        return {section.path: _file(name, section, None) for section in sections}
    base, found = reference(name), dict[str, File]()
    models = [head.split(" like ")[0] for head in heads if " like " in head]
    for part in _parts(name, [f"models/{model}/" for model in models], list(base)):
        assert part.head in heads, part.head
        files = _implied(part, found if part.is_own else base)
        for section in sections:
            if _is_in(section.path, part.folders):
                if section.form == "absent":
                    del files[section.path]
                else:
                    files[section.path] = _file(name, section, files.get(section.path))
        found |= files
    return found


def reference(name: str) -> dict[str, File]:
    """Return the view of the tree that another one is compared with."""
    base = BASES.get(name, FULL[0])
    return _without_tested(name, view(base, expected(base)) if base in FULL else expected(base))


def compared_form(name: str, tree: Tree) -> dict[str, File]:
    """Return the form of an emitted tree that equals the expected one."""
    return dict(tree) if name in FULL else _without_tested(name, view(name, tree))


def _without_tested(name: str, tree: Tree) -> dict[str, File]:
    """Return a view without the texts that other tests check."""
    found = dict(tree)
    for path in () if name in _NOT_RUN else filter(_TESTED.fullmatch, tree):
        found[path] = tree[path]._replace(form="tested", text="")
    return found


def rewrite(name: str, tree: Tree) -> None:
    """Store an emitted tree. Its reference must be stored before."""
    if name in FULL:
        _usual.cache_clear()
        _filled.cache_clear()
    shutil.rmtree(EXPECTED / name, ignore_errors=True)
    if name in FULL:
        lines = [line for path in sorted(tree) for line in _section(path, tree[path], None, store=True)]
        texts = {path: file for path, file in tree.items() if file.form in ("text", "json")}
    else:
        tree = compared_form(name, tree)
        lines = differences(name, tree, reference(name))
        texts = {path: file for path, file in tree.items() if path.endswith(_STORED)}
    for path, file in texts.items():
        place = EXPECTED / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text, encoding="utf-8")
    EXPECTED.mkdir(exist_ok=True)
    trees = dict(sorted((_stored(name) | {name: lines}).items()))
    text = "".join(f"{line}\n" for one in trees for line in (f"{_TREE}{one}", *trees[one]))
    _place(name).write_text(text, encoding="utf-8")


def view(name: str, tree: Tree) -> dict[str, File]:
    """Return a tree as differences compare it."""
    usual = _usual()
    filled = {} if name in FULL else {file: _filled(file) for file in ("lock.json", "note.S.json")}
    found = {}
    for path, file in tree.items():
        text = file.text
        if file.form == "text" and path.endswith((".c", ".h")):
            text = brief_tables(joined(text), usual)
        elif path.endswith(".ll"):
            text = folded(text)
        elif file.form == "json":
            value = news(json.loads(text), filled[path.split("/")[-1]]) if name not in FULL else None
            if value is None:
                continue
            text = text_of(value)
        found[path] = file._replace(text=text)
    return found


def without_metadata(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of LLVM IR without empty ones and without the constants of the metadata.

    llvm/test_backends_agree.py compares these with those of the C back end.
    """
    is_open = False
    for line in lines:
        if is_open or _METADATA_OF_IR.match(line):
            is_open = line.endswith("[") or (is_open and not line.startswith("]"))
        elif line:
            yield line


def folded(text: str) -> str:
    """Return LLVM IR without its metadata, its profiling run as edits of the run."""
    functions = ["define internal signext i32 @run_workspace(", "define internal signext i32 @run_profiled_workspace("]
    lines = list(without_metadata(text.split("\n")))
    starts = [next(i for i, line in enumerate(lines) if line.startswith(function)) for function in functions]
    ends = [lines.index("}", start) for start in starts]
    run, profiled = [lines[start + 1 : end] for start, end in zip(starts, ends, strict=True)]
    edits = [f"; {line}" for line in make_edits(run, profiled)]
    return "\n".join([*lines[: starts[1] + 1], "; @run_workspace with:", *edits, *lines[ends[1] :], ""])


def differences(name: str, tree: Tree, base: Tree) -> list[str]:
    """Return the stored form of a view as differences from another one."""
    parts = _parts(name, list(tree), list(base))
    lines = [f"{_SECTION}{part.head}" for part in parts]
    for part in parts:
        implied = _implied(part, tree if part.is_own else base)
        own = {path: file for path, file in tree.items() if _is_in(path, part.folders)}
        for path in sorted(implied.keys() | own.keys()):
            if path not in own:
                lines.append(f"{_SECTION}absent {path}")
            elif own[path] != implied.get(path):
                lines += _section(path, own[path], implied.get(path), store=path.endswith(_STORED))
    return lines


@functools.cache
def _usual() -> Usual:
    return usual_members(*_texts_of_full(".c"))


@functools.cache
def _filled(file: str) -> Filled:
    return filled_of(*map(json.loads, _texts_of_full(file)))


def _texts_of_full(end: str) -> list[str]:
    """Return the texts of the full trees whose paths have an end; C is joined."""
    files = [item for name in FULL for item in expected(name).items()]
    texts = [file.text for path, file in files if path.endswith(end) and file.form in ("text", "json")]
    return list(map(joined, texts)) if end == ".c" else texts


def _parts(name: str, paths: Sequence[str], base: Sequence[str]) -> list[Part]:
    """Return the parts of a tree in an order in which each reference is complete before its use."""
    models, others = _models(paths), _models(base)
    parts = [Part(f"files of {BASES.get(name, FULL[0])}", (), False, (), (others[0], models[0]))]
    for model in models:
        is_own = model != models[0] and model not in others
        like = model if model in others else models[0] if is_own else others[0]
        folders, references = [(f"models/{one}/", f"tests/{one}/") for one in (model, like)]
        parts.append(Part(f"{model} like {like}", folders, is_own, references, (like, model)))
    variants = {"/".join(path.split("/")[1:4]) for path in paths if re.match(r"models/\w+/variants/", path)}
    for folder in sorted(variants):
        model = folder.split("/")[0]
        parts.append(
            Part(f"{folder} like {model}", (f"models/{folder}/",), True, (f"models/{model}/",), (model, model))
        )
    return parts


def _models(paths: Sequence[str]) -> list[str]:
    return sorted({path.split("/")[1] for path in paths if path.startswith("models/")})


def _is_in(path: str, folders: Sequence[str]) -> bool:
    if not folders:
        return re.match(r"models/|tests/\w+/", path) is None
    return path.startswith(tuple(folders)) and ("/variants/" not in path or "/variants/" in folders[0])


def _implied(part: Part, base: Tree) -> dict[str, File]:
    """Return the files of a part that has no differences from its reference."""
    substitute = _substitution(*part.names)
    found = {}
    for path, file in base.items():
        if file.form in _OWN_FORMS or path.endswith(_STORED) or not _is_in(path, part.references):
            continue
        moved = path
        for old, new in zip(part.references, part.folders, strict=True):
            if path.startswith(old):
                moved = new + substitute(path.removeprefix(old))
        found[moved] = file._replace(text=substitute(file.text))
    return found


def _substitution(old: str, new: str) -> Callable[[str], str]:
    names = {old: new, old.upper(): new.upper()}
    pattern = re.compile("|".join(names))
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def _section(path: str, file: File, implied: File | None, *, store: bool) -> Iterator[str]:
    owner = "" if implied is not None and implied.owner == file.owner else f" ({file.owner})"
    if store and file.form in ("text", "json"):
        yield f"{_SECTION}stored {path}{owner}"
    elif file.form in ("copy", "hex", "sha256"):
        yield f"{_SECTION}{file.form} {path}{owner} = {file.text}"
    elif file.form in ("runtime", "tested"):
        yield f"{_SECTION}{file.form} {path}{owner}"
    elif file.form == "json":
        yield f"{_SECTION}rows {path}{owner}"
        yield from file.text.splitlines()
    else:
        lines = file.text.split("\n")
        edits = make_edits(implied.text.split("\n"), lines) if implied is not None else lines
        if len(edits) < len(lines):
            yield f"{_SECTION}edits {path}{owner}"
            yield from edits
        else:
            yield f"{_SECTION}whole {path}{owner}"
            yield from (f"+{line}" for line in lines[:-1])


def _place(name: str) -> Path:
    return EXPECTED / f"{PLACES.get(name, name)}.diff"


def _stored(name: str) -> dict[str, list[str]]:
    """Return the lines of all trees in the file of a tree."""
    trees: dict[str, list[str]] = {}
    place = _place(name)
    for line in place.read_text(encoding="utf-8").split("\n")[:-1] if place.exists() else ():
        if line.startswith(_TREE):
            lines = trees[line.removeprefix(_TREE)] = []
        else:
            lines.append(line)
    return trees


def _read(name: str) -> tuple[list[str], list[Section]]:
    """Return the lines of the head of a stored tree, and its sections."""
    heads: list[str] = []
    sections: list[Section] = []
    place = _place(name)
    for line in _stored(name)[name]:
        if not line.startswith(_SECTION):
            sections[-1].lines.append(line)
        elif re.fullmatch(r"=== \S+ (?:of|like) \S+", line):
            heads.append(line.removeprefix(_SECTION))
        else:
            match = _HEAD.fullmatch(line)
            assert match, f"{place}: {line}"
            sections.append(Section(match[1], match[2], match[3], match[4] or "", []))
    return heads, sections


def _file(name: str, section: Section, implied: File | None) -> File:
    form, path, lines = section.form, section.path, section.lines
    owner = section.owner or (implied.owner if implied else "")
    if form == "stored":
        is_json = path.endswith((".S.json", "lock.json"))
        return File(owner, "json" if is_json else "text", (EXPECTED / name / path).read_text(encoding="utf-8"))
    if form == "rows":
        return File(owner, "json", "".join(f"{line}\n" for line in lines))
    if form == "edits":
        assert implied is not None, path
        return File(owner, "text", "\n".join(apply_edits(implied.text.split("\n"), lines)))
    if form == "whole":
        return File(owner, "text", "".join(f"{line.removeprefix('+')}\n" for line in lines))
    return File(owner, form, section.value)

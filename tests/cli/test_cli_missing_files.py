# SPDX-License-Identifier: Apache-2.0
"""Missing files: the message names the existing file that is most alike."""

from pathlib import Path

import pytest
from opwest.nearby import hint_for


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> Path:
    for name in ("objects/conv.o", "objects/dense.o", "image.npy", "manifest.yaml", "a.o", "table.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"content")
    (tmp_path / "broken.o").symlink_to("absent")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("objects/conv.c", "objects/conv.o"),
        ("object/dense.o", "objects/dense.o"),
        ("objects/desne.o", "objects/dense.o"),
        ("manifest.yml", "manifest.yaml"),
        ("imag.npy", "image.npy"),
        ("image.npy", None),  # it exists
        ("b.o", None),
        ("broken.o", None),  # a link to nothing
        ("../other/conv.o", None),
        ("object/absent.o", None),
        ("image.npy/x.npy", None),
        ("", None),
        ("x\0y", None),
    ],
)
def test_the_most_similar_existing_file(given: str, found: str | None) -> None:
    assert hint_for(Path(given)) == (None if found is None else f"did you mean {found!r}?")


def test_absolute_paths_and_spellings(files: Path) -> None:
    assert hint_for(files / "objects" / "con.o") == f"did you mean {str(files / 'objects/conv.o')!r}?"
    assert hint_for(files / "objcts" / "conv.o", "objcts/conv.o") == "did you mean 'objects/conv.o'?"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["check", "manifst.yaml"], "did you mean 'manifest.yaml'?"),
        (["inspect", "objects/cnv.o"], "did you mean 'objects/conv.o'?"),
        (["plan", "tabel.csv"], "did you mean 'table.csv'?"),
        (["generate", "made.yaml", "-o", "app"], "did you mean 'objects/dense.o'?"),
    ],
)
def test_commands_suggest_a_file(arguments: list[str], hint: str, opwest) -> None:
    Path("made.yaml").write_text(
        "version: 1\nmodel: made\nobjects: [{files: [objects/dnse.o]}]\n"
        "operators: {f: {args: [{name: x, dtype: int8, shape: [1], direction: out}]}}\n"
        "run: {inputs: {}, outputs: {x: {dtype: int8, shape: [1]}}, steps: [{call: f, args: [x]}]}\n"
    )
    done = opwest(*arguments)
    assert done.code == 1 and f"  hint: {hint}\n" in done.err, done.err

# SPDX-License-Identifier: Apache-2.0
"""Missing files: the message names the existing file that is most alike."""

from pathlib import Path

import pytest
from opwest.base.path_suggestions import hint_for
from small_models import one_operator


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
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
def test_the_most_similar_existing_file(given, found):
    assert hint_for(Path(given)) == (None if found is None else f"did you mean {found!r}?")


def test_absolute_paths_and_spellings(files):
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
def test_commands_suggest_a_file(arguments, hint, fail):
    Path("made.yaml").write_text(one_operator("f", "[{files: [objects/dnse.o]}]"))
    assert f"  hint: {hint}\n" in fail(*arguments).err

# SPDX-License-Identifier: Apache-2.0
"""Marks in drafts, and the time that a draft takes."""

from collections.abc import Callable
from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.drafting.files import Given, Unit
from opwest.drafting.from_source import from_source
from opwest.drafting.selection import select
from opwest.manifest.load import load_manifest
from opwest.objects.csource import read_c_source
from opwest.objects.facts import CSource
from scaling import check_linear

# --- Marks in a manifest: each is reported with its position and the expected value, and generation fails

GOOD = """\
version: 1
model: m
objects: [{files: [f.c]}]
operators:
  f: {args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: f, args: [x, y]}
"""


def load(tmp_path: Path, *changes: tuple[str, str]) -> tuple[bool, list[str]]:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "m.yaml"
    path.write_text(text)
    faults = Diagnostics()
    loaded = load_manifest(path, faults) is not None
    return loaded, [str(d).replace(f"{tmp_path}/", "") for d in faults.in_order()]


def test_without_marks(tmp_path: Path) -> None:
    assert load(tmp_path) == (True, [])


def test_mark_in_place_of_a_list(tmp_path: Path) -> None:
    assert load(tmp_path, ("shape: [4]", "shape: FILL_IN")) == (
        False,
        [
            "m.yaml:5:44: error: 'operators.f.args[0].shape' is not filled in\n"
            "  expected: a list, at most 16 items "
            "(The dimensions. Required unless `scalar` is true or a constant has them)"
        ],
    )


def test_marks_that_the_schema_accepts_as_values(tmp_path: Path) -> None:
    loaded, errors = load(
        tmp_path, ("model: m", "model: FILL_IN"), ("[x, y]", "[FILL_IN_x, y]"), ("inputs: {x", "inputs: {FILL_IN")
    )
    assert not loaded
    assert [line.splitlines()[0] for line in errors] == [
        "m.yaml:2:8: error: 'model' is not filled in",
        "m.yaml:7:12: error: the name 'FILL_IN' in 'run.inputs' is not filled in",
        "m.yaml:10:24: error: 'run.steps[0].args[0]' (FILL_IN_x) is not filled in",
    ]


def test_other_faults_are_reported_in_the_same_run(tmp_path: Path) -> None:
    loaded, errors = load(tmp_path, ("shape: [4]", "shape: FILL_IN"), ("shape: [4]}}", "shape: [0], alin: 4}}"))
    assert not loaded
    assert [line.split(": ", 2)[2].splitlines()[0] for line in errors] == [
        "'operators.f.args[0].shape' is not filled in",
        "'run.inputs.x.shape[0]' is the integer 0",
        "unknown key 'alin' in 'run.inputs.x'",
    ]


def test_words_containing_the_mark_are_not_marks(tmp_path: Path) -> None:
    assert load(tmp_path, ("model: m", 'model: m\ndescription: "not FILL_IN"'), ("f.c", "my_FILL_IN.c")) == (True, [])


def test_shared_mark_is_reported_once_per_position(tmp_path: Path) -> None:
    loaded, errors = load(tmp_path, ("shape: [4]", "shape: &s [FILL_IN]"), ("shape: [4]", "shape: *s"))
    assert not loaded and len(errors) == 1
    assert errors[0].startswith("m.yaml:5:48: error: 'operators.f.args[0].shape[0]' is not filled in\n")


def test_marks_of_one_kind_are_one_error(tmp_path: Path) -> None:
    """Marks with the same key and the same expected value are grouped; aliases of a mark are the same mark."""
    loaded, errors = load(
        tmp_path,
        ("shape: [4]", "shape: &s FILL_IN"),
        ("shape: [4], dir", "shape: FILL_IN, dir"),
        ("shape: [4]", "shape: *s"),
    )
    assert not loaded
    assert [line.splitlines()[0] for line in errors] == [
        "m.yaml:5:44: error: 'operators.f.args[0].shape' is not filled in, and 1 other (line 5)"
    ]


# --- The time for a draft is proportional to the size of its files


def test_comments_and_structures_of_sources() -> None:
    def use(count: int) -> Callable[[], None]:
        text = "".join(
            f"struct s{n} {{ int a; }};\n/** Convolve.\n * @param x image {n}\n */\n"
            f"int f{n}(const struct s{n} *x, int *y) {{ return 0; }} int g{n}(const int *x, int *y) {{ return 0; }}\n"
            for n in range(count)
        )
        source = read_c_source(Path("f.c"), text.encode())

        def check() -> None:
            found = from_source(source)
            assert len(found) == 2 * count
            for n in (0, count - 1):
                first, second = (found[f"{name}{n}"].parameters[0] for name in "fg")
                assert (first.struct, first.comment) == (f"s{n}", f"image {n}")
                assert (second.struct, second.comment) == (None, f"image {n}")

        return check

    check_linear(use(100), use(800))


def test_selection_of_operators() -> None:
    """Neither the operators chosen before nor the undefined symbols of the file are searched for each operator."""

    def use(count: int) -> Callable[[], None]:
        source = CSource(Path("f.c"), b"", (), (), (), ())
        functions, needs = dict.fromkeys(f"f{n}" for n in range(count)), frozenset(f"u{n}" for n in range(count))
        one = Given("f.c", source, [Unit("f.c", functions, needs, certain_needs=False)])

        def check() -> None:
            assert len(select([one], (), (), Diagnostics()).operators) == count

        return check

    check_linear(use(500), use(4000))

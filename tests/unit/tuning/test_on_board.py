# SPDX-License-Identifier: Apache-2.0
"""Tuning on boards."""

import functools
import json
import subprocess

import numpy as np
import pytest
from in_process import succeed
from opwest.compiler.emission.function import VARIANTS, Variant, c_type
from opwest.compiler.folder import write_folder
from opwest.compiler.ir.program import Value
from opwest.compiler.output.emit import candidates
from opwest.compiler.selection.costs import Table, key_of
from opwest.compiler.selection.tuning_files import Tables, text_of
from opwest.objects.flash import UNKNOWN
from opwest.objects.rewriting import code_size
from opwest.runs.options import ImageOptions
from opwest.runs.progress import StageProgress
from opwest.tuning import random_layers
from opwest.tuning.on_board import (
    DIFFERENCES,
    MAX_CANDIDATES,
    MAX_CONSTANTS,
    BoardRun,
    BoardRunner,
    Piece,
    TooLargeError,
    batches,
    candidates_model,
    compare,
    fill,
    halves,
    measure_on_board,
)
from opwest.tuning.results import MeasurementError
from requirements_support import need

# --- `opwest tune --serial` without a board: models of candidates run on this machine, images are divided and left out

SOURCE = "board, cycle counter at 1000 Hz, gcc 1.2"


def layer(make, seed=0, *words, **keys):
    (found,) = make(np.random.default_rng(seed), *words, **keys).operations
    return found


def layers():
    return [
        layer(random_layers.convolution, 1, (1, 6, 6, 8), (1, 1), 8, kind="relu"),
        layer(random_layers.convolution, 2, (1, 7, 6, 3), (3, 3), 5, kind="relu"),
        layer(random_layers.depthwise, 3, (1, 6, 5, 8), (3, 3), 1),
        layer(random_layers.dense, 4, 24, 7, 1),
        layer(random_layers.pool, 5, (1, 6, 6, 8), (2, 2)),
        layer(random_layers.elements, 6, kind="add"),
    ]


def on_host(folder):
    """Return a function that runs models of candidates on this machine."""

    def execute(model):
        place = folder / f"model_{len(list(folder.iterdir()))}"
        write_folder(place, model.files)
        succeed("generate", place / "manifest.yaml", "-o", place / "app")
        words = ["--host", "--repeat", 2, "--profile", "--output-dir", place / "out", "--json"]
        done = json.loads(succeed("run", place / "app", *words).stdout)["result"]
        points = [one for one in done["profile"]["points"] if one["kind"] == "step"]
        assert len(points) == model.steps and all(one["runs"] == 2 for one in points)
        differences = np.load(place / "out" / f"{DIFFERENCES}.npy")
        return BoardRun({one["step"]: one["min"] for one in points}, list(differences), {}, SOURCE)

    return execute


def planted(change):
    """Return variants that every processor can run: the portable one, and one for mla with a change of its body."""

    def render(right, operation):
        call = right.render(operation)
        function = call.function
        names = ("base", "parameters", "helpers", "headers", "definitions")
        fields = {name: getattr(function, name) for name in names}
        body = change(function.body, function.parameters)
        return type(call)(type(function)(**fields, body=body), call.arguments, call.label)

    found = {}
    for kind, some in VARIANTS.items():
        right = next((one for one in some if one.name == "portable"), None)
        if right is None:
            continue
        found[kind] = [right, Variant("mla-planted", functools.partial(render, right))]
    return found


@pytest.fixture
def variants(monkeypatch):
    """Return a function that replaces all variants, whose assembly is not of this machine."""

    def replace(change):
        for kind, some in planted(change).items():
            monkeypatch.setitem(VARIANTS, kind, some)

    return replace


@pytest.mark.slow
def test_every_candidate_is_run_and_compared(variants, tmp_path):
    need("cc")
    variants(lambda body, _: body)
    made = layers()
    done = measure_on_board(made, lambda _: None, UNKNOWN, "cortex-m3", on_host(tmp_path))
    expected = [(one, name) for one in made for name in ("portable", "mla-planted")]
    assert [(one.operation, one.variant) for one in done.results] == expected
    assert done.source == SOURCE and not done.left_out
    assert all(one.cycles > 0 for one in done.results)


def test_a_wrong_candidate_is_named(variants, tmp_path):
    need("cc")

    def flipped(body, parameters):
        result = next(one.name for one in parameters if one.direction == "out")
        return f"\tint8_t *const planted = {result};\n{body}\tplanted[0] ^= 1;\n"

    variants(flipped)
    made = layers()[4]
    with pytest.raises(
        MeasurementError, match=r"variant mla-planted of pool average int8 .* is not equal to the portable one"
    ):
        measure_on_board([made], lambda _: None, UNKNOWN, "cortex-m3", on_host(tmp_path))


SPREAD = {"int8": 49, "uint8": 30, "int16": 12600, "int32": 12, "float32": 1, "bool": 0.5}
"""The standard deviation of the data of each dtype. int32 data can be zero points of int8 data."""


def test_the_data_of_layers_and_the_comparison_are_clean_c(tmp_path):
    need("cc")
    values = [Value("v", "intermediate", dtype, (4000,)) for dtype in SPREAD]
    calls, sources = [], []
    for number, value in enumerate(values):
        sources.append(fill(value, number).text(f"fill_{number}"))
        calls.append(f"static {c_type(value.dtype)} d{number}[4000]; fill_{number}(d{number});")
        calls.append(f"fwrite(d{number}, sizeof(d{number}), 1, f);")
    calls += ["fill_0(d0); d0[3] ^= 1; d0[7] ^= 4; static int8_t same[4000]; fill_0(same);"]
    calls += ["uint32_t count; compare(same, d0, &count); fclose(f); return count != 2;"]
    text = "#include <stdint.h>\n#include <stdio.h>\n" + fill(values[0], 0).definitions[0]
    text += "\n".join([*sources, compare(values[0]).text("compare"), "int main(void)", "{"])
    text += 'FILE *f = fopen("data", "wb");' + "\n".join([*calls, "}", ""])
    (tmp_path / "main.c").write_text(text)
    flags = "-Wall -Wextra -Werror -Wconversion".split()
    for words in (["cc", *flags, "main.c", "-o", "main"], ["./main"]):
        subprocess.run(words, cwd=tmp_path, check=True)
    content, offset = (tmp_path / "data").read_bytes(), 0
    for dtype, spread in SPREAD.items():
        array = np.frombuffer(content, dtype, 4000, offset)
        offset += array.nbytes
        assert array.astype(np.float64).std() == pytest.approx(spread, rel=0.15), dtype
        if dtype == "int8":
            assert (array == 127).any() and (array == -128).any()


def test_floats_are_compared_within_a_limit(tmp_path):
    need("cc")
    value = Value("v", "intermediate", "float32", (6,))
    text = "#include <math.h>\n#include <stdint.h>\n" + compare(value, 0.125).text("compare")
    text += "int main(void)\n{\n\tconst float wanted[6] = {1, 2, 3, 4, 5, 6};\n"
    # Nearer than the limit, at it, farther on both sides, infinite, not a number.
    text += "\tconst float found[6] = {1.0625f, 1.875f, 3.25f, 3.75f, INFINITY, NAN};\n"
    text += "\tuint32_t count;\n\n\tcompare(wanted, found, &count);\n\treturn count != 4;\n}\n"
    (tmp_path / "main.c").write_text(text)
    for words in (["cc", *"-Wall -Wextra -Werror -Wconversion main.c -o main".split()], ["./main"]):
        subprocess.run(words, cwd=tmp_path, check=True)


class Board:
    """A board that runs images of at most so many candidates."""

    def __init__(self, most=1000, cycles=10):
        self.most = most
        self.cycles = cycles
        self.sizes = []

    def __call__(self, model):
        self.sizes.append(len(model.runs))
        if len(model.runs) > self.most:
            raise TooLargeError("region `FLASH' overflowed by 9 bytes")
        cycles = {step: self.cycles * (step + 1) for step in range(model.steps)}
        code = {one.source: 100 + one.step for one in model.runs}
        return BoardRun(cycles, [0] * len(model.runs), code, SOURCE)


def test_images_that_do_not_fit_are_divided():
    made, said = layers(), []
    whole = measure_on_board(made, said.append, UNKNOWN, "cortex-m4", Board())
    board = Board(most=4)
    divided = measure_on_board(made, said.append, UNKNOWN, "cortex-m4", board)
    assert len(board.sizes) > 3 and board.sizes[0] > 4 >= board.sizes[-1]
    assert {(one.operation, one.variant) for one in divided.results} == {
        (one.operation, one.variant) for one in whole.results
    }
    assert not divided.left_out
    assert all(one.code >= 100 for one in divided.results)
    assert "the image does not fit on the board: it is split" in said


def test_a_layer_that_does_not_fit_is_left_out():
    """The convolution has variants that fit in no image; the others are measured."""
    made = [layer(random_layers.convolution, 1, (1, 6, 6, 8), (1, 1), 8, kind="relu"), *layers()[-1:]]
    least = 1 + min(len(candidates(one, "dsp")) - 1 for one in made)
    done = measure_on_board(made[1:], lambda _: None, UNKNOWN, "cortex-m4", Board(most=least))
    assert {one.operation for one in done.results} == {made[1]}

    class Small(Board):
        def __call__(self, model):
            if b"convolution" in model.files["manifest.yaml"]:
                raise TooLargeError("region `RAM' overflowed by 9 bytes")
            return super().__call__(model)

    done = measure_on_board(made, lambda _: None, UNKNOWN, "cortex-m4", Small())
    assert done.left_out == made[:1]
    assert {one.operation for one in done.results} == {made[1]}
    with pytest.raises(MeasurementError, match=r"no layer fits on the board\nregion `RAM' overflowed by 9 bytes"):
        measure_on_board(made[:1], lambda _: None, UNKNOWN, "cortex-m4", Small())


def test_a_counter_that_does_not_advance_is_an_error():
    message = rf"the counter does not advance: 0 cycles for every candidate \({SOURCE}\)"
    with pytest.raises(MeasurementError, match=message):
        measure_on_board(layers()[:1], lambda _: None, UNKNOWN, "cortex-m4", Board(cycles=0))


def test_images_have_limits():
    made = [layer(random_layers.dense, seed, 320, 30, 1) for seed in range(40)]
    found = list(batches(made, "cortex-m4"))
    assert [piece.operation for batch in found for piece in batch] == made
    assert len(found) > 1
    for batch in found:
        assert sum(piece.constants("dsp") for piece in batch) <= MAX_CONSTANTS
        assert sum(1 + len(piece.variants) for piece in batch) <= MAX_CANDIDATES
    large = layer(random_layers.dense, 1, 5000, 100, 1)
    assert [len(batch) for batch in batches([made[0], large, made[1]], "cortex-m4")] == [1, 1, 1]


def test_halves_have_the_same_candidates():
    pieces = [Piece(one, ("a", "b", "c")) for one in layers()[:3]]
    first, second = halves(pieces)
    assert [*first, *second] == pieces
    assert [[one.variants for one in some] for some in halves(pieces[:1])] == [[("a",)], [("b", "c")]]
    assert halves([Piece(pieces[0].operation, ("a",))]) == []


def test_equal_constants_of_candidates_are_in_the_image_once():
    one = layers()[0]
    single = candidates_model([Piece(one, ())], {"CONFIG_FPU": "y"}, None)
    names = [name for name in candidates(one, "dsp") if name != "portable"]
    several = candidates_model([Piece(one, tuple(names)), Piece(one, tuple(names))], {}, None)
    assert b"CONFIG_FPU: y" in single.files["manifest.yaml"]
    assert b"kconfig" not in several.files["manifest.yaml"]
    assert len(several.runs) == 2 * (1 + len(names))
    once = candidates_model([Piece(one, tuple(names))], {}, None)
    assert several.files["constants.npz"] == once.files["constants.npz"]


def test_tables_of_several_sources_keep_them():
    first, second = layers()[:2]
    table = Table("cortex-m4", {}, {}, "qemu-system-arm 7.2, gcc 12")
    emulated = Table("cortex-m4", {key_of(one): {"portable": (9, 1)} for one in (first, second)}, {}, table.measured)
    board = Table("cortex-m4", {key_of(second): {"portable": (7, 1)}}, {}, SOURCE)
    found = emulated.replaced_by(board)
    assert not found.cost(first, "portable").is_of_board
    assert found.cost(second, "portable").is_of_board
    assert found.cost(second, "portable").source == SOURCE
    assert "those of a board are of its counter" in text_of(Tables({"cortex-m4": board}, {}))


def test_code_size_is_that_of_the_sections_in_flash(tmp_path):
    need("cc", "objcopy")
    text = "static const int t[64] = {1, 2, 3};\nint buffer[500], set = 7;\nint f(int i)\n{\nreturn t[i] + i;\n}\n"
    (tmp_path / "a.c").write_text(text)
    subprocess.run(["cc", "-g", "-O1", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    size = subprocess.run(["size", "a.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert code_size((tmp_path / "a.o").read_bytes()) == int(size.splitlines()[1].split()[0]) > 256


# --- Images of `opwest tune` that do not fit in the RAM of a board are not built


def test_data_larger_than_the_ram_of_an_earlier_configuration(tmp_path):
    options = ImageOptions(tmp_path, "small/board")
    configuration = tmp_path / "build/tune_small_board/image/zephyr/.config"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("CONFIG_SRAM_SIZE=3\n")
    (layer,) = random_layers.elements(np.random.default_rng(1), (1, 2000), kind="add").operations
    model = candidates_model([Piece(layer, ())], {}, None)
    # Two inputs of 2000 bytes; the result replaces one of them.
    message = r"the data of the layers need 4\d\d\d bytes, the board has 3072 bytes of RAM"
    with pytest.raises(TooLargeError, match=message):
        BoardRunner(tmp_path, options, StageProgress(None))(model)

# SPDX-License-Identifier: Apache-2.0
"""`--optimize ram` and `--max-ram`: first layers in stripes, with the results of the layers one after the other."""

import itertools
import re

import numpy as np
import pytest
from campaign import sized
from in_process import fail, opwest, succeed
from kernels.chains import chain
from models.commands import arrays_of, run_on_host
from models.made import Model
from models.test_max_ram import convolution, imported
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.selection.costs import Table
from opwest.compiler.selection.segments import Segments


def pyramid(constant=None):
    """Return a model whose first tensors are the largest: 24x24 values, 4 to 16 channels, with a residual sum.

    `constant` is the shape of a constant instead of the second operand of the sum.
    """
    random, model = np.random.default_rng(5), Model()
    image = model.input("int8", (1, 24, 24, 4), 0.05, 3, name="image")

    def layer(data, before, results, size, stride):
        return convolution(model, random, data, (results, size, size, before), (0.05, -128), stride)

    first = layer(image, 4, 16, 3, 1)
    if constant is None:
        second = layer(first, 16, 16, 3, 1)
    else:
        second = model.constant(random.integers(-128, 128, constant).astype(np.int8), 0.05, -128)
    both = model.operator("ADD", [first, second], ("int8", 0.1, -128), fused_activation_function="NONE")
    third = layer(both, 16, 8, 3, 2)
    last = layer(third, 8, 8, 1, 2)
    last.name = "features"
    return model.output(last).build()


MODEL = pyramid


def stripes_in(text):
    """Return the blocks of the tables that an import prints: its layers, and their number."""
    return [(one[0], int(one[1])) for one in re.findall(r"(\S+) \((\d+) layers in stripes of \d+ rows?\)", text)]


def longest_block(file):
    """Return the number of layers of the longest block of an import."""
    out = succeed("import", file, "-o", file.with_suffix(""), "--optimize", "ram").stdout
    return max((layers for _, layers in stripes_in(out)), default=0)


@pytest.mark.parametrize("io", sized(["workspace"], ["caller", "workspace"]))
def test_less_memory_and_the_same_results(file, io, tmp_path):
    out = succeed("import", file, "-o", tmp_path / "m", "--optimize", "ram", "--io", io).stdout
    # mla, dsp, mve, and portable C.
    assert len(stripes_in(out)) >= 4
    free, _ = imported(file, tmp_path / "free", "--io", io)
    printed, planned = imported(file, tmp_path / "least", "--optimize", "ram", "--io", io)
    assert {name: memory for name, (_, memory) in printed.items()} == {name: planned[name] for name in printed}
    # Two tensors of 9,216 bytes are live together without stripes.
    assert all(memory < free[name][1] / 1.5 for name, (_, memory) in printed.items())
    assert planned[None] < 18432 / 1.5
    succeed("generate", tmp_path / "m" / "manifest.yaml", "-o", tmp_path / "app")
    vectors = arrays_of(tmp_path / "m" / "vectors.npz")
    for image, features in list(zip(vectors["image"], vectors["features"], strict=True))[: sized(1, None)]:
        done = run_on_host(tmp_path / "app", {"image": image}, "--sanitize", references={"features": features})
        assert "features: equal to the reference" in done.stdout


def test_a_constant_of_all_rows_ends_a_block(tmp_path):
    """A layer in stripes reads one row at a time of its inputs, and the whole of its constants."""
    files = [tmp_path / f"rows{rows}.tflite" for rows in (1, 24)]
    for file, rows in zip(files, (1, 24), strict=True):
        file.write_bytes(pyramid((rows, rows, 16)))
    assert longest_block(files[0]) > longest_block(files[1])


@pytest.mark.parametrize("kind", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pools_with_padding(kind, tmp_path):
    """A row of padding has the least value for a maximum; for an average no value is right."""
    random, model = np.random.default_rng(7), Model()
    data = model.input("int8", (1, 24, 8, 2), 0.05, 3, name="image")

    def layer(data, before, results):
        return convolution(model, random, data, (results, 3, 3, before), (0.05, 3), activation="NONE")

    options = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    pooled = model.operator(kind, [layer(data, 2, 16)], ("int8", 0.05, 3), **options)
    file = model.output(layer(pooled, 16, 2)).save(tmp_path / "m.tflite")
    assert (longest_block(file) == 3) == (kind == "MAX_POOL_2D")


def test_layers_are_in_stripes_only_where_the_limit_requires_it(file, tmp_path):
    _, planned = imported(file, tmp_path / "free")
    _, least = imported(file, tmp_path / "least", "--optimize", "ram")
    between = (planned["dsp"] + least["dsp"]) // 2
    for name, limit, is_striped in (("much", max(planned.values()), False), ("less", between, True)):
        out = succeed("import", file, "-o", tmp_path / name, "--vectors", "0", "--max-ram", str(limit)).stdout
        assert bool(stripes_in(out.partition("dsp (cycles")[2].partition("mve (cycles")[0])) == is_striped, out
    err = fail("import", file, "-o", tmp_path / "none", "--vectors", "0", "--max-ram", "100").stderr
    found = re.search(r"expected: --max-ram of at least (\d+) bytes", err)
    assert found, err
    # The limit that the message names is enough for the class of processors that it names.
    err = opwest("import", file, "-o", tmp_path / "named", "--vectors", "0", "--max-ram", found[1]).stderr
    assert "for mla" not in err


def test_constants_of_a_layer_in_a_block_are_placed(file, tmp_path):
    words = ("--optimize", "ram", "--vectors", "0")
    out = succeed("import", file, "-o", tmp_path / "m", *words, "--place", "1=sram").stdout
    assert any("1" in numbers.split(",") for numbers, _ in stripes_in(out))
    text = (tmp_path / "m" / "manifest.yaml").read_text()
    assert len(re.findall("pool: sram", text)) >= 1
    err = fail("import", file, "-o", tmp_path / "n", *words, "--place", "9=sram").stderr
    assert "error: --place: the model has no layer '9'" in err


def divisions(segments, count):
    """Yield the bytes of the largest segment of each division into operations and blocks."""
    for cuts in itertools.product((False, True), repeat=count - 1):
        places = [0, *(number + 1 for number, cut in enumerate(cuts) if cut), count]
        needs = []
        for first, end in itertools.pairwise(places):
            if end - first == 1:
                needs.append(min(one.need for one in segments._singles[first]))
                continue
            block = segments._block(first, end, (1, 1)) if first in segments._firsts(end) else None
            if block is None:
                break
            needs.append(segments._need(first, end, block))
        else:
            yield max(needs)


@pytest.mark.parametrize("caller_memory", [True, False])
def test_the_least_division_is_that_of_all_combinations(caller_memory):
    sizes = []
    for number in range(25):
        program = chain(np.random.default_rng((3, number)), 6)
        segments = Segments(program, "dsp", Table("cortex-m4", {}, {}), caller_memory)
        assert segments.least == min(divisions(segments, 6)), number
        divided = segments.within(segments.least)
        assert segments.within(segments.least - 1) is None
        sizes.append((segments.least, max(min(one.need for one in some) for some in segments._singles)))
        assert (divided is None) == (sizes[-1][0] == sizes[-1][1])
        assert divided is None or any(isinstance(one, Striped) for one in divided.operations)
    assert sum(least < plain for least, plain in sizes) >= 5

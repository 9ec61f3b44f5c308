# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host`: results and error messages."""

import importlib.util
import json
import re

import numpy as np
import projects
import pytest
from golden_support import copy_project, generate_project
from opwest.diagnostics import Diagnostics
from requirements_support import need

NEEDS_CC = pytest.mark.needs("cc")


@pytest.fixture(scope="module")
def reference(digits):
    spec = importlib.util.spec_from_file_location("digits_reference_of_cli", digits / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def save(path, array):
    np.save(path, array)
    return path


def test_digits_equals_the_reference(opwest, digits_of, reference, tmp_path):
    generator = np.random.default_rng(1)
    images = [generator.integers(0, 17, (1, 8, 8, 1), dtype=np.int8), np.full((1, 8, 8, 1), -128, dtype=np.int8)]
    for number, image in enumerate(images):
        path = save(tmp_path / f"{number}.npy", image)
        out = tmp_path / f"out {number}" / "deep"
        done = opwest("run", digits_of, "--host", "--input", f"image={path}", "--output-dir", out)
        assert done.code == 0, done.err
        label = np.load(out / "label.npy")
        assert label.dtype == np.int32 and label.shape == (1,)
        np.testing.assert_array_equal(label, reference.predict(image))
        assert f"label: int32 [1]: [{label[0]}]" in done.out and str(out / "label.npy") in done.out


def test_json_of_a_run(opwest, digits_of, reference, tmp_path):
    image = np.random.default_rng(2).integers(0, 17, (1, 8, 8, 1), dtype=np.int8)
    path = save(tmp_path / "image.npy", image)
    done = opwest("run", digits_of, "--host", "--input", f"image={path}", "--json")
    assert done.code == 0 and not done.err
    report = json.loads(done.out)
    assert report["ok"] and report["result"]["outputs"] == {"label": reference.predict(image).tolist()}


def test_json_of_an_application(opwest, digits_of):
    result = json.loads(opwest("run", digits_of, "--host", "--json").out)["result"]
    assert result["returncode"] == 0
    assert re.search(r"^accuracy: 9[5-9]\.\d\d %$", result["stdout"], re.M)
    assert "360 of 360 equal the reference" in result["stdout"]


@pytest.mark.slow
def test_big_endian_and_fortran_inputs(opwest, tmp_path):
    app = generate_project("minimal", tmp_path)
    for number, array in enumerate(
        [np.array([1, -2, 300, 4], dtype=">i2"), np.asfortranarray([1, -2, 300, 4], dtype=np.int16)]
    ):
        path = save(tmp_path / f"{number}.npy", array)
        done = opwest("run", app, "--host", "--input", f"x={path}", "--output-dir", tmp_path)
        assert done.code == 0, done.err
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [-1, 2, -300, -4])


@pytest.mark.slow
@NEEDS_CC
def test_every_dtype(opwest, metadata, tmp_path):
    """many_kinds copies every dtype, stores scalars at their limits, and sums with scratch, inout and constants."""
    app = generate_project("many_kinds", tmp_path, metadata=metadata)
    generator = np.random.default_rng(3)
    inputs = {}
    for tensor in json.loads((app / ".opwest" / "lock.json").read_text())["record"]["models"][0]["tensors"]:
        if tensor["role"] == "input":
            dtype = np.dtype(tensor["dtype"])
            raw = generator.integers(0, 256, int(np.prod(tensor["shape"])) * dtype.itemsize, dtype=np.uint8)
            array = (raw % 2).astype(bool) if tensor["dtype"] == "bool" else raw.view(dtype)
            inputs[tensor["name"]] = array.reshape(tensor["shape"])
    inputs["values"][...] = np.arange(8)
    arguments = [w for name, a in inputs.items() for w in ("--input", f"{name}={save(tmp_path / f'{name}.npy', a)}")]
    done = opwest("run", app, "--host", *arguments, "--output-dir", tmp_path / "out")
    assert done.code == 0, done.err
    outputs = {path.stem: np.load(path) for path in (tmp_path / "out").iterdir()}
    for name, array in inputs.items():
        if name.startswith("in_"):
            result = outputs["out_" + name.removeprefix("in_")]
            assert result.dtype == array.dtype and result.tobytes() == array.tobytes(), name
    assert outputs["sum"].shape == () and outputs["count"] == inputs["seen"]
    table = np.array([1, -2, 3, -4, 5, -6, 7, -8])
    total = table * np.arange(1, 9) + np.arange(8) * 100 + np.arange(8)[::-1] + table[::-1]
    assert outputs["sum"] == total.sum()
    layout = np.dtype("i1,u1,<i2,<u2,<i4,<u4,<i8,<u8,<u2,<f4,<f8,u1")
    lowest, highest = (tuple(outputs[name].view(layout)[0].tolist()) for name in ("lowest", "highest"))
    assert lowest == (-128, 0, -(2**15), 0, -(2**31), 0, -(2**63), 0, 0, -(2.0**-149), -1.7976931348623157e308, 0)
    integers = (127, 255, 2**15 - 1, 65535, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
    assert highest == (*integers, 65535, float(np.float32(0.1)), 5e-324, 1)


@pytest.mark.slow
@NEEDS_CC
def test_several_models(opwest, tmp_path):
    app = generate_project("several", tmp_path)
    path = save(tmp_path / "x.npy", np.array([1, 2, 3, 4], dtype=np.int32))
    for model, answer in (("up", [3, 6, 9, 12]), ("down", [-19, -38, -57, -76])):
        done = opwest("run", app, "--host", "--model", model, "--input", f"x={path}", "--json")
        expected = {"model": model, "outputs": {"y": answer}, "errors": {}, "clock": "host"}
        assert json.loads(done.out)["result"] == expected
    done = opwest("run", app, "--host", "--input", f"x={path}")
    assert done.code == 1 and "the project has several models: up, down" in done.err and "--model NAME" in done.err
    done = opwest("run", app, "--host", "--model", "upp", "--input", f"x={path}")
    assert done.code == 1 and "unknown model 'upp'" in done.err and "did you mean 'up'?" in done.err


@NEEDS_CC
def test_failing_step(opwest, metadata, tmp_path):
    app = generate_project("minimal", tmp_path, metadata=metadata)
    path = save(tmp_path / "x.npy", np.array([1, 2, -32768, 4], dtype=np.int16))
    done = opwest("run", app, "--host", "--input", f"x={path}")
    assert done.code == 1 and not done.out
    assert "minimal_run returned -5" in done.err and "in step 0 (negate): the operator returned 3" in done.err


@NEEDS_CC
def test_runtime_of_the_workspace(opwest, tmp_path):
    app = generate_project("minimal", tmp_path, vendored=False)
    path = save(tmp_path / "x.npy", np.arange(4, dtype=np.int16))
    done = opwest("run", app, "--host", "--input", f"x={path}")
    assert done.code == 0 and "y: int16 [4]: [ 0 -1 -2 -3]" in done.out


WRONG_INPUTS = [
    (["image"], "invalid --input 'image'\n  expected: NAME=FILE.npy"),
    (["image="], "invalid --input 'image='"),
    (["imag={}/good.npy"], "unknown input 'imag'"),
    (["imag={}/good.npy"], "did you mean 'image'?"),
    (["imag={}/good.npy"], "missing input 'image'"),
    (["image={}/good.npy"] * 2, "duplicate input 'image'"),
    (["image={}/other.npy"], "contains uint8 [1, 8, 8, 1]\n  expected: int8 [1, 8, 8, 1]"),
    (["image={}/flat.npy"], "contains int8 [64]"),
    *((["image={}" + name], "cannot read") for name in ("", "/absent.npy", "/text.npy", "/empty.npy", "/object.npy")),
    (["image={}/many.npz"], "is an .npz file"),
]


def test_wrong_inputs(opwest, digits_app, tmp_path):
    save(tmp_path / "good.npy", np.zeros((1, 8, 8, 1), np.int8))
    save(tmp_path / "other.npy", np.zeros((1, 8, 8, 1), np.uint8))
    save(tmp_path / "flat.npy", np.zeros(64, np.int8))
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "many.npz", image=np.zeros((1, 8, 8, 1), np.int8))
    for inputs, message in WRONG_INPUTS:
        done = opwest("run", digits_app, "--host", *(w for one in inputs for w in ("--input", one.format(tmp_path))))
        assert (done.code, done.out) == (1, "") and message in done.err and "Traceback" not in done.err, done.err
    done = opwest("run", digits_app, "--host", "--output-dir", tmp_path / "out")
    assert done.code == 1 and "missing input 'image'" in done.err


def test_missing_compiler(opwest, digits_app, monkeypatch):
    for value in ("/nonexistent", "/nonexistent -m64", "  "):
        monkeypatch.setenv("CC", value)
        done = opwest("run", digits_app, "--host")
        assert done.code == 1
        assert "error: C compiler '" in done.err and "install gcc or clang, or set CC" in done.err


def test_compiler_variable_with_unbalanced_quotes(opwest, digits_app, monkeypatch):
    monkeypatch.setenv("CC", "cc '-DX")
    assert opwest("run", digits_app, "--host").code == 1


@NEEDS_CC
def test_failing_compiler(opwest, digits_app, monkeypatch):
    monkeypatch.setenv("CC", "false")
    done = opwest("run", digits_app, "--host")
    assert done.code == 1 and "the compiler failed: false" in done.err


@pytest.mark.slow
def test_another_compiler(opwest, tmp_path, monkeypatch):
    need("clang")
    monkeypatch.setenv("CC", "clang -O1")
    app = generate_project("minimal", tmp_path)
    path = save(tmp_path / "x.npy", np.arange(4, dtype=np.int16))
    assert opwest("run", app, "--host", "--input", f"x={path}").code == 0


def test_no_objects_for_this_machine(opwest, digits_app):
    need("gcc -m32")
    done = opwest("run", digits_app, "--host", "--bits", "32")
    assert done.code == 1
    assert "no objects of model 'digits' for this machine" in done.err and "found: x86-64" in done.err


def test_options_of_boards_require_a_board(opwest, tmp_path):
    done = opwest(
        "run", tmp_path, "--host", "--reference", "y=y.npy", "--no-build", "--baud", "115200", "--timeout", "3"
    )
    assert done.code == 1
    assert done.err == (
        "opwest: error: --baud requires --board\n"
        "opwest: error: --timeout requires --board\n"
        "opwest: error: --no-build requires --board\n"
        "opwest: 3 errors\n"
    )


def test_directory_without_a_project(opwest, tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        done = opwest("run", folder, "--host")
        assert done.code == 1 and "not a directory generated by opwest" in done.err


@NEEDS_CC
def test_application_with_an_exit_code(opwest, tmp_path):
    app = generate_project("minimal", tmp_path)
    (app / "src" / "main.c").write_text("int main(void)\n{\n\treturn 7;\n}\n")
    done = opwest("run", app, "--host", "--json")
    assert done.code == 1 and "the program returned 7" in done.out
    (app / "src" / "main.c").write_text("#include <stdlib.h>\nint main(void)\n{\n\tabort();\n}\n")
    done = opwest("run", app, "--host")
    assert done.code == 1 and "the program was terminated by SIGABRT" in done.err


@NEEDS_CC
def test_application_with_a_compile_error(opwest, tmp_path):
    app = generate_project("minimal", tmp_path)
    (app / "src" / "main.c").write_text("int main(void)\n{\n\treturn nothing_of_that_name;\n}\n")
    done = opwest("run", app, "--host")
    assert done.code == 1 and "nothing_of_that_name" in done.err and "Traceback" not in done.err


@NEEDS_CC
def test_directory_name_with_a_space_and_a_comma(opwest, tmp_path):
    app = generate_project("several", tmp_path / "with blank, and ü")
    path = save(tmp_path / "x.npy", np.zeros(4, dtype=np.int32))
    assert opwest("run", app, "--host", "--model", "up", "--input", f"x={path}").code == 0


@NEEDS_CC
def test_json_of_outputs_that_are_not_numbers(opwest, tmp_path):
    source = "#include <math.h>\n#include <stdint.h>\nint32_t op(const float *x, float *y);\n"
    source += "int32_t op(const float *x, float *y)\n{\n\ty[0] = x[0] / x[0];\n\ty[1] = 1.0f / x[0];\n\treturn 0;\n}\n"
    (tmp_path / "op.c").write_text(source)
    (tmp_path / "manifest.yaml").write_text(
        "version: 1\nmodel: divide\nobjects: [{files: [op.c]}]\noperators:\n  op: {args: [{name: x, dtype: float32, "
        "shape: [2]}, {name: y, dtype: float32, shape: [2], direction: out}]}\nrun:\n"
        "  inputs: {x: {dtype: float32, shape: [2]}}\n  outputs: {y: {dtype: float32, shape: [2]}}\n"
        "  steps: [{call: op, args: [x, y]}]\n"
    )
    projects.generate([tmp_path / "manifest.yaml"], tmp_path / "app", vendored=True, faults=Diagnostics())
    path = save(tmp_path / "x.npy", np.zeros(2, dtype=np.float32))
    done = opwest("run", tmp_path / "app", "--host", "--input", f"x={path}", "--json")
    assert done.code == 0
    json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.slow
@NEEDS_CC
def test_profile(opwest, digits_of, reference, tmp_path):
    app = digits_of
    image = save(tmp_path / "image.npy", np.full((1, 8, 8, 1), 3, np.int8))
    file = tmp_path / "p.json"
    given = ["--input", f"image={image}", "--output-dir", tmp_path, "--repeat", 4]
    done = opwest("run", app, "--host", *given, "--profile", "--output-profile", file)
    assert done.code == 0, done.err
    np.testing.assert_array_equal(np.load(tmp_path / "label.npy"), reference.predict(np.load(image)))
    written = json.loads(file.read_text())
    head = {key: written[key] for key in ("format", "model", "where", "clock", "unit", "frequency_hz", "stack")}
    units = {"clock": "host", "unit": "ns", "frequency_hz": 10**9, "stack": None}
    assert head == {"format": 1, "model": "digits", "where": "host", **units}
    points = written["points"]
    assert [(p["kind"], p["step"], p["operator"]) for p in points] == [
        ("run", None, None),
        *(("step", i, name) for i, name in enumerate(["conv2d_relu", "max_pool", "dense", "arg_max"])),
    ]
    for point in points:
        assert point["runs"] == 4 and 0 <= point["min"] <= point["mean"] <= point["max"] <= point["total"]
    assert sum(point["total"] for point in points[1:]) <= points[0]["total"]
    rows = [line.split() for line in done.out.splitlines()]
    assert ["profile:", "4", "runs,", "ns"] in rows
    assert [row[:3] for row in rows if row[1:2] == ["step"]][3] == ["3", "step", "arg_max"]
    done = opwest("run", app, "--host", *given, "--profile", "--json")
    assert json.loads(done.out)["result"]["profile"]["points"][0]["runs"] == 4
    done = opwest("run", app, "--host", *given)
    assert done.code == 0 and "profile: " not in done.out


@NEEDS_CC
def test_profile_that_cannot_be_written(opwest, digits_of, tmp_path):
    image = save(tmp_path / "image.npy", np.zeros((1, 8, 8, 1), np.int8))
    file = tmp_path / "absent" / "p.json"
    done = opwest("run", digits_of, "--host", "--input", f"image={image}", "--output-profile", file)
    assert done.code == 1
    assert f"{file}: error: cannot write the profile: No such file or directory" in done.err
    assert done.err.count("error: ") == 1


@NEEDS_CC
def test_profile_needs_inputs(opwest, digits_of):
    done = opwest("run", digits_of, "--host", "--profile")
    assert done.code == 1 and "missing input 'image'" in done.err


@NEEDS_CC
@pytest.mark.slow
def test_reference_and_tolerance(opwest, tmp_path):
    """The exit code is 1 for a difference beyond the tolerance: that of the command line, else of the manifest."""
    manifests = copy_project("minimal", tmp_path / "source")
    np.savez(tmp_path / "source" / "v.npz", x=np.zeros((1, 4), np.int16), y=np.zeros((1, 4), np.int16))
    text = manifests[0].read_text() + "\ntests: {vectors: [v.npz], tolerance: {y: {absolute: 2}}}\n"
    manifests[0].write_text(text)
    projects.generate(manifests, tmp_path / "app", vendored=True, faults=Diagnostics())
    x = save(tmp_path / "x.npy", np.arange(4, dtype=np.int16))
    for y, tolerances, code, words in (
        ([0, -1, -2, -3], [], 0, "y: equal to the reference"),
        ([0, -1, -2, -1], [], 0, "y: 1 of 4 elements differ from the reference: largest error 2 at [3], mean 0.5; all"),
        ([0, -1, -2, 0], [], 1, "mean 0.75; 1 beyond the tolerance 2"),
        ([0, -1, -2, -1], ["--tolerance", "y=1"], 1, "1 beyond the tolerance 1"),
        ([0, -1, -2, -1], ["--tolerance", "0"], 1, "largest error 2 at [3], mean 0.5"),
        ([0, -1, -2, -9], ["--tolerance", "0,1"], 0, "all within the tolerance 0 + 1 * |reference|"),
    ):
        np.savez(tmp_path / "r.npz", y=np.array(y, np.int16))
        arguments = ["run", tmp_path / "app", "--host", "--input", f"x={x}", "--reference", tmp_path / "r.npz"]
        done = opwest(*arguments, *tolerances)
        assert done.code == code and words in done.out, (y, tolerances, done)
    done = opwest(*arguments, "--json")
    frames = save(tmp_path / "frames.npy", np.arange(8, dtype=np.int16).reshape(2, 4))
    good = save(tmp_path / "good.npy", -np.arange(8).reshape(2, 4))
    streamed = ["run", tmp_path / "app", "--host", "--stream", f"x={frames}", "--reference"]
    assert "y: equal to the reference" in opwest(*streamed, f"y={good}").out
    assert "contains int16 [4]\n  expected: numbers [2, 4]" in opwest(*streamed, f"y={x}").err
    assert "--stream excludes --repeat" in opwest(*streamed, f"y={good}", "--repeat", 1).err
    error = json.loads(done.out)["result"]["errors"]["y"]
    assert done.code == 1 and error["beyond_tolerance"] == 1 and error["tolerance"] == {"absolute": 2, "relative": 0}


@NEEDS_CC
def test_archives_of_arrays(opwest, tmp_path):
    app = generate_project("minimal", tmp_path)
    np.savez(tmp_path / "x.npz", x=np.arange(4, dtype=np.int16))
    np.savez(tmp_path / "both.npz", y=np.zeros(4, np.int16), z=np.zeros(4))
    done = opwest("run", app, "--host", "--input", tmp_path / "x.npz")
    assert done.code == 0 and "y: int16 [4]: [ 0 -1 -2 -3]" in done.out
    for arguments, message in (
        (["--reference", tmp_path / "both.npz"], f"unknown output 'z' in '{tmp_path}/both.npz'"),
        (["--reference", "y"], "invalid --reference 'y'"),
        (["--reference", f"y={tmp_path}/both.npz"], f"reference 'y': '{tmp_path}/both.npz' is an .npz file"),
        (["--input", tmp_path / "x.npz"], "duplicate input 'x'"),
        (["--reference", tmp_path / "boht.npz"], f"hint: did you mean '{tmp_path}/both.npz'?"),
    ):
        done = opwest("run", app, "--host", "--input", tmp_path / "x.npz", *arguments)
        assert done.code == 1 and message in done.err, done.err

# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host`: results and error messages."""

import json
import re

import numpy as np
import projects
import pytest
from golden_support import copy_project, generate_project
from opwest.base.diagnostics import Diagnostics
from requirements_support import need
from small_models import generated, given, one_operator

NEEDS_CC = pytest.mark.needs("cc")


def test_digits_equals_the_reference(succeed, digits_of, reference, tmp_path):
    generator = np.random.default_rng(1)
    images = [generator.integers(0, 17, (1, 8, 8, 1), dtype=np.int8), np.full((1, 8, 8, 1), -128, dtype=np.int8)]
    for number, image in enumerate(images):
        out = tmp_path / f"out {number}" / "deep"
        done = succeed("run", digits_of, "--host", *given(tmp_path, image=image), "--output-dir", out)
        label = np.load(out / "label.npy")
        assert label.dtype == np.int32 and label.shape == (1,)
        np.testing.assert_array_equal(label, reference.predict(image))
        assert f"label: int32 [1]: [{label[0]}]" in done.out and str(out / "label.npy") in done.out


def test_json(succeed, digits_of, reference, tmp_path):
    result = json.loads(succeed("run", digits_of, "--host", "--json").out)["result"]
    assert result["exit_code"] == 0
    assert re.search(r"^accuracy: 9[5-9]\.\d\d %$", result["stdout"], re.M)
    assert "360 of 360 equal the reference" in result["stdout"]
    image = np.random.default_rng(2).integers(0, 17, (1, 8, 8, 1), dtype=np.int8)
    done = succeed("run", digits_of, "--host", *given(tmp_path, image=image), "--json")
    report = json.loads(done.out)
    assert not done.err and report["ok"]
    assert report["result"]["outputs"] == {"label": reference.predict(image).tolist()}


@pytest.mark.slow
def test_big_endian_and_fortran_inputs(succeed, tmp_path):
    app = generate_project("minimal", tmp_path)
    for array in (np.array([1, -2, 300, 4], dtype=">i2"), np.asfortranarray([1, -2, 300, 4], dtype=np.int16)):
        succeed("run", app, "--host", *given(tmp_path, x=array), "--output-dir", tmp_path)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [-1, 2, -300, -4])


@pytest.mark.slow
@NEEDS_CC
def test_every_dtype(succeed, metadata, tmp_path):
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
    succeed("run", app, "--host", *given(tmp_path, **inputs), "--output-dir", tmp_path / "out")
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
def test_several_models(opwest, fail, tmp_path):
    app = generate_project("several", tmp_path)
    x = given(tmp_path, x=np.array([1, 2, 3, 4], dtype=np.int32))
    for model, answer in (("up", [3, 6, 9, 12]), ("down", [-19, -38, -57, -76])):
        done = opwest("run", app, "--host", "--model", model, *x, "--json")
        expected = {"model": model, "outputs": {"y": answer}, "errors": {}, "clock": "host", "variant": None}
        assert json.loads(done.out)["result"] == expected
    done = fail("run", app, "--host", *x)
    assert "the project has several models: up, down" in done.err and "--model NAME" in done.err
    done = fail("run", app, "--host", "--model", "upp", *x)
    assert "unknown model 'upp'" in done.err and "did you mean 'up'?" in done.err


@NEEDS_CC
def test_failing_step(fail, metadata, tmp_path):
    app = generate_project("minimal", tmp_path, metadata=metadata)
    done = fail("run", app, "--host", *given(tmp_path, x=np.array([1, 2, -32768, 4], dtype=np.int16)))
    assert not done.out
    assert "minimal_run returned -5" in done.err and "in step 0 (negate): the operator returned 3" in done.err


@NEEDS_CC
def test_runtime_of_the_workspace(succeed, tmp_path):
    app = generate_project("minimal", tmp_path, vendored=False)
    done = succeed("run", app, "--host", *given(tmp_path, x=np.arange(4, dtype=np.int16)))
    assert "y: int16 [4]: [ 0 -1 -2 -3]" in done.out


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


def test_wrong_inputs(opwest, fail, digits_app, tmp_path):
    zeros = np.zeros((1, 8, 8, 1), np.int8)
    given(tmp_path, good=zeros, other=zeros.astype(np.uint8), flat=zeros.ravel())
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "many.npz", image=zeros)
    for inputs, message in WRONG_INPUTS:
        done = opwest("run", digits_app, "--host", *(w for one in inputs for w in ("--input", one.format(tmp_path))))
        assert (done.code, done.out) == (1, "") and message in done.err and "Traceback" not in done.err, done.err
    for option in (["--output-dir", tmp_path / "out"], ["--profile"]):
        assert "missing input 'image'" in fail("run", digits_app, "--host", *option).err


def test_missing_or_failing_compiler(fail, digits_app, monkeypatch):
    for value in ("/nonexistent", "/nonexistent -m64", "  "):
        monkeypatch.setenv("CC", value)
        done = fail("run", digits_app, "--host")
        assert "error: C compiler '" in done.err and "install gcc or clang, or set CC" in done.err
    monkeypatch.setenv("CC", "cc '-DX")
    fail("run", digits_app, "--host")
    monkeypatch.setenv("CC", "false")
    assert "the compiler failed: false" in fail("run", digits_app, "--host").err


@pytest.mark.slow
def test_another_compiler(succeed, tmp_path, monkeypatch):
    need("clang")
    monkeypatch.setenv("CC", "clang -O1")
    app = generate_project("minimal", tmp_path)
    succeed("run", app, "--host", *given(tmp_path, x=np.arange(4, dtype=np.int16)))


def test_no_objects_for_this_machine(fail, digits_app):
    need("gcc -m32")
    done = fail("run", digits_app, "--host", "--bits", "32")
    assert "no objects of model 'digits' for this machine" in done.err and "found: x86-64" in done.err


def test_options_of_boards_require_a_board(fail, tmp_path):
    words = ["--reference", "y=y.npy", "--no-build", "--baud", "115200", "--timeout", "3"]
    done = fail("run", tmp_path, "--host", *words)
    assert done.err == (
        "opwest: error: --baud requires --board\n"
        "opwest: error: --timeout requires --board\n"
        "opwest: error: --no-build requires --board\n"
        "opwest: 3 errors\n"
    )


@NEEDS_CC
def test_application_that_fails(fail, tmp_path):
    app = generate_project("minimal", tmp_path)
    for body, message in (
        ("abort();", "the program was terminated by SIGABRT"),
        ("return nothing_of_that_name;", "nothing_of_that_name"),
    ):
        (app / "src" / "main.c").write_text(f"#include <stdlib.h>\nint main(void)\n{{\n\t{body}\n}}\n")
        done = fail("run", app, "--host")
        assert message in done.err and "Traceback" not in done.err
    (app / "src" / "main.c").write_text("int main(void)\n{\n\treturn 7;\n}\n")
    assert "the program returned 7" in fail("run", app, "--host", "--json").out


@NEEDS_CC
def test_directory_name_with_a_space_and_a_comma(succeed, tmp_path):
    app = generate_project("several", tmp_path / "with blank, and ü")
    succeed("run", app, "--host", "--model", "up", *given(tmp_path, x=np.zeros(4, dtype=np.int32)))


@NEEDS_CC
def test_json_of_outputs_that_are_not_numbers(succeed, tmp_path):
    source = (
        "#include <stdint.h>\nint32_t op(const float *x, float *y)\n{\n\ty[0] = x[0] / x[0];\n\ty[1] = 1.0f / x[0];\n"
    )
    manifest = one_operator("op", "[{files: [op.c]}]", dtype="float32", shape="[2]")
    app = generated(succeed, tmp_path, manifest, {"op.c": f"{source}\treturn 0;\n}}\n"})
    done = succeed("run", app, "--host", *given(tmp_path, x=np.zeros(2, dtype=np.float32)), "--json")
    json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.slow
@NEEDS_CC
def test_profile(opwest, succeed, digits_of, reference, tmp_path):
    image = np.full((1, 8, 8, 1), 3, np.int8)
    file = tmp_path / "p.json"
    words = ["run", digits_of, "--host", *given(tmp_path, image=image), "--output-dir", tmp_path, "--repeat", 4]
    done = succeed(*words, "--profile", "--output-profile", file)
    np.testing.assert_array_equal(np.load(tmp_path / "label.npy"), reference.predict(image))
    written = json.loads(file.read_text())
    head = {"format": 1, "model": "digits", "where": "host", "clock": "host", "unit": "ns", "frequency_hz": 10**9}
    assert {**head, "stack": None}.items() <= written.items()
    points = written["points"]
    assert [(p["kind"], p["step"], p["operator"]) for p in points] == [
        ("run", None, None),
        *(("step", i, name) for i, name in enumerate(["conv2d_relu", "max_pool", "dense", "arg_max"])),
    ]
    for point in points:
        assert point["runs"] == 4 and 0 <= point["min"] <= point["mean"] <= point["max"] <= point["total"]
    assert sum(point["total"] for point in points[1:]) <= points[0]["total"]
    rows = [line.split() for line in done.out.splitlines()]
    assert "profile: 4 runs, ns (host time: it varies)" in done.out.splitlines()
    assert [row[:3] for row in rows if row[1:2] == ["step"]][3] == ["3", "step", "arg_max"]
    assert json.loads(opwest(*words, "--profile", "--json").out)["result"]["profile"]["points"][0]["runs"] == 4
    assert "profile: " not in succeed(*words).out


@NEEDS_CC
def test_profile_that_cannot_be_written(fail, digits_of, tmp_path):
    file = tmp_path / "absent" / "p.json"
    image = given(tmp_path, image=np.zeros((1, 8, 8, 1), np.int8))
    done = fail("run", digits_of, "--host", *image, "--output-profile", file)
    assert f"{file}: error: cannot write the profile: No such file or directory" in done.err
    assert done.err.count("error: ") == 1


@NEEDS_CC
@pytest.mark.slow
def test_reference_and_tolerance(opwest, tmp_path):
    """The exit code is 1 for a difference beyond the tolerance: that of the command line, else of the manifest."""
    manifests = copy_project("minimal", tmp_path / "source")
    np.savez(tmp_path / "source" / "v.npz", x=np.zeros((1, 4), np.int16), y=np.zeros((1, 4), np.int16))
    text = manifests[0].read_text() + "\ntests: {vectors: [v.npz], tolerance: {y: {absolute: 2}}}\n"
    manifests[0].write_text(text)
    projects.generate(manifests, tmp_path / "app", vendored=True, faults=Diagnostics())
    run = ["run", tmp_path / "app", "--host"]
    x = given(tmp_path, x=np.arange(4, dtype=np.int16))
    for y, tolerances, code, words in (
        ([0, -1, -2, -3], [], 0, "y: equal to the reference"),
        ([0, -1, -2, -1], [], 0, "y: 1 of 4 elements differ from the reference: largest error 2 at [3], mean 0.5; all"),
        ([0, -1, -2, 0], [], 1, "mean 0.75; 1 beyond the tolerance 2"),
        ([0, -1, -2, -1], ["--tolerance", "y=1"], 1, "1 beyond the tolerance 1"),
        ([0, -1, -2, -1], ["--tolerance", "0"], 1, "largest error 2 at [3], mean 0.5"),
        ([0, -1, -2, -9], ["--tolerance", "0,1"], 0, "all within the tolerance 0 + 1 * |reference|"),
    ):
        np.savez(tmp_path / "r.npz", y=np.array(y, np.int16))
        done = opwest(*run, *x, "--reference", tmp_path / "r.npz", *tolerances)
        assert done.code == code and words in done.out, (y, tolerances, done)
    done = opwest(*run, *x, "--reference", tmp_path / "r.npz", "--json")
    given(tmp_path, frames=np.arange(8, dtype=np.int16).reshape(2, 4), good=-np.arange(8).reshape(2, 4))
    streamed = [*run, "--stream", f"x={tmp_path}/frames.npy", "--reference"]
    assert "y: equal to the reference" in opwest(*streamed, f"y={tmp_path}/good.npy").out
    assert "contains int16 [4]\n  expected: numbers [2, 4]" in opwest(*streamed, f"y={tmp_path}/x.npy").err
    assert "--stream excludes --repeat" in opwest(*streamed, f"y={tmp_path}/good.npy", "--repeat", 1).err
    error = json.loads(done.out)["result"]["errors"]["y"]
    assert done.code == 1 and error["beyond_tolerance"] == 1 and error["tolerance"] == {"absolute": 2, "relative": 0}


@NEEDS_CC
def test_archives_of_arrays(succeed, fail, tmp_path):
    app = generate_project("minimal", tmp_path)
    np.savez(tmp_path / "x.npz", x=np.arange(4, dtype=np.int16))
    np.savez(tmp_path / "both.npz", y=np.zeros(4, np.int16), z=np.zeros(4))
    done = succeed("run", app, "--host", "--input", tmp_path / "x.npz")
    assert "y: int16 [4]: [ 0 -1 -2 -3]" in done.out
    for arguments, message in (
        (["--reference", tmp_path / "both.npz"], f"unknown output 'z' in '{tmp_path}/both.npz'"),
        (["--reference", "y"], "invalid --reference 'y'"),
        (["--reference", f"y={tmp_path}/both.npz"], f"reference 'y': '{tmp_path}/both.npz' is an .npz file"),
        (["--input", tmp_path / "x.npz"], "duplicate input 'x'"),
        (["--reference", tmp_path / "boht.npz"], f"hint: did you mean '{tmp_path}/both.npz'?"),
    ):
        assert message in fail("run", app, "--host", "--input", tmp_path / "x.npz", *arguments).err


def test_an_application_that_is_older_or_incomplete(succeed, fail, tmp_path):
    need("cc")
    manifest = one_operator("twice", "[{files: [a.c]}]")
    source = "int twice(const signed char *x, signed char *y) { *y = *x; return 0; }\n"
    app = generated(succeed, tmp_path, manifest, {"a.c": source})
    arguments = ["run", app, *given(tmp_path, x=np.zeros(4, np.int8))]
    assert succeed(*arguments).err == ""
    (tmp_path / "a.c").write_text(source.replace("*x;", "*x + 1;"))
    hint = f"\n  hint: to run the new version: opwest update {app}\n"
    assert succeed(*arguments).err == f"{app}: note: the application is older than {tmp_path}/a.c{hint}"
    (source,) = app.glob("models/*/objects/any/a.c")
    source.unlink()
    expected = (
        f"{app}: error: generated files are missing: models/tiny/objects/any/a.c\n  hint: run opwest update {app}; "
    )
    assert expected in fail(*arguments).err


def test_a_library_in_place_of_a_manifest(fail, tmp_path):
    for name, magic, what in (("a.o", b"\x7fELF", "an object or an image"), ("l.a", b"!<arch>\n", "an archive")):
        (tmp_path / name).write_bytes(magic)
        assert f"{name}: error: the file is {what}, no manifest\n" in fail("check", tmp_path / name).err

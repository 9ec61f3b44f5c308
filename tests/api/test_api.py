# SPDX-License-Identifier: Apache-2.0
"""`import opwest`: each function with its result, its errors, arrays of numpy, threads, and the options of commands."""

import argparse
import dataclasses
import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import opwest
import pytest
from opwest.cli.parser import parser
from requirements_support import need, need_x86_64

SOURCE = """\
#include <stdint.h>
int32_t op(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 4; i++)
		y[i] = %s;
	return 0;
}
"""
TENSOR = "dtype: int8, shape: [4]"
MANIFEST = f"""\
version: 1
model: tiny
objects: [{{files: [op.c]}}]
operators: {{op: {{args: [{{name: x, {TENSOR}}}, {{name: y, {TENSOR}, direction: out}}]}}}}
run:
  inputs: {{x: {{{TENSOR}}}}}
  outputs: {{y: {{{TENSOR}}}}}
  steps: [{{call: op, args: [x, t]}}, {{call: op, args: [t, y]}}]
"""
X = np.array([1, -2, 3, 4], np.int8)


@pytest.fixture(autouse=True)
def silent(capfd):
    """No function prints."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def manifest(tmp_path):
    return model(tmp_path)


def model(folder, expression="2 * x[i]"):
    folder.mkdir(exist_ok=True)
    (folder / "op.c").write_text(SOURCE % expression)
    (folder / "manifest.yaml").write_text(MANIFEST)
    return folder / "manifest.yaml"


@pytest.fixture
def app(manifest):
    need("cc")
    return opwest.generate(manifest, output=manifest.parent / "app").directory


def fault(function, *arguments, **options):
    """Return the error of a call that must fail."""
    with pytest.raises(opwest.OpwestError) as caught:
        function(*arguments, **options)
    error = caught.value
    assert str(error) == "\n".join(map(str, error.diagnostics)) and error.diagnostics
    return error


def messages(function, *arguments, **options):
    return [one.message for one in fault(function, *arguments, **options).diagnostics if one.severity == "error"]


def test_public_names_are_imported_on_their_first_use():
    lines = (
        "import sys, opwest; before = [name for name in sys.modules if name.startswith('opwest.')]",
        "assert not before and set(opwest.__all__) <= set(dir(opwest)), before",
        "from opwest import *; assert opwest.check is check and str(OpwestError) == \"<class 'opwest.OpwestError'>\"",
        "assert not {'argparse', 'opwest.cli'} & set(sys.modules)",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
    with pytest.raises(AttributeError, match="module 'opwest' has no attribute 'chekc'"):
        opwest.chekc  # noqa: B018


def test_results_are_frozen_and_documented():
    for name in opwest.__all__:
        one = getattr(opwest, name)
        assert inspect.getdoc(one), name
        if name.endswith("Result"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                object.__new__(one).diagnostics = ()


def test_check(manifest):
    done = opwest.check(str(manifest), schedule=True)
    (found,), (objects,) = done.models, done.objects
    assert (found.name, found.operators, found.steps, found.variant) == ("tiny", ("op",), ("op", "op"), None)
    assert [(t.name, t.dtype, t.shape, t.bytes) for t in found.inputs] == [("x", "int8", (4,), 4)]
    (pool,) = found.pools
    assert (pool.name, pool.bytes, pool.lower_bound_bytes, pool.offsets) == ("sram", 8, 8, {"t": 0})
    assert [(row.kind, row.step, row.live_bytes) for row in found.schedule.rows] == [
        ("step", 0, {"sram": 4}),
        ("step", 1, {"sram": 4}),
    ]
    assert found.schedule.latency.unknown == (0, 1)
    assert [row.object for row in objects.rows] == ["op.c"] and objects.rows[0].exportable == "after compilation"


def test_all_errors_of_a_manifest_in_one_exception(manifest):
    manifest.write_text(MANIFEST.replace("args: [t, y]", "args: [t]").replace("model: tiny", "model: tiny\nwrong: 1"))
    error = fault(opwest.check, manifest)
    assert [one.location.file for one in error.diagnostics] == [str(manifest)] * 2
    assert "unknown key 'wrong'" in str(error) and "operator 'op' takes 2 arguments, the step passes 1" in str(error)
    assert error.result.models == () and isinstance(error.result, opwest.CheckResult)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.diagnostics == error.diagnostics and str(copy) == str(error)
    assert messages(opwest.check, "absent.yaml") == ["cannot read the manifest: No such file or directory"]
    assert messages(opwest.check, manifest, profile="p.json") == ["--profile requires --schedule"]
    assert messages(opwest.check, manifest, zephyr_version="x") == ["invalid --zephyr-version 'x'"]


def test_warnings_are_in_the_result(manifest, monkeypatch):
    monkeypatch.setenv("ZEPHYR_BASE", str(manifest.parent))
    (warning,) = opwest.check([manifest]).diagnostics
    assert warning.severity == "warning" and "ZEPHYR_BASE" in warning.message


def test_generate_and_update(manifest, tmp_path):
    first = opwest.generate(manifest, output=tmp_path / "app")
    assert "src/main.c" in first.written and not first.removed and first.unchanged == 0
    again = opwest.generate(manifest, output=tmp_path / "app")
    assert again.written == () and again.unchanged + len(again.kept) >= len(first.written) - 1
    assert messages(opwest.generate, manifest, output="x", runtime="copied") == ["invalid runtime 'copied'"]
    assert messages(opwest.generate, manifest, output="x", target="cortex-m3") == ["--target requires --metadata=llvm"]
    same = opwest.update(tmp_path / "app", check=True)
    assert not same.changed and [row.state for row in same.projects] == ["unchanged"]
    model(tmp_path, "3 * x[i]")
    rows = []
    preview = opwest.update([tmp_path / "app", tmp_path / "app/."], check=True, progress=rows.append)
    (row,) = preview.projects
    assert preview.changed and rows == [row] and row.state == "would change"
    assert "\n-\t\ty[i] = 2 * x[i];\n" in row.diff()
    assert "models/tiny/objects/any/op.c" in {change.path for change in row.changes}
    error = fault(opwest.update, [tmp_path / "app", tmp_path / "none"])
    assert [row.state for row in error.result.projects] == ["updated", "failed"]
    assert [one.message for one in error.diagnostics] == ["not a directory generated by opwest"]
    assert messages(opwest.update, tmp_path, check=True, dry_run=True) == ["--check excludes --dry-run"]


def test_run_on_arrays(app, tmp_path):
    done = opwest.run(app, inputs={"x": X}, references={"y": 4 * X}, output_dir=tmp_path / "out")
    assert done.outputs["y"].dtype == np.int8 and done.outputs["y"].tolist() == [4, -8, 12, 16]
    assert done.passed and done.differences["y"].differing == 0
    assert (done.model, done.clock, done.dtypes, done.board) == ("tiny", "host", {"y": "int8"}, None)
    np.testing.assert_array_equal(np.load(done.files["y"]), 4 * X)
    np.save(tmp_path / "x.npy", X)
    wrong = opwest.run(
        app, host=True, inputs={"x": tmp_path / "x.npy"}, references={"y": 4 * X + 1}, tolerance=(0.5, 0)
    )
    assert not wrong.passed and (wrong.differences["y"].beyond, wrong.differences["y"].largest) == (4, 1.0)
    assert opwest.run(app, inputs={"x": X}, references={"y": 4 * X + 1}, tolerance={"y": 1}).passed
    frames = opwest.run(app, streams={"x": np.stack([X, X + 1])}, profile=True)
    assert frames.outputs["y"].tolist() == [[4, -8, 12, 16], [8, -4, 16, 20]] and frames.frames
    assert [point.name for point in frames.profile.measures if point.kind == "step"] == ["op", "op"]
    cases = opwest.run(app, dataset={"x": np.stack([X, -X])}, labels=np.array([3, 0]))
    assert (cases.accuracy.output, cases.accuracy.correct, cases.accuracy.accuracy) == ("y", 1, 0.5)


def test_run_of_main(app):
    (app / "src/main.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    done = opwest.run(app)
    assert (done.model, done.stdout, done.outputs) == (None, "hello\n", {})


def test_faults_of_runs(app):
    for options, expected in (
        ({"inputs": {"x": X.astype(float)}}, ["input 'x': the array is float64 [4]"]),
        ({"inputs": {"x": X, "z": X}}, ["unknown input 'z'"]),
        ({"inputs": {}, "references": {"y": X[:2]}}, ["missing input 'x'", "reference 'y': the array is int8 [2]"]),
        ({"inputs": {"x": "no.npy"}}, ["input 'x': cannot read 'no.npy': No such file or directory"]),
        ({"inputs": {"x": X}, "tolerance": -1.0}, ["invalid tolerance -1.0"]),
        ({"inputs": {"x": X}, "repeat": 0}, ["invalid repeat 0"]),
        ({"inputs": {"x": X}, "baud": 9600, "bits": 8}, ["invalid bits 8"]),
        (
            {"inputs": {"x": X}, "baud": 9600, "no_build": True},
            ["--baud requires --board", "--no-build requires --board"],
        ),
        (
            {"board": "b", "host": True, "sanitize": True},
            ["--host excludes --board", "--sanitize cannot be used with --board"],
        ),
        ({"repeat": 2}, ["--repeat has no effect on the application's main()"]),
        ({"dataset": {"x": X[None]}, "labels": X}, ["labels: the array is int8 [4]"]),
    ):
        assert sorted(messages(opwest.run, app, **options)) == sorted(expected)


def test_report(manifest, app, tmp_path):
    done = opwest.report(manifest)
    assert done.content.startswith("<!DOCTYPE html>") and done.output is None and done.format == "html"
    assert [pool.planned for pool in done.report.models[0].pools] == [8]
    written = opwest.report(app, output=tmp_path / "r.json", sbom=tmp_path / "b.spdx", compare=None)
    assert (written.format, written.output, written.sbom) == ("json", tmp_path / "r.json", tmp_path / "b.spdx")
    assert opwest.report(app, sbom="-").sbom_content.startswith("SPDXVersion") and not (tmp_path / "-").exists()
    compared = opwest.report(app, compare=tmp_path / "r.json", fail_on="arena=+0")
    assert compared.differences == () and compared.exceeded == ()
    error = fault(opwest.report, app, output=tmp_path / "r.html", fail_on=["arena=2"])
    assert [row.model for row in error.result.exceeded] == ["tiny"] and (tmp_path / "r.html").is_file()
    assert messages(opwest.report, app, sbom="b", variant="v") == ["--variant has no effect on a bill of materials"]


def test_import_of_a_trained_model(tmp_path):
    need("onnx", "onnxruntime", "cc")
    weights = np.array([[1.0, -2.0], [3.0, 0.5], [0.0, 1.0]], np.float32)
    lines = []
    done = opwest.import_model(dense(tmp_path, weights), output=tmp_path / "model", compare=2, progress=lines.append)
    assert (done.kind, done.models, done.manifests) == ("onnx", ("dense",), (tmp_path / "model/manifest.yaml",))
    assert (
        done.constant_bytes >= weights.nbytes
        and (done.comparisons["dense"].inputs, done.comparisons["dense"].largest) == (2, 0)
        and lines
    )
    app = opwest.generate(done.manifests, output=tmp_path / "app").directory
    x = np.array([[1, 2, -1]], np.float32)
    np.testing.assert_array_equal(opwest.run(app, inputs={"x": x}).outputs["y"], np.maximum(x @ weights, 0))


def dense(folder, weights):
    """Write an ONNX model: y = relu(x * weights)."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])]
        for name, size in zip("xy", weights.shape, strict=True)
    ]
    graph = helper.make_graph(nodes, "dense", *ends, [numpy_helper.from_array(weights, "w")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "dense.onnx")
    return folder / "dense.onnx"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["cannot read the model: No such file or directory"]),
        ({"model": "1x"}, ["model name '1x' "]),
        ({"model": "signal"}, ["header signal.h of model 'signal' hides a header of the C library"]),
        ({"exact": True}, ["--exact has no effect on a model of the kind 'tflite'"]),
        (
            {"kind": "mlf", "vectors": 3, "io": "workspace"},
            [f"--{n} has no effect on a model of the kind 'mlf'" for n in ("vectors", "io")],
        ),
        ({"kind": "vela", "module": "m"}, ["--module has no effect on a model of the kind 'vela'"]),
        ({"system_config": "s"}, ["--system-config without --npu"]),
        ({"npu": "ethos-u55-128", "place": "1=sram"}, ["--place cannot be used with --npu"]),
        ({"kernels": "fast", "vectors": 1001}, ["invalid kernels 'fast'"]),
        ({"vectors": 1001, "flash": "fast"}, ["invalid vectors 1001", "invalid --flash 'fast'"]),
        ({"kind": "keras"}, ["invalid kind 'keras'"]),
    ],
)
def test_faults_of_imports(tmp_path, options, expected):
    found = messages(opwest.import_model, tmp_path / "a.tflite", output=tmp_path / "out", **options)
    assert len(found) == len(expected) and all(map(str.startswith, sorted(found), sorted(expected))), found


def test_faults_of_tuning(tmp_path):
    for options, expected in (
        ({}, ["no processor is given"]),
        ({"core": "cortex-m4", "board": "b", "baud": 1}, ["--core excludes --board", "--baud requires --serial"]),
        ({"core": "z80"}, ["invalid core 'z80'"]),
        (
            {"core": "cortex-m4", "serial": "/dev/x", "flash": "none"},
            ["--serial requires --board", "--flash excludes --serial"],
        ),
    ):
        assert messages(opwest.tune, tmp_path, **options) == expected
    assert "import.json" in str(fault(opwest.tune, tmp_path, core="cortex-m4"))


def test_bundles(manifest, tmp_path):
    need("cc", "cryptography")
    need_x86_64()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    private = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    key.write_bytes(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    subprocess.run(["cc", "-O2", "-ffreestanding", "-c", "op.c", "-o", "op.o"], cwd=tmp_path, check=True)
    np.savez(tmp_path / "v.npz", x=X[None], y=4 * X[None])
    text = MANIFEST.replace("[{files: [op.c]}]", "[{target: x86-64, files: [op.o]}]")
    manifest.write_text(f"{text}tests: {{vectors: v.npz}}\n")
    options = {"slot": 0x10000000, "target": "x86-64", "model_version": "1.2.3"}
    made = opwest.bundle(manifest, output=tmp_path / "a.bundle", unsigned=True, **options)
    assert (made.action, made.bundle.content.version, made.bundle.signatures) == ("make", (1, 2, 3), ())
    signed = opwest.bundle(made.file, output=tmp_path / "b.bundle", key=key)
    assert signed.action == "sign" and len(signed.bundle.signatures) == 1
    assert opwest.bundle(signed.file, verify=True, public_key=[public]).valid == (public,)
    assert opwest.bundle(export_key=public).public_key.raw == private.public_key().public_bytes_raw()
    assert messages(opwest.bundle, made.file, verify=True, public_key=public) == ["the bundle has no signature"]
    assert messages(opwest.bundle, manifest, output="x", slot="0", llext=True, unsigned=True, vectors=0) == [
        "--slot cannot be used with --llext: LLEXT places the image",
        "invalid vectors 0",
    ]
    assert messages(opwest.bundle) == ["no file is given"]


def test_calls_from_threads(tmp_path):
    need("cc")

    def work(number):
        manifest = model(tmp_path / str(number), f"{number} + x[i]")
        assert opwest.check(manifest).models[0].name == "tiny"
        app = opwest.generate(manifest, output=manifest.parent / "app").directory
        assert messages(opwest.check, manifest.parent / "absent.yaml")
        return opwest.run(app, inputs={"x": X}).outputs["y"].tolist()

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(work, range(4)))
    assert results == [(X + 2 * number).tolist() for number in range(4)]


# --- The options of a command are the parameters of its function

PAIRS = {
    "check": opwest.check,
    "generate": opwest.generate,
    "update": opwest.update,
    "report": opwest.report,
    "run": opwest.run,
    "tune": opwest.tune,
    "bundle": opwest.bundle,
    "import": opwest.import_model,
}
OUTPUT = {"help", "json", "color", "quiet", "verbose"}
ONLY_PYTHON = {"progress", "capture", "kind", "cmake"}
"""Without an option: callbacks, the value of --json, the word after `opwest import`, the words after `--`."""
NAMES = {"input": "inputs", "stream": "streams", "reference": "references", "with": "libraries"}
"""Mappings have the plural; `with` is a keyword."""


@pytest.mark.parametrize("name", PAIRS)
def test_options_and_parameters_agree(name):
    parameters = {p.name: p for p in inspect.signature(PAIRS[name]).parameters.values() if p.name not in ONLY_PYTHON}
    found = {}
    for action in actions(parser(first=name), name):
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        label = flags[0][2:].replace("-", "_") if flags else action.dest
        if label not in OUTPUT and not isinstance(action, argparse._SubParsersAction):
            found[NAMES.get(label, label)] = action
    assert found.keys() == parameters.keys()
    for label, action in found.items():
        parameter = parameters[label]
        by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert by_name == bool(action.option_strings), label
        if action.required:
            assert parameter.default in (inspect.Parameter.empty, None), label
        elif by_name and not isinstance(action, (argparse._StoreTrueAction, argparse._StoreFalseAction)):
            assert (parameter.default or None) == (action.default or None), label
        elif by_name:
            assert parameter.default is False, label


def actions(command, name):
    """Return the actions of a command, for `import` of all kinds."""
    (commands,) = (one for one in command._actions if isinstance(one, argparse._SubParsersAction))
    own = commands.choices[name]
    kinds = [one for one in own._actions if isinstance(one, argparse._SubParsersAction)]
    parsers = [one for kind in kinds for key, one in kind.choices.items() if key != "tvm"] or [own]
    return [action for one in parsers for action in one._actions]


@pytest.mark.parametrize(
    ("function", "options", "message", "expected"),
    [
        (opwest.run, {"repeat": "3"}, "argument 'repeat' is '3'", "an integer"),
        (opwest.run, {"timeout": True}, "argument 'timeout' is True", "a number"),
        (opwest.run, {"profile": 1}, "argument 'profile' is 1", "True or False"),
        (opwest.run, {"inputs": np.zeros(3)}, "the arrays are of the type ndarray", "arrays by name: {'x': array}"),
        (opwest.run, {"tolerance": "0.1"}, "invalid tolerance '0.1'", "a number of at least 0, or a pair: "),
        (opwest.import_model, {"output": "o", "vectors": "3"}, "argument 'vectors' is '3'", "an integer"),
        (
            opwest.import_model,
            {"output": "o", "max_ram": "3KB"},
            "argument 'max_ram' is '3KB'",
            "bytes, such as 20000, ",
        ),
    ],
)
def test_arguments_of_another_type(function, options, message, expected):
    with pytest.raises(opwest.OpwestError) as error:
        function("absent.onnx", **options)
    faults = [(fault.message, (fault.expected or "")[: len(expected)]) for fault in error.value.diagnostics]
    assert (message, expected) in faults

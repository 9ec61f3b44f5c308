# SPDX-License-Identifier: Apache-2.0
"""The JSON output: a run of each command, and the schemas, with which tests/output_schemas.py compares all outputs."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import output_schemas
import pytest
from golden_support import copy_project
from importers import mlf_made
from opwest.cli.parser import command_names
from opwest.objects.flash import UNKNOWN
from opwest.tuning.tune import Layer, PlacementOffer, Tuned
from output_schemas import COMMON, SCHEMAS, path_of, schema_of
from requirements_support import need
from small_models import generated, one_operator

COMMANDS = command_names()


def call(place, request):
    """The arguments of `call`, with a board on a pseudo terminal."""
    need("smpclient", "serial")
    from fake_board import SHAPE, Model, SmpBoard
    from fake_west import SMP

    request.getfixturevalue("west").tell(config=f"{SMP}CONFIG_OPWEST_SERVICE_CALL=y\n")
    board = request.getfixturevalue("plug")(SmpBoard(Model()))
    results = ({"y": np.zeros(SHAPE, np.int16)}, (1000,))
    request.getfixturevalue("monkeypatch").setattr("opwest.runs.call.call_operator", lambda *_, **__: results)
    manifest = one_operator("twice", "[{files: [a.c]}]", model="twice", dtype="int16", shape="[3, 500]")
    source = "int twice(const short *x, short *y) { *y = *x; return 0; }\n"
    app = generated(request.getfixturevalue("succeed"), place, manifest, {"a.c": source})
    np.save(place / "x.npy", np.zeros(SHAPE, np.int16))
    return [app, "--board", "nucleo", "--serial", board.device, "twice", "--arg", f"x={place / 'x.npy'}"]


def bundle(place, request):
    need("serial")
    from fake_bundles import Bundles, Faults, ShellBundles

    board = request.getfixturevalue("plug")(ShellBundles(Bundles(), Faults(), 1))
    return ["list", "--serial", board.device, "--transport", "shell"]


def run(place, request):
    need("cc")
    return [generated_app(place, request), "--host", "--input", f"x={array(place)}", "--profile"]


def array(place):
    np.save(place / "x.npy", np.zeros(4, np.int16))
    return place / "x.npy"


def generated_app(place, request):
    request.getfixturevalue("succeed")("generate", place / "source/manifest.yaml", "-o", place / "app")
    return place / "app"


def imported(place, _):
    (place / "net.tar").write_bytes(mlf_made.tar_of(mlf_made.cmsis_nn()))
    return ["mlf", place / "net.tar", "-o", place / "net"]


def tune(place, request):
    """The arguments of `tune`, whose measurements take long."""
    layers = [Layer("0 Conv", "portable", "dsp-pairs", {"portable": 900, "dsp-pairs": 400}, 390)]
    offers = [PlacementOffer("0", "dsp-pairs", 64, 10, 35)]
    imported = SimpleNamespace(model=place / "net.tflite", options=SimpleNamespace(libraries=(), flash=UNKNOWN))
    done = Tuned(place / "tuning.yaml", imported, (), layers, 2, "QEMU", ["1 Softmax"], offers, [], UNKNOWN)
    request.getfixturevalue("monkeypatch").setattr("opwest.api.tune.measure_layers", lambda *_: done)
    return [place, "--core", "cortex-m4"]


def quantise(place, _):
    need("tflite")
    from models.made import Model

    model = Model()
    layer = [model.input("float32", (1, 4), name="x"), model.constant(np.eye(4, dtype=np.float32)), None]
    model.ending_with("FULLY_CONNECTED", layer, ("float32",)).save(place / "net.tflite")
    np.savez(place / "x.npz", x=np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4))
    return [place / "net.tflite", "--samples", place / "x.npz", "-o", place / "int8.tflite", "--keep-accuracy", 5]


def table(place, _):
    (place / "buffers.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    return [place / "buffers.csv", "--capacity", 16]


RUNS = {
    "generate": lambda place, _: [place / "source/manifest.yaml", "-o", place / "app"],
    "update": lambda place, request: ["--dry-run", generated_app(place, request)],
    "check": lambda place, _: ["--schedule", place / "source/manifest.yaml"],
    "init": lambda place, _: [place / "source/negate.c", "-o", place / "draft.yaml"],
    "import": imported,
    "tune": tune,
    "quantise": quantise,
    "inspect": lambda place, _: [place / "source/negate.c"],
    "report": lambda place, _: [place / "source/manifest.yaml", "-o", "-", "--format", "json"],
    "run": run,
    "bundle": bundle,
    "call": call,
    "plan": table,
    "new-driver": lambda place, _: ["my_npu", "-o", place / "driver"],
    "doctor": lambda place, _: ["generate"],
    "targets": lambda place, _: [],
    "completion": lambda place, _: ["bash"],
    "more": lambda place, _: [],
}


def report_of(text):
    """Parse the output of a command as strict JSON, without NaN and Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("command", COMMANDS)
def test_output_of_a_command(succeed, command, tmp_path, request, monkeypatch):
    copy_project("minimal", tmp_path / "source")
    compared = []
    monkeypatch.setattr(output_schemas, "compare", lambda output: compared.append(output) or _compare(output))
    done = succeed(command, *RUNS[command](tmp_path, request), "--json")
    assert not done.err
    report = report_of(done.out)
    assert (report["format"], report["command"], report["ok"]) == (1, command, True) and report["result"]
    assert compared == [report]


_compare = output_schemas.compare


def objects(schema):
    """Yield the schemas of objects with properties."""
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" in schema:
            yield schema
        for below in schema.values():
            yield from objects(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from objects(below)


def test_each_command_has_a_schema():
    names = {path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()}
    assert names == {*COMMANDS, COMMON} and sorted(RUNS) == sorted(COMMANDS)
    for command in COMMANDS:
        assert output_schemas.validator(command).is_valid(
            {"format": 1, "command": command, "ok": False, "diagnostics": [], "result": None}
        )


def test_other_validators_find_the_common_parts(succeed, tmp_path):
    need("check_jsonschema")
    (tmp_path / "out.json").write_text(succeed("targets", "--json").out)
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", path_of("targets"), tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [*COMMANDS, COMMON])
def test_schemas_are_strict_and_describe_units(name):
    for schema in objects(schema_of(name)):
        assert schema["additionalProperties"] is False
        for key, rule in schema["properties"].items():
            place, text = f"{path_of(name).name}: {key}", rule.get("description", "")
            optional = key not in schema["required"]
            assert text.startswith("Only ") or not optional, f"{place}: when is it present?"
            known = key == "bytes" or key.endswith(("_bytes", "_count")) or key in ("step", "slot")
            is_number = any(kind in str(rule.get("type")) for kind in ("integer", "number"))
            assert text or known or not is_number, f"{place}: which unit?"


def test_a_wrong_output_is_found(opwest, monkeypatch):
    monkeypatch.setattr("opwest.objects.targets.named_targets", lambda: {"own": {"machine": 5, "kconfig": {}}})
    with pytest.raises(AssertionError, match=r"not in the form of schemas/output/targets.schema.json:\n.*result"):
        opwest("targets", "--json")

# SPDX-License-Identifier: Apache-2.0
"""The metadata module, walked in C and compared with the manifest, which is read here without opwest."""

import json
import math
import struct
from pathlib import Path

import projects
import pytest
import yaml
import yamlcore
from c_support import SANITIZED, build, execute, read_record
from golden_support import PROJECTS, copy_project, generate_quickly
from opwest.base.diagnostics import Diagnostics
from opwest.render.tables.layout import METADATA_VERSION
from requirements_support import need_compiler
from runtime_support import PROGRAMS, build_with_runtime

SIZES = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "uint32": 4}
SIZES |= {"float32": 4, "int64": 8, "uint64": 8, "float64": 8, "bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1}
BUILDABLE = [name for name in PROJECTS if name != "targets"]


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def listed(value):
    return value if isinstance(value, list) else [value]


def expected_tensor(name, entry, direction):
    shape = entry.get("shape", [])
    quantization = None
    if "quantization" in entry:
        given = entry["quantization"]
        quantization = {
            "scales": [float32(scale) for scale in listed(given["scale"])],
            "zero_points": listed(given.get("zero_point", 0)),
            "axis": given.get("axis", -1),
        }
    return {
        "name": name,
        "dtype": entry["dtype"],
        "shape": shape,
        "no_shape": not shape,
        "size": math.prod(shape) * SIZES[entry["dtype"]],
        "direction": direction,
        "scalar": entry.get("scalar", False),
        "quantization": quantization,
    }


def expected_device(name, entry, folder):
    program = entry.get("program")
    return {
        "name": name,
        "type": entry.get("type"),
        "program": Path(program).stem if program else None,
        "bytes": list((folder / program).read_bytes()) if program else [],
        "timeout_ms": entry.get("timeout_ms", -1),
        "hooks": "handle" not in entry and entry.get("driver") != "none",
        "foreign": "handle" in entry,
    }


def given(operator):
    """Return the arguments that have a tensor or a value."""
    return [argument for argument in operator["args"] if "nulls" not in argument]


def expected_model(manifest, folder):
    """Return the expected output of the C program, without sizes from the planner."""
    run = manifest["run"]
    return {
        "name": manifest["model"],
        "version": METADATA_VERSION,
        "inputs": [expected_tensor(name, entry, "in") for name, entry in run["inputs"].items()],
        "outputs": [expected_tensor(name, entry, "out") for name, entry in run["outputs"].items()],
        "operators": [
            {
                "name": name,
                "description": entry.get("description"),
                "status": entry.get("returns", "void" if entry.get("convention") == "memref" else "status") == "status",
                "device": "device" in entry,
                "stateful": entry.get("stateful", False),
                "async": entry.get("async", False),
                "args": [
                    expected_tensor(a["name"], a, a.get("direction", "in")) for a in entry["args"] if "nulls" not in a
                ],
            }
            for name, entry in manifest["operators"].items()
        ],
        "steps": sorted([step["call"], step.get("device") or ""] for step in run["steps"]),
        "devices": [expected_device(*item, folder) for item in manifest.get("devices", {}).items()],
        "past_the_end": None,
        "found": True,
    }


def check_supplied(actual, manifest):
    """Take out the memory that opwest adds to calls: the workspace, then the arrays of asynchronous operators."""
    for operator in actual["operators"]:
        entry = manifest["operators"][operator["name"]]
        count = len(given(entry))
        supplied = operator["args"][count:]
        del operator["args"][count:]
        if isinstance(entry.get("returns"), dict):
            result, value = supplied.pop(0), entry["returns"]
            assert (result["name"], result["dtype"]) == (value.get("name", "result"), value["dtype"])
            assert (result["shape"], result["direction"]) == (value.get("shape", [1]), "out")
        convention = entry.get("convention", manifest.get("convention", "unpacked"))
        has_arrays = entry.get("async", False) and convention != "unpacked"
        assert len(supplied) == ("workspace" in entry) + has_arrays
        for argument in supplied:
            assert argument["direction"] == "scratch" and argument["dtype"] == "uint8" and argument["size"] > 0
        if "workspace" in entry:  # the requested bytes and those for bookkeeping
            size = entry["workspace"]["size"] if isinstance(entry["workspace"], dict) else entry["workspace"]
            assert not isinstance(size, int) or supplied[0]["size"] > size


def describe(app, work, names):
    """Return what a program reads from the metadata of each model."""
    text = (PROGRAMS / "describe.c").read_text()
    work.mkdir()
    main = work / "describe.c"
    headers = "".join(f"#include <{name}.h>\n" for name in names)
    models = ", ".join(f"&{name}_model" for name in names)
    main.write_text(text.replace("#include <MODEL_HEADER>\n", headers).replace("MODELS", models))
    done = execute(build(app, work / "build", main))
    assert done.returncode == 0, done.stderr
    return [json.loads(line, strict=False) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("project", BUILDABLE)
def test_metadata_equals_the_manifest(project, tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    manifests = copy_project(project, tmp_path / "source")
    app = tmp_path / "app"
    generate_quickly(manifests, app)
    checked = projects.check(manifests, Diagnostics())
    planned = {model.name: (model, plan) for model, plan in checked if model.variant is None}
    assert len(read_record(app)["models"]) == len(manifests)
    written = [yaml.load(path.read_text(), Loader=yamlcore.CoreLoader) for path in manifests]
    described = describe(app, tmp_path / "program", [manifest["model"] for manifest in written])
    for path, manifest, actual in zip(manifests, written, described, strict=True):
        if project == "many_kinds":  # by hand: 8 int32, 8 int16, 8 uint8
            assert actual["constant_size"] == 8 * 4 + 8 * 2 + 8
            fast, slow = {"name": "fast", "size": 64, "align": 32}, {"name": "slow", "size": 128, "align": 128}
            assert actual["pools"] == [fast, slow]
        check_supplied(actual, manifest)
        pools, constant_size = actual.pop("pools"), actual.pop("constant_size")
        if manifest["run"].get("order") != "any":
            assert actual["steps"] == [[step["call"], step.get("device")] for step in manifest["run"]["steps"]]
        actual["steps"] = sorted([name, device or ""] for name, device in actual["steps"])
        assert actual == expected_model(manifest, path.parent)
        model, plan = planned[manifest["model"]]
        assert {pool["name"]: pool["size"] for pool in pools} == {n: p.size for n, p in plan.pools.items()}
        declared = manifest.get("memory", {})
        for pool in pools:
            assert pool["align"] >= declared.get(pool["name"], {}).get("align", 1)
            assert pool["align"] >= plan.pools[pool["name"]].align
        assert constant_size == sum(len(constant.content) for constant in model.constants)


def test_dtype_names_and_sizes(tmp_path):
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\n#include <opwest/model.h>\nint main(void)\n{\n"
        "\tfor (unsigned int i = 0; i < 256U; i++) {\n"
        "\t\tconst char *const name = opwest_dtype_name((uint8_t)i);\n\n"
        '\t\tprintf("%s %u\\n", name == NULL ? "-" : name, (unsigned int)opwest_dtype_size((uint8_t)i));\n'
        "\t}\n\treturn 0;\n}\n"
    )
    program = build_with_runtime(tmp_path, main, ["metadata.c"])
    lines = [line.split() for line in execute(program).stdout.splitlines()]
    order = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool bfloat16".split()
    order += ["float8_e4m3", "float8_e5m2"]
    assert [(name, int(size)) for name, size in lines[:15]] == [(name, SIZES[name]) for name in order]
    assert lines[15:] == [["-", "0"]] * 241

# SPDX-License-Identifier: Apache-2.0
"""The contract of accelerators on Zephyr, with emulated devices: one image per board, with all checks.

Programs per step, exclusive devices, queues, power, priorities, time-outs, cancel, events, the bound on the latency.
"""

import json
import re
import runpy
import shutil

import pytest
import yaml
from cover import configured
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr

PROGRAMS = ROOT / "tests" / "zephyr" / "programs" / "contract"
MAKE_PROGRAM = ROOT / "zephyr_module" / "drivers" / "npu_emul" / "make_program.py"
BOARDS = ["native_sim/native/64", "mps2/an385"]
KERNELS = {
    "p1": {"multiplier": 2, "output_zero": 1},
    "p2": {"multiplier": 3},
    "p3": {"output_zero": 7},
    "p4": {"multiplier": 2, "output_zero": 5},
    "plus": {"output_zero": 1},
}
"""By program: what it computes of numbers that are not negative, multiplier * x + output_zero."""
NODES = {
    "npu_load": "latency-us = <2000>; load-us = <3000>;",
    "npu_free": 'latency-us = <2000>; switching = "free";',
    "npu_power": "latency-us = <2000>; zephyr,pm-device-runtime-auto;",
    "npu_slow": "latency-us = <10000>;",
    "npu_one": "latency-us = <10000>; queue-depth = <1>; queue-timeout-ms = <0>;",
    "npu_four": "latency-us = <10000>; queue-depth = <4>; queue-timeout-ms = <0>;",
    "npu_sixteen": "latency-us = <10000>; queue-depth = <16>; queue-timeout-ms = <0>;",
}
KCONFIG = {
    "CONFIG_SYS_CLOCK_TICKS_PER_SEC": 1000,
    "CONFIG_PM_DEVICE": "y",
    "CONFIG_PM_DEVICE_RUNTIME": "y",
    "CONFIG_POLL": "y",
    "CONFIG_MAIN_STACK_SIZE": 4096,
}


def tensor(name, **more):
    return {"name": name, "dtype": "int8", "shape": [16], **more}


X, Y = tensor("x"), tensor("y", direction="out")
US = {"name": "us", "dtype": "uint32", "scalar": True}
ON_NPU = {"device": {"type": "npu_emul", "launch": True}, "args": [X, Y]}
OPERATORS = {
    "scale": {**ON_NPU, "async": True},
    "scale_and_wait": ON_NPU,
    "spin": {"args": [US, X, Y]},
    "sum": {"args": [US, X, tensor("z"), Y]},
}


def launch(program, x, y, *, call="scale", npu="npu", **more):
    named = {} if program is None else {"program": f"{program}.onpu"}
    return {"call": call, "device": npu, "args": [x, y], **named, **more}


def chain(*programs):
    names = ["x", *(f"t{i}" for i in range(1, len(programs))), "y"]
    return [launch(program, names[i], names[i + 1]) for i, program in enumerate(programs)]


def spin(us, x, y):
    return {"call": "spin", "args": [us, x, y], "cycles": us}


def device(**more):
    """Return a device of a model; the test opens most models with other nodes."""
    common = {"devicetree": {"nodelabel": "npu_load"}, "type": "npu_emul", "program": "p1.onpu", "timeout_ms": 1000}
    return {**common, **more}


NINE = chain(*["plus"] * 9)
# p1 and p2 on one device while the processor works, p3 on the other, and the sum.
TIMED = [
    launch("p3", "x", "z", npu="other", cycles=10000),
    launch("p1", "x", "a", cycles=2000),
    launch("p2", "a", "b", cycles=2000),
    spin(4000, "b", "c"),
    {"call": "sum", "args": [1000, "c", "z", "y"], "cycles": 1000},
]
WORKER = [launch("p1", "x", "a"), spin(20000, "a", "b"), launch("p1", "b", "y", call="scale_and_wait")]
LONGER = [spin(30000, "x", "a"), launch("p1", "a", "b"), spin(30000, "b", "y")]
MODELS = {
    # No model begins with the program that one of the two ends with.
    "alpha": (chain("p1", "p2", "p3"), {"npu": device()}),
    "beta": (chain("p2", "p1", "p4"), {"npu": device()}),
    "freed": (chain("p1", "p2", "p3"), {"npu": device(switching="free")}),
    "one": (chain(None), {"npu": device()}),
    "frugal": (chain(None), {"npu": device(power="run", timeout_ms=100)}),
    "patient": (chain(None), {"npu": device(own_timeout_ms=35, timeout_ms=60)}),
    "nine": (NINE, {"npu": device()}),
    "nine_by_two": (NINE, {"npu": device(queue_depth=2)}),
    "nine_by_eight": (NINE, {"npu": device(queue_depth=8)}),
    "worker": (WORKER, {"npu": device()}),
    "longer": (LONGER, {"npu": device()}),
    "timed": (TIMED, {"npu": device(switch_cycles=3000), "other": device(devicetree={"nodelabel": "npu_slow"})}),
}
"""By model: its steps and its devices."""


def manifest(name):
    steps, devices = MODELS[name]
    used = {step["call"] for step in steps}
    types = {"dtype": "int8", "shape": [16]}
    return {
        "version": 1,
        "model": name,
        "boards": BOARDS,
        "objects": [{"files": ["operators.c"]}],
        "devices": devices,
        "operators": {call: entry for call, entry in OPERATORS.items() if call in used},
        "run": {"inputs": {"x": types}, "outputs": {"y": types}, "steps": steps},
    }


def write_sources(folder):
    """Write the manifests and their files; return the manifests."""
    make_program = runpy.run_path(str(MAKE_PROGRAM))["make_program"]
    for program, settings in KERNELS.items():
        (folder / f"{program}.onpu").write_bytes(make_program([("relu", {"id": 1, **settings})]))
    for file in PROGRAMS.iterdir():
        shutil.copy(file, folder)
    nodes = "".join(f'{name}: {name} {{ compatible = "opwest,npu-emul"; {keys} }};\n' for name, keys in NODES.items())
    (folder / "npus.overlay").write_text(f"/ {{\n{nodes}}};\n")
    sources = sorted(file.name for file in PROGRAMS.iterdir() if file.name != "operators.c")
    overlays = dict.fromkeys(BOARDS, "npus.overlay")
    more = {"application": {"sources": sources, "overlays": overlays, "kconfig": KCONFIG}}
    for name in MODELS:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(manifest(name) | (more if name == "alpha" else {})))
    return [folder / f"{name}.yaml" for name in MODELS]


def planned_loads(opwest, file):
    checked = json.loads(opwest("check", file, "--schedule", "--json").stdout)
    return sum(row.get("load", False) for row in checked["result"][0]["schedule"])


@pytest.fixture(scope="module")
def app(tmp_path_factory, opwest):
    """One application with all models."""
    folder = tmp_path_factory.mktemp("contract")
    files = write_sources(folder)
    for name in ("alpha", "beta"):  # a switch per step
        assert planned_loads(opwest, folder / f"{name}.yaml") == 3
    opwest("generate", *files, "-o", folder / "app")
    return folder / "app"


@configured("board", reversed(BOARDS))
def test_contract(workspace, app, board):
    console = workspace.build(app, board, "-DEXTRA_CFLAGS=-Wextra").run("^done: ")
    print(f"{board}:\n{console}")
    assert "WRONG" not in console, console
    done = re.search(r"^done: (\d+) checks, 0 wrong$", console, re.MULTILINE)
    assert done and int(done[1]) == len(re.findall("^ok: ", console, re.MULTILINE)) > 400, console

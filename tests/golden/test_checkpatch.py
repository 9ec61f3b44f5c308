# SPDX-License-Identifier: Apache-2.0
"""Zephyr's checkpatch has no error and no warning for the C of the runtime and for generated C, except those listed."""

import json
from pathlib import Path

import pytest
from checkpatch import ALLOWED, remarks, unexpected, zephyr_with_checkpatch
from golden_trees import LOCK
from in_process import succeed
from opwest.drafting.new_driver import DriverNames, driver_files
from opwest.render.bundle import bundle_files, render_bundle_header
from opwest.runs.harness import buffer_of, own_renderer, tensors_of

ROOT = Path(__file__).resolve().parents[2]
TREES = ("conventions", "many_kinds", "tvmgen")
"""The golden projects of this test: those with most templates, and most text of each."""
DATA = ("classifier.h", "recording.h", "held_out.h")
"""Files that a training writes: by emlearn, and data."""


@pytest.fixture(scope="session")
def zephyr():
    return zephyr_with_checkpatch()


def host_main(record):
    """Return the main program of `opwest run` for a model of a lock, with all that it can have."""
    tensors = [*tensors_of(record, "input"), *tensors_of(record, "output")]
    rows = [{**t, "position": i, "buffer": buffer_of(t), "streamed": False} for i, t in enumerate(tensors)]
    free = [t for t in rows if not t["placed"]]
    inputs, outputs = (", ".join(t["buffer"] for t in free if t["role"] == role) or "0" for role in ("input", "output"))
    options = {"runs": 2, "measures": True, "has_streams": False, "trace": True, "stops": [], "pools": record["pools"]}
    names = {"model": record["name"], "macro": record["macro"]}
    return own_renderer()("host/main.c", **names, **options, tensors=rows, inputs=inputs, outputs=outputs).decode()


def bundled(planned):
    """Return the C of a model's bundle."""
    model, plan = planned
    files = {str(path): text for path, text in bundle_files(own_renderer(), model, plan, 1).items()}
    files["firmware.h"] = render_bundle_header(own_renderer(), model)
    return {path: text.decode() for path, text in files.items() if path.endswith((".c", ".h"))}


def of_examples(work):
    """Return the generated C of examples that need no compiler, and the sources that they have."""
    files = {}
    for name in ("two_npus/manifest_pipeline", "vibration/manifest"):
        app = work / name
        succeed("generate", ROOT / "examples" / f"{name}.yaml", "-o", app, "--runtime", "module")
        files |= {f"{name}/{path.relative_to(app)}": path for path in sorted(app.rglob("*.[ch]"))}
    files |= {f"examples/{path.relative_to(ROOT)}": path for path in sorted((ROOT / "examples").rglob("*.[ch]"))}
    return {name: path.read_text() for name, path in files.items() if path.name not in DATA}


@pytest.mark.slow
def test_runtime(zephyr, tmp_path):
    module = ROOT / "zephyr_module"
    paths = [path for path in sorted(module.rglob("*.[ch]")) if "ext" not in path.parts]
    found = remarks(zephyr, {f"runtime/{path.relative_to(module)}": path.read_text() for path in paths}, tmp_path)
    assert unexpected(found) == []
    reasons = {row for row in ALLOWED if row[1].startswith("runtime/")}
    assert {(kind, name) for kind, name, _ in found} == reasons, "a reason is no longer needed"


@pytest.mark.slow
def test_generated_files(zephyr, emission, tmp_path):
    files = {f"{name}/{path}": text for name in TREES for path, text in emission(name).generated_c().items()}
    driver = driver_files(DriverNames("my_npu", "acme,my-npu"))
    files |= {f"driver/{path}": text.decode() for path, text in driver.items() if path.endswith((".c", ".h"))}
    for name in ("vectors", "asynchronous"):
        files |= {f"bundle/{name}/{path}": text for path, text in bundled(emission(name).planned[0]).items()}
        record = json.loads(emission(name).files[LOCK])["record"]["models"][0]
        files[f"host/{name}/main.c"] = host_main(record)
    files |= of_examples(tmp_path / "projects")
    distinct = {text: name for name, text in files.items()}
    found = remarks(zephyr, {name: text for text, name in distinct.items()}, tmp_path / "checked")
    assert unexpected(found) == []

# SPDX-License-Identifier: Apache-2.0
"""Zephyr's checkpatch has no error and no warning for the C of the runtime and for generated C, except those listed."""

import json
import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from golden_trees import LOCK
from in_process import succeed
from models.layers import convolution
from opwest.drafting.new_driver import DriverNames, driver_files
from opwest.render.bundle import bundle_files, render_bundle_header
from opwest.runs.harness import buffer_of, own_renderer, tensors_of
from requirements_support import need, skip_here

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["--summary-file", "--typedefsfile=scripts/checkpatch/typedefsfile", "--max-line-length=100"]
OPTIONS += ["--ignore", "PRINTK_WITHOUT_KERN_LEVEL,SPLIT_STRING,VOLATILE,PREFER_KERNEL_TYPES"]
OPTIONS += ["--ignore", "PREFER_SECTION,AVOID_EXTERNS,NETWORKING_BLOCK_COMMENT_STYLE,DATE_TIME,MINMAX,CONST_STRUCT"]
OPTIONS += ["--ignore", "SPDX_LICENSE_TAG,C99_COMMENT_TOLERANCE,REPEATED_WORD,TRAILING_SEMICOLON,COMPLEX_MACRO"]
OPTIONS += ["--ignore", "MULTISTATEMENT_MACRO_USE_DO_WHILE,ENOSYS,IS_ENABLED_CONFIG,EXPORT_SYMBOL,FILE_PATH_CHANGES"]
"""Those of Zephyr's .checkpatch.conf, for a tree without this file."""
ALLOWED = {
    ("BYTE_ORDER", "runtime/include/opwest/port.h"): "a host and the image of a bundle have no CONFIG_BIG_ENDIAN",
    ("MACRO_WITH_FLOW_CONTROL", "runtime/conformance/src/cases.h"): "a failed check ends its case, as zassert does",
    ("DEEP_INDENTATION", "import/*/operators.c"): "the loops of a window; a function for the inner ones costs calls",
}
"""The reasons for what remains, by type and file."""
TREES = ("conventions", "many_kinds", "tvmgen")
"""The golden projects of this test: those with most templates, and most text of each."""
DATA = ("classifier.h", "recording.h", "held_out.h")
"""Files that a training writes: by emlearn, and data."""
_ROW = re.compile(r"(.*):(\d+): (?:ERROR|WARNING|CHECK):(\w+): (.*)")


@pytest.fixture(scope="session")
def zephyr():
    """Return the newest tree of Zephyr with checkpatch, if possible with its configuration."""
    need("perl")
    named = [Path(os.environ["ZEPHYR_BASE"])] if "ZEPHYR_BASE" in os.environ else []
    trees = [*named, *sorted(Path.home().glob("zephyrproject*/zephyr"))]
    found = [path for path in trees if (path / "scripts" / "checkpatch.pl").is_file()]
    if not found:
        skip_here("no Zephyr tree with scripts/checkpatch.pl: neither ZEPHYR_BASE nor ~/zephyrproject*/zephyr")
    return max(found, key=lambda path: ((path / ".checkpatch.conf").is_file(), str(path)))


def remarks(zephyr, files, work):
    """Return what checkpatch reports of texts by name, as (type, name, line and text); one process for all files."""
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    options = [] if (zephyr / ".checkpatch.conf").is_file() else OPTIONS
    words = ["perl", "scripts/checkpatch.pl", "--no-tree", "--quiet", "--terse", "--show-types", *options, "--file"]
    words += [str(work / name) for name in files]
    done = subprocess.run(words, cwd=zephyr, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if " total: " not in line]
    assert len(done.stdout.splitlines()) - len(rows) == len(files), done.stderr
    found = [_ROW.fullmatch(line) or pytest.fail(line) for line in rows]
    return [(row[3], str(Path(row[1]).relative_to(work)), f"{row[2]}: {row[4]}") for row in found]


def unexpected(found):
    return [row for row in found if not any(row[0] == kind and fnmatch(row[1], name) for kind, name in ALLOWED)]


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


def of_import(work):
    """Return the generated C of an imported convolution, with its variants."""
    need("tflite")
    convolution(np.random.default_rng(1), "int8").save(work / "conv.tflite")
    succeed("import", work / "conv.tflite", "-o", work / "conv", "--vectors", "2")
    succeed("generate", work / "conv" / "manifest.yaml", "-o", work / "app", "--runtime", "module")
    return {f"import/{p.relative_to(work / 'app')}": p.read_text() for p in sorted((work / "app").rglob("*.[ch]"))}


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
    files |= of_examples(tmp_path / "projects") | of_import(tmp_path)
    distinct = {text: name for name, text in files.items()}
    found = remarks(zephyr, {name: text for text, name in distinct.items()}, tmp_path / "checked")
    assert unexpected(found) == []

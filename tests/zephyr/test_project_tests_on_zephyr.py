# SPDX-License-Identifier: Apache-2.0
"""The generated tests of a project, run by `west twister`, and their messages for faults."""

import json
import re
import shutil
import subprocess

import numpy as np
import projects
import pytest
from compile.bfloat16_support import write_project
from cover import configured
from opwest.base.diagnostics import Diagnostics
from requirements_support import need, skip_here
from zephyr_support import OTHER_VERSIONS, ROOT, need_toolchain

pytestmark = pytest.mark.zephyr
BOARDS = ("native_sim/native/64", "native_sim", "qemu_cortex_m3", "mps2/an385")
CORTEX_M55 = "mps3/corstone300/an547"
SMALL = ("-x=CONFIG_MINIMAL_LIBC=y",)
"""Without picolibc, a thousand files."""
END = r"^PROJECT EXECUTION (SUCCESSFUL|FAILED)"


def twister(workspace, app, out, *options, toolchain_of="mps2/an385"):
    """Run twister with the toolchain of a board (native_sim uses the host's); return its report."""
    need_toolchain(toolchain_of)
    env = workspace.environment(toolchain_of)
    command = [workspace.west, "twister", "-T", str(app), "-O", str(out), "-j", "2", "-v", *options]
    done = subprocess.run(
        command, cwd=workspace.base.parent, env=env, capture_output=True, text=True, errors="replace", check=False
    )
    if "No module named" in done.stderr:
        skip_here("west twister does not start: the workspace lacks scripts/requirements-build-test.txt")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    report = out / ("testplan.json" if "--dry-run" in options else "twister.json")
    return json.loads(report.read_text())


def check_passed(report, boards, test):
    """Check that the suite ran completely and passed on each board."""
    suites = [suite for suite in report["testsuites"] if suite["name"].endswith(test)]
    assert {suite["platform"] for suite in suites} == boards, report["testsuites"]
    for suite in suites:
        assert suite["status"] == "passed" and suite["runnable"], suite
        results = {case["identifier"].rsplit(".", 1)[-1]: case["status"] for case in suite["testcases"]}
        assert set(results.values()) == {"passed"}, suite
        assert {"vectors", "open_and_close", "run_checks_its_arguments"} <= set(results)


@configured("board, options", [(("mps2/an385",), SMALL), (BOARDS[1:], ())], cost=9)
def test_digits_on_every_board(workspace, opwest, digits, board, options, tmp_path):
    """Digits from objects, and from IR on a Cortex-M55.

    A campaign also uses picolibc, Zephyr's default; test_digits_on_zephyr.py runs the suite on the first board.
    """
    need("llvmlite")
    both = tmp_path / "both"
    shutil.copytree(digits, both / "objects")
    opwest("generate", digits.parent / "example" / "manifest_ir.yaml", "-o", both / "ir", "--metadata", "llvm")
    for app in ("objects", "ir"):  # the suites only
        (both / app / "sample.yaml").unlink()
    suite = both / "ir" / "tests" / "digits" / "testcase.yaml"
    suite.write_text(f"tests: {{opwest.digits.ir: {{platform_allow: {CORTEX_M55}}}}}\n")
    words = [word for name in (*board, CORTEX_M55) for word in ("-p", name)]
    report = twister(workspace, both, tmp_path / "twister", *words, *options)
    names = {"native_sim": "native_sim/native", "qemu_cortex_m3": "qemu_cortex_m3/ti_lm3s6965"}
    check_passed(report, {names.get(name, name) for name in board}, "opwest.digits.tests")
    check_passed(report, {CORTEX_M55}, "opwest.digits.ir")
    check_stack(digits, tmp_path / "twister", len({*board} - {"native_sim"}))


def check_stack(app, out, boards):
    """Check that run used no more stack on a Cortex-M3 than calculated from its objects."""
    manifest = app.parent / "example" / "manifest.yaml"
    ((model, _),) = projects.check([manifest], Diagnostics())
    (need,) = [need for need in model.stack if need.target == "cortex-m3"]
    assert need.known
    logs = [log.read_text() for log in out.rglob("handler.log") if "objects" in log.parts]
    took = [int(n) for log in logs for n in re.findall(r"^digits: run used (\d+) bytes of stack", log, re.MULTILINE)]
    assert len(took) == boards, "each board with a Cortex-M3 measures it"
    assert all(96 < one <= need.bytes for one in took), (took, need)


def test_subsets_cover_all_suites_once(workspace, digits, tmp_path):
    """Two shards of all suites and boards: neither is empty, and they are disjoint."""

    def planned(*options):
        out = tmp_path / re.sub(r"\W", "_", "".join(options) or "whole")
        report = twister(workspace, digits, out, "--integration", "--dry-run", *options)
        return {
            (s["name"], s["platform"]) for s in report["testsuites"] if s.get("status") not in ("filtered", "skipped")
        }

    shards = [planned("--subset", f"{number}/2") for number in (1, 2)]
    assert all(shards) and not shards[0] & shards[1]
    whole = shards[0] | shards[1]
    assert len(whole) == 2 * len(BOARDS) and len({name for name, _ in whole}) == 2, whole
    assert len({platform for _, platform in whole}) == len(BOARDS), whole


@configured(board="mps2/an385")
def test_wrong_vector_is_reported(workspace, opwest, tmp_path):
    """Sources only, for any board: numbers of several types, printed by Zephyr's printf on a small processor."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "tests" / "golden" / "vectors", source)
    vectors = source / "vectors" / "edge cases.npz"
    with np.load(vectors) as loaded:
        arrays = dict(loaded)
    arrays["y"][0, 1, 2] = -8.001
    arrays["total"][0] = -5
    np.savez(vectors, **arrays)
    opwest("generate", source / "manifest.yaml", "-o", tmp_path / "app")
    own = tmp_path / "app" / "tests" / "vectors" / "src" / "own.c"
    own.parent.mkdir()
    own.write_text(
        "#include <zephyr/ztest.h>\n\nZTEST_SUITE(own, NULL, NULL, NULL, NULL, NULL);\n\n"
        "ZTEST(own, test_mine)\n{\n\tzassert_true(true);\n}\n"
    )
    console = workspace.build(tmp_path / "app" / "tests" / "vectors", "mps2/an385").run(END)
    told = "vectors/edge cases.npz, case 0: output"
    assert (
        f"{told} y[5] is -8, expected -8.0010004 within 1e-06 + 1e-05 * |expected|; 1 of 6 elements differ\n"
        f"{told} total[0] is -4294967296, expected -5 exactly; 1 of 1 elements differ\n"
        "vectors: 4 of 5 cases match the vectors\n"
    ) in console
    assert "1 of 5 cases differ from the vectors" in console
    assert re.search(r"^ FAIL - test_vectors ", console, re.MULTILINE)
    assert console.count(" FAIL - test_") == 1 and "PASS - test_mine" in console
    assert "PROJECT EXECUTION FAILED" in console


@configured(board="mps2/an385")
def test_accelerators_through_their_overlay(workspace, opwest, tmp_path):
    """Without vectors: the model runs on zeros, on devices that only the overlay defines."""
    opwest("generate", ROOT / "examples" / "two_npus" / "manifest.yaml", "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app" / "tests" / "two_npus", "mps2/an385").run(END)
    assert "PROJECT EXECUTION SUCCESSFUL" in console
    for test in ("zeros", "runs_repeat", "workspace_content_is_ignored", "open_checks_its_memory_and_devices"):
        assert f"PASS - test_{test} " in console


@configured("version", OTHER_VERSIONS, board="native_sim")
def test_on_other_versions(workspaces, opwest, tmp_path, version):
    other = workspaces(version)
    source = tmp_path / "source"
    shutil.copytree(ROOT / "tests" / "golden" / "vectors", source)
    opwest("generate", source / "manifest.yaml", "-o", tmp_path / "app")
    console = other.build(tmp_path / "app" / "tests" / "vectors", other.board("native_sim")).run(END)
    assert "vectors: 5 of 5 cases match the vectors" in console
    assert "PROJECT EXECUTION SUCCESSFUL" in console


@configured("board", ["mps2/an385", "native_sim/native/64"])
def test_bfloat16(workspace, opwest, tmp_path, board):
    opwest("generate", write_project(tmp_path / "source") / "manifest.yaml", "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app" / "tests" / "brain", board).run(END)
    assert "PASS - test_vectors " in console and " FAIL - test_" not in console
    assert "PROJECT EXECUTION SUCCESSFUL" in console

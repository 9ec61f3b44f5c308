# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators, bit for bit: recorded results of its own functions, and these functions at hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaign import sized
from models.campaigns import graph_of
from models.executor import Library, interpreted, program_of
from models.signal_memory import CONFIGURATIONS as WITH_SANITIZER
from models.signal_models import FAMILIES, configuration, digest, inputs_of
from models.signal_oracle import RESULTS, compiled, results_of
from requirements_support import need_compiler

RECORDED = {name: digests.split() for name, digests in json.loads(RESULTS.read_text()).items()}
"""By family: a digest of the results of tflite-micro's functions for each configuration."""
CONFIGURATIONS = sized(10, len(RECORDED["SignalWindow"]))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The emitted C of all configurations in one library, with the graphs and the inputs by family and number."""
    made = {}
    for name in FAMILIES:
        for number in range(CONFIGURATIONS):
            model, draws = configuration(name, number)
            graph = graph_of(model.build())
            made[name, number] = graph, inputs_of(graph, draws)
    programs = [program_of(graph) for graph, _ in made.values()]
    return Library(programs, tmp_path_factory.mktemp("signal")), made, [*made]


@pytest.mark.parametrize("name", FAMILIES)
def test_recorded_results(name, library):
    emitted, made, numbers = library
    for number in range(CONFIGURATIONS):
        graph, cases = made[name, number]
        states = {}, {}
        found = [interpreted(graph, case, states[0]) for case in cases]
        ran = [emitted.run(numbers.index((name, number)), case, states[1]) for case in cases]
        assert digest(found) == RECORDED[name][number], f"configuration {number}: interpreter"
        assert digest(ran) == RECORDED[name][number], f"configuration {number}: emitted C"


@pytest.mark.parametrize("name", FAMILIES)
def test_results_of_tflite_micro(name, reference, tmp_path):
    made = [configuration(name, number) for number in range(sized(20, 220))]
    contents = [model.build() for model, _ in made]
    graphs = [graph_of(content) for content in contents]
    emitted = Library([program_of(graph) for graph in graphs], tmp_path)
    differences = [0, 0]
    for number, (graph, content, (_, draws)) in enumerate(zip(graphs, contents, made, strict=True)):
        cases, states = inputs_of(graph, draws), ({}, {})
        wanted = digest(results_of(reference, content, cases))
        differences[0] += digest([interpreted(graph, case, states[0]) for case in cases]) != wanted
        differences[1] += digest([emitted.run(number, case, states[1]) for case in cases]) != wanted
        if number < len(RECORDED[name]):
            assert wanted == RECORDED[name][number], f"configuration {number} was recorded otherwise"
    print(f"{name}: {len(made)} configurations, {differences} with differences")
    assert differences == [0, 0], "of the interpreter, of the emitted C"


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("reference"))


def test_memory_of_the_emitted_code(tmp_path):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    options = {"LD_PRELOAD": library.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [sys.executable, "-m", "models.signal_memory", tmp_path],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **options},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:4000]
    rows = [row.split(",") for row in done.stdout.splitlines()]
    assert len(rows) == len(FAMILIES) * WITH_SANITIZER
    assert [row for row in rows if RECORDED[row[0]][int(row[1])] != row[2]] == []

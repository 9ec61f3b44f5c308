# SPDX-License-Identifier: Apache-2.0
"""Damaged TFLite, ONNX and PyTorch files: every result is a program, or errors; nothing else is raised or written.

`make mutated-models` reads 10,000 files of each format, and imports 1,000.
"""

import contextlib
import random
import resource
import time

import numpy as np
import pytest
from campaign import sized
from importers import torch_made
from models import sampled, test_onnx_float
from models.damage import damaged, damaged_onnx, damaged_torch
from models.onnx_quantised import quantised
from models.signal_chains import chain
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler.graph.check import check_graph
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.request import Options
from opwest.frontends.read import read_model
from opwest.imports.convert import import_model
from pytorch.pytorch_support import closed, programs

READ = sized(400, 10_000)
IMPORTED = sized(60, 1_000)
MAX_SECONDS = 5.0
"""Of one file, processor time."""
MAX_BYTES = 1 << 30
"""Of memory that a file adds to the process."""
NETWORKS = ("ds_cnn", "lstm_keywords", "transformer", "streaming", "unet")
"""Of PyTorch: layers, recurrence, attention, state."""


def tflite_files(folder):
    """Return an operator of each group of the sample: layers, movement, state, loops."""
    generator = np.random.default_rng(5)
    chosen = [part for parts in sampled.groups().values() for part in parts[:: max(1, len(parts) // 3)]]
    return [*(part.build(generator).build() for part in chosen), chain("sound to scores")[0]]


def onnx_files(folder):
    generator = np.random.default_rng(5)
    kinds = dict.fromkeys(("convolution", "dense", "resize", "transposed"), ())
    kinds |= {"pool": ("MaxPool",), "normalisation": ("LayerNormalization",)}
    models = [getattr(test_onnx_float, name)(generator, *words).model() for name, words in kinds.items()]
    forms = [quantised(models[0], folder / form, generator, form) for form in ("QDQ", "QOperator")]
    return [*(model.SerializeToString() for model in models), *forms]


def torch_files(folder):
    """Return archives made without PyTorch; in a campaign also networks that PyTorch wrote, float and quantised."""
    generator = np.random.default_rng(5)
    made = [make(generator) for make in (torch_made.convolution, torch_made.quantised, torch_made.ring)]
    found = [*(one.content() for one in made), made[1].old_content()]
    if not sized(False, True):
        return found
    files, rows = programs("networks")
    found += [(files / f"{row['name']}.pt2").read_bytes() for row in rows if row["network"] in NETWORKS]
    files, rows = programs("networks-any")
    return [*found, *((files / f"{row['name']}.pt2").read_bytes() for row in rows[3:14:5])]


FORMATS = {"tflite": tflite_files, "onnx": onnx_files, "torch": torch_files}
STRUCTURED = {"onnx": damaged_onnx, "torch": damaged_torch}
"""Damage to the content of a file, for every second one."""


@contextlib.contextmanager
def little_memory():
    with open("/proc/self/statm") as stream:  # noqa: PTH123
        used = int(stream.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def attempts(name, stage, originals, count, source, attempt, record):
    """Call `attempt` with damaged files; count those that it accepts, and record the longest time."""
    accepted, longest = 0, 0.0
    for number in range(count):
        original = originals[number % len(originals)]
        change = STRUCTURED.get(name, damaged) if number % 2 else damaged
        content = change(original, source)
        if name == "tflite" and len(content) > 8:  # else most files are refused for their first bytes
            content = content[:4] + b"TFL3" + content[8:]
        start = time.process_time()
        try:
            attempt(number, content)
            accepted += 1
        except OpwestError as error:
            assert all(one.severity == "error" and one.message for one in error.diagnostics)
        except BaseException as error:
            error.add_note(f"{name}, {stage}, file {number}: {content.hex()}")
            raise
        longest = max(longest, time.process_time() - start)
        assert longest < MAX_SECONDS, f"file {number}"
    assert 0 < accepted < count
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    record("damaged", [name, stage, count, accepted, count - accepted, f"{longest:.2f}", mebibytes])


@pytest.mark.parametrize("name", FORMATS)
def test_readers(name, tmp_path, record_property):
    def read(number, content):
        faults = Diagnostics()
        for graph in read_model(content, f"m.{name}"):
            check_graph(resolve_control(graph), f"m.{name}", faults)
        faults.raise_if_errors()

    originals = FORMATS[name](tmp_path)
    with little_memory(), closed():
        attempts(name, "read", originals, READ, random.Random(1), read, record_property)


@pytest.mark.parametrize("name", FORMATS)
def test_imports(name, tmp_path, record_property):
    """A refused file leaves no directory."""
    originals, place = FORMATS[name](tmp_path), tmp_path / "imports"
    place.mkdir()

    def convert(number, content):
        file, folder = place / f"m.{name}", place / str(number)
        file.write_bytes(content)
        try:
            import_model(file, folder, Options(vectors=0))
        except OpwestError:
            assert {one.name for one in place.iterdir()} == {file.name}
            raise
        assert (folder / "manifest.yaml").is_file()
        folder.rename(tmp_path / f"imported{number}")

    with little_memory(), closed():
        attempts(name, "import", originals, IMPORTED, random.Random(2), convert, record_property)

# SPDX-License-Identifier: Apache-2.0
"""`opwest quantise` of .pt2 files: its child process runs in the environment of PyTorch, with torch, torchao and numpy.

The environment is build/torch, or that of the Python of the variable OPWEST_TORCH.
"""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from in_process import fail
from requirements_support import skip_here

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys, torch
from torch import nn
torch.manual_seed(0)
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.dense = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Linear(8, 5)
    def forward(self, x):
        inner = torch.relu(self.norm(self.first(x)))
        inner = self.second(inner) + inner
        return torch.softmax(self.dense(nn.functional.adaptive_avg_pool2d(inner, 1).flatten(1)), -1)
network = Network().train()
for _ in range(4):
    network(torch.randn(8, 3, 8, 8))
torch.export.save(torch.export.export(network.eval(), (torch.randn(1, 3, 8, 8),)), sys.argv[1])
"""
RUNNER = """
import sys, numpy as np, torch
import torchao.quantization.pt2e.quantize_pt2e
for name in sys.argv[2:]:
    module = torch.export.load(f"{name}.pt2").module()
    found = [module(torch.from_numpy(one[None])).detach().numpy()[0] for one in np.load(sys.argv[1])["x"]]
    np.save(f"{name}.npy", np.stack(found))
"""


@pytest.fixture(scope="module")
def torch_python():
    """Python with torch and torchao."""
    path = Path(os.environ.get("OPWEST_TORCH", ROOT / "build" / "torch" / "bin" / "python"))
    if not path.is_file():
        skip_here("PyTorch is in an environment of its own: `make torch-environment`, or OPWEST_TORCH")
    if subprocess.run([path, "-c", "import torch, torchao"], capture_output=True, check=False).returncode:
        skip_here(f"{path} cannot import torch and torchao")
    return path


def python(path, *words, given=""):
    variables = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_CONFIG"}
    variables["PYTHONPATH"] = str(ROOT / "generator")
    done = subprocess.run([path, *words], input=given, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_an_exported_program(torch_python, tmp_path):
    """PT2E writes a graph of int8 layers; its loss is the measured one, and the kept layer is float32."""
    samples = np.random.default_rng(0).standard_normal((12, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=samples)
    python(torch_python, "-c", WRITER, tmp_path / "net.pt2")
    options = {"kind": "pt2", "samples": str(tmp_path / "x.npz"), "keep_accuracy": 0.3}
    request = {"path": str(tmp_path / "net.pt2"), "folder": str(tmp_path / "new.pt2"), "options": options}
    answer = python(torch_python, "-P", "-m", "opwest.quantisation.child", given=json.dumps(request))
    assert "made" in json.loads(answer), answer
    result = json.loads(answer)["made"]["result"]
    assert [row["layer"] for row in result["layers"]] == [
        *("conv2d", "conv2d_1", "add", "adaptive_avg_pool2d", "linear", "softmax"),
    ]
    assert [row["layer"] for row in result["layers"] if row["precision"] == "float"] == ["softmax"]
    assert result["after"]["error"] < 0.3
    python(torch_python, "-c", RUNNER, tmp_path / "x.npz", tmp_path / "net", tmp_path / "new")
    outputs = {name: np.load(tmp_path / f"{name}.npy").astype(np.float64) for name in ("net", "new")}
    error = 100 * np.sqrt(np.square(outputs["new"] - outputs["net"]).sum() / np.square(outputs["net"]).sum())
    assert error == pytest.approx(result["after"]["error"], rel=0.02)


def test_torch_is_absent(tmp_path, monkeypatch):
    (tmp_path / "net.pt2").write_bytes(b"PK")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if "torch" in name else find(name, *rest))
    done = fail("quantise", tmp_path / "net.pt2", "--samples", tmp_path / "x.npz", "-o", tmp_path / "new.pt2")
    assert "error: quantised .pt2 files require torch and torchao, which are not installed" in done.stderr
    assert "-m pip install torch torchao" in done.stderr


def test_inputs_of_programs_stay_float(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"PK")
    words = ["--samples", tmp_path / "x.npz", "-o", tmp_path / "new.pt2", "--float-io", "--dtype", "int16x8"]
    done = fail("quantise", tmp_path / "net.pt2", *words)
    assert (
        "error: --float-io has no effect on .pt2 files\n  hint: their inputs and outputs always stay float32"
        in done.stderr
    )
    assert "error: --dtype int16x8 has no effect on .pt2 files" in done.stderr

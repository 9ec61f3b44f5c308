# SPDX-License-Identifier: Apache-2.0
"""`opwest init`: from the objects of the digits example to a working model; error messages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from requirements_support import absent, need

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
SHAPES = {
    "conv2d_relu": {"image": "[1, 8, 8, 1]", "weight": "[8, 3, 3, 1]", "bias": "[8]", "result": "[1, 8, 8, 8]"},
    "max_pool": {"features": "[1, 8, 8, 8]", "result": "[1, 4, 4, 8]"},
    "dense": {"pooled": "[1, 4, 4, 8]", "weight": "[10, 128]", "bias": "[10]", "scores": "[1, 10]"},
    "arg_max": {"scores": "[1, 10]", "label": "[1]"},
}
WIDE = {"bias", "scores", "label"}
STEPS = """\
    - {call: conv2d_relu, args: [image, conv2d_relu_weight, conv2d_relu_bias, features]}
    - {call: max_pool, args: [features, pooled]}
    - {call: dense, args: [pooled, dense_weight, dense_bias, scores]}
    - {call: arg_max, args: [scores, label]}
"""
OBJECT, SOURCES = "objects/x86-64/operators.o", "operators/*.c"
CONSTANTS = """
constants:
  conv2d_relu_weight: {file: &constants FILL_IN, key: conv2d_relu_weight}
  conv2d_relu_bias: {file: *constants, key: conv2d_relu_bias}
  dense_weight: {file: *constants, key: dense_weight}
  dense_bias: {file: *constants, key: dense_bias}
"""


def fill_in(text):
    """Replace only the marks by the values of the network."""
    operator, lines = "", []
    for line in text.splitlines():
        heading = re.match(r"  (\w+):", line)
        operator = heading[1] if heading else operator
        argument = re.match(r"      - \{name: (\w+), ", line)
        if argument:
            dtype = "int32" if argument[1] in WIDE else "int8"
            line = line.replace("dtype: FILL_IN", f"dtype: {dtype}")
            line = re.sub(r"shape: (&\w+ )?FILL_IN", rf"shape: \g<1>{SHAPES[operator].get(argument[1])}", line)
        line = line.replace("targets: [FILL_IN]", "targets: [x86-64]").replace("returns: FILL_IN", "returns: status")
        constant = re.match(r"  (\w+): \{file: (&constants FILL_IN|\*constants), key: \w+\}", line)
        if constant:
            line = f"  {constant[1]}: {{file: parameters.npz, key: {constant[1].replace('conv2d_relu', 'conv')}}}"
        lines.append(line)
    text = "\n".join(lines)
    text = re.sub(r"inputs:\n.*", "inputs: {image: {dtype: int8, shape: [1, 8, 8, 1]}}", text)
    text = re.sub(r"outputs:\n.*", "outputs: {label: {dtype: int32, shape: [1]}}", text)
    return text[: text.index("  steps:\n")] + "  steps:\n" + STEPS


def args_of(operator):
    """Return the arguments of an operator without a known signature, as a user writes them."""
    rows = []
    for name, shape in SHAPES[operator].items():
        dtype = "int32" if name in WIDE else "int8"
        out = ", direction: out" if name in ("result", "label") or (operator, name) == ("dense", "scores") else ""
        rows.append(f"{{name: {name}, dtype: {dtype}, shape: {shape}{out}}}")
    return ", ".join(rows)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The example without its manifests, as the current directory."""
    folder = tmp_path / "digits"
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("objects", "manifest*.yaml", "__pycache__"))
    monkeypatch.chdir(folder)
    return folder


def compile_operators(*targets, flags=""):
    need("cc")
    command = [sys.executable, "compile_operators.py", *targets]
    environment = {**os.environ, "CC": f"cc {flags}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        absent(f"the operators do not compile here: {done.stderr.strip()[:200]}", "cc")


def files(*patterns):
    return [path for pattern in patterns for path in sorted(Path().glob(pattern))]


@pytest.mark.parametrize(
    ("flags", "patterns"),
    [
        pytest.param("-g", [OBJECT], id="debug information"),
        pytest.param("", [OBJECT, SOURCES], id="objects and sources", marks=pytest.mark.slow),
        pytest.param(None, [SOURCES], id="sources"),
        pytest.param(None, ["operators_ir/*.ll"], id="ir", marks=pytest.mark.slow),
        pytest.param("", [OBJECT], id="no debug information", marks=pytest.mark.slow),
    ],
)
def test_completed_draft_computes_the_expected_results(opwest, succeed, fail, project, reference, flags, patterns):
    if flags is not None:
        compile_operators("x86-64", flags=flags)
    elif "ir" in patterns[0]:
        need("llvmlite")
    done = opwest("init", *files(*patterns))
    assert (done.code, done.err) == (0, "")
    marks = int(re.fullmatch(r"manifest.yaml: 4 operators, (\d+) marks to fill in .*\n", done.out)[1])
    assert marks > 7

    done = fail("check", "manifest.yaml")
    mark = r"^manifest.yaml:\d+:\d+: error: .* is not filled in(?:, and (\d+) others? \(lines? [\d, ]+\))?$"
    faults = re.findall(mark, done.err, re.M)
    assert len(faults) == done.err.count(": error: ") and len(faults) + sum(map(int, filter(None, faults))) == marks
    assert opwest("generate", "manifest.yaml", "-o", "app").code == 1 and not (project / "app").exists()

    manifest = project / "manifest.yaml"
    text = manifest.read_text()
    for operator in SHAPES:
        text = re.sub(rf"(  {operator}:.*\n.*\n    args: )\[FILL_IN\]", rf"\1[{args_of(operator)}]", text)
    if "constants:" not in text:
        text = text.replace("\n# One inference", f"{CONSTANTS}\n# One inference")
    manifest.write_text(fill_in(text))
    done = opwest("check", "manifest.yaml")
    unverified = ["conv2d_relu, arg_max, max_pool, dense (no debug information or header; add 'signatures: [HEADER]')"]
    assert done.code == 0 and re.findall("note: signatures not verified: (.*)", done.err) == (
        unverified if (flags, patterns) == ("", [OBJECT]) else []
    )
    succeed("generate", "manifest.yaml", "-o", "app")
    images = np.random.default_rng(7).integers(0, 17, (1, 8, 8, 1)).astype(np.int8)
    np.save("image.npy", images)
    succeed("run", "app", "--host", "--input", "image=image.npy", "--output-dir", ".")
    assert np.load("label.npy").tolist() == reference.predict(images).tolist()


def test_existing_file_is_not_overwritten(fail, project):
    (project / "manifest.yaml").write_text("mine\n")
    (project / "dangling.yaml").symlink_to("absent")
    advice = "  expected: the name of a new file\n"
    advice += "  hint: choose another file with -o, or print the draft with '-o -'\n"
    for name in ("manifest.yaml", "dangling.yaml"):
        done = fail("init", "operators/arg_max.c", "-o", name)
        assert (done.out, done.err) == ("", f"{name}: error: the file exists and is not overwritten\n{advice}")
    assert (project / "manifest.yaml").read_text() == "mine\n" and not (project / "absent").exists()


def test_standard_output(opwest, succeed, project):
    done = opwest("init", "operators/arg_max.c", "-o", "-")
    assert (done.code, done.err) == (0, "") and not (project / "manifest.yaml").exists()
    succeed("init", "operators/arg_max.c")
    assert (project / "manifest.yaml").read_text() == done.out
    assert "\nmodel: digits\n" in done.out and str(project) not in done.out
    report = json.loads(opwest("init", "operators/arg_max.c", "--json", "--model", "other", "-o", "other.yaml").out)
    assert report["ok"] and report["diagnostics"] == [] and "model: other\n" in report["result"].pop("text")
    assert report["result"] == {"manifest": "other.yaml", "operators": ["arg_max"], "left_out": [], "mark_count": 2}


def test_another_directory(succeed, project):
    succeed("init", "operators/arg_max.c", "-o", "operators/net.yaml")
    text = (project / "operators" / "net.yaml").read_text()
    assert "files: [arg_max.c]" in text and "model: net\n" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.o"], "absent.o: error: cannot read the file: No such file or directory"),
        (["operators"], "operators: error: cannot read the file: Is a directory"),
        (["README.md"], "README.md: error: not an object: this is text"),
        (["empty.c"], "error: the file is empty"),
        (["held.c"], "no operator found in the files"),
        (["only.h"], "hint: a header only declares functions: add the archive, the objects or the sources that define"),
        (["operators/dense.c", "--model", "int"], "error: model name 'int' is a keyword of C"),
        (["operators/dense.c", "--target", "cortex-m33x"], "hint: did you mean 'cortex-m33'?"),
        (["operators/dense.c", "-o", "README.md/manifest.yaml"], "error: "),
    ],
)
def test_rejected_input(fail, project, arguments, words):
    (project / "empty.c").touch()
    (project / "held.c").write_text("int value;\n")
    (project / "only.h").write_text("int f(float *x);\n")
    done = fail("init", *arguments)
    assert words in done.err and not done.out
    assert "Traceback" not in done.err and not (project / "manifest.yaml").exists()


def test_ir_without_llvmlite(fail, project, monkeypatch):
    monkeypatch.setattr("opwest.drafting.files.is_available", lambda: False)
    done = fail("init", "operators_ir/dense.ll")
    assert done.err.startswith("operators_ir/dense.ll: error: missing Python package llvmlite")


PIPELINE = """#include <stdint.h>
int32_t normalize(const int16_t *audio, float *normalized) { normalized[0] = audio[0]; return 0; }
int32_t window(const float *normalized, const float *window_coeffs, float *windowed, float *scratch)
{ scratch[0] = normalized[0]; windowed[0] = scratch[0] * window_coeffs[0]; return 0; }
int32_t spectrum(const float *windowed, float *power, float *fft_tmp)
{ fft_tmp[0] = windowed[0]; power[0] = fft_tmp[0] * fft_tmp[0]; return 0; }
int32_t mel(const float *power, float *mel_weights, float *features)
{ features[0] = power[0] * mel_weights[0] + mel_weights[1]; return 0; }
int32_t dense(const float *features, const float *dense_weight, const float *dense_bias, float *hidden)
{ hidden[0] = features[0] * dense_weight[0] + dense_bias[0]; return 0; }
int32_t classify(const float *hidden, const float *weights, const float *bias, float *logits)
{ logits[0] = hidden[0] * weights[0] + bias[0]; return 0; }
int32_t softmax(const float *logits, float *scores) { scores[0] = logits[0]; return 0; }
"""


FORMS = {"source": ["ops.c"], "object": ["ops.o"], "archive": ["libops.a", "ops.h"]}


@pytest.mark.parametrize("form", FORMS)
def test_draft_of_a_pipeline_has_few_marks(opwest, succeed, tmp_path, monkeypatch, form):
    """A pipeline of seven operators: constants and scratch memory by name, one mark for each shape."""
    monkeypatch.chdir(tmp_path)
    Path("ops.c").write_text(PIPELINE)
    if form != "source":
        need("cc", "ar")
        subprocess.run(["cc", *(["-g"] if form == "object" else []), "-fPIC", "-c", "ops.c"], check=True)
        subprocess.run(["ar", "rcs", "libops.a", "ops.o"], check=True)
        Path("ops.h").write_text("".join(f"{line};\n" for line in re.findall(r"^(?:#.*|int.*\))", PIPELINE, re.M)))
        Path("ops.h").write_text(Path("ops.h").read_text().replace("h>;", "h>") + "void gone(float *x);\n")
    done = opwest("init", *FORMS[form])
    assert done.out.startswith("manifest.yaml: 7 operators, 11 marks to fill in"), done.out
    absent = "ops.h: note: the header declares a function that no file defines: gone\n"
    assert done.err == (absent if form == "archive" else "")
    assert opwest("check", "manifest.yaml").err.count(" is not filled in") == 2
    text = Path("manifest.yaml").read_text()
    values = {"window_coeffs": [2], "mel_weights": [3, 1], "dense_weight": [2], "dense_bias": [1]}
    values |= {"classify_weights": [2], "classify_bias": [5]}
    np.savez("all.npz", **{name: np.array(value, np.float32) for name, value in values.items()})
    text = text.replace("&constants FILL_IN", "&constants all.npz").replace("FILL_IN", "[1]")
    Path("manifest.yaml").write_text(text)
    succeed("check", "manifest.yaml")
    # Shapes of constants are those of their file; a raw file has none.
    raw = text.replace("mel_weights: {file: *constants, key: mel_weights}", "mel_weights: {file: raw.bin}")
    Path("raw.bin").write_bytes(bytes(8))
    Path("raw.yaml").write_text(raw)
    assert "error: argument 'mel_weights' has no shape" in opwest("check", "raw.yaml").err
    Path("raw.yaml").write_text(raw.replace("raw.bin}", "raw.bin, shape: [2]}"))
    succeed("check", "raw.yaml")
    if form == "archive":
        check_left_out_argument(opwest, text)
    need("cc")
    succeed("generate", "manifest.yaml", "-o", "app", "--inputs", "inputs.txt")
    assert ("ops.h" in Path("inputs.txt").read_text()) == (form == "archive")
    np.save("audio.npy", np.full(1, 3, np.int16))
    run = opwest("run", "app", "--host", "--input", "audio=audio.npy", "--output-dir", ".")
    if form == "source":
        assert run.code == 0, run.err
        assert np.load("scores.npy").tolist() == [((3 * 2) ** 2 * 3 + 1) * 4 + 2 + 5]


def check_left_out_argument(opwest, text):
    """An argument too few is an error. Without the header, operators that are not compared are named."""
    short = text.replace("{name: bias,", "# {name: bias,").replace(
        "classify_weights, classify_bias", "classify_weights"
    )
    short = re.sub(r"\n +- # .*|\n  classify_bias: .*", "", short)
    Path("short.yaml").write_text(short)
    done = opwest("check", "short.yaml")
    line = Path("ops.h").read_text()[: Path("ops.h").read_text().index("classify")].count("\n") + 1
    assert f"ops.h:{line}: function 'classify' does not fit operator 'classify': 3 arguments declared, " in done.err
    Path("short.yaml").write_text(text.replace("signatures: [ops.h]\n", ""))
    names = "normalize, window, spectrum, mel, dense, classify, softmax"
    reason = "no debug information or header; add 'signatures: [HEADER]'"
    done = opwest("check", "short.yaml")
    assert (done.code, re.findall("note: (.*)", done.err)) == (0, [f"signatures not verified: {names} ({reason})"])
    report = json.loads(opwest("check", "short.yaml", "--json").out)
    assert [d["severity"] for d in report["diagnostics"]] == ["note"]
    assert report["result"][0]["targets"][0]["unverified_signatures"] == names.split(", ")


CONTEXT = """#include <stdint.h>
struct biquad_state { double z; uint32_t count; };
int32_t biquad(struct biquad_state *s, const float *x, float *y)
{ for (int i = 0; i < 4; i++) { s->z += x[i]; y[i] = (float)s->z; } s->count++; return 0; }
"""


def test_draft_of_an_operator_with_context(opwest, succeed, tmp_path, monkeypatch):
    """The context structure of an object becomes state: two shapes complete the draft, and runs continue each other."""
    need("cc")
    monkeypatch.chdir(tmp_path)
    Path("biquad.c").write_text(CONTEXT)
    subprocess.run(["cc", "-g", "-fPIC", "-c", "biquad.c"], check=True)
    assert opwest("init", "biquad.o").out.startswith("manifest.yaml: 1 operator, 2 marks to fill in")
    manifest = Path("manifest.yaml")
    manifest.write_text(manifest.read_text().replace(" FILL_IN,", " [4],").replace(" FILL_IN}", " [4]}"))
    np.save("x.npy", np.ones(4, np.float32))
    succeed("generate", "manifest.yaml", "-o", "app")
    succeed("run", "app", "--host", "--input", "x=x.npy", "--repeat", "3", "--output-dir", ".")
    assert np.load("y.npy").tolist() == [9, 10, 11, 12]
    manifest.write_text(manifest.read_text().replace("shape: [16], direction", "shape: [8], direction"))
    assert "argument 's' is struct biquad_state with 8 bytes, it has 16" in opwest("check", "manifest.yaml").err

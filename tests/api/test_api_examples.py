# SPDX-License-Identifier: Apache-2.0
"""docs/python.md, the notebook and the script that regenerates projects run as they are shown."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

from docs.pages import blocks
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
EXAMPLES = ROOT / "examples"


def test_page_is_current():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "python_reference.py", "--check"], check=False)
    assert done.returncode == 0, "run scripts/python_reference.py"


def run_cells(cells):
    """Run texts in one namespace; return what they print."""
    names = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for text in cells:
            exec(compile(text, "cell", "exec"), names)
    return printed.getvalue()


def test_page_runs(tmp_path, monkeypatch):
    need("cc")
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE):
        if (name := block.marked("file")) is not None:
            (tmp_path / name).write_text(block.text)
    shown = [block for block in blocks(PAGE) if block.language == "python" and block.marked("reference") is None]
    expected = [block.text for block in blocks(PAGE) if block.language == "text"]
    assert len(shown) > 2 and run_cells(block.text for block in shown) == "".join(expected)


def test_notebook(tmp_path, monkeypatch):
    need("cc", "onnx")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    notebook = json.loads((EXAMPLES / "notebook" / "model.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], {cell["cell_type"] for cell in notebook["cells"]}) == (4, {"code", "markdown"})
    printed = run_cells("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert "outputs: (4, 1, 4)" in printed
    assert "error: input 'x': the array is float64 [1, 16]\n  expected: float32 [1, 16]" in printed
    assert "bytes  ##" in printed or "bytes  #." in printed, printed


def test_regeneration(tmp_path):
    script = EXAMPLES / "regenerate" / "regenerate.py"
    (projects,) = (one.text for one in blocks(script.with_name("README.md")) if one.marked("file"))
    shutil.copytree(EXAMPLES / "digits", tmp_path / "digits", ignore=shutil.ignore_patterns("objects"))
    file = tmp_path / "projects.toml"

    def run(*words):
        done = subprocess.run([sys.executable, script, file, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    manifest = tmp_path / "digits" / "manifest.yaml"
    sources = manifest.read_text()
    file.write_text(projects)
    code, _, errors = run()
    assert code == 1 and "error: " in errors, "no object is compiled"
    start, end = sources.index("objects:"), sources.index("# The memory of")
    files = ", ".join(f"operators/{path.name}" for path in sorted((tmp_path / "digits/operators").iterdir()))
    manifest.write_text(f"{sources[:start]}objects: [{{files: [{files}]}}]\n\n{sources[end:]}")
    assert run("--check")[0] == 1
    code, printed, errors = run()
    assert code == 0 and "digits: digits: 4 steps, sram 640 bytes" in printed and "digits: written" in printed, errors
    code, printed, _ = run("--check")
    assert code == 0 and printed.endswith("digits: unchanged\n")
    file.write_text(projects.replace("1024", "100"))
    code, _, errors = run()
    assert code == 1 and "640 bytes" in errors

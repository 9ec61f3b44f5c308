# SPDX-License-Identifier: Apache-2.0
"""The README's example works, its error message is current, and generated pages are current."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    """Return the fenced block of a language that contains a text."""
    parts = re.split(r"^```(.*)$\n?", README, flags=re.MULTILINE)  # text, language, block, "", text, ...
    blocks = zip(parts[1::4], parts[2::4], strict=False)
    return next(text for name, text in blocks if name == language and containing in text)


def opwest(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opwest", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


def write_example(folder: Path) -> None:
    (folder / "operators.c").write_text(block("c", "int32_t scale"))
    (folder / "manifest.yaml").write_text(block("yaml", "model: twice"))


def test_example_computes_the_expected_results(tmp_path: Path) -> None:
    write_example(tmp_path)
    for arguments in (["check", "manifest.yaml"], ["generate", "manifest.yaml", "-o", "app"], ["run", "app", "--host"]):
        done = opwest(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    np.save(tmp_path / "x.npy", np.array([1, -2, 3, 1000], np.int16))
    done = opwest("run", "app", "--host", "--input", "x=x.npy", "--output-dir", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").tolist() == [4, -8, 12, 4000]


def test_documented_error_message_is_current(tmp_path: Path) -> None:
    write_example(tmp_path)
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("args: [doubled, 2, y]", "args: [duobled, 2, y]"))
    done = opwest("check", "manifest.yaml", cwd=tmp_path)
    assert done.returncode == 1
    shown = block("", "duobled")
    assert shown in done.stderr


def test_manifest_reference_is_current() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "manifest_reference.py", "--check"], check=False)
    assert done.returncode == 0, "run scripts/manifest_reference.py"


def test_links_have_targets() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"

# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/regeneration.md do what the page says."""

import re
import shlex
import shutil
from pathlib import Path

from golden_support import copy_project

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "regeneration.md").read_text(encoding="utf-8")


def test_commands_of_the_page(opwest, tmp_path, monkeypatch):
    (manifest,) = copy_project("minimal", tmp_path / "work")
    monkeypatch.chdir(manifest.parent)
    for name in ("a", "b"):
        copy_project("minimal", Path("firmware") / name)
        assert opwest("generate", f"firmware/{name}/manifest.yaml", "-o", f"firmware/{name}/app").code == 0
    assert opwest("generate", "manifest.yaml", "-o", "app").code == 0
    layout = re.search(r"^company/\n((?:  .*\n)+)", PAGE, re.MULTILINE)
    for line in layout[1].splitlines():
        path = Path("company") / line.split()[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{{ application }}\n" if path.name == "NOTES.md.jinja" else "\n")
    ran = 0
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = [
                file
                for word in shlex.split(line, comments=True)
                for file in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
            ]
            assert words.pop(0) == "opwest"
            if "models/manifest.yaml" in words:
                Path("models").mkdir()
                for file in ("manifest.yaml", "negate.c"):
                    shutil.copy(file, "models")
            done = opwest(*words)
            assert done.code == 0, (line, done.err)
            ran += 1
            if "company" in words:
                assert Path("app/docs/NOTES.md").read_text() == "minimal\n" and Path("app/.clang-format").exists()
    assert ran >= 8

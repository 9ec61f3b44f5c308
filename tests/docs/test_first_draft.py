# SPDX-License-Identifier: Apache-2.0
"""The page about `opwest init`: its commands run, and the shown parts of the draft and of the errors are current."""

from pathlib import Path

import yaml
from in_process import fail, succeed
from pages import ROOT, block

PAGE = ROOT / "docs" / "writing-operators.md"


def test_commands_and_draft_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scale.c").write_text(block(PAGE, "c"))
    init, check = (line.partition("#")[0].split()[1:] for line in block(PAGE, "sh").splitlines())
    assert succeed(*init).stderr == ""
    draft, shown = yaml.safe_load(Path("manifest.yaml").read_text()), yaml.safe_load(block(PAGE, "yaml"))
    assert {key: draft[key] for key in shown} == shown
    assert block(PAGE, "").strip() in fail(*check).stderr

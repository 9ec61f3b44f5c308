# SPDX-License-Identifier: Apache-2.0
"""For every mutated manifest, `opwest check` ends with exit code 0 or 1 and a reason."""

import random
from pathlib import Path

import pytest
from campaign import sized
from fuzz_yaml import mutated
from manifest_support import copy_digits
from opwest.cli.main import main

ROUNDS = 15
SEEDS = sized(6, 20)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_mutated_manifests(seed, tmp_path, monkeypatch, capsys):
    text = copy_digits(tmp_path).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pick = random.Random(seed)
    for number in range(ROUNDS):
        content = mutated(text, pick)
        Path("mutated.yaml").write_bytes(content)
        try:
            status = main(["check", "mutated.yaml"])
        except Exception as error:
            error.add_note(f"seed {seed}, round {number}:\n{content.decode('utf-8', 'replace')}")
            raise
        out, printed = capsys.readouterr()
        assert status in (0, 1)
        assert (status == 1) == (": error: " in printed), content
        assert out or status == 1
        assert str(tmp_path) not in printed + out
        assert len(printed) < 20_000 and len(out) < 20_000, "a message repeats too much of the input"

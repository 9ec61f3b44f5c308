# SPDX-License-Identifier: Apache-2.0
"""The mutants of scripts/mutation, the record of the tests that reach them, and rules of the tests."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import requirements_support

# Appended: the modules of tests/ have precedence in all processes of these tests.
sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts" / "mutation"))

import trials
from probes import write_probes
from reached import Reached
from source_mutants import sample

PYTHON = """\
\"\"\"A docstring.\"\"\"
LIMIT: int = 2


def run(values: list[int], name: str = "x") -> str:
    \"\"\"A docstring.\"\"\"
    if not values or values[0] < LIMIT and name is not None:
        values.append(-1 + 3)
    return f"{name}: {len(values) == 0}" if values else "none"
"""
C = """\
#include <stdint.h>
#define WIDTH 4
static int32_t sum(const int32_t *a, int n) /* a + b */
{
	int32_t all = 0;

	for (int i = 0; i < n && !a[-1]; i++) {
		all += a[i] - '0';
	}
	return all == 7 ? 0x10 : -1;
}
"""


def mutants_of(tmp_path, name, text):
    """Return the changed lines of all mutants of a file; each differs from the file in one part."""
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    count, found = sample(tmp_path, 1000, 1)
    assert count == len(found) == len({mutant.name for mutant in found})
    changed = []
    for mutant in sorted(found, key=lambda one: (one.start, one.after)):
        made = mutant.applied(text.encode()).decode()
        if name.endswith(".py"):
            ast.parse(made)
        (line,) = [new for old, new in zip(text.splitlines(), made.splitlines(), strict=True) if old != new]
        assert text.splitlines()[mutant.lines[0] - 1] != made.splitlines()[mutant.lines[0] - 1]
        changed.append(line.strip())
    return changed


def test_python(tmp_path):
    changed = mutants_of(tmp_path, "generator/opwest/a.py", PYTHON)
    assert changed[:2] == ["LIMIT: int = 3", "def run(values: list[int], name: str = 'XXx') -> str:"]
    conditions = [line for line in changed if line.startswith("if ")]
    assert "if (not values and (values[0] < LIMIT and name is not None)):" in conditions
    assert "if not values or (values[0] <= LIMIT) and name is not None:" in conditions
    assert "if (values) or values[0] < LIMIT and name is not None:" in conditions
    assert "if not values or values[0] < LIMIT and (name is None):" in conditions
    assert {"None", "values.append((-1 - 3))", "values.append(1 + 3)"} <= set(changed)
    assert """return ("none" if values else f"{name}: {len(values) == 0}")""".replace('"', "'") in [
        line.replace('"', "'") for line in changed
    ]
    assert not [line for line in changed if "docstring" in line]


def test_c(tmp_path):
    changed = mutants_of(tmp_path, "zephyr_module/src/a.c", C)
    assert changed == [
        "int32_t all = 1;",
        "for (int i = 1; i < n && !a[-1]; i++) {",
        "for (int i = 0; i <= n && !a[-1]; i++) {",
        "for (int i = 0; i < n || !a[-1]; i++) {",
        "for (int i = 0; i < n &&  a[-1]; i++) {",
        "for (int i = 0; i < n && !a[-2]; i++) {",
        "all -= a[i] - '0';",
        "all += a[i] + '0';",
        "return all != 7 ? 0x10 : -1;",
        "return all == 8 ? 0x10 : -1;",
        "return all == 7 ? 17 : -1;",
        "return all == 7 ? 0x10 : -2;",
    ]


def test_another_version_of_the_file_is_an_error(tmp_path):
    path = tmp_path / "generator/opwest/a.py"
    path.parent.mkdir(parents=True)
    path.write_text(PYTHON)
    _, (mutant, *_) = sample(tmp_path, 1, 1)
    with pytest.raises(ValueError, match="not in this version of the file"):
        mutant.applied(b"# A comment.\n" + PYTHON.encode())


def test_probes_record_the_tests_that_reach_a_mutant(tmp_path):
    """Each expression that changes, those of the import in all functions, in this process and in children."""
    package = tmp_path / "generator" / "opwest"
    package.mkdir(parents=True)
    (package / "a.py").write_text(PYTHON)
    (package / "__init__.py").write_text("")
    (package / "data.py").write_text("WIDTH = 3\n")
    (package / "b.py").write_text("from opwest.data import WIDTH\n\n\ndef wide() -> int:\n    return WIDTH\n")
    _, mutants = sample(tmp_path, 1000, 1)
    write_probes(tmp_path, mutants)
    (tmp_path / "hits").touch()
    program = "from opwest import a, b, hits; hits.enter('one'); a.run([5]); hits.enter('two'); b.wide()"
    variables = {"PYTHONPATH": str(package.parent), "OPWEST_REACH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, check=True)
    lines = (tmp_path / "hits").read_text().splitlines()
    reached = {(mutants[int(number)].before, context) for number, context in (line.split("\t") for line in lines)}
    # Calls of append, and what is after a true condition of `or`, are not evaluated.
    assert reached == {
        *(("2", "one"), ('"x"', "one"), ("3", "two"), ("not values", "one"), ("0", "one")),
        *(("values[0] < LIMIT", "one"), ("values[0] < LIMIT and name is not None", "one")),
        ("not values or values[0] < LIMIT and name is not None", "one"),
        ('f"{name}: {len(values) == 0}" if values else "none"', "one"),
    }


def test_tests_of_a_run_take_the_time_of_what_they_share_once(tmp_path, monkeypatch):
    """An image that an application is a part of takes 5 and 3 seconds, each test 1 second."""
    (tmp_path / "generator/opwest").mkdir(parents=True)
    (tmp_path / "generator/opwest/a.py").write_text("WIDTH = 2\n")
    _, mutants = sample(tmp_path, 1, 1)
    (tmp_path / "sample.json").write_text(json.dumps([mutants[0].name]))
    (tmp_path / "records").mkdir()
    seconds = {"app": 3.0, "image": 5.0, "a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}
    shared = {"a": ["image"], "b": ["image"], "c": ["app"], "image": ["app"]}
    record = {"seconds": seconds, "shared": shared, "outcomes": dict.fromkeys("abcd", "passed")}
    (tmp_path / "records/reach-1.json").write_text(json.dumps(record))
    (tmp_path / "records/hits").write_text("0\timage\n0\td\n0\tc\n")
    reached = Reached(tmp_path, mutants)
    monkeypatch.setattr(trials, "MutantCopy", lambda tree, folder: None)
    runs = trials.Trials(tmp_path, reached, tmp_path, limit=20, jobs=1, first=None)
    assert reached.tests_of(mutants[0]) == ["d", "c", "a", "b"]
    for most, part in {1: "d", 5: "dc", 10: "dc", 11: "dca", 12: "dcab"}.items():
        found, used = runs._part(["d", "c", "a", "b"], most)
        assert "".join(found) == part and used <= most
    assert runs._part(["a", "d"], 8) == ({"d": None}, 1.0)


# --- Only tests/requirements_support.py skips tests; the bounds of scripts/check_coverage.py

ROOT = Path(__file__).resolve().parents[3]


def test_only_requirements_support_skips_tests():
    words = re.compile(r"pytest\.(skip|importorskip)\(|mark\.(skip|skipif|xfail)\b")
    own = (Path(__file__), Path(requirements_support.__file__))
    sources = [path for path in (ROOT / "tests").rglob("*.py") if path not in own]
    assert len(sources) > 100
    assert [path.name for path in sources if words.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("lines", "fault"), [(96, ""), (95, "95.0 % of the lines are reached, expected at least 96 %")]
)
def test_bounds_of_coverage(lines, fault, tmp_path):
    counts = {"summary": {"num_statements": 100, "covered_lines": lines}}
    (tmp_path / "coverage.json").write_text(json.dumps({"files": {"generator/opwest/plan/a.py": counts}}))
    command = [sys.executable, ROOT / "scripts" / "check_coverage.py", tmp_path / "coverage.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (int(bool(fault)), "")
    errors = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert errors == ([f"error: {fault}"] if fault else [])
    assert f"all                  100{lines:>8.1f}%\n" in done.stdout

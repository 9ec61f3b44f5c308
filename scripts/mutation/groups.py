# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of critical modules (planning, checks, the lock), each against its unit tests.

mutmut changes one expression at a time; a mutant survives if no test fails. The sample of mutants depends only on the
sources and the number. The output lists the survivors: `mutmut show NAME` in build/mutation/GROUP shows one.
scripts/mutation_survivors.md explains why the known survivors are harmless.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "packing": ("packing/*.py", ["tests/unit/plan"]),
    "plan": ("plan/*.py", ["tests/unit/plan"]),
    "dataflow": (
        "model/dataflow.py",
        ["tests/unit/model/test_model_dataflow.py", "tests/unit/model/test_model_dataflow_faults.py"],
    ),
    "lock": ("write/lock.py", ["tests/unit/write/test_write_lock.py", "tests/unit/write/test_write_refused.py"]),
}
SLOW = [
    "test_plan_greedy.py::test_a_long_chain_is_planned_quickly",  # measures time, which mutmut's trampolines change
    "test_plan_search.py::test_too_many_blocks_are_left_to_greedy",  # recursion up to the limit
    "test_plan_search.py::test_never_worse_than_greedy_and_always_valid",
]
LEAST_SCORE = 80.0
CONFIGURATION = """[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/opwest/{modules}"]
also_copy = ["schemas", "project_template", "zephyr_module", "examples"]
pytest_add_cli_args = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", {slow}]
pytest_add_cli_args_test_selection = {tests}
timeout_multiplier = 5.0
timeout_constant = 2.0
track_dependencies = false
[tool.pytest.ini_options]
pythonpath = ["tests"]
filterwarnings = ["error"]
markers = ["zephyr", "cross"]
"""
WITHOUT_SHRINKING = """
from hypothesis import Phase, settings

settings.register_profile("mutation", phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutation")
"""
"""Disable shrinking: a failing test is sufficient."""
UNNOTICED = ("survived", "no tests")


def prepare(group: str) -> Path:
    """Copy the sources and tests of a group to a separate directory; return its path."""
    modules, tests = GROUPS[group]
    folder = ROOT / "build" / "mutation" / group
    shutil.rmtree(folder, ignore_errors=True)
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "generator" / "opwest", folder / "src" / "opwest", ignore=leave)
    for name in ("schemas", "project_template", "zephyr_module", "examples", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    with (folder / "tests" / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(WITHOUT_SHRINKING)
    slow = ", ".join(f'"--deselect=tests/unit/plan/{test}"' for test in SLOW)
    text = CONFIGURATION.format(modules=modules, slow=slow, tests=str(tests).replace("'", '"'))
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def mutmut(folder: Path, *words: str, may_fail: bool = False) -> str:
    """Run mutmut in a directory and return its output."""
    command = [str(Path(sys.executable).with_name("mutmut")), *words]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # the order of tests would differ from run to run
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )
    if done.returncode and not may_fail:
        raise SystemExit(f"{' '.join(command)[:200]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def states(folder: Path) -> dict[str, str]:
    """Return the state of every mutant: killed, survived, timeout, not checked and so on."""
    return dict(re.findall(r"^\s*(\S+__mutmut_\d+): (.+)$", mutmut(folder, "results", "--all", "true"), re.MULTILINE))


def score(found: Mapping[str, str]) -> float:
    """Return the percentage of killed mutants; a timeout counts as killed."""
    return 100 * sum(state not in UNNOTICED for state in found.values()) / len(found)


def report(group: str, found: dict[str, str]) -> None:
    """Print the figures of a group, of each of its modules, and its survivors."""
    modules: dict[str, dict[str, str]] = {}
    for name, state in sorted(found.items()):
        modules.setdefault(name.rpartition(".")[0], {})[name] = state
    for title, part in [(group, found), *((f"  {module}", modules[module]) for module in modules if len(modules) > 1)]:
        counts = Counter(part.values())
        listed = ", ".join(f"{count} {state}" for state, count in counts.most_common())
        print(f"{title}: {score(part):.1f} % of {len(part)} ({listed})")
    for name, state in sorted(found.items()):
        if state in UNNOTICED:
            print(f"  {state}: {name}")


def main() -> int:
    """Test a sample of mutants of every group; return 1 if a score is too low."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)} (default: all)")
    options.add_argument("--most", type=int, default=1000, help="mutants in all (default: %(default)s)")
    given = options.parse_args()
    groups = given.groups or list(GROUPS)
    folders = {group: prepare(group) for group in groups}
    names = []
    for group, folder in folders.items():
        # Makes all mutants and determines which tests reach them. It then fails, because no mutant matches.
        mutmut(folder, "run", "--max-children", "1", "no such mutant", may_fail=True)
        names += [(group, name) for name in sorted(states(folder))]
    sample = sorted(random.Random(len(names)).sample(names, min(given.most, len(names))))
    print(f"{len(names)} mutants, {len(sample)} tested", flush=True)
    low = False
    for group, folder in folders.items():
        chosen = [name for owner, name in sample if owner == group]
        if not chosen:
            continue
        mutmut(folder, "run", "--max-children", "2", *chosen)
        known = states(folder)
        found = {name: known[name] for name in chosen}
        if "not checked" in found.values():
            raise SystemExit(f"{group}: mutmut did not complete")
        report(group, found)
        print(f"  {cpu_time() / 60:.1f} CPU minutes so far", flush=True)
        low |= score(found) < LEAST_SCORE
    print(f"required: {LEAST_SCORE:g} %")
    return int(low)


def cpu_time() -> float:
    """Return the seconds of processor time of all child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

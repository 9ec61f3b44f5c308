# SPDX-License-Identifier: Apache-2.0
"""opwest does not evaluate input, pass text to a shell, or unpickle."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *("os.system", "os.popen", "os.spawnl", "os.spawnv", "os.execl", "os.execlp", "subprocess.getoutput"),
    *("subprocess.getstatusoutput", "pickle.load", "pickle.loads", "marshal.loads", "shelve.open", "dill.loads"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "asyncio.create_subprocess_shell", "jinja2.Template"),
}
# `__init__` of opwest's own classes, from the names of their fields, as dataclasses does.
SAFE = {"records.py: exec()"}
KEYWORDS = {"shell": True, "allow_pickle": True}


def sources() -> list[Path]:
    found = [path for folder in ("generator", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert len(found) > 150
    return found


def faults(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        safe = name == "yaml.load" and any(re.search("(Core|Safe)Loader", ast.unparse(one)) for one in given)
        found += [f"{name}()"] if name in CALLS and not safe else []
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg in KEYWORDS and not (isinstance(value, ast.Constant) and value.value is False):
                found.append(f"{name}({keyword.arg}={ast.unparse(value)})")
    return [f"{path.name}: {one}" for one in found]


def test_project_data_is_not_evaluated() -> None:
    assert {fault for path in sources() for fault in faults(path)} == SAFE


def test_evaluation_is_detected(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    calls = [
        "eval('1')",
        "run('x', shell=True)",
        "run('x', shell=flag)",
        "os.system('x')",
        "np.load(f, allow_pickle=1)",
    ]
    bad.write_text("\n".join([*calls, "np.load(f, allow_pickle=False)", "run(['x'], shell=False)"]))
    assert len(faults(bad)) == 5

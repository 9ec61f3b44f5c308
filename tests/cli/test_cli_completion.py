# SPDX-License-Identifier: Apache-2.0
"""Completion: the candidates of a command line, and the shells that ask for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from requirements_support import need

pytestmark = pytest.mark.slow

CANDIDATES = {
    "opwest gen": {"generate"},
    "opwest c": {"check", "call", "completion"},
    "opwest run app --pro": {"--profile"},
    "opwest import m.tflite --max": {"--max-flash", "--max-ram"},
    "opwest import mlf m.tar --te": {"--tensor"},
    "opwest import m.cc --arr": {"--array"},
    "opwest import m.tflite --optimize r": {"ram"},
    "opwest bundle ro": {"roll-back"},
    "opwest bundle install x.bundle --tra": {"--transport"},
    "opwest init a.o --target cortex-m5": {"cortex-m55", "cortex-m55f", "cortex-m55f-softfp", "cortex-m52"},
    "opwest init 'a b.o' --mod": {"--model"},
}


@pytest.mark.parametrize("line", CANDIDATES)
def test_candidates(line):
    script = "import os; os.dup2(1, 8); from opwest.cli.main import main; main()"
    variables = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, text=True
    )
    found = {word.strip() for word in done.stdout.splitlines()}
    expected = CANDIDATES[line]
    assert found == expected if "cortex" not in line else found & expected, done.stderr


COMMANDS = {
    "bash": """eval "$(opwest completion bash)"
COMP_LINE="opwest gen"; COMP_POINT=10; COMP_WORDS=(opwest gen); COMP_CWORD=1; COMP_TYPE=9
$(complete -p opwest | sed 's/.*-F \\([^ ]*\\).*/\\1/') opwest gen opwest; echo "${COMPREPLY[@]}" """,
    "zsh": """autoload -U compinit; compinit -u -d $TMPDIR/zcompdump
eval "$(opwest completion zsh)"; echo $_comps[opwest]""",
    "fish": """opwest completion fish | source; complete -C "opwest gen" """,
}


@pytest.mark.parametrize(("shell", "expected"), [("bash", "generate"), ("zsh", "argcomplete"), ("fish", "generate")])
def test_shells(shell, expected, tmp_path):
    """zsh completes only at a terminal: the test shows that it has the function."""
    need(shell)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": path}
    done = subprocess.run([shell, "-c", COMMANDS[shell]], env={**os.environ, **home}, capture_output=True, text=True)
    assert expected in done.stdout, done.stdout + done.stderr

# SPDX-License-Identifier: Apache-2.0
"""`make demo`: the digits example from C operators to classified images, on the host and, if available, in Zephyr."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from demo_steps import Workspace, build_and_run, find_workspace, last_match, step

EXAMPLE = Path("examples", "digits")  # every command runs at the top of the repository
APPLICATION = Path("build", "digits")
BUILD = Path("build", "zephyr")
ACCURACY = re.compile(r"accuracy: \d+\.\d\d %")


def main() -> int:
    """Run the steps; the last lines are the accuracy and suggested commands."""
    opwest = [sys.executable, "-m", "opwest"]
    step("compiling the operators", [sys.executable, str(EXAMPLE / "compile_operators.py")], show=True)
    step(
        "generating the application",
        [*opwest, "generate", str(EXAMPLE / "manifest.yaml"), "-o", str(APPLICATION)],
        show=True,
    )
    accuracy = last_match(
        ACCURACY, step("running it on this machine", [*opwest, "run", str(APPLICATION), "--host"]), "accuracy"
    )
    print(f"   {accuracy}")
    workspace = find_workspace()
    if workspace is not None:
        console = build_and_run(workspace, workspace.simulator, APPLICATION, BUILD, ACCURACY)
        on_zephyr = last_match(ACCURACY, console, "accuracy")
        if on_zephyr != accuracy:
            raise SystemExit(f"error: result on native_sim: {on_zephyr!r}, on the host: {accuracy!r}")
        print(f"   {on_zephyr}")
    print(accuracy)
    show_next(workspace)
    return 0


def show_next(workspace: Workspace | None) -> None:
    """Print suggested commands."""
    print("next, for example:")
    print("   .venv/bin/opwest check examples/digits/manifest.yaml")
    print("   .venv/bin/opwest inspect examples/digits/objects/*/*")
    if workspace is not None:
        print("   west build -p -b qemu_cortex_m3 -d build/qemu build/digits && west build -d build/qemu -t run")
    else:
        print("   west build -b native_sim/native/64 build/digits     (in a Zephyr workspace)")


if __name__ == "__main__":
    sys.exit(main())

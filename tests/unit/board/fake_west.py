# SPDX-License-Identifier: Apache-2.0
"""A workspace with a script as its west: it records its calls and behaves as configured in its directory."""

import json
import sys
from pathlib import Path

from opwest.zephyr.workspace import Workspace

_SCRIPT = """#!{python}
import json, pathlib, sys, time
top = pathlib.Path({top!r})
words = sys.argv[1:]
with open(top / "calls.json", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
behaviour = json.loads((top / "behaviour.json").read_text())
build = pathlib.Path(words[words.index("-d") + 1])
verb = "run" if "run" in words else "configure" if "--cmake-only" in words else words[0]
print("-- west:", verb)
if verb in ("configure", "build"):
    (build / "zephyr").mkdir(parents=True, exist_ok=True)
    (build / "zephyr" / ".config").write_text(behaviour["config"])
    (build / "zephyr" / "zephyr.dts").write_text(behaviour["dts"])
    for name in ("build.ninja", "CMakeCache.txt"):
        (build / name).touch()
    print("-- Build files have been written to:" if "--" in words and behaviour.get("fails") != "configure" else "")
print(behaviour.get(verb, ""), flush=True)
if verb == "run":
    time.sleep(behaviour.get("run_ends", 60))
sys.exit(behaviour.get("fails") == verb)
"""

DTS = """
/ {
\tchosen {
\t\tzephyr,console = &uart7;   /* in board.dts:1 */
\t\tzephyr,sram = &sram0;
\t};
};
"""
SMP = "CONFIG_OPWEST_SERVICE=y\nCONFIG_OPWEST_SERVICE_SMP=y\n"
UART = SMP + "CONFIG_MCUMGR_TRANSPORT_UART=y\n"
NATIVE = "CONFIG_ARCH_POSIX=y\nCONFIG_OPWEST_SERVICE=y\nCONFIG_OPWEST_SERVICE_SHELL=y\n"
QEMU = SMP + "CONFIG_QEMU_TARGET=y\n"


class FakeWest:
    """The workspace; `tell` configures the behaviour of its west."""

    def __init__(self, top: Path) -> None:
        self.top = top
        west = top / ".venv" / "bin" / "west"
        west.parent.mkdir(parents=True)
        west.write_text(_SCRIPT.format(python=sys.executable, top=str(top)))
        west.chmod(0o755)
        (top / ".west").mkdir()
        (top / "zephyr").mkdir()
        (top / "modules" / "lib" / "zcbor" / "zephyr").mkdir(parents=True)
        (top / "modules" / "lib" / "zcbor" / "zephyr" / "module.yml").touch()
        (top / "zephyr" / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n")
        self.workspace = Workspace(top / "zephyr")
        self.west = str(west)
        self.tell()

    def tell(self, config: str = UART, dts: str = DTS, **what: object) -> None:
        (self.top / "behaviour.json").write_text(json.dumps({"config": config, "dts": dts, **what}))

    @property
    def calls(self) -> list[list[str]]:
        """Return the calls since the previous request."""
        file = self.top / "calls.json"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

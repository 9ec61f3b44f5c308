# SPDX-License-Identifier: Apache-2.0
"""The demo, src/main.c: merged while it is the demo, left when the user replaced it, never full of conflicts."""

import re
from pathlib import Path

import projects
import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.project.merge import YOURS
from update_support import change, source_and_app, update

OWN = """\
#include <stdio.h>
#include <minimal.h>

#ifdef __ZEPHYR__
#include <minimal_devicetree.h>
#endif

MINIMAL_WORKSPACE_DEFINE(workspace);
static const struct minimal_devices devices = MINIMAL_DEVICES_DT_INIT;

int main(void)
{
	int rc = minimal_open(&workspace, &devices);

	printf("%d\\n", rc);
	return 0;
}
"""
NOTE = "src/main.c: note: yours, not merged: it no longer contains the generated demo"


def indented(text):
    """Return C with four spaces in place of tabs and braces at the ends of lines, as formatters write it."""
    return re.sub(r"\n[ \t]*\{\n", " {\n", text).replace("\t", "    ")


def edited(text):
    return text.replace("run returned %d", "result %d").replace(
        "int main(void)\n{\n", "int main(void)\n{\n\tgreet();\n"
    )


DEMOS = {
    # The change of the user: the state, the changed files, the remark and whether the user's text remains.
    "as generated": (lambda text: text, "updated", "written", ""),
    "edited": (edited, "updated", "merged", ""),
    "line ends": (lambda text: text.replace("\n", "\r\n"), "updated", "written", ""),
    "formatted": (indented, "updated", "written", ""),
    "formatted and edited": (lambda text: indented(edited(text)), "conflicts", "kept", "cannot be merged"),
    "replaced": (lambda text: OWN, "updated", "kept", NOTE),
    "replaced and formatted": (lambda text: indented(OWN), "updated", "kept", NOTE),
    "empty": (lambda text: "", "updated", "kept", NOTE),
    "with a copy": (lambda text: f"#if 0\n#endif\n{OWN}\n/*\n{text.replace('*/', '')}*/\n", "updated", "kept", NOTE),
}


@pytest.mark.parametrize(("made", "state", "list_", "remark"), DEMOS.values(), ids=DEMOS)
def test_demo(made, state, list_, remark, tmp_path):
    manifest, app = source_and_app(tmp_path)
    demo = app / "src/main.c"
    before = made(demo.read_bytes().decode())
    demo.write_bytes(before.encode())
    change(manifest, "  outputs: {y:", "  outputs: {negated:")
    change(manifest, "args: [x, y]", "args: [x, negated]")
    if remark == NOTE:  # generate leaves it too, without the hint to merge it
        faults = Diagnostics()
        projects.generate([manifest], app, vendored=False, faults=faults)
        told = "\n".join(map(str, faults.in_order()))
        assert NOTE in told and "differs: README.md\n" in told, told
    outcome, told = update(app)
    after = demo.read_bytes().decode()
    assert (outcome.state, remark in told, "\n" in told.strip() and remark == NOTE) == (state, True, False), told
    assert "src/main.c" in getattr(outcome.result, list_)
    assert YOURS not in after
    assert (after == before) == (list_ == "kept")
    assert ("negated" in after) == (list_ != "kept")
    assert [path.name for path in Path(app / "src").iterdir()].count("main.c.opwest-new") == (state == "conflicts")
    if list_ == "merged":
        assert "greet();" in after and "result %d" in after
    outcome, told = update(app)
    assert (outcome.state, told) == ("unchanged", ""), "once"

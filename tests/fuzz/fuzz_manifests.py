# SPDX-License-Identifier: Apache-2.0
"""Readers of manifests: YAML alone, and all stages from the text to the rendered project."""

import os
from collections.abc import Sequence
from pathlib import Path

from fuzz_readers import Read, Reader
from fuzz_yaml import mutate_yaml
from golden_support import GOLDEN
from opwest.api.summary import summary_of
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.cli.check import summary
from opwest.manifest.yaml_reader import read_yaml
from opwest.project.lock import Lock
from opwest.render.project_files import project_record, render_project
from opwest.runs.harness import own_renderer
from opwest.zephyr.runtime import vendored_files
from projects import check

_PROJECTS = ("minimal", "many_kinds", "devices", "asynchronous", "vectors")


def words(faults: Diagnostics) -> str:
    """Return the diagnostics without variable parts; reject diagnostics without useful text."""
    found = []
    for one in faults:
        assert one.message.strip(), "a diagnostic without a message"
        assert len(str(one)) < 6_000, f"a message of {len(str(one))} characters"
        assert "Traceback" not in one.message and "object at 0x" not in str(one), one
        assert str(one).isprintable() or "\n" in str(one) or "\t" in str(one), "an unprintable message"
        found.append(" ".join(word for word in one.message.split() if word.isalpha() and word.islower()))
    return "|".join(sorted(set(found)))


def _seeds() -> Sequence[bytes]:
    return [(GOLDEN / name / "manifest.yaml").read_bytes() for name in _PROJECTS]


def _small() -> Sequence[bytes]:
    texts = ("a: &x [1, 2.5, 0x1f, .inf, ~]\nb: *x\n", 'c: "\\u00e4\\n"\nd: |\n  text\n  more\ne: >-\n  folded\n')
    texts += ("? complex\n: {a: [b, {c: !!str 1}]}\n", "%YAML 1.2\n---\nversion: 1 # remark\n...\n")
    return [text.encode() for text in texts] + [_seeds()[0]]


def _start_yaml(_folder: Path) -> Read:
    def read(content: bytes) -> str:
        faults = Diagnostics()
        found = read_yaml(content, "m.yaml", faults)
        assert (found is None) == faults.has_errors or found is not None
        return words(faults)

    return read


def _start_manifest(folder: Path) -> Read:
    """Read manifests beside the files of all golden projects, as `opwest check` does, and render valid ones."""
    for name in _PROJECTS:
        for path in sorted((GOLDEN / name).rglob("*")):
            inner = path.relative_to(GOLDEN / name)
            if path.is_file() and inner.name != "manifest.yaml":
                (folder / inner).parent.mkdir(parents=True, exist_ok=True)
                (folder / inner).write_bytes(path.read_bytes())
    os.chdir(folder)
    manifest = Path("mutated.yaml")
    manifest.write_bytes(b"")

    def read(content: bytes) -> str:
        faults = Diagnostics()
        manifest.write_bytes(content)
        try:
            planned = check([manifest], faults)
        except OpwestError as error:
            assert error.diagnostics
            assert str(folder) not in str(error), "an absolute path"
            return words(faults)
        for model, plan in planned:
            summary(summary_of(model, plan))
        runtime = vendored_files([model for model, _ in planned])
        files = render_project(own_renderer(), planned, runtime, None, layout="application")
        assert len({str(file.path) for file in files}) == len(files)
        Lock(project_record(planned, vendored=True, metadata="c")).to_bytes()
        return "rendered " + words(faults)

    return read


READERS = (Reader("yaml", _small, _start_yaml, mutate_yaml), Reader("manifest", _seeds, _start_manifest, mutate_yaml))

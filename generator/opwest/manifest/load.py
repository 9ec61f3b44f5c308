# SPDX-License-Identifier: Apache-2.0
"""Load one manifest: YAML text, version, schema. `opwest.model` resolves the result."""

from __future__ import annotations

import io
from collections.abc import Mapping as Contents
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opwest.base import commands, path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import counted
from opwest.manifest.located import Mapping
from opwest.manifest.placeholders import MARK, report_placeholders
from opwest.manifest.schema import check_schema, check_version, expected_at
from opwest.manifest.yaml_reader import read_yaml

if TYPE_CHECKING:
    from opwest.manifest.error_recovery import Readings

MAX_BYTES = 64 << 20
"""Bytes. A manifest with 10,000 operators has about 4 MiB."""


class Loaded(NamedTuple):
    """The manifests whose shape can be resolved, with their paths."""

    whole: list[tuple[Path, Mapping]]
    """Those that conform to the schema."""
    faulty: list[tuple[Path, Readings]]
    """Those with reported faults of single values."""


def load_manifests(paths: Sequence[Path], texts: Contents[Path, bytes], faults: Diagnostics) -> Loaded:
    """Return the manifests whose shape can be resolved.

    `texts` are used in place of the contents of files.
    """
    loaded = Loaded([], [])
    for path in paths:
        manifest = load_manifest(path, faults, texts.get(path))
        if isinstance(manifest, Mapping):
            loaded.whole.append((path, manifest))
        elif manifest is not None:
            loaded.faulty.append((path, manifest))
    return loaded


_COMPILED = {b"!<arch>": "an archive", b"\x7fELF": "an object or an image"}
"""What users may take for a manifest, by the first bytes."""


_SUFFIXES = (".yaml", ".yml")
_START = 64
"""The bytes of which one is 0 in each file of a model."""


def _other(content: bytes, path: Path) -> tuple[str, str | None] | None:
    """Return what a file is that is no manifest, and how it becomes one; None if it may be one."""
    from opwest.objects.model_files import identify_content  # most manifests have their suffix
    from opwest.objects.model_kinds import MANIFEST

    found = identify_content(io.BytesIO(content), path)
    if found.what is None or found.what == MANIFEST:
        return None
    hint = f"opwest import {commands.quoted(str(path))} -o DIR writes one" if found.kind is not None else found.hint
    return found.what.partition(",")[0], hint


def load_manifest(path: Path, faults: Diagnostics, content: bytes | None = None) -> Mapping | Readings | None:
    """Return a manifest that conforms to the schema; its readings or None otherwise, with the errors in `faults`.

    `content` replaces the content of the file.
    """
    label = str(path)
    try:
        if path.is_dir():
            faults.error(
                "the manifest is a directory",
                Location(label),
                expected="a YAML file",
                hint=f"specify the file in it, for example {path / 'manifest.yaml'}",
            )
            return None
        if path.exists() and not path.is_file():
            faults.error("the manifest is not a regular file", Location(label), expected="a YAML file")
            return None
        if path.stat().st_size > MAX_BYTES:
            faults.error(
                f"the file has {counted(path.stat().st_size, 'byte')}",
                Location(label),
                expected=f"at most {MAX_BYTES} bytes",
            )
            return None
        text = path.read_bytes() if content is None else content
        what = next((what for magic, what in _COMPILED.items() if text.startswith(magic)), None)
        if what is not None:
            faults.error(
                f"the file is {what}, no manifest",
                Location(label),
                expected="a YAML file",
                hint=f"opwest init {path.name} drafts a manifest; opwest inspect {path.name} prints its content",
            )
            return None
        if (path.suffix not in _SUFFIXES or b"\0" in text[:_START]) and (found := _other(text, path)) is not None:
            faults.error(f"the file is {found[0]}, no manifest", Location(label), expected="a YAML file", hint=found[1])
            return None
    except OSError as error:
        faults.error(
            f"cannot read the manifest: {error.strerror}",
            Location(label),
            expected="a YAML file",
            hint=path_suggestions.hint_for(path),
        )
        return None
    faults.sources[label] = text
    manifest = read_yaml(text, label, faults)
    if manifest is None or not check_version(manifest, faults):
        return None
    # Few manifests contain the mark; in quoted text it can be escaped.
    may_have_marks = MARK.encode() in text or b"\\" in text
    marks = report_placeholders(manifest, faults, expected_at) if may_have_marks else set()
    if check_schema(manifest, faults, marks):
        return None if marks else manifest
    if marks:
        return None
    from opwest.manifest.error_recovery import readings_of  # only for faulty manifests

    return readings_of(manifest)

# SPDX-License-Identifier: Apache-2.0
"""`--metadata=llvm`: the metadata module of every model, compiled to one object per target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.diagnostics import Diagnostics
from opwest.model.crt_table import system_library
from opwest.render.application import Planned

MetadataObjects = Mapping[tuple[str, str], bytes]
"""The object of each model and target, by their names."""


def compile_metadata(planned: Sequence[Planned], faults: Diagnostics) -> MetadataObjects:
    """Return the metadata objects; report why one cannot be generated."""
    from opwest.llvm.api import compile_many, is_available, missing
    from opwest.llvm.facts import CompileJob, LlvmError
    from opwest.render.llvm.module import render_ir

    if not is_available():
        fault = missing()
        faults.error("--metadata=llvm: " + fault.message, expected=fault.expected, hint=fault.hint)
        return {}
    keys: list[tuple[str, str]] = []
    jobs: list[CompileJob] = []
    library = system_library([model for model, _ in planned])
    for model, plan in planned:
        for build in model.builds:
            if build.target is None:
                continue  # with_metadata_targets reported it
            if build.target.llvm is None:
                faults.error(
                    f"--metadata=llvm: target {build.target.name!r} has no parameters for LLVM",
                    model.location,
                    expected="llvm: {triple: ..., cpu: ...} in the target",
                )
            else:
                keys.append((model.name, build.target.name))
                text = render_ir(model, plan, build.target, library)
                jobs.append(CompileJob(text.encode(), build.target.llvm, name=f"the metadata of {model.name}"))
    objects = {}
    for key, result in zip(keys, compile_many(jobs), strict=True):
        if isinstance(result, LlvmError):
            faults.error(
                f"--metadata=llvm: target {key[1]!r}: {result.message}", expected=result.expected, hint=result.hint
            )
        else:
            objects[key] = result
    return objects

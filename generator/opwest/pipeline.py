# SPDX-License-Identifier: Apache-2.0
"""The pipeline: each stage uses only the results of earlier stages."""

from __future__ import annotations

from opwest.base.diagnostics import Diagnostics
from opwest.base.timing import stage
from opwest.manifest.load import load_manifests
from opwest.model.inputs.files import inspect_objects
from opwest.model.readers.cross_model import check_together
from opwest.model.readers.resolve import resolve
from opwest.model.readers.variants import check_variants, contexts_of
from opwest.model.types.model import bases
from opwest.plan.memory import plan_model
from opwest.project.request import Examination, Project, Request, Stage
from opwest.project.store import check_output, store, store_inputs, twister_names
from opwest.zephyr.checks import check_zephyr


def run(request: Request, faults: Diagnostics, last: Stage = "write") -> Project:
    """Process the manifests in all stages up to `last`, and report every error.

    Raises OpwestError before models with faults are rendered, and before a project with faults is written.
    """
    if last == "write":
        check_output(request)
    templates = None
    if last != "plan" or request.template is not None:  # a check imports nothing that renders
        from opwest.project.templates import read_templates

        templates = read_templates(request.template, faults)
    with stage("load manifests"):
        manifests, faulty = load_manifests(request.manifests, request.texts, faults)
    for path, readings in faulty:
        from opwest.model.readers.error_recovery import check_readings

        with stage("check faulty manifests"):
            check_readings(readings, path.parent, request.zephyr.boards, faults)
    contexts = [context for path, manifest in manifests for context in contexts_of(manifest, path.parent, faults)]
    with stage("inspect objects"):
        objects = [inspect_objects(context) for context in contexts]
    with stage("check models"):
        models = [
            resolve(context, inspected, request.zephyr.boards, request.planner)
            for context, inspected in zip(contexts, objects, strict=True)
        ]
        check_together(bases(models), faults)
        check_variants(models, faults)
        check_zephyr(models, request.zephyr, faults)
    if request.metadata == "llvm" and not faults.has_errors:  # otherwise objects can be missing
        from opwest.project.metadata_objects import with_metadata_targets

        models = with_metadata_targets(models, request, faults)
    with stage("plan memory"):
        planned = [plan_model(model, context.faults) for model, context in zip(models, contexts, strict=True)]
    examinations = [Examination(*plan, *context.seen) for plan, context in zip(planned, contexts, strict=True)]
    store_inputs(request, examinations, templates)
    if last == "plan" or templates is None:
        return Project(examinations)

    from opwest.project.metadata_objects import compile_metadata
    from opwest.project.store import check_portable
    from opwest.render.project_files import project_record, render_project
    from opwest.render.templates.renderer import Renderer
    from opwest.zephyr.runtime import vendored_files

    render = Renderer(templates, faults)
    faults.raise_if_errors()
    metadata = None
    if request.metadata == "llvm":
        with stage("compile metadata"):
            metadata = compile_metadata(planned, faults)
    faults.raise_if_errors()
    runtime = vendored_files(models) if request.vendored else None
    with stage("render files"):
        twister = twister_names(request)
        files = render_project(render, planned, runtime, metadata, layout=request.layout, twister=twister)
    check_portable(files, faults)
    faults.raise_if_errors()
    record = project_record(
        planned,
        templates.hashes,
        vendored=request.vendored,
        metadata=request.metadata,
        layout=request.layout,
        twister=twister,
    )
    project = Project(examinations, files, record)
    if last == "render":
        return project
    with stage("write files"):
        return project._replace(written=store(request, files, record, faults))

# SPDX-License-Identifier: Apache-2.0
"""`opwest report --fail-on`: limits on figures, their forms, messages and exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from golden_support import copy_project
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics
from opwest.report import data
from opwest.report.files import read_report, to_json
from opwest.report.limits import check_limits, parse_limits


@pytest.fixture
def project(tmp_path):
    """A manifest with an arena, and the report of its model."""
    (manifest,) = copy_project("asynchronous", tmp_path / "source")
    assert main(["report", str(manifest), "-o", str(tmp_path / "old.json")]) == 0
    return manifest


def shrink(path: Path, byte_count: int) -> int:
    """Make the arena of an earlier report smaller; return its new size."""
    report = read_report(path)
    (model,) = report.models
    first, *others = model.pools
    pools = (replace(first, planned=first.planned - byte_count), *others)
    path.write_text(to_json(replace(report, models=(replace(model, pools=pools),))), encoding="utf-8")
    return sum(pool.planned for pool in pools)


def run(capsys, manifest, *options):
    folder = manifest.parent.parent
    capsys.readouterr()
    code = main(["report", str(manifest), "-o", str(folder / "new.html"), *map(str, options)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_growth_above_the_limit_is_an_error_after_the_report(project, capsys):
    old = project.parent.parent / "old.json"
    before = shrink(old, 16)
    after = before + 16
    code, _, err = run(capsys, project, "--compare", old, "--fail-on", "arena=+15,constants=+0")
    assert code == 1
    name = read_report(old).models[0].name
    share = f"{16 / before * 100:+.1f}%"
    message = f"arena of model '{name}' grew from {before} to {after} bytes (+16, {share}), limit +15"
    assert err == f"opwest: error: {message}\n"
    assert (project.parent.parent / "new.html").is_file()
    assert run(capsys, project, "--compare", old, "--fail-on", "arena=+16")[0] == 0
    assert run(capsys, project, "--compare", old, "--fail-on", "arena=+10000%")[0] == 0
    code, _, err = run(capsys, project, "--compare", old, "--fail-on", "arena=+0.5%")
    assert code == 1 and err.endswith("limit +0.5%\n")


def test_json_lists_exceeded_limits(project, capsys):
    old = project.parent.parent / "old.json"
    before = shrink(old, 16)
    code, out, _ = run(capsys, project, "--compare", old, "--fail-on", "arena=+1", "--json")
    report = json.loads(out)
    assert code == 1 and report["ok"] is False
    name = read_report(old).models[0].name
    assert report["result"]["exceeded"] == [
        {"model": name, "figure": "arena", "where": "", "before": before, "after": before + 16, "limit": "+1"}
    ]


def test_absolute_limit_needs_no_earlier_report(project, capsys):
    model = read_report(project.parent.parent / "old.json").models[0]
    size = sum(pool.planned for pool in model.pools)
    assert run(capsys, project, "--fail-on", f"arena={size}")[0] == 0
    code, _, err = run(capsys, project, "--fail-on", f"arena={size - 1}")
    assert code == 1
    assert err == f"opwest: error: arena of model '{model.name}' is {size} bytes, above the limit of {size - 1}\n"


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("arena", "invalid --fail-on 'arena'"),
        ("arena=5%", "invalid --fail-on 'arena=5%'"),
        ("arena=-5", "invalid --fail-on 'arena=-5'"),
        ("arena=1,", "invalid --fail-on ''"),
        ("arena=\u0663", "invalid --fail-on 'arena=\u0663'"),
        ("arenas=+5", "unknown figure 'arenas' of --fail-on"),
        ("arena=+5", "--fail-on 'arena=+5' requires --compare"),
    ],
)
def test_invalid_limits(project, capsys, limit, message):
    code, _, err = run(capsys, project, "--fail-on", limit)
    assert code == 1
    assert err.startswith(f"opwest: error: {message}\n")
    if "invalid" in message:
        assert "expected: FIGURE=+PERCENT%, FIGURE=+NUMBER (since --compare) or FIGURE=NUMBER (at most)\n" in err
    if "unknown" in message:
        assert "hint: did you mean 'arena'?\n" in err
    assert not (project.parent.parent / "new.html").exists()


def test_figure_without_its_source_is_an_error(project, capsys):
    old = project.parent.parent / "old.json"
    name = read_report(old).models[0].name
    code, _, err = run(capsys, project, "--compare", old, "--fail-on", "flash=+0,time=+5%")
    assert code == 1
    assert f"error: model '{name}' has no figure 'flash' for --fail-on\n" in err
    assert "hint: give the image of each report with --firmware\n" in err
    assert "hint: give the measurements of each report with --profile\n" in err


def report_of(*models: data.Model) -> data.Report:
    return data.Report("0", models)


def with_image(model: data.Model, flash: int, ram: int, source: str = "mps2/an385") -> data.Model:
    items = (data.ImageItem("conv", "code", flash // 2), data.ImageItem("w", "constant", 8))
    return replace(model, images=(data.Image(source, "arm", items, flash, ram),))


def found(limits: str, before: data.Report, after: data.Report) -> list[str]:
    faults = Diagnostics()
    check_limits(parse_limits([limits], faults, has_baseline=True), before, after, Path("old.html"), faults)
    return [str(one) for one in faults]


def test_images_are_compared_by_their_source(project):
    (model,) = read_report(project.parent.parent / "old.json").models
    before = report_of(with_image(model, 1000, 200))
    after = report_of(with_image(model, 1100, 200))
    assert found("flash=+9%", before, after) == [
        f"opwest: error: flash of model '{model.name}' in mps2/an385 grew from 1000 to 1100 bytes (+100, +10.0%), "
        "limit +9%"
    ]
    assert found("flash=+10%,ram=+0,footprint=+50", before, after) == []
    assert found("footprint=+49", before, after) == [
        f"opwest: error: footprint of model '{model.name}' in mps2/an385 grew from 508 to 558 bytes (+50, +9.8%), "
        "limit +49"
    ]
    other = report_of(with_image(model, 1100, 200, "mps3/an547"))
    assert found("ram=+0", before, other) == [
        f"old.html: error: the earlier report has no figure 'ram in mps3/an547' of model '{model.name}'\n"
        "  hint: give the image of each report with --firmware"
    ]


def test_each_measurement_of_a_board_is_compared(project):
    (model,) = read_report(project.parent.parent / "old.json").models
    fast, slow = (data.Results(f"{ns}.json", "mps2/an385", "emulated", (ns,), ()) for ns in (100, 900))
    for results in ((fast, slow), (slow, fast)):
        assert found("latency=500", report_of(model), report_of(replace(model, results=results))) == [
            f"opwest: error: latency of model '{model.name}' on mps2/an385 is 900 ns, above the limit of 500"
        ]


def test_new_and_removed_models(project):
    (model,) = read_report(project.parent.parent / "old.json").models
    other = replace(model, name="other")
    assert found("arena=+0", report_of(model), report_of(model, other)) == [
        "opwest: note: model 'other' is not in 'old.html': its limits of --fail-on with + have no effect"
    ]
    assert found("arena=+0", report_of(model, other), report_of(model)) == [
        "opwest: warning: model 'other' of 'old.html' is not in the report: it is not compared"
    ]

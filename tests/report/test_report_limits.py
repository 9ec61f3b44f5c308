# SPDX-License-Identifier: Apache-2.0
"""`opwest report --fail-on`: limits on figures, their forms, messages and exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from golden_support import copy_project
from opwest.base.diagnostics import Diagnostics
from opwest.cli.main import main
from opwest.reports import data
from opwest.reports.files import read_report, to_json
from opwest.reports.limits import check_limits, parse_limits
from report_support import report_of


@pytest.fixture
def old(tmp_path):
    """The report of a model with an arena."""
    (manifest,) = copy_project("asynchronous", tmp_path / "source")
    assert main(["report", str(manifest), "-o", str(tmp_path / "old.json")]) == 0
    return tmp_path / "old.json"


@pytest.fixture
def model(old):
    return read_report(old).models[0]


@pytest.fixture
def run(old, capsys):
    """Return a function that writes a new report with options; it returns exit code, stdout and stderr."""

    def call(*options):
        capsys.readouterr()
        manifest, page = (str(old.parent / name) for name in ("source/manifest.yaml", "new.html"))
        code = main(["report", manifest, "-o", page, *map(str, options)])
        return code, *capsys.readouterr()

    return call


def shrink(path, model):
    """Make the arena of an earlier report 16 bytes smaller; return its new size."""
    first, *others = model.pools
    pools = (replace(first, planned=first.planned - 16), *others)
    path.write_text(to_json(replace(read_report(path), models=(replace(model, pools=pools),))), encoding="utf-8")
    return sum(pool.planned for pool in pools)


def test_growth_above_the_limit_is_an_error_after_the_report(old, model, run):
    before = shrink(old, model)
    growth = f"grew from {before} to {before + 16} bytes (+16, {16 / before * 100:+.1f}%), limit"
    message = f"opwest: error: arena of model '{model.name}' {growth}"
    code, _, err = run("--compare", old, "--fail-on", "arena=+15,constants=+0")
    assert (code, err) == (1, f"{message} +15\n") and (old.parent / "new.html").is_file()
    assert run("--compare", old, "--fail-on", "arena=+16")[0] == 0
    assert run("--compare", old, "--fail-on", "arena=+10000%")[0] == 0
    code, _, err = run("--compare", old, "--fail-on", "arena=+0.5%")
    assert (code, err) == (1, f"{message} +0.5%\n")
    code, out, _ = run("--compare", old, "--fail-on", "arena=+1", "--json")
    report = json.loads(out)
    assert code == 1 and report["ok"] is False
    sizes = {"before": before, "after": before + 16}
    assert report["result"]["exceeded"] == [
        {"model": model.name, "figure": "arena", "where": "", **sizes, "limit": "+1"}
    ]


def test_absolute_limit_needs_no_earlier_report(model, run):
    size = sum(pool.planned for pool in model.pools)
    assert run("--fail-on", f"arena={size}")[0] == 0
    message = f"arena of model '{model.name}' is {size} bytes, above the limit of {size - 1}"
    code, _, err = run("--fail-on", f"arena={size - 1}")
    assert (code, err) == (1, f"opwest: error: {message}\n")


FIGURES = "arena, constants, code, state, footprint, flash, ram, time, latency"
FORMS = "\n  expected: FIGURE=+PERCENT%, FIGURE=+NUMBER (since --compare) or FIGURE=NUMBER (at most); "
FORMS += "bytes with B, KB (1000), KiB (1024), MB, MiB, GB or GiB, such as ram=16KiB\n"


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        *((text, f"invalid --fail-on '{text}'{FORMS}") for text in ("arena", "arena=5%", "arena=-5", "arena=\u0663")),
        *((text, f"invalid --fail-on '{text}'{FORMS}") for text in ("ram=1kib", "ram=1K", "ram=1KiB%", "ram=KiB")),
        ("time=5KiB", "--fail-on 'time=5KiB': 'time' is no number of bytes\n  hint: of time: ns, or the unit of the"),
        ("arena=1,", f"invalid --fail-on ''{FORMS}"),
        ("arenas=+5", f"unknown figure 'arenas' of --fail-on\n  expected: {FIGURES}\n  hint: did you mean 'arena'?\n"),
        ("arena=+5", "--fail-on 'arena=+5' requires --compare\n"),
    ],
)
def test_invalid_limits(old, run, limit, message):
    code, _, err = run("--fail-on", limit)
    assert code == 1 and err.startswith(f"opwest: error: {message}"), err
    assert not (old.parent / "new.html").exists()


def test_figure_without_its_source_is_an_error(old, model, run):
    code, _, err = run("--compare", old, "--fail-on", "flash=+0,time=+5%")
    assert code == 1
    assert f"error: model '{model.name}' has no figure 'flash' for --fail-on\n" in err
    assert "hint: give the image of each report with --firmware\n" in err
    assert "hint: give the measurements of each report with --profile\n" in err


def with_image(model: data.Model, flash: int, ram: int, source: str = "mps2/an385") -> data.Model:
    items = (data.ImageItem("conv", "code", flash // 2), data.ImageItem("w", "constant", 8))
    return replace(model, images=(data.Image(source, "arm", items, flash, ram),))


def found(limits: str, before: data.Report, after: data.Report) -> list[str]:
    faults = Diagnostics()
    check_limits(parse_limits([limits], faults, has_baseline=True), before, after, Path("old.html"), faults)
    return [str(one) for one in faults]


def test_images_are_compared_by_their_source(model):
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


@pytest.mark.parametrize(("unit", "size"), [("B", 1), ("KB", 1000), ("KiB", 1024), ("MB", 10**6), ("MiB", 1 << 20)])
def test_units_of_bytes(model, unit, size):
    within, above = report_of(with_image(model, 0, 3 * size)), report_of(with_image(model, 0, 3 * size + 1))
    assert found(f"ram=3{unit}", within, within) == []
    assert found(f"ram=3 {unit}", above, above) == [
        f"opwest: error: ram of model '{model.name}' in mps2/an385 is {3 * size + 1} bytes, above the limit of 3 {unit}"
    ]
    assert found(f"ram=+1{unit}", above, report_of(with_image(model, 0, 4 * size + 1))) == []


def test_figures_are_those_of_the_image(model):
    """Constants, code and state: without an image those of the inputs."""
    linked = with_image(model, 1000, 200)
    memory = (data.ImageItem("counter", "state", 4), data.ImageItem("buffer", "runtime", 16))
    linked = replace(linked, images=(replace(linked.images[0], memory=memory),))
    for figure, size in (("constants", 8), ("code", 500), ("state", 4), ("footprint", 508)):
        assert found(f"{figure}={size}", report_of(linked), report_of(linked)) == []
        (error,) = found(f"{figure}={size - 1}", report_of(linked), report_of(linked))
        assert f"{figure} of model '{model.name}' in mps2/an385 is {size} bytes, above" in error


def test_each_measurement_of_a_board_is_compared(model):
    fast, slow = (data.Results(f"{ns}.json", "nucleo", "board", (ns,), ()) for ns in (100, 900))
    for results in ((fast, slow), (slow, fast)):
        assert found("latency=500", report_of(model), report_of(replace(model, results=results))) == [
            f"opwest: error: latency of model '{model.name}' on nucleo is 900 ns, above the limit of 500"
        ]


def profiled(model: data.Model, clock: str, unit: str, mean: float) -> data.Model:
    run = data.Point("run", None, (), None, None, 1, mean, mean, mean)
    return replace(model, profiles=(data.Profile("p.json", "qemu_cortex_m3", clock, unit, 0, run, (), None, None),))


def test_instructions_that_qemu_counts_are_compared(model):
    before = report_of(profiled(model, "counted", "instructions", 1000))
    assert found("time=+5%", before, report_of(profiled(model, "counted", "instructions", 1050))) == []
    assert found("time=+5%", before, report_of(profiled(model, "counted", "instructions", 1051))) == [
        f"opwest: error: time of model '{model.name}' on qemu_cortex_m3 in instructions grew from 1000 to 1051 "
        "(+51, +5.1%), limit +5%"
    ]


@pytest.mark.parametrize("limit", ["time=+5%", "time=2000"])
@pytest.mark.parametrize(
    ("clock", "unit", "reason"),
    [
        ("host", "ns", "host time: it varies with the load of the machine"),
        ("emulated", "ticks", "QEMU: what is not counted in instructions varies with the load of the machine"),
        ("emulated", "instructions", "QEMU: what is not counted in instructions varies with the load of the machine"),
    ],
)
def test_times_that_vary_have_no_limit(model, limit, clock, unit, reason):
    same = report_of(profiled(model, clock, unit, 1000))
    assert found(limit, same, same) == [
        f"opwest: error: time of model '{model.name}' on qemu_cortex_m3 in {unit} cannot have a limit: {reason}\n"
        "  hint: measure on a board, or a profile in QEMU where the instructions are counted (docs/report.md)"
    ]


def test_latency_in_qemu_has_no_limit(model):
    results = (data.Results("r.json", "mps2/an385", "emulated", (100,), ()),)
    (error,) = found("latency=500", report_of(model), report_of(replace(model, results=results)))
    assert f"latency of model '{model.name}' on mps2/an385 cannot have a limit: QEMU: what is not counted" in error


def test_new_and_removed_models(model):
    other = replace(model, name="other")
    assert found("arena=+0", report_of(model), report_of(model, other)) == [
        "opwest: note: model 'other' is not in 'old.html': its limits of --fail-on with + have no effect"
    ]
    assert found("arena=+0", report_of(model, other), report_of(model)) == [
        "opwest: warning: model 'other' of 'old.html' is not in the report: it is not compared"
    ]

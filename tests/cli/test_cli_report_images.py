# SPDX-License-Identifier: Apache-2.0
"""The report of a linked image: its variant, and sizes that equal nm and the map file."""

import json
import shutil
from pathlib import Path

import pytest
from image_sizes import by_kind, check_sizes, sizes_by_nm
from linked_images import application, link
from requirements_support import need

ARM = "arm-none-eabi-"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    need("gcc")
    return application(tmp_path_factory.mktemp("linked"))


@pytest.fixture(scope="module")
def dsp(app):
    """An image with the variant dsp."""
    return link(app, "dsp", app.parent / "dsp")


def report_of(succeed, app, *options):
    output = app.parent / "report.json"
    output.unlink(missing_ok=True)
    done = succeed("report", app, "-o", output, *options)
    (model,) = json.loads(output.read_text())["models"]
    return model, done


@pytest.mark.parametrize("prefix", ["", ARM], ids=["host", "arm"])
def test_sizes_equal_nm_and_the_map_file(succeed, app, tmp_path, prefix):
    if prefix:
        need(f"{prefix}gcc")
    elf = link(app, "dsp", tmp_path / "build", prefix)
    model, _ = report_of(succeed, app, "--firmware", elf)
    (image,) = model["images"]
    assert (model["variant"], image["source"], image["map"]) == ("dsp", "mps2/an386", "zephyr.map")
    assert [pool["planned"] for pool in model["pools"]] == [96]
    found = check_sizes(model, elf, prefix)
    symbols, memory = sizes_by_nm(elf, prefix), by_kind(image, "memory")
    assert found["code"].keys() == {"widen", "add_packed"} and found["constant"] == {"packed": 32}
    assert found["kernel"].keys() == {"scaled"}, "static functions are in the figures"
    assert found["table"]["table"] == 12
    assert memory["pool"] == {"memory_fast": 96} and memory["workspace"] == {"memory": symbols["memory"][0]}
    of_run = memory["state"].keys() - {"doubled", "calls"}
    assert len(of_run) == 1 and memory["state"]["doubled"] == 8 and memory["state"]["calls"] == 4
    assert memory["stack"] == {"stack of main()": 512}
    if prefix:
        libraries = {item["object"]: item["name"] for item in image["items"] if item["kind"] == "library"}
        assert {"libgcc.a(_arm_muldf3.o)", "libgcc.a(_arm_muldivdf3.o)"} & libraries.keys(), libraries
        assert "libgcc.a(_arm_addsubsf3.o)" not in libraries, "main() calls it"
    else:
        assert "library" not in found


def test_limits_use_the_image(fail, succeed, app, dsp):
    arena = ("--firmware", dsp.parent.parent, "--fail-on")
    done = fail("report", app, "-o", app.parent / "report.html", *arena, "arena=95B,constants=0.03125KiB")
    assert done.err == "opwest: error: arena of model 'adder' is 96 bytes, above the limit of 95B\n"
    model, _ = report_of(succeed, app, "--firmware", dsp)
    (image,) = model["images"]
    total = sum(item["bytes"] for item in image["items"])
    code = sum(item["bytes"] for item in image["items"] if item["kind"] in ("code", "kernel"))
    limits = {"footprint": total, "flash": image["flash"], "ram": image["ram"], "code": code, "state": 20}
    assert limits["footprint"] < limits["flash"] and code > 100
    for figure, size in limits.items():
        succeed("report", app, "-o", "-", *arena, f"{figure}={size}B", "--format", "json")
        done = fail("report", app, "-o", app.parent / "report.html", *arena, f"{figure}={size - 1}")
        where = f"{figure} of model 'adder' in mps2/an386 is {size} bytes, above the limit of {size - 1}"
        assert done.err == f"opwest: error: {where}\n"


def test_the_report_of_another_variant_is_refused(fail, app, dsp):
    done = fail("report", app, "-o", app.parent / "report.html", "--firmware", dsp, "--variant", "mla")
    assert done.err == (
        f"{dsp}: error: the image has variant 'dsp' of model 'adder', the report variant 'mla'\n"
        "  expected: an image with variant 'mla'\n"
        "  hint: omit --variant to show the variant of an image; make one report for each variant\n"
    )
    done = fail("report", app, "-o", app.parent / "report.html", "--firmware", dsp, "--target", "cortex-m0")
    assert f"{dsp}: error: the image has variant 'dsp' of model 'adder', the report the base\n" in done.err
    base = link(app, None, app.parent / "base")
    done = fail("report", app, "-o", app.parent / "report.html", "--firmware", dsp, "--firmware", base)
    assert f"{base}: error: the image has the base of model 'adder', the report variant 'dsp'\n" in done.err


def test_the_image_of_an_older_generation_is_refused(fail, opwest, app, dsp, tmp_path):
    manifest = app.parent / "source" / "manifest.yaml"
    changed = tmp_path / "manifest.yaml"
    shutil.copytree(manifest.parent, tmp_path, dirs_exist_ok=True)
    changed.write_text(manifest.read_text().replace("fast: {size: 1KiB, align: 16}", "fast: {size: 1KiB, align: 32}"))
    done = fail("report", changed, "-o", tmp_path / "report.html", "--firmware", dsp)
    assert f"{dsp}: error: the image was built from another generation of model 'adder': its hash is " in done.err
    assert (
        "…, that of the application " in done.err
        and "hint: run 'opwest update', then build the image again" in done.err
    )
    changed.write_text(manifest.read_text().replace("model: adder", "model: other"))
    done = fail("report", changed, "-o", tmp_path / "report.html", "--firmware", dsp)
    assert done.err == (
        f"{dsp}: error: the image has no model of the application: it has adder\n  expected: other\n"
        "  hint: give the application that the image was built from\n"
    )
    text = manifest.read_text()
    start = text.index("  dsp:\n")
    changed.write_text(text[:start] + text[text.index("  mve:\n") :])
    done = fail("report", changed, "-o", tmp_path / "report.html", "--firmware", dsp)
    assert "the image has variant 'dsp' of model 'adder', which the application lacks\n" in done.err


def test_measurements_of_another_variant_are_refused(fail, app, dsp, tmp_path):
    result = {"model": "adder", "variant": None, "outputs": {}, "errors": {}, "latency_ns": [5], "clock": "host"}
    (tmp_path / "run.json").write_text(json.dumps({"result": result}))
    options = ("--firmware", dsp, "--profile", tmp_path / "run.json")
    done = fail("report", app, "-o", tmp_path / "report.html", *options)
    assert done.err == (
        f"{tmp_path / 'run.json'}: error: the measurements are of the base of model 'adder', the report is of "
        "variant 'dsp'\n  expected: measurements of variant 'dsp'\n"
        "  hint: measure the image of the report, or select the variant: --variant, --target or --firmware\n"
    )


def test_an_image_without_a_map_file(succeed, app, dsp, tmp_path):
    """Functions and data are those of symbols: the file symbols name the sources of static ones."""
    plain = tmp_path / "plain.elf"
    plain.write_bytes(dsp.read_bytes())
    model, done = report_of(succeed, app, "--firmware", plain)
    assert f"{plain}: note: the image has no map file (plain.map or zephyr_final.map): sizes are" in done.err
    with_map, _ = report_of(succeed, app, "--firmware", dsp)
    (image,), (complete,) = model["images"], with_map["images"]
    assert image["map"] is None
    kinds, whole = by_kind(image), by_kind(complete)
    assert {key: kinds[key] for key in ("code", "kernel", "constant")} == {
        key: whole[key] for key in ("code", "kernel", "constant")
    }
    own, others = (by_kind(one, "memory") for one in (image, complete))
    assert own == {kind: items for kind, items in others.items() if kind != "alignment"}


def test_map_file_of_another_image(fail, app, dsp, tmp_path):
    for name, text, message in (
        (
            "other.elf",
            dsp.with_suffix(".map").read_text().replace("\n.text ", "\n.text  0x1 0x2\n.old "),
            "it is of another",
        ),
        ("text.elf", "no map\n", "not a map file of GNU ld or lld"),
    ):
        (tmp_path / name).write_bytes(dsp.read_bytes())
        (tmp_path / name).with_suffix(".map").write_text(text)
        done = fail("report", app, "-o", tmp_path / "report.html", "--firmware", tmp_path / name)
        assert f"{name}: error: cannot read the image: its map file {Path(name).stem}.map: {message}" in done.err
        assert "hint: build again, or remove the map file: sizes are then those of symbols only" in done.err


def test_build_directories(succeed, fail, app, dsp, tmp_path):
    """Also those of sysbuild, whose images have directories of their own."""
    model, _ = report_of(succeed, app, "--firmware", dsp.parent.parent)
    assert model["images"][0]["source"] == "mps2/an386"
    done = fail("report", app, "-o", tmp_path / "report.html", "--firmware", tmp_path)
    assert done.err.startswith(f"{tmp_path}: error: cannot read the image: the directory has no zephyr/zephyr.elf\n")
    for name in ("mcuboot", "app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zephyr").symlink_to(dsp.parent)
    model, _ = report_of(succeed, app, "--firmware", tmp_path)
    assert model["variant"] == "dsp"
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "zephyr").symlink_to(dsp.parent)
    done = fail("report", app, "-o", tmp_path / "report.html", "--firmware", tmp_path)
    assert "the build directory has several images: app, net; name one of these directories" in done.err


def test_the_variant_without_an_image(succeed, fail, app):
    model, done = report_of(succeed, app)
    assert model["variant"] is None and list(model["variants"]) == ["mla", "dsp", "mve"]
    assert "adder: the base; others, by --variant: mla, dsp, mve\n" in done.out
    for option, variant in (
        (("--target", "cortex-m3"), "mla"),
        (("--target", "cortex-m55f-mve"), "mve"),
        (("--target", "cortex-m0"), None),
        (("--board", "mps2/an386"), "dsp"),
        (("--board", "mps2/an385"), "mla"),
        (("--variant", "mve"), "mve"),
    ):
        assert report_of(succeed, app, *option)[0]["variant"] == variant, option
    page = succeed("report", app, "-o", "-", "--variant", "mve").out
    assert "<b>Variant mve</b>, for cortex-m55f-mvei, cortex-m55f-mve." in page
    assert "<code>base</code> (all other targets)" in page
    output = app.parent / "report.html"
    done = fail("report", app, "-o", output, "--target", "cortex-m5")
    assert done.err.startswith("opwest: error: --target: unknown target 'cortex-m5'\n")
    done = fail("report", app, "-o", output, "--target", "cortex-m4", "--variant", "dsp")
    assert "error: --variant and --target exclude each other" in done.err
    done = fail("report", app, "-o", output, "--board", "no_such_board")
    assert "error: --board no_such_board: unknown board or processor" in done.err

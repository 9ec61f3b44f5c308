# SPDX-License-Identifier: Apache-2.0
"""`opwest tune --serial` with an image in QEMU behind a serial device: its clock is that of the emulator."""

import contextlib
import json
import os

import numpy as np
import pytest
import yaml
from cover import configured
from requirements_support import need
from zephyr_support import need_module

pytestmark = pytest.mark.zephyr

need("tflite", "smpclient", "qemu-system-arm")

from models.made import Model  # noqa: E402
from opwest.cli.main import main  # noqa: E402
from opwest.compiler.emission.function import VARIANTS, Variant  # noqa: E402
from opwest.compiler.ir.operations import Pool  # noqa: E402
from opwest.runs.connection import RunningImage  # noqa: E402
from opwest.runs.west import Build  # noqa: E402

BOARD = "mps2/an385"
"""Zephyr's configuration has the kernel's cycle counter, because QEMU has none in the DWT."""
CLOCK = ("-icount", "shift=5,align=off,sleep=off")
"""32 ns for each instruction. With the clock of this machine, its load would decide which variant is the fastest."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """An import of a model with a pool, a convolution and a fully connected layer."""
    folder = tmp_path_factory.mktemp("tune")
    model = Model()
    data = model.input("int8", (1, 8, 8, 4), 0.1, 3)
    window = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "VALID"}
    data = model.operator("MAX_POOL_2D", [data], ("int8", 0.1, 3), **window)
    random = np.random.default_rng(4)
    weights = model.constant(random.integers(-127, 128, (8, 1, 1, 4)).astype(np.int8), 0.02)
    data = model.operator("CONV_2D", [data, weights, None], ("int8", 0.1, -128), padding="SAME", stride_h=1, stride_w=1)
    dense = model.constant(random.integers(-127, 128, (10, 128)).astype(np.int8), 0.01)
    model.output(model.operator("FULLY_CONNECTED", [data, dense, None], ("int8", 0.2, 5)))
    (folder / "m.tflite").write_bytes(model.build())
    assert main(["import", str(folder / "m.tflite"), "-o", str(folder / "m"), "--vectors", "0", "-q"]) == 0
    return folder / "m"


@pytest.fixture
def tune(workspace, imported, monkeypatch, tmp_path, capsys):
    """Return a function that tunes on a board; flashing it starts QEMU behind its serial device."""
    need_module(workspace, "lib/zcbor")
    for name, value in workspace.opwest_environment(BOARD).items():
        monkeypatch.setenv(name, value)
    device = tmp_path / "serial"
    with contextlib.ExitStack() as running:

        def flash(build):
            running.close()
            machine = ["-M", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "pty"]
            kernel = ["-kernel", str(build.folder / "zephyr" / "zephyr.elf")]
            words = ["qemu-system-arm", *machine, *CLOCK, *kernel]
            image = running.enter_context(RunningImage(words, build.folder, os.environ))
            device.unlink(missing_ok=True)
            device.symlink_to(image.device(30))

        monkeypatch.setattr(Build, "flash", flash)

        def call(*words):
            capsys.readouterr()
            code = main(["tune", str(imported), "--board", BOARD, "--serial", str(device), "--json", *words])
            return code, json.loads(capsys.readouterr().out)

        yield call


@configured(board=BOARD)
def test_every_candidate_is_measured_and_the_import_uses_the_table(tune, imported, tmp_path):
    code, answer = tune()
    assert code == 0, answer
    result = answer["result"]
    counter = "the kernel's cycle counter at 25000000 Hz, configured for QEMU"
    assert result["source"].startswith(f"{BOARD}, {counter}, arm-none-eabi-gcc ")
    assert result["unmeasured"] == []
    table = yaml.safe_load((imported / "tuning.yaml").read_text())
    assert table["cores"]["cortex-m3"]["measured"] == result["source"]
    layers = table["cores"]["cortex-m3"]["layers"]
    assert sorted(key.split()[0] for key in layers) == ["convolution", "dense", "pool"]
    for key, costs in layers.items():
        assert "portable" in costs and len(costs) > 1, key
        assert all(cycles > 0 and bytes_of_code > 0 for cycles, bytes_of_code in costs.values()), key
    measured = {row["variant"] for one in result["layers"] for row in one["variants"]}
    assert measured == {name for one in layers.values() for name in one}
    # The import takes the fastest variants of the table, also if they are slow in the model of QEMU.
    for costs in layers.values():
        costs["portable"][0] = 1
    planted = tmp_path / "planted.yaml"
    planted.write_text(yaml.safe_dump(table))
    record = json.loads((imported / "import.json").read_text())
    model = imported / record["model"]
    for file in (imported / "tuning.yaml", planted):
        folder = tmp_path / file.stem
        assert main(["import", str(model), "-o", str(folder), "--vectors", "0", "--tuning", str(file), "-q"]) == 0
        [made] = json.loads((folder / "import.json").read_text())["models"]
        steps = {one["variant"]: one["steps"] for one in made["implementations"]}["mla"]
        assert all((step["kernel"] == "portable") == (file == planted) for step in steps)


@configured(board=BOARD)
def test_a_wrong_candidate_is_an_error(tune, imported, monkeypatch):
    right = next(one for one in VARIANTS[Pool] if one.name == "portable")

    def wrong(operation):
        call = right.render(operation)
        assert call is not None
        function = call.function
        names = ("base", "parameters", "helpers", "headers", "definitions")
        fields = {name: getattr(function, name) for name in names}
        result = next(one.name for one in function.parameters if one.direction == "out")
        body = f"\tint8_t *const planted = {result};\n{function.body}\tplanted[5] ^= 1;\n"
        return type(call)(type(function)(**fields, body=body), call.arguments, call.label)

    monkeypatch.setitem(VARIANTS, Pool, [*VARIANTS[Pool], Variant("mla-planted", wrong)])
    tables = [path.read_bytes() for path in imported.glob("tuning.yaml")]
    code, answer = tune()
    assert code == 1
    (fault,) = answer["diagnostics"]
    assert fault["message"].startswith("cannot measure: variant mla-planted of pool maximum int8 ")
    assert fault["message"].endswith(" is not equal to the portable one: a defect")
    assert fault["hint"] == "this is a defect of opwest, or of the package that adds the variant"
    assert tables == [path.read_bytes() for path in imported.glob("tuning.yaml")]

# SPDX-License-Identifier: Apache-2.0
"""Models as arrays of C sources through commands: names, choices, refusals, and what reads the file again."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from in_process import fail, opwest, succeed
from requirements_support import need

need("tflite", "ai_edge_litert", "cc")

from importers.vela_made import whole  # noqa: E402
from models.commands import dense  # noqa: E402
from models.onnx_support import Made  # noqa: E402
from opwest.imports.import_json import read_import_json  # noqa: E402

MODEL = dense("int8").build()
OTHER = dense("int8", results=3).build()


def array(content, name="g_kws_model_data", **places):
    """Return a source with a model as the projects of tflite-micro have it."""
    numbers = ",\n  ".join(
        ", ".join(f"0x{byte:02x}" for byte in content[at : at + 12]) for at in range(0, len(content), 12)
    )
    places = {"before": "", "size": "", "after": f"const int {name}_len = {len(content)};\n", **places}
    head = f'#include "model.h"\n{places["before"]}alignas(8) const unsigned char {name}[{places["size"]}]'
    return f"{head} = {{\n  {numbers}\n}};\n{places['after']}"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "kws.cc").write_text(array(MODEL))
    return tmp_path / "kws.cc"


def test_an_array_is_imported_as_its_file(source, tmp_path):
    portable = ("--kernels", "portable")
    out = succeed("import", source, "-o", tmp_path / "a", "--compare", "1", *portable).stdout
    assert "compared with the reference on 1 input, 2 results of operators: no difference" in out
    (tmp_path / "kws_model.tflite").write_bytes(MODEL)
    succeed("import", tmp_path / "kws_model.tflite", "-o", tmp_path / "b", *portable)
    of_array, of_file = (yaml.safe_load((tmp_path / name / "manifest.yaml").read_text()) for name in "ab")
    assert of_array == of_file and of_array["model"] == "kws_model"
    for name in ("constants.npz", "vectors.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    text = (tmp_path / "a/manifest.yaml").read_text()
    assert text.splitlines()[1].startswith("# Imported from array g_kws_model_data of kws.cc by `opwest import`.")
    digests = [json.loads((tmp_path / name / "import.json").read_text())["sha256"] for name in "ab"]
    assert digests[0] == digests[1]


def test_the_source_is_read_again(source, tmp_path):
    """`tune` imports the recorded file again, with the recorded array; comments may change, the model may not."""
    source.write_text(array(MODEL) + array(OTHER, "g_other"))
    succeed("import", source, "-o", tmp_path / "model", "--array", "g_other", "--vectors", "0")
    source.write_text("// moved\n" + source.read_text())
    assert read_import_json(tmp_path / "model").options.array == "g_other"
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    out = succeed("report", tmp_path / "app", "-o", tmp_path / "r.json").stdout
    assert "2 layers" in out
    source.write_text(array(MODEL) + array(MODEL, "g_other"))
    err = fail("tune", tmp_path / "model", "--core", "cortex-m4").stderr
    assert f"{source}: error: the model file is not the one that was imported" in err


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("g_kws_model_data", "data.cc", "kws_model"),
        ("g_model", "gesture.cc", "gesture"),
        ("irisModel", "a.h", "irisModel"),
        ("kTestConvModelData", "a.cc", "TestConvModel"),
        ("converted_model_tflite", "a.cc", "converted_model"),
        ("model_data", "model.ino", "model"),
    ],
)
def test_names(name, file, expected, tmp_path):
    (tmp_path / file).write_text(array(MODEL, name))
    succeed("import", tmp_path / file, "-o", tmp_path / "m", "--kernels", "portable", "--vectors", "0")
    assert yaml.safe_load((tmp_path / "m/manifest.yaml").read_text())["model"] == expected


def test_what_xxd_prints(tmp_path):
    numbers = ", ".join(f"0x{byte:02x}" for byte in MODEL)
    (tmp_path / "digits.inc").write_text(f"  {numbers}\n")
    succeed("import", tmp_path / "digits.inc", "-o", tmp_path / "m", "--kernels", "portable", "--vectors", "0")
    assert yaml.safe_load((tmp_path / "m/manifest.yaml").read_text())["model"] == "digits"


def test_an_array_of_another_format(tmp_path):
    made = Made()
    made.input(1, 4)
    content = made.ending_with("Relu", "x0").model().SerializeToString()
    words = ", ".join(map(str, np.frombuffer(content + bytes(-len(content) % 4), "<u4")))
    (tmp_path / "net.h").write_text(f"const uint32_t net[] = {{{words}}};\nconst int net_size = {len(content)};\n")
    succeed("import", tmp_path / "net.h", "-o", tmp_path / "m", "--exact", "--vectors", "0")
    assert json.loads((tmp_path / "m/import.json").read_text())["options"]["format"] == "onnx"


def test_an_array_of_vela(tmp_path):
    (tmp_path / "npu.cc").write_text(array(whole().build(), "g_npu_model"))
    succeed("import", tmp_path / "npu.cc", "-o", tmp_path / "m")
    text = (tmp_path / "m/manifest.yaml").read_text()
    assert "array g_npu_model of npu.cc" in text and yaml.safe_load(text)["model"] == "npu_model"


TWO = array(MODEL) + "\n" + array(OTHER, "g_other")
ALIKE = f"#ifdef LARGE\n{array(MODEL, 'm')}#else\n{array(OTHER, 'm')}#endif\n"
START = "1c 00 00 00 54 46 4c 33"
REFUSED = [
    (TWO, (), f"the file has 2 models: g_kws_model_data ({len(MODEL):,} bytes: "),
    (TWO, (), "\n  expected: --array g_kws_model_data or g_other\n"),
    (TWO, ("--array", "g_third"), "the file has no array 'g_third'\n  expected: --array g_kws_model_data or g_other\n"),
    (ALIKE, (), "expected: --array m:3 or m:"),
    (ALIKE, ("--array", "m"), "the file has 2 different arrays 'm'\n  expected: --array m:3 or m:"),
    ("const char a[] = {1, 2};\nchar b[4] = {0};\n", (), "no array of the file is a model: a (2 bytes: 01 02); b ("),
    ("const char a[] = {1, 2};\n", ("--array", "a"), "array a (2 bytes: 01 02) is no model\n"),
    (
        array(MODEL, size="9999"),
        (),
        f"array 'g_kws_model_data' is declared with 9999 elements and has {len(MODEL)} in its",
    ),
    (array(MODEL, after="const int g_kws_model_data_len = 7;"), (), "bytes, and 'g_kws_model_data_len' is 7\n  hint: "),
    (array(MODEL)[:4000], (), "array 'g_kws_model_data' has no closing brace: the file is truncated\n  hint: fetch"),
    (array(MODEL[:-100]), (), "the file is damaged: "),
    (
        'const char m[] = {\n#embed "m.tflite"\n};\n',
        (),
        "array 'm' has its content in the file 'm.tflite'\n  hint: opwest",
    ),
    ("int f(void) { return 0; }\n", (), "the file is a C source without a model\n"),
    (
        "int f(void) { return 0; }\n",
        ("--array", "m"),
        "the file has no array 'm'\n  expected: a C source with arrays\n",
    ),
]


@pytest.mark.parametrize(("text", "words", "message"), REFUSED)
def test_refusals(text, words, message, tmp_path):
    (tmp_path / "m.cc").write_text(text)
    err = fail("import", tmp_path / "m.cc", "-o", tmp_path / "m", *words).stderr
    assert message in err, err
    assert not (tmp_path / "m").exists()


def test_alternatives_of_conditions(tmp_path):
    (tmp_path / "m.cc").write_text(ALIKE)
    line = ALIKE[: ALIKE.rindex("m[]")].count("\n") + 1
    for chosen in (3, line):  # each branch has a length of its own
        words = ("--array", f"m:{chosen}", "--vectors", "0", "--kernels", "portable")
        succeed("import", tmp_path / "m.cc", "-o", tmp_path / f"m{chosen}", *words)
    (tmp_path / "same.cc").write_text(f"#ifdef A\n{array(MODEL, 'm')}#else\n{array(MODEL, 'm')}#endif\n")
    succeed("import", tmp_path / "same.cc", "-o", tmp_path / "same", "--vectors", "0")


def test_an_option_for_sources_only(tmp_path):
    (tmp_path / "m.tflite").write_bytes(MODEL)
    err = fail("import", tmp_path / "m.tflite", "-o", tmp_path / "m", "--array", "g_model").stderr
    assert "m.tflite: error: --array g_model: the file is no C source\n" in err
    code, _, err = opwest("import", "mlf", tmp_path / "m.tar", "-o", tmp_path / "m", "--array", "a")
    assert code == 2 and "unknown option '--array'" in err


def test_the_bytes_that_a_compiler_stores(source, tmp_path):
    """The source without its include, compiled: the array has the same bytes."""
    text = source.read_text().replace('#include "model.h"\n', "").replace("alignas(8)", "_Alignas(8)")
    (tmp_path / "a.c").write_text(text + "#include <stdio.h>\nint main(void)\n{\n\tfwrite(g_kws_model_data, 1, "
                                  "g_kws_model_data_len, stdout);\n\treturn 0;\n}\n")  # fmt: skip
    subprocess.run(["cc", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    assert subprocess.run([tmp_path / "a"], check=True, capture_output=True).stdout == MODEL
    assert Path(source).exists()

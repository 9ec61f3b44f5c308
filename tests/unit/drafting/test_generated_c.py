# SPDX-License-Identifier: Apache-2.0
"""Drafts of functions that a generator of C wrote, from the files of tests/generated_code.zip and changes of them."""

import zipfile

import pytest
from drafting_support import draft, drafted
from foreign_project import STORED
from objects_factory import compile_object
from opwest.base.diagnostics import OpwestError

TABLES = "{}(const float **in, float **out, int n)\n{{ out[0][0] = in[0][n]; }}\n"
CASADI = {
    "state": "float64 [2] in arg",
    "control": "float64 [1] in arg",
    "rate": "float64 [2] out res",
    "jacobian": "float64 [3] out res",
    "iw": "int64 nulls 1",
    "w": "float64 nulls 1",
    "mem": "int32 scalar",
}


def stored(name, folder, *changes):
    """Write a stored file with changes of its text."""
    with zipfile.ZipFile(STORED) as archive:
        text = archive.read(name).decode()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / name.split("/")[-1]
    path.write_text(text)
    return path


def arguments(manifest, operator):
    """Return the arguments of an operator in words."""
    found = {}
    for entry in manifest["operators"][operator]["args"]:
        words = [entry["dtype"], str(entry.get("shape", "scalar" if entry.get("scalar") else ""))]
        words += [f"nulls {entry['nulls']}" if "nulls" in entry else entry.get("direction", "in")]
        words = words[:2] if entry.get("scalar") else words
        found[entry["name"]] = " ".join(filter(None, [*words, entry.get("table")]))
    return found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", {}),
        (
            "#define casadi_real double",
            "#define casadi_real float",
            {"state": "float32 [2] in arg", "w": "float32 nulls 1"},
        ),
        ("*sz_w = 0", "*sz_w = 7", {"w": "float64 [7] scratch"}),
        ("*sz_iw = 0", "*sz_iw = 2", {"iw": "int64 [2] scratch"}),
        ("*sz_arg = 2", "*sz_arg = 5", {"arg_more": "float64 nulls 3 arg"}),
        ("*sz_res = 2", "*sz_res = 3", {"res_more": "float64 nulls 1 res"}),
        (
            "casadi_s0[3] = {2, 1, 1}",
            "casadi_s0[3] = {2, 3, 1}",
            {"state": "float64 [3, 2] in arg", "rate": "float64 [3, 2] out res"},
        ),
        ("casadi_s1[3] = {1, 1, 1}", "casadi_s1[4] = {0, 1, 0, 0}", {"control": "float64 nulls 1 arg"}),
        ('return "control"', 'return "w"', {"w_in": "float64 [1] in arg"}),
    ],
)
def test_casadi(tmp_path, old, new, expected):
    manifest = drafted(stored("oscillator.c", tmp_path, (old, new)))
    found = arguments(manifest, "oscillator")
    if "float" not in old + new:
        assert found == {name: words for name, words in (CASADI | expected).items() if name in found}
    assert expected.items() <= found.items() and len(found) >= len(CASADI)
    assert manifest["operators"]["oscillator"]["convention"] == "pointer-tables"
    assert manifest["run"]["steps"][0]["args"][-1] == 0
    assert "FILL_IN" not in str(manifest)


@pytest.mark.parametrize("old", ["#define casadi_int long long int", "*sz_w = 0", "{2, 1, 1}", 'return "state"'])
def test_casadi_in_another_form(tmp_path, old):
    """What the types of C contain is drafted, with marks."""
    manifest = drafted(stored("oscillator.c", tmp_path, (old, "")))
    assert list(arguments(manifest, "oscillator")) == ["arg0", "res0", "iw", "w", "mem"]
    assert "FILL_IN" in str(manifest)


def test_objects_of_casadi_and_faust(tmp_path):
    for name in ("oscillator", "echo"):
        compile_object(tmp_path, stored(f"{name}.c", tmp_path).read_text(), flags=["-g"], name=f"{name}.o")
    text = draft(tmp_path / "oscillator.o", tmp_path / "echo.o")
    assert "convention: pointer-tables  # CasADi: the object defines 'oscillator_work'" in text
    assert "oscillator_work_bytes: a part of CasADi's 'oscillator', which is the operator" in " ".join(text.split())
    manifest = drafted(tmp_path / "oscillator.o", tmp_path / "echo.o")
    assert list(manifest["operators"]) == ["oscillator", "computemydsp"]
    assert arguments(manifest, "oscillator")["arg0"] == "float64 FILL_IN in arg"
    assert arguments(manifest, "computemydsp") == {
        "dsp": "uint8 [16] inout",
        "count": "int32 scalar",
        "inputs0": "float32 FILL_IN in inputs",
        "outputs0": "float32 FILL_IN out outputs",
    }


def test_faust(tmp_path):
    """The number of channels and the size of the structure are in the source; a generator has no inputs."""
    path = stored("echo.c", tmp_path, ("return 1;", "return 2;"), ("int fSampleRate;", "int fSampleRate; double d[2];"))
    found = arguments(drafted(path), "computemydsp")
    assert found == {
        "dsp": "uint8 [32] inout",
        "count": "int32 scalar",
        "input0": "float32 FILL_IN in inputs",
        "input1": "float32 FILL_IN in inputs",
        "output0": "float32 FILL_IN out outputs",
        "output1": "float32 FILL_IN out outputs",
    }
    path = stored("echo.c", tmp_path, ("return 1;", "return 0;"), ("int fSampleRate;", "int *fSampleRate;"))
    found = arguments(drafted(path), "computemydsp")
    assert found["dsp"] == "uint8 FILL_IN inout" and found["inputs_none"] == "float32 nulls 1 inputs"


def test_exo_and_tinygrad(tmp_path):
    gemv = arguments(drafted(stored("gemv.c", tmp_path)), "gemv")
    assert gemv["ctxt"] == "uint8 nulls 1" and gemv["matrix"] == "float32 [4, 8] in"
    text = draft(
        stored("gemv.c", tmp_path, ("const float* matrix", "struct exo_win_2f32c matrix, const float *b")),
        stored("layer.c", tmp_path),
    )
    assert (
        "gemv: parameter 2 is a struct (struct exo_win_2f32c), a window of Exo"
        in " ".join(text.replace("#   ", "").split())
        and "a window of Exo: declare a tensor" in text
    )
    layer = {"data0_12": "float32 [12] out", "data1_32": "float32 [32] in", "data2_24": "float32 [24] in"}
    assert arguments(drafted(stored("layer.c", tmp_path)), "r_4_3_8") == layer
    sizes = stored("gemv.c", tmp_path, ("void *ctxt, ", "void *ctxt, int_fast32_t n, "))
    assert "whose type depends on the target: remove it with `partial_eval`" in " ".join(draft(sizes).split())


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("echo.c", ("\nvoid comp", "\nvoid metadatamydsp(MetaGlue* m) { }\nvoid comp"), "generate it with -light"),
        ("forest/main.c", ("", ""), "predict: TL2cgen's model adds to the result: write a C function"),
        (
            "layer.c",
            ("\nvoid r_", "typedef float f4 __attribute__((ext_vector_type(4)));\nvoid r_"),
            "generate with NOOPT=1",
        ),
    ],
)
def test_functions_that_need_another_form(tmp_path, name, change, reason):
    with pytest.raises(OpwestError) as caught:
        draft(stored(name, tmp_path, change))
    assert any(reason in (fault.hint or "") for fault in caught.value.diagnostics)


def test_tables_of_other_functions(tmp_path):
    (tmp_path / "f.c").write_text(
        "".join(TABLES.format(f"void {name}") for name in "fg").replace("**out", "**RESTRICT out")
    )
    manifest = drafted(tmp_path / "f.c")
    assert manifest["operators"]["f"]["convention"] == "pointer-tables"
    found = arguments(manifest, "f")
    assert found.pop("n") == "int32 scalar" and len({words.split()[-1] for words in found.values()}) == 2

# SPDX-License-Identifier: Apache-2.0
"""Models that a bundle cannot contain: each operator is reported at its line, all at once."""

import pytest
from bundle_images import HOST_SLOT, bundle, float_model, need_host, small_model
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.bundles.steps import step_results
from projects import check
from requirements_support import need

HEAD = """version: 1
model: small
objects:
{objects}operators:
  add:
    {{args: [{{name: a, dtype: int8, shape: [4]}}, {{name: b, dtype: int8, shape: [4], direction: out}}],
     returns: void{more}}}
run:
  inputs: {{x: {{dtype: int8, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: add, args: [x, y]}}]
"""
VECTORS = "tests: {vectors: vectors.npz}\n"


def adding(value: str, before: str = "") -> str:
    """Return a source whose operator writes a value."""
    return f"#include <stdint.h>\n{before}void add(const int8_t *a, int8_t *b) {{ b[0] = (int8_t)({value}); }}\n"


GOOD = adding("a[0]")


def manifest(folder, source, *, more="", entry="{files: [one.c]}", tests=VECTORS):
    text = HEAD.format(objects=f"  - {entry}\n", more=more) + tests
    return small_model(folder, text, {"one.c": source})


def refused(path, target="x86-64"):
    if target == "x86-64":
        need_host()
    with pytest.raises(OpwestError) as caught:
        bundle(path, target, HOST_SLOT)
    return [one for one in caught.value.diagnostics if one.severity == "error"]


def lines(found):
    return [(one.location.line if one.location else 0, one.message) for one in found]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            adding("other(a[0])", "int32_t other(int32_t);\n"),
            "'one.c' has the undefined symbol 'other': a bundle calls only its own functions",
        ),
        (
            # state that only the linked image shows
            adding(
                "a[0] + (*at())++",
                "#define KEPT static int32_t\nstatic int32_t *at(void) { KEPT count = 3; return &count; }\n",
            ),
            "'one.c' has writable data 'count.0' (4 bytes): a bundle has none",
        ),
        (
            # as `opwest check`
            adding("a[0] + rand()", "#include <stdlib.h>\n"),
            "one.c calls 'rand', which keeps state in static data",
        ),
        (
            f'{GOOD}__attribute__((constructor)) static void start(void) {{ __asm__ volatile(""); }}\n',
            "'one.c' has functions that run when a program starts, in '.init_array': a bundle has none",
        ),
    ],
)
def test_a_source_that_cannot_be_bundled(tmp_path, source, message):
    """The line is that of the entry in the manifest."""
    assert lines(refused(manifest(tmp_path, source))) == [(4, message)]


def test_symbols_that_only_unused_functions_need_are_no_error(tmp_path):
    need_host()
    source = GOOD + "int32_t other(int32_t);\nint32_t unused(void) { return other(1); }\n"
    assert bundle(manifest(tmp_path, source), "x86-64", HOST_SLOT)


def test_writable_data(tmp_path):
    """Also the state of a library, which the check of sources does not see; all at once."""
    state = "static int32_t count;\nstatic _Thread_local int32_t own = 3;\nint32_t table[9] = {1};\n"
    source = adding("a[0] + count++ + own++ + table[a[0]]++", state)
    path = manifest(tmp_path, source, entry="{files: [one.c], stateful: true}", more=", stateful: true")
    found = lines(refused(path))
    assert (4, "'one.c' may have writable state ('stateful: true'): a bundle has none") in found
    assert (6, "operator 'add' has writable state: a bundle has none") in found


def test_the_state_of_a_library_names_the_functions_between(tmp_path):
    need("arm-none-eabi-gcc")
    source = adding("strtol((const char *)a, 0, 10)", "#include <stdlib.h>\n")
    ((line, message),) = lines(refused(manifest(tmp_path, source), "cortex-m3"))
    assert line == 4
    assert message.startswith("'one.c' calls 'strtol', which needs writable data '")
    assert message.endswith(": a bundle has none")


def test_constants_in_a_section_of_their_own_are_in_the_image(tmp_path):
    need_host()
    table = '__attribute__((section("mine"))) static const int8_t table[] = "in a section";\n'
    source = adding("table[a[0] & 7]", table)
    assert b"in a section" in bundle(manifest(tmp_path, source), "x86-64", HOST_SLOT).content.image


def test_a_model_without_vectors(tmp_path):
    (found,) = refused(manifest(tmp_path, GOOD, tests=""))
    assert found.message == "model 'small' has no golden vectors: firmware refuses a bundle without them"
    assert found.location is not None
    assert found.location.line == 2


def test_steps_of_a_model_without_vectors(tmp_path):
    """Those that `opwest bundle FILE --check-steps` sends."""
    path = manifest(tmp_path, GOOD, tests="")
    faults = Diagnostics()
    ((model, _plan),) = check([path], faults)
    with pytest.raises(OpwestError, match="model 'small' has no golden vectors: firmware refuses a bundle without"):
        step_results(path, model, faults)


def test_a_long_name(tmp_path):
    path = manifest(tmp_path, GOOD)
    path.write_text(path.read_text().replace("model: small", f"model: {'m' * 48}"))
    (found,) = refused(path)
    assert "is too long for a bundle" in found.message


def test_a_handle_that_is_no_device(tmp_path):
    text = HEAD.format(objects="  - {files: [one.c]}\n", more=", device: {handle: 'const struct vendor *'}")
    text = text.replace("call: add,", "call: add, device: npu,") + VECTORS
    text += "devices:\n  npu: {handle: {type: 'const struct vendor *', expression: vendor_get, header: vendor.h}}\n"
    source = "#include <stdint.h>\nstruct vendor;\n"
    source += "void add(const int8_t *a, int8_t *b, const struct vendor *v) { b[0] = (int8_t)(a[0] + (v != 0)); }\n"
    found = refused(small_model(tmp_path, text, {"one.c": source}))
    message = "has a handle of type 'const struct vendor *', which a bundle cannot declare"
    assert any(message in one.message for one in found)


def test_libm_of_a_host_cannot_be_bundled(tmp_path):
    found = refused(float_model(tmp_path))
    assert (6, "'functions.c' has the undefined symbol 'expf': a bundle calls only its own functions") in lines(found)
    assert len(found) == 6


def test_a_compiler_that_fails(tmp_path):
    need("cc")
    found = refused(manifest(tmp_path, GOOD.replace("b[0] =", "b[0] = undeclared +")))
    assert "the compiler failed: cc " in found[0].message
    assert "undeclared" in found[0].message


def test_functions_of_tvm(tmp_path):
    """An operator with a workspace of TVM, and one that allocates by TVM's function."""
    head = HEAD.replace("returns: void{more}", "returns: status{more}")
    text = head.format(objects="  - {files: [one.c]}\n", more=", workspace: 64") + VECTORS
    source = "#include <stdint.h>\nvoid *TVMBackendAllocWorkspace(int, int, uint64_t, int, int);\n"
    source += "int32_t add(const int8_t *a, int8_t *b) { b[0] = *(int8_t *)TVMBackendAllocWorkspace(1, 0, 8, 2, 8); "
    source += "return a[0]; }\n"
    found = lines(refused(small_model(tmp_path, text, {"one.c": source})))
    assert found == [(6, "operator 'add' uses functions of TVM's runtime, which a bundle cannot call")]
    found = lines(refused(small_model(tmp_path, text.replace(", workspace: 64", ""), {"one.c": source})))
    assert found == [(4, "one.c calls TVMBackendAllocWorkspace, but no operator has a workspace")]


@pytest.mark.slow
def test_steps_need_a_model_that_runs_here(tmp_path):
    """The functions of the float model compile here, but their results are in memory of the caller."""
    need("cc")
    with pytest.raises(OpwestError) as caught:
        bundle(float_model(tmp_path), "cortex-m3", HOST_SLOT, steps=True)
    assert "no step of model 'functions' writes a whole tensor of the workspace" in str(caught.value)
    source = "#ifndef __arm__\n#error only for Arm\n#endif\n" + GOOD
    with pytest.raises(OpwestError) as caught:
        bundle(manifest(tmp_path, source), "cortex-m3", HOST_SLOT, steps=True)
    assert "--steps requires a model that runs on this machine" in str(caught.value)

# SPDX-License-Identifier: Apache-2.0
"""Wrong passes: the proof of an import names the pass and the operator, and nothing is written."""

import dataclasses

import numpy as np
import pytest
from requirements_support import need

need("tflite")

from models.made import Model  # noqa: E402
from models.test_unused_channels import Net  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.compiler.ir import movement  # noqa: E402
from opwest.compiler.ir import verify as rules  # noqa: E402
from opwest.compiler.ir.operations import ConvolutionSum, Elementwise, Pool  # noqa: E402
from opwest.compiler.lowering import passes, simplify  # noqa: E402
from opwest.compiler.lowering.builder import LOWERINGS  # noqa: E402
from opwest.compiler.output import checked as checker  # noqa: E402
from opwest.compiler.output import manifest  # noqa: E402
from opwest.compiler.request import Options  # noqa: E402
from opwest.compiler.selection import block, joins, segments  # noqa: E402
from opwest.imports import convert, prepare  # noqa: E402
from opwest.imports.convert import import_model  # noqa: E402
from opwest.imports.proof import prove  # noqa: E402

SCALE, ZERO = 0.05, -128
PLAIN = {"fused_activation_function": "NONE"}


@pytest.fixture
def model():
    """Two layers into a concatenation, a convolution, a difference, an activation."""
    made = Net(np.random.default_rng(5), 1, 12, 8, 6)
    first = made.convolution(made.data, 6)
    joined = made.concatenation(made.depthwise(first), made.convolution(first, 6))
    last = made.convolution(joined, 6)
    difference = made.operator("SUB", [first, last], ("int8", SCALE, ZERO), **PLAIN)
    made.output(made.operator("RELU6", [difference], ("int8", SCALE, ZERO)))
    return made


@pytest.fixture
def bottleneck():
    """Layers with more memory between them than before and after."""
    made = Net(np.random.default_rng(6), 1, 24, 8, 2)
    return made.output(made.convolution(made.depthwise(made.convolution(made.data, 16, 3)), 2))


@pytest.fixture
def plant(monkeypatch):
    """A function that lets one function of modules change its result."""

    def changed(name, change, *modules):
        right = getattr(modules[0], name)
        for module in modules:
            monkeypatch.setattr(module, name, lambda *given: change(right(*given)))

    return changed


def failure(model, folder, **options):
    """Return the message of an import that must fail, without the ends of all messages, and what was expected."""
    file = model.save(folder / "m.tflite")
    with pytest.raises(OpwestError) as caught:
        import_model(file, folder / "out", Options(vectors=0, **options))
    assert not (folder / "out").exists(), "an import that failed wrote a directory"
    assert not [one for one in folder.iterdir() if one.name.startswith(".")], "a draft remains"
    [one] = caught.value.diagnostics
    assert "report this error with the model file" in one.hint
    assert ("--no-optimisations" in one.hint) == options.get("optimisations", True)
    assert one.message.startswith("internal error: ") and one.message.endswith("; nothing was written")
    return one.message.removeprefix("internal error: ").removesuffix("; nothing was written"), one.expected


def test_a_right_import_is_proved(model, tmp_path):
    file = model.save(tmp_path / "m.tflite")
    import_model(file, tmp_path / "out", Options(vectors=0))
    assert (tmp_path / "out" / "manifest.yaml").exists()


@pytest.mark.parametrize("optimised", [True, False])
def test_lowering(model, tmp_path, monkeypatch, optimised):
    def wrong(node, build):
        LOWERINGS["ADD"](dataclasses.replace(node, kind="ADD"), build)

    monkeypatch.setitem(LOWERINGS, "SUB", wrong)
    message, _ = failure(model, tmp_path, optimisations=optimised)
    assert message == "the pass 'lowering' is wrong at operator 5 (SUB), result 'tensor_14': the results differ"


def test_simplification(model, tmp_path, monkeypatch):
    def wrong(node, net):
        if node.kind == "RELU6":
            producer = net.producer(node.input(0))
            net.remove(node)
            options = {**producer.options, "fused_activation_function": "RELU_N1_TO_1"}
            net.replace(producer, outputs=node.outputs, options=options)

    monkeypatch.setitem(simplify.REWRITES, "activations", wrong)
    message, _ = failure(model, tmp_path)
    simplification = "the simplification 'activations' is wrong at operator 6 (RELU6)"
    assert message == f"{simplification}, result 'tensor_15': the results differ"


def test_unused_channels(model, tmp_path, monkeypatch, plant):
    def without_the_first_half(needed):
        needed[: len(needed) // 2] = False
        return needed

    plant("_read", without_the_first_half, passes)
    monkeypatch.setattr(passes, "UNIT", 1)
    message, expected = failure(model, tmp_path)
    assert message.startswith("the pass 'unused channels' is wrong at operator ")
    assert expected == "a value that loses channels is read by layers only, which read none of these channels"


def test_fused_sums(model, tmp_path, monkeypatch):
    def wrong(program):
        made = passes.fuse_sums(program)
        assert made is not program
        made.operations = [
            dataclasses.replace(one, place=1 - one.place) if isinstance(one, ConvolutionSum) else one
            for one in made.operations
        ]
        return made

    monkeypatch.setattr(prepare, "PASSES", (passes.remove_unused_channels, wrong))
    message, expected = failure(model, tmp_path)
    assert message == (
        "the pass 'fused sums' is wrong at operator 4 (CONV_2D), 5 (SUB), result 'tensor_14': the results differ"
    )
    assert expected == "a convolution is removed only if a sum is the only reader of its result"


def test_a_pass_that_removes_what_is_read(model, tmp_path, monkeypatch):
    def wrong(program):
        return program.derived("fused sums", operations=program.operations[1:])

    monkeypatch.setattr(prepare, "PASSES", (wrong,))
    message, _ = failure(model, tmp_path)
    assert message == (
        "the pass 'fused sums' is wrong at operator 1 (DEPTHWISE_CONV_2D), result 'tensor_6': "
        "'tensor_3' is read before it is written"
    )


def test_choice_of_concatenations_in_place(model, tmp_path, plant):
    def reversed_places(found):
        return dict(zip(found, reversed(found.values()), strict=True))

    plant("operands_of", reversed_places, joins)
    message, _ = failure(model, tmp_path)
    assert message.startswith("the pass 'concatenations in place' is wrong at operator ")
    assert "(CONCATENATION)" in message or "'tensor_7'" in message or "(DEPTHWISE_CONV_2D)" in message, message


def with_readings(**keys):
    """Return a change of the readings of an operation."""
    return lambda found: found and tuple(dataclasses.replace(one, **keys) for one in found)


def test_stripes(bottleneck, tmp_path, plant):
    plant("readings", with_readings(before=0), block, segments)
    message, expected = failure(bottleneck, tmp_path, optimize="ram")
    assert message.startswith("the pass 'stripes' is wrong at operator ")
    assert " layers in stripes of " in message
    assert expected.startswith("a block has the layers of the program in their order")


def test_stripes_of_pools(tmp_path, monkeypatch):
    """The padding of a maximum has the greatest value."""
    made = Net(np.random.default_rng(7), 1, 24, 8, 2)
    made.output(made.convolution(made.pool(made.convolution(made.data, 16), "MAX_POOL_2D"), 2))
    file, right = tmp_path / "m.tflite", block.readings
    made.save(file)
    import_model(file, tmp_path / "right", Options(vectors=0, optimize="ram"))
    assert "- call: stripes\n" in (tmp_path / "right" / "manifest.yaml").read_text(encoding="utf-8")

    def wrong(operation):
        return with_readings(fill=127)(right(operation)) if isinstance(operation, Pool) else right(operation)

    monkeypatch.setattr(block, "readings", wrong)
    monkeypatch.setattr(segments, "readings", wrong)
    message, _ = failure(made, tmp_path, optimize="ram")
    assert message.startswith("the pass 'stripes' is wrong at operator ")


def test_alignment_of_stripes(bottleneck, tmp_path, plant):
    def moved(layout):
        if layout is None:
            return None
        buffers = tuple(dataclasses.replace(one, offset=one.offset + 1) for one in layout.buffers)
        return dataclasses.replace(layout, buffers=buffers)

    plant("layout_of", moved, segments)
    message, _ = failure(bottleneck, tmp_path, optimize="ram")
    assert message.startswith("the pass 'stripes' is wrong at operator ")
    assert "memory of rows is not aligned to 16 bytes" in message


def test_loops_of_a_move(tmp_path, plant):
    """The emitted code has fewer loops than the region."""
    made = Model()
    data = made.input("int8", (2, 3, 4), SCALE, ZERO)
    order = made.constant(np.asarray([0, 2, 1], np.int32))
    made.output(made.operator("TRANSPOSE", [data, order], ("int8", SCALE, ZERO)))
    plant("_can_join", lambda _: True, movement)
    message, _ = failure(made, tmp_path)
    assert message.startswith("the pass 'lowering' is wrong at operator 0 (TRANSPOSE), result 'tensor_")


def test_placement_in_memory(model, tmp_path, plant):
    def at_the_first_byte(pool):
        return dataclasses.replace(pool, offsets=dict.fromkeys(pool.offsets, 0))

    def wrong(done):
        moved = []
        for examination in done.examinations:
            pools = {name: at_the_first_byte(pool) for name, pool in examination.plan.pools.items()}
            moved.append(examination._replace(plan=dataclasses.replace(examination.plan, pools=pools)))
        return done._replace(examinations=moved)

    plant("run", wrong, checker)
    message, expected = failure(model, tmp_path)
    assert message.startswith("the placement in memory is wrong at operator ")
    assert message.endswith("it reads what another step wrote into the same memory")
    assert expected == "the results of the model as it was read"


def test_placement_of_constants(model, tmp_path, monkeypatch):
    right = manifest.npz
    monkeypatch.setattr(manifest, "npz", lambda arrays: right({name: array[::-1] for name, array in arrays.items()}))
    message, _ = failure(model, tmp_path)
    assert "the placement in memory is wrong at operator 0 (CONV_2D)" in message
    assert "has another content" in message


def test_a_manifest_that_opwest_refuses(model, tmp_path, plant):
    plant("manifest_text", lambda text: text.replace("direction: out", "direction: in"), convert)
    message, expected = failure(model, tmp_path)
    assert message.startswith("opwest refuses the manifest that the import wrote, line ")
    assert expected == "a manifest that 'opwest check' accepts"


def test_every_pass_has_an_invariant():
    assert set(prove.INVARIANTS) == {"lowering", "unused channels", "fused sums", "concatenations in place", "stripes"}
    assert [one.__name__ for one in passes.PASSES] == ["remove_unused_channels", "fuse_sums"]
    assert all(rule.endswith(".") for rule in rules.RULES)
    assert max(prove.FEW) < prove.CASES
    assert Elementwise in rules.SHAPES

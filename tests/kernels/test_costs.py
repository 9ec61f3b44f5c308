# SPDX-License-Identifier: Apache-2.0
"""opwest's own table of costs: an estimate for every variant, and choices nearly as fast as those by measurements."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

need("tflite")

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

import estimated_layers  # noqa: E402
from graphs.drawn import drawn  # noqa: E402
from models.campaigns import graph_of  # noqa: E402
from opwest.base.diagnostics import Diagnostics  # noqa: E402
from opwest.compiler.emission.function import LIBRARY_VARIANTS, VARIANTS  # noqa: E402
from opwest.compiler.ir.operations import UserCall  # noqa: E402
from opwest.compiler.ir.program import Program  # noqa: E402
from opwest.compiler.ir.stripes import Striped  # noqa: E402
from opwest.compiler.lowering.builder import lower_graph  # noqa: E402
from opwest.compiler.lowering.passes import PASSES, with_passes  # noqa: E402
from opwest.compiler.output.emit import candidates, library_variant  # noqa: E402
from opwest.compiler.processors import class_of  # noqa: E402
from opwest.compiler.request import LIBRARIES  # noqa: E402
from opwest.compiler.selection.choose import choose  # noqa: E402
from opwest.compiler.selection.costs import ABSENT_CODE, TERMS, Table, estimate_key, key_of  # noqa: E402
from opwest.compiler.selection.tuning_files import read_tables  # noqa: E402
from opwest.objects.flash import IN_SOURCE, UNKNOWN, Flash  # noqa: E402
from opwest.objects.targets import measured_cores  # noqa: E402
from opwest.tuning.measure import distinct, measure  # noqa: E402
from opwest.tuning.results import Measurements, Result, estimate, table_of  # noqa: E402


def test_every_variant_has_an_estimate_on_every_core():
    """Layers of other seeds than those of the table, of all operations that tests make.

    The portable variants of rare dtypes can have the estimate of another dtype.
    """
    layers = [
        *estimated_layers.of_kernels(0.5, first=1000), *estimated_layers.of_functions(),
        *estimated_layers.of_rows(), *estimated_layers.of_signals(first=100),
        *estimated_layers.of_models(range(1000, 1060)),
    ]  # fmt: skip
    tables, absent, reached = read_tables(), set(), set()
    for core in measured_cores():
        table, processor = tables.of(core), class_of(core)
        for operation in layers:
            names = set(candidates(operation, processor, LIBRARIES))
            reached |= {(type(operation), name) for name in names}
            key = estimate_key(operation)
            exact = set(table.estimates.get(key, {}))
            if table.estimate(operation, "portable") is not None:
                exact.add("portable")
            absent |= {(core, key, name) for name in names - exact}
    assert not absent, sorted(absent)[:20]
    known = {(kind, one.name) for kind, some in VARIANTS.items() for one in some}
    libraries = {library_variant(name, processor) for name in LIBRARIES for processor in LIBRARY_VARIANTS}
    own = {(kind, name) for kind, name in known if not name.startswith("cmsis-nn") or name in libraries}
    assert own - reached <= {(UserCall, "portable"), (Striped, "stripes")}, own - reached


def models(count):
    """Return random programs: graphs, and sequences of layers that have kernels."""
    found = []
    for number in range(count):
        if number % 2:
            layers = estimated_layers.of_kernels(0.07, first=2000 + 50 * number)
            random = np.random.default_rng((37, number))
            found.append(Program(operations=[layers[i] for i in random.choice(len(layers), 7, replace=False)]))
        else:
            graph = graph_of(drawn(3000 + number)[0].build(), simplified=True)
            found.append(with_passes(lower_graph(graph, "made", Diagnostics()), PASSES))
    return found


def slower(program, processor, plain, tuned):
    """Return the cycles of the choices by a table without measurements and by measurements, both as measured."""
    totals = []
    for table in (plain, tuned):
        variants = choose(program, processor, table).variants
        totals.append(sum(tuned.layers[key_of(operation)][name][0] for operation, name in variants.items()))
    return totals


@pytest.mark.parametrize("core", sized(["cortex-m4", "cortex-m55"], list(measured_cores())))
def test_choices_by_estimates_are_nearly_as_fast_as_by_measurements(core, tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    programs = models(sized(2, 30))
    tuned = table_of(measure(distinct(programs), core, tmp_path), core, has_estimates=False)
    plain = dataclasses.replace(read_tables().of(core), layers={})
    totals = [slower(program, class_of(core), plain, tuned) for program in programs]
    print([f"{first / second:.3f}" for first, second in totals])
    assert sum(first for first, _ in totals) <= 1.05 * sum(second for _, second in totals), totals


SIZES = (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)


def test_estimates_ignore_layers_unlike_all_others():
    """Half and twice the cycles are equally wrong, and a layer that a compiler leaves out counts little."""
    numbers = np.asarray([[products * (term == "product") + (term == "call") for term in TERMS] for products in SIZES])
    measured = numbers @ np.asarray([3.0 * (term == "product") + 50.0 * (term == "call") for term in TERMS])
    measured[2] = 4.0
    terms = dict(zip(TERMS, estimate(numbers, measured), strict=True))
    assert (terms.pop("product"), terms.pop("call")) == pytest.approx((3.0, 50.0), rel=0.1)
    assert not any(terms.values())


def test_cost_with_stalls_and_without_a_measurement():
    [layer] = estimated_layers.dense(np.random.default_rng(1), "int8").operations
    made = [Result(layer, "portable", 5000, 300, 700), Result(layer, "dsp-bytes", 2000, 900)]
    table = table_of(Measurements(made, "a source"), "cortex-m4", has_estimates=True)
    costs = [table.at(UNKNOWN).cost(layer, name) for name in ("portable", "dsp-bytes")]
    assert [(cost.cycles, cost.stalls) for cost in costs] == [(5700, 700), (2000, 0)]
    assert table.cost(layer, "portable").cycles == 5000  # without wait states
    half = Flash(5, 32, 1024)  # lines of twice the bytes
    estimated = dataclasses.replace(table, layers={}).at(half).cost(layer, "portable")
    assert not estimated.is_measured and estimated.code == 300
    assert (estimated.cycles, estimated.stalls) == (pytest.approx(5350, rel=0.01), pytest.approx(350, rel=0.01))
    # Stalls are those of the source of their row, also if other variants of the layer have another one.
    slow = dataclasses.replace(table, measured=f"qemu-system-arm 7.2{IN_SOURCE}wait_states=10,line=16,cache=0")
    both = table.replaced_by(dataclasses.replace(slow, layers={key_of(layer): {"dsp-bytes": (2000, 900, 700)}}))
    assert [both.at(UNKNOWN).cost(layer, name).stalls for name in ("portable", "dsp-bytes")] == [700, 350]
    part = dataclasses.replace(layer, results=(dataclasses.replace(layer.results[0], pitch=99),))
    assert both.at(UNKNOWN).cost(part, "dsp-bytes").stalls == 350
    other = Table("cortex-m4", {}, {}).cost(layer, "dsp-of-another-package")
    assert other.code == ABSENT_CODE and other.cycles > 5000

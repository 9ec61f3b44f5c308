# SPDX-License-Identifier: Apache-2.0
"""The choice of implementations, and distances."""

import dataclasses
import itertools

import numpy as np
import pytest
from opwest.compiler.ir.program import Program
from opwest.compiler.output.emit import candidates
from opwest.compiler.reference.distances import distance, largest
from opwest.compiler.selection.choose import FLASH, RAM, SPEED, Limits, choose, constant_bytes
from opwest.compiler.selection.costs import Table, key_of
from opwest.compiler.selection.knapsack import MAX_SUMS, Option, solve, solve_shared
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding
from opwest.tuning import random_layers

# --- The choice of variants: the knapsack against all combinations, limits of flash, objectives, costs


def groups_of(random, count, most):
    return [
        [Option(float(random.integers(1, 1000)), int(random.integers(1, most))) for _ in range(random.integers(1, 5))]
        for _ in range(count)
    ]


def best_of_all(groups, limit):
    """Return the least cost of all combinations within the limit; None without one."""
    costs = [
        sum(one.cost for one in some)
        for some in itertools.product(*groups)
        if limit is None or sum(one.size for one in some) <= limit
    ]
    return min(costs, default=None)


@pytest.mark.parametrize("seed", range(60))
def test_knapsack_finds_the_best_combination(seed):
    random = np.random.default_rng(seed)
    groups = groups_of(random, int(random.integers(1, 7)), 200)
    largest = sum(max(one.size for one in group) for group in groups)
    for limit in (None, largest, int(largest * random.uniform(0.2, 0.9)), sum(min(o.size for o in g) for g in groups)):
        found, expected = solve(groups, limit), best_of_all(groups, limit)
        if expected is None:
            assert found is None
            continue
        some = [group[place] for group, place in zip(groups, found.chosen, strict=True)]
        assert found.cost == pytest.approx(expected)
        assert found.cost == pytest.approx(sum(one.cost for one in some))
        assert found.size == sum(one.size for one in some)
        assert limit is None or found.size <= limit
        assert found.gap == 0


def test_a_large_knapsack_states_its_gap():
    """More sums than are kept: the result is within the limit, and the stated gap contains the optimum."""
    random = np.random.default_rng(1)
    groups = [
        [Option(float(random.uniform(1, 1e6)), int(random.integers(1, 1 << 30))) for _ in range(4)] for _ in range(60)
    ]
    limit = sum(sorted(one.size for one in group)[1] for group in groups)
    found = solve(groups, limit)
    assert found.size <= limit
    assert 0 <= found.gap < 0.02
    assert MAX_SUMS > 1000


@pytest.mark.parametrize("seed", range(40))
def test_functions_that_several_options_need_count_once(seed):
    """Against all combinations: the size of each function is part of the sum once, at a price for each byte."""
    random = np.random.default_rng(seed)
    sizes = {"convolve": int(random.integers(1, 300)), "pool": int(random.integers(1, 100)), "size": 3}
    sets = [frozenset(), frozenset({"convolve", "size"}), frozenset({"pool", "size"}), frozenset({"pool"})]
    groups = [
        [
            dataclasses.replace(one, needs=sets[int(random.integers(0, 4)) if place else 0])
            for place, one in enumerate(group)
        ]
        for group in groups_of(random, int(random.integers(1, 6)), 200)
    ]
    price = float(random.choice([0, 0.05, 1]))

    def whole(some):
        shared = sum(sizes[name] for name in frozenset().union(*(one.needs for one in some)))
        size = sum(one.size for one in some) + shared
        return sum(one.cost for one in some) + shared * price, size

    largest = max(whole(some)[1] for some in itertools.product(*groups))
    for limit in (None, int(largest * random.uniform(0.2, 1))):
        each = map(whole, itertools.product(*groups))
        expected = min((cost for cost, size in each if limit is None or size <= limit), default=None)
        found = solve_shared(groups, sizes, price, limit)
        if expected is None:
            assert found is None
            continue
        cost, size = whole([group[place] for group, place in zip(groups, found.chosen, strict=True)])
        assert cost == pytest.approx(expected) and found.cost == pytest.approx(expected)
        assert found.size == size and (limit is None or size <= limit)


def layers(count=4):
    """Return a program of convolutions of different shapes."""
    made = Program()
    for number in range(count):
        random = np.random.default_rng(number)
        one = random_layers.convolution(random, (1, 6, 6, 8 + 4 * number), (1, 1), 8, kind="relu")
        made.operations += one.operations
    return made


def table_of(made, costs):
    """Return a table with the same costs for each layer: by variant, cycles and bytes of code."""
    return Table("cortex-m4", {key_of(one): costs for one in made.operations}, {})


COSTS = {
    "portable": (9000, 400),
    "dsp-bytes": (2000, 900),
    "dsp-halves": (1900, 700),
    "mla-pairs": (5000, 800),
    "mla-bytes": (6000, 600),
}


def test_speed_takes_the_fastest_variants_that_are_worth_their_flash():
    made = layers()
    found = choose(made, "dsp", table_of(made, COSTS))
    assert "dsp-halves" in {row.variant for row in found.rows}
    assert "portable" not in {row.variant for row in found.rows}
    assert all(row.cost.is_measured for row in found.rows)
    assert found.cycles == sum(row.cost.cycles for row in found.rows)


def test_flash_takes_the_least_bytes():
    made = layers()
    table = table_of(made, COSTS)
    least = choose(made, "dsp", table, FLASH)
    assert any(row.why.endswith("for --optimize flash") for row in least.rows)
    for objective in (SPEED, RAM):
        assert least.flash <= choose(made, "dsp", table, objective).flash
    for row in least.rows:
        assert row.variant in COSTS


def test_a_limit_of_flash_is_kept():
    made = layers()
    table = table_of(made, COSTS)
    fast, least = choose(made, "dsp", table), choose(made, "dsp", table, FLASH)
    limit = (fast.flash + least.flash) // 2
    between = choose(made, "dsp", table, SPEED, limit)
    assert between.flash <= limit < fast.flash
    assert fast.cycles < between.cycles <= least.cycles
    # Only the layers that have another variant without the limit name it.
    free = {row.operation: row.variant for row in fast.rows}
    named = [row.why.endswith(", for --max-flash") for row in between.rows]
    assert named == [row.variant != free[row.operation] for row in between.rows] and any(named)
    assert not any("--max-flash" in row.why for row in choose(made, "dsp", table, SPEED, fast.flash).rows)
    default = choose(made, "dsp", table, SPEED, limit, limits=Limits("the default --max-flash"))
    assert sum(row.why.endswith("for the default --max-flash") for row in default.rows) == sum(named)
    assert choose(made, "dsp", table, SPEED, least.flash - 1) is None


def test_scratch_memory_is_limited_by_layer():
    made = layers()
    table = table_of(made, COSTS)
    limits = {row.operation: row.scratch for row in choose(made, "dsp", table, RAM).rows}
    found = choose(made, "dsp", table, max_scratch=limits)
    assert all(row.scratch <= limits[row.operation] for row in found.rows)
    fastest = {row.operation: row.variant for row in choose(made, "dsp", table).rows}
    for row in found.rows:
        wanted = f" B less scratch than {fastest[row.operation]}, for --max-ram"
        assert row.why.endswith(wanted) == (row.variant != fastest[row.operation])
    assert choose(made, "dsp", table, max_scratch=dict.fromkeys(limits, -1)) is None


def test_preferred_variants_are_chosen_at_any_cost():
    made = layers()
    found = choose(made, "dsp", table_of(made, COSTS), prefer=["mla-bytes"])
    assert {(row.variant, row.why) for row in found.rows} == {("mla-bytes", "--prefer")}
    # The other variants, which a detailed table shows.
    assert {other.variant for other in found.rows[0].others} == {*candidates(made.operations[0], "dsp")} - {"mla-bytes"}


def test_classes_without_variants_of_their_own_are_portable():
    made = layers()
    found = choose(made, "", Table("rv32", {}, {}))
    assert [row.variant for row in found.rows] == ["portable"] * 4
    assert not any(row.cost.is_measured for row in found.rows)
    assert {row.why for row in found.rows} == {"fastest, estimated"}


FASTER = {**COSTS, "cmsis-nn-dsp": (1000, 300)}
"""In this table CMSIS-NN has the least cost."""
CONVOLVE = "arm_convolve_wrapper_s8"
FUNCTIONS = {CONVOLVE: 5000, f"{CONVOLVE}_get_buffer_size": 100}


def test_cmsis_nn_is_a_candidate_on_request():
    made = layers()
    table = table_of(made, FASTER)
    assert "cmsis-nn-dsp" not in {row.variant for row in choose(made, "dsp", table).rows}
    found = choose(made, "dsp", table, libraries=["cmsis-nn"])
    assert [row.variant for row in found.rows] == ["cmsis-nn-dsp"] * 4
    assert {row.why for row in found.rows} == {"fastest, measured"}
    # Without measurements the estimate of its cost is high.
    assert "cmsis-nn-dsp" not in {
        row.variant for row in choose(made, "dsp", table_of(made, COSTS), libraries=["cmsis-nn"]).rows
    }


@pytest.mark.parametrize(("processor", "variant"), [("mla", "cmsis-nn-none"), ("mve", "cmsis-nn-mve"), ("", None)])
def test_cmsis_nn_has_the_instructions_of_the_class(processor, variant):
    made = layers(1)
    named = {name for name in candidates(made.operations[0], processor, ["cmsis-nn"]) if "cmsis" in name}
    assert named == ({variant} if variant else set())


def test_code_of_cmsis_nn_counts_once():
    made = layers()
    table = dataclasses.replace(table_of(made, FASTER), functions=FUNCTIONS)
    found = choose(made, "dsp", table, libraries=["cmsis-nn"])
    own = [300 + constant_bytes(candidates(row.operation, "dsp", ["cmsis-nn"])[row.variant]) for row in found.rows]
    assert [row.flash for row in found.rows] == [own[0] + 5100, *own[1:]]
    # Within this limit two layers could call it if each of them had its own 5100 bytes; all four share them.
    assert choose(made, "dsp", table, SPEED, sum(own) + 5100, libraries=["cmsis-nn"]).variants == found.variants
    assert choose(made, "dsp", table, FLASH, libraries=["cmsis-nn"]).flash <= choose(made, "dsp", table, FLASH).flash
    # The functions cost more flash than their cycles are worth.
    large = dataclasses.replace(table, functions={**FUNCTIONS, CONVOLVE: 5_000_000})
    assert "cmsis-nn-dsp" not in choose(made, "dsp", large, libraries=["cmsis-nn"]).variants.values()


@pytest.mark.parametrize("rounding", list(Rounding))
def test_fully_connected_layers_that_round_once_never_call_cmsis_nn(rounding):
    random = np.random.default_rng(3)
    made = random_layers.dense(random, dtype="int8")
    layer = made.operations[0]
    # Multipliers that CMSIS-NN accepts.
    few = [Multiplier(1 << 30, -6) for _ in layer.finish.multipliers]
    finish = dataclasses.replace(layer.finish, multipliers=tuple(few), rounding=rounding)
    layer = dataclasses.replace(layer, finish=finish)
    for processor in ("mla", "dsp", "mve"):
        called = [name for name in candidates(layer, processor, ["cmsis-nn"]) if name.startswith("cmsis-nn")]
        assert len(called) == (rounding is Rounding.TWICE)


# --- Magnitudes and distances of outputs with infinities and values that are not numbers


def test_largest_finite_magnitude():
    assert largest([np.asarray([1, -3, np.inf]), np.asarray([np.nan, 2])]) == 3
    assert largest([np.asarray([np.nan]), np.zeros(0)]) == 0 and largest([]) == 0
    assert largest([np.asarray([-128], np.int8)]) == 128


def test_distances():
    one = np.asarray([1, np.inf, np.inf, np.nan, np.nan, -np.inf], np.float32)
    other = np.asarray([3, np.inf, -np.inf, np.nan, 0, 0], np.float32)
    assert distance(one, other).tolist() == [2, 0, np.inf, 0, np.inf, np.inf]
    assert distance(np.asarray([-128], np.int8), np.asarray([127], np.int8)).tolist() == [255]

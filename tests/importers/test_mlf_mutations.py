# SPDX-License-Identifier: Apache-2.0
"""Mutated tars: clean errors, no files outside, bounded time and memory. `make mutate-mlf` runs 10,000."""

import collections
import os
import random

from mlf_mutations import examine, mutated

COUNT = int(os.environ.get("OPWEST_MUTATED_TARS", "300"))
SEED = int(os.environ.get("OPWEST_MUTATION_SEED", "20261121"))


def test_mutated_tars_end_in_clean_errors(tmp_path):
    answers = collections.Counter()
    for number in range(COUNT):
        content = mutated(random.Random(f"{SEED}/{number}"))
        try:
            answers[examine(content, tmp_path / "one")] += 1
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {SEED}: {error!r}") from error
    assert sum(answers.values()) == COUNT
    assert COUNT * 0.02 < answers["imported"] < COUNT * 0.8, answers  # the mutations reach the intended code
    assert len(answers) > 20, answers
    print(f"{COUNT} tars: {answers['imported']} imported, {len(answers)} kinds of answers")

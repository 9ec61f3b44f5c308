# SPDX-License-Identifier: Apache-2.0
"""Instructions of one lookup by name, in registries of 10 to 10,000 operators.

The registries are the ones that `opwest generate` emits, searched by the runtime's opwest_find(). The
reference is a linear scan of a table in microTVM's layout (a 16-bit count, then names that end with NUL; the scan is
in this script). All names have 45 characters, and the first 39 are the same.

Valgrind counts the instructions between entry and return of the lookup (callgrind's --toggle-collect), calls
included, for a sample of up to 1,000 names spread over the table, and for as many of the same length that
are not in it. Both sides use the same byte-wise strcmp(), as in C libraries for microcontrollers, so
that the figures do not depend on the vector instructions of the host; --libc uses the host's own. The figures are
exact for a compiler: a second run gives the same.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from common import (
    Report,
    SkippedError,
    execute,
    host_compiler,
    host_target,
    opwest_command,
    parser,
    positive,
    require,
    write_model,
)

SIZES = (10, 100, 1_000, 10_000)
SAMPLE = 1_000
MAX_GROWTH = 1.5
"""Of opwest's cost at any size over its cost at the first."""
NAME = "tvmgen_default_fused_nn_contrib_conv2d_{:06d}".format

# A reimplementation of microTVM's TVMFuncRegistry_Lookup.
HARNESS = r"""/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include <chain.h>

struct linear {{
	const char *names; /* a 16-bit count, low byte first, then the names, each with its NUL */
	const void *const *functions;
}};

__attribute__((noinline)) const void *linear_find(const struct linear *table, const char *name)
{{
	const uint16_t count = (uint16_t)((uint8_t)table->names[0] | (uint8_t)table->names[1] << 8);
	const char *cursor = table->names + 2;

	for (uint16_t i = 0; i < count; i++) {{
		if (strcmp(cursor, name) == 0) {{
			return table->functions[i];
		}}
		cursor += strlen(cursor) + 1;
	}}
	return NULL;
}}

static const char linear_names[] = "\{low:03o}\{high:03o}"
{names};
static const void *linear_functions[{count}];
static const struct linear linear = {{linear_names, linear_functions}};
static const char *const hits[] = {{
{hits}
}};
static const char *const misses[] = {{
{misses}
}};

int main(int argc, char **argv)
{{
	const int scan = argc > 1 && strcmp(argv[1], "linear") == 0;
	const int miss = argc > 2 && strcmp(argv[2], "misses") == 0;
	const size_t count = sizeof(hits) / sizeof(hits[0]);
	size_t wrong = 0;

	for (size_t i = 0; i < {count}; i++) {{
		linear_functions[i] = &linear_functions[i];
	}}
	for (size_t i = 0; i < count; i++) {{
		const char *name = miss ? misses[i] : hits[i];

		if (scan) {{
			wrong += (linear_find(&linear, name) == NULL) != miss;
		}} else {{
			const struct opwest_entry *entry = opwest_find(&chain_registry, name);

			wrong += miss ? entry != NULL : entry == NULL || strcmp(entry->info->name, name) != 0;
		}}
	}}
	printf("%zu lookups, %zu wrong\n", count, wrong);
	return wrong != 0;
}}
"""

BYTEWISE = """/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

int strcmp(const char *a, const char *b)
{
	while (*a != '\\0' && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

size_t strlen(const char *text)
{
	const char *end = text;

	while (*end != '\\0') {
		end++;
	}
	return (size_t)(end - text);
}
"""


def sample(count: int) -> list[int]:
    """Return the operators to look up: all, or a sample spread over the table."""
    taken = min(count, SAMPLE)
    return [i * count // taken for i in range(taken)]


def build(work: Path, count: int, *, libc: bool) -> Path:
    """Generate the registry of `count` operators and link it with the scan and the lookups."""
    compiler = [*host_compiler(), "-O2"]
    folder = work / f"model_{count}"
    manifest = write_model(folder, count, host_target(), compiler, name=NAME)
    application = folder / "app"
    execute([*opwest_command(), "generate", manifest, "-o", application])
    model, runtime = application / "models" / "chain", application / "modules" / "opwest"
    harness = folder / "harness.c"
    chosen = sample(count)
    harness.write_text(
        HARNESS.format(
            count=count,
            low=count & 0xFF,
            high=count >> 8,
            names="\n".join(f'"{NAME(i)}\\0"' for i in range(count)),
            hits="\n".join(f'"{NAME(i)}",' for i in chosen),
            misses="\n".join(f'"{NAME(i + count)}",' for i in chosen),
        )
    )
    sources = [
        harness,
        model / "src" / "chain_metadata.c",
        *(runtime / "src" / name for name in ("registry.c", "metadata.c")),
    ]
    options = ["-std=gnu11", "-fno-builtin", f"-I{model / 'include'}", f"-I{runtime / 'include'}"]
    if not libc:
        bytewise = folder / "bytewise.c"
        bytewise.write_text(BYTEWISE)
        sources.append(bytewise)
        options.append("-fno-tree-loop-distribute-patterns")  # otherwise strlen() calls itself
    program = folder / "lookups"
    objects = sorted((model / "objects").rglob("*.o"))
    # All symbols are bound at the start, so that the first call of strcmp() does not include its lookup.
    execute([*compiler, *options, *sources, *objects, "-Wl,-z,now", "-o", program])
    return program


def instructions(program: Path, function: str, *arguments: str) -> float:
    """Return the instructions of one lookup, the mean of the sample."""
    done = execute(
        [
            *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
            *(f"--toggle-collect={function}", "--log-fd=1", program, *arguments),
        ]
    )
    collected = re.search(r"Collected : (\d+)", done)
    lookups = re.search(r"(\d+) lookups, 0 wrong", done)
    if collected is None or lookups is None:
        raise AssertionError(f"cannot parse the output of valgrind:\n{done}")
    return int(collected[1]) / int(lookups[1])


def main() -> int:
    """Measure, print, compare with the limit."""
    options = parser(__doc__)
    options.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), metavar="N", help="operators")
    options.add_argument("--libc", action="store_true", help="use the host's strcmp()")
    given = options.parse_args()
    report = Report("Registry lookup")
    try:
        require("valgrind")
        opwest_command()
        host_target()
        host_compiler()
    except SkippedError as reason:
        report.skip("registry lookup", reason)
        return report.finish(given.json)
    if given.keep is not None:
        return run(given, given.keep, report)
    with tempfile.TemporaryDirectory(prefix="opwest-lookup-") as work:
        return run(given, Path(work), report)


def run(given: argparse.Namespace, work: Path, report: Report) -> int:
    """Measure every size in a directory."""
    found: dict[int, list[float]] = {}
    for count in sorted(given.sizes):
        program = build(work, count, libc=given.libc)
        found[count] = [
            instructions(program, function, way, kind)
            for way, function in (("opwest", "opwest_find"), ("linear", "linear_find"))
            for kind in ("hits", "misses")
        ]
    report.table(
        f"Instructions per lookup of a name of {len(NAME(0))} characters, {host_target()}, -O2.",
        ["operators", "opwest: hit", "miss", "linear scan: hit", "miss", "linear / opwest, hit"],
        [[f"{count:,}", *row, row[2] / row[0]] for count, row in found.items()],
        "instructions",
    )
    check(found, report)
    return report.finish(given.json)


def check(found: dict[int, list[float]], report: Report) -> None:
    """Compare the cost at every size with the cost at the first."""
    first, *others = found
    for count in others:
        for index, what in enumerate(("hit", "miss")):
            ratio = found[count][index] / found[first][index]
            report.limit(f"cost at {count:,} / cost at {first:,}, {what}", ratio, MAX_GROWTH)
    print()


if __name__ == "__main__":
    sys.exit(main())

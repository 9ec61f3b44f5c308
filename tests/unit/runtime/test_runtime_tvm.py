# SPDX-License-Identifier: Apache-2.0
"""The workspace of operators that TVM compiled: random allocations against a model, under sanitizers."""

import subprocess
from pathlib import Path

import pytest
from requirements_support import need

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
PROGRAM = r"""
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/tvm_backend.h>
#include <opwest/tvm_workspace.h>

#define CHECK(condition) do { if (!(condition)) { \
	fprintf(stderr, "%d: %s\n", __LINE__, #condition); exit(1); } } while (0)
#define MOST 64

struct block { uint8_t *at; size_t size; uint8_t mark; };

/* Memory that is exactly as large as opwest plans it: a sanitizer sees every byte beyond. */
static void at_random(uint32_t seed, uint32_t units, uint32_t shift)
{
	const size_t planned = ((size_t)units << shift) + 2 * ((units + 7) / 8);
	/* It ends where the allocation does. */
	const size_t unit = (size_t)1 << shift;
	uint8_t *memory = aligned_alloc(128, (planned + 127) / 128 * 128);
	uint8_t *start = memory + ((planned + 127) / 128 * 128 - planned) / unit * unit;
	struct opwest_tvm_workspace note;
	struct block blocks[MOST];
	int count = 0, failed = 0;

	memset(start, 0xff, planned);
	opwest_tvm_enter(&note, start, units, shift);
	for (int step = 0; step < 600; step++) {
		seed = seed * 1664525U + 1013904223U;
		if (count < MOST && (seed >> 30) != 0) {
			const size_t size = (seed >> 8) % (((size_t)units << shift) / 4 + 2);
			uint8_t *at = TVMBackendAllocWorkspace(1, 0, size, 0, 8);

			if (at == NULL) {
				failed = 1;
				CHECK(note.exhausted);
				/* Give all back, the oldest first. */
				for (int i = 0; i < count; i++) {
					CHECK(TVMBackendFreeWorkspace(1, 0, blocks[i].at) == 0);
				}
				count = 0;
				CHECK(note.used == 0);
				continue;
			}
			CHECK(((uintptr_t)at & ((1U << shift) - 1U)) == 0);
			CHECK(at >= start && at + size <= start + ((size_t)units << shift));
			for (int i = 0; i < count; i++) {
				CHECK(at >= blocks[i].at + (blocks[i].size ? blocks[i].size : 1) ||
				      at + (size ? size : 1) <= blocks[i].at);
			}
			blocks[count] = (struct block){at, size, (uint8_t)seed};
			memset(at, blocks[count++].mark, size);
		} else if (count > 0) {
			const int which = (int)((seed >> 4) % (uint32_t)count);

			for (size_t i = 0; i < blocks[which].size; i++) {
				CHECK(blocks[which].at[i] == blocks[which].mark);
			}
			CHECK(TVMBackendFreeWorkspace(1, 0, blocks[which].at) == 0);
			CHECK(TVMBackendFreeWorkspace(1, 0, blocks[which].at) == -1);
			blocks[which] = blocks[--count];
		}
	}
	CHECK(failed);
	CHECK(opwest_tvm_leave(&note, 0) == 0);
	CHECK(TVMBackendAllocWorkspace(1, 0, 1, 0, 8) == NULL);
	free(memory);
}

static void codes(void)
{
	static _Alignas(16) uint8_t memory[16 * 4 + 2];
	struct opwest_tvm_workspace outer, inner;

	opwest_tvm_enter(&outer, memory, 4, 4);
	uint8_t *first = TVMBackendAllocWorkspace(1, 0, 17, 0, 8);
	CHECK(first == memory && outer.used == 2);
	/* A call inside a call has memory of its own. */
	opwest_tvm_enter(&inner, memory + 32, 1, 4);
	CHECK(TVMBackendFreeWorkspace(1, 0, first) == -1);
	CHECK(TVMBackendAllocWorkspace(1, 0, 16, 0, 8) == memory + 32);
	CHECK(TVMBackendAllocWorkspace(1, 0, 1, 0, 8) == NULL);
	CHECK(opwest_tvm_leave(&inner, -1) == -ENOMEM);
	CHECK(TVMBackendFreeWorkspace(1, 0, first + 16) == -1);
	CHECK(TVMBackendFreeWorkspace(1, 0, first - 16) == -1);
	CHECK(TVMBackendFreeWorkspace(1, 0, first + 1) == -1);
	CHECK(TVMBackendFreeWorkspace(1, 0, NULL) == -1);
	CHECK(TVMBackendFreeWorkspace(1, 0, first) == 0);
	CHECK(TVMBackendAllocWorkspace(1, 0, UINT64_MAX, 0, 8) == NULL);
	CHECK(TVMBackendAllocWorkspace(2, 0, 1, 0, 8) == NULL);
	/* It went on without what it did not get. */
	CHECK(opwest_tvm_leave(&outer, 0) == 0);
	opwest_tvm_enter(&outer, memory, 4, 4);
	CHECK(opwest_tvm_leave(&outer, -1) == -EIO);
	CHECK(opwest_tvm_code(-1) == -EIO && opwest_tvm_code(0) == 0 && opwest_tvm_code(0x803) == 0x803);
	CHECK(opwest_tvm_code(-EINVAL) == -EINVAL);
}

static void *thread(void *number)
{
	for (uint32_t round = 0; round < 5; round++) {
		at_random((uint32_t)(uintptr_t)number + round, 40, 4);
	}
	return NULL;
}

int main(void)
{
	const char *parts[] = {"Expected ", "3", NULL, " arguments"};
	pthread_t threads[4];

	for (uint32_t shift = 3; shift <= 7; shift++) {
		for (uint32_t units = 1; units <= 70; units += 11) {
			at_random(units * 8 + shift, units, shift);
		}
	}
	codes();
	for (uintptr_t i = 0; i < 4; i++) {
		CHECK(pthread_create(&threads[i], NULL, thread, (void *)(i * 100 + 1)) == 0);
	}
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
	}
	CHECK(__TVMBackendAllocWorkspace == TVMBackendAllocWorkspace);
	fputs("texts\n", stderr);
	TVMFFIErrorSetRaisedFromCStrParts("TypeError", parts, 4);
	TVMFFIErrorSetRaisedFromCStr("ValueError", "no");
	TVMAPISetLastError("Assert fail");
	puts("done");
	return 0;
}
"""


@pytest.mark.parametrize("flags", [["-fsanitize=address,undefined"], ["-fsanitize=address,undefined", "-m32"]])
def test_allocations(flags, tmp_path):
    need("gcc", *(["gcc -m32"] if "-m32" in flags else []))
    main = tmp_path / "main.c"
    main.write_text(PROGRAM)
    sources = [main, *(RUNTIME / "src" / name for name in ("tvm_backend.c", "port_tvm_host.c"))]
    options = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all", "-pthread"]
    command = ["gcc", *options, *flags, f"-I{RUNTIME / 'include'}", *sources, "-o", tmp_path / "program"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
    texts = done.stderr[done.stderr.index("texts\n") :].splitlines()[1:]
    assert texts == [
        "opwest: operator: TypeError: Expected 3 arguments",
        "opwest: operator: ValueError: no",
        "opwest: operator: Assert fail",
    ]

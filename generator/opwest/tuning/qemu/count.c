/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A QEMU TCG plugin: what the processor executes between two addresses. One processor only.
 *
 *   -plugin
 * ./count.so,from=ADDRESS,to=ADDRESS[,m3=1][,thumb=0][,skip=ADDRESS,skip_end=ADDRESS][,data=ADDRESS,data_end=ADDRESS]
 *           [,mark=ADDRESS...][,m7=1]
 *           [,flash_from=ADDRESS,flash_to=ADDRESS...,wait_states=N,line=BYTES[,icache=BYTES][,dcache=BYTES][,prefetch=1]],out=FILE
 *
 * Counting begins after the instruction at `from` and ends before the one at `to`: neither is
 * counted. Each time a line is written to FILE: instructions, instructions in skip <= address <
 * skip_end, loaded words, stored words, taken branches, modelled cycles, loads from data <= address
 * < data_end, modelled cycles with the flash, and the stalls for code and for data in them. Before
 * each instruction at a `mark`, a line with the counts so far is written as well.
 *
 * The flash is at flash_from <= address < flash_to, which may be repeated; flash.h describes its
 * model. Without these options it has no stalls.
 *
 * runs/qemu/thumb.h describes the model of cycles; with m7=1 it is that of runs/qemu/m7.h.
 *
 * With thumb=0, for other processors, each instruction takes one cycle. For vector instructions the
 * column means nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "flash.h"
#include "m7.h"
#include "plugin.h"
#include "thumb.h"

/** What the model reads of one instruction. */
struct instruction {
	uint64_t address;
	uint8_t size;
	struct cost cost;
	/** Those for the model of the Cortex-M7. */
	struct m7_instruction m7;
	struct m7_branch branch;
	bool is_mark;
	/** Its line of flash; NULL if it is in another memory. */
	uint8_t *line;
};

/** The addresses of the option `mark`. */
#define MAX_MARKS 1024

static uint64_t from, to, skip, skip_end, data, data_end, mark;
static uint64_t marks[MAX_MARKS];
static size_t mark_count;
static uint64_t total, skipped, loaded, stored, branches, cycles, read;
static bool is_counting;
static struct instruction *before;
static FILE *out;
static uint64_t m7;
static struct m7_pipeline pipeline;
/** The address of the first access of the instruction before. */
static uint64_t access;

/** Return the cycles with those of the flash. */
static uint64_t now(void)
{
	return cycles + code_stalls + data_stalls;
}

static void write_counts(void)
{
	const uint64_t counts[] = {total,  skipped, loaded, stored,      branches,
				   cycles, read,    now(),  code_stalls, data_stalls};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		fprintf(out, "%s%llu", i == 0 ? "" : " ", (unsigned long long)counts[i]);
	}
	fputc('\n', out);
	fflush(out);
}

/** Issue the instruction before in the model of the Cortex-M7: its access and its branch are
 * complete. */
static void issue_before(bool is_taken)
{
	m7_issue(&pipeline, &before->m7, access);
	if ((before->m7.units & UNIT_BRANCH) != 0) {
		m7_branched(&pipeline, &before->m7, &before->branch, is_taken);
	}
	cycles = pipeline.cycle;
	access = 0;
}

static void executed(unsigned int cpu, void *found)
{
	struct instruction *one = found;

	(void)cpu;
	if (one->address == from) {
		total = skipped = loaded = stored = branches = cycles = read = 0;
		clear_flash();
		m7_clear(&pipeline);
		before = NULL;
		is_counting = true;
		return;
	}
	if (!is_counting) {
		return;
	}
	if (before != NULL && one->address != before->address + before->size) {
		branches++;
		cycles += thumb && !m7 ? 2 : 0;
	}
	if (m7 && before != NULL) {
		issue_before(one->address != before->address + before->size);
	}
	if (one->address == to || one->is_mark) {
		write_counts();
	}
	if (one->address == to) {
		is_counting = false;
		return;
	}
	if (one->line != NULL) {
		code_stalls += stall_of_code(one->line, now());
	}
	total++;
	skipped += one->address >= skip && one->address < skip_end;
	loaded += one->cost.loads;
	stored += one->cost.stores;
	if (!m7) {
		cycles += cycles_of(&one->cost, before != NULL ? &before->cost : NULL);
	}
	before = one;
}

static void accessed(unsigned int cpu, uint32_t kind, uint64_t address, void *unused)
{
	uint8_t *line;

	(void)cpu;
	(void)kind;
	(void)unused;
	if (!is_counting) {
		return;
	}
	read += address >= data && address < data_end;
	access = access == 0 ? address : access;
	line = line_of(address);
	if (line != NULL) {
		data_stalls += stall_of_data(line, now());
	}
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	const size_t count = qemu_plugin_tb_n_insns(block);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *found = qemu_plugin_tb_get_insn(block, i);
		uint8_t bytes[MAX_BYTES] = {0};
		/* QEMU calls back with it as long as the process lasts. */
		struct instruction *one = calloc(1, sizeof(*one));

		if (one == NULL) {
			abort();
		}
		one->address = qemu_plugin_insn_vaddr(found);
		one->line = line_of(one->address);
		for (size_t k = 0; k < mark_count; k++) {
			one->is_mark |= one->address == marks[k];
		}
		one->size = read_instruction(found, bytes);
		one->cost = cost_of(bytes, one->size);
		one->m7 = m7_read(bytes, one->size);
		qemu_plugin_register_vcpu_insn_exec_cb(found, executed, 0, one);
		if (data_end != 0 || range_count != 0 || m7) {
			qemu_plugin_register_vcpu_mem_cb(found, accessed, 0, ACCESSES, NULL);
		}
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static uint64_t flash_from, flash_to;
	static const struct {
		const char *key;
		uint64_t *value;
	} numbers[] = {{"from", &from},
		       {"to", &to},
		       {"skip", &skip},
		       {"skip_end", &skip_end},
		       {"data", &data},
		       {"data_end", &data_end},
		       {"m3", &m3},
		       {"m7", &m7},
		       {"thumb", &thumb},
		       {"mark", &mark},
		       {"flash_from", &flash_from},
		       {"flash_to", &flash_to},
		       {"wait_states", &wait_states},
		       {"line", &line_size},
		       {"icache", &code_bytes},
		       {"dcache", &data_bytes},
		       {"prefetch", &prefetch}};

	(void)info;
	for (int i = 0; i < argc; i++) {
		const char *value;

		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			value = value_of(argv[i], numbers[k].key);
			if (value == NULL) {
				continue;
			}
			*numbers[k].value = strtoull(value, NULL, 0);
			if (numbers[k].value == &mark && mark_count < MAX_MARKS) {
				marks[mark_count++] = mark;
			}
			if (numbers[k].value == &flash_to && range_count < MAX_RANGES) {
				ranges[range_count++] =
					(struct range){.start = flash_from, .end = flash_to};
			}
		}
		value = value_of(argv[i], "out");
		if (value != NULL) {
			out = fopen(value, "w");
		}
	}
	if (out == NULL || from == 0 || to == 0) {
		fprintf(stderr, "count: from, to and out are required\n");
		return 1;
	}
	if (!make_flash()) {
		fprintf(stderr, "count: line=BYTES of the flash is missing, or there is no memory "
				"for its lines\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A QEMU TCG plugin: the instructions that the points of a model's run execute, exactly: without those of interrupts and
 * of the profile's own functions. One processor only.
 *
 *   -plugin ./points.so,begin=ADDRESS,end=ADDRESS,code=ADDRESS,code_end=ADDRESS...,measures=ADDRESS,count=N...,size=BYTES
 *           ,handler=ADDRESS...,switch=ADDRESS...[,m3=1][,thumb=0],out=FILE
 *
 * begin, end: opwest_profile_begin() and opwest_profile_end(); code: these and the functions that they call, whose access
 * to an array of struct opwest_measure shows the point. measures, count, size: the arrays, and the size of their elements.
 * handler: the entries of exceptions. switch: the code that changes the thread.
 *
 * When a point ends, a line is written to FILE: the number of the array, the point, instructions, modelled cycles, and
 * whether the thread changed; the counts are then those of several threads.
 *
 * An exception ends with the return of its handler. The plugin counts calls and returns, to distinguish this return from
 * those of functions that the handler calls. On RISC-V (thumb=0), an exception ends with MRET.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"
#include "thumb.h"

#define MAX_ADDRESSES 256
#define MAX_ARRAYS    16
#define MAX_LEVELS    16
#define NONE          SIZE_MAX

/** What an instruction does to the calls of a handler. */
enum transfer { OTHER, CALL, RETURN };

struct instruction {
	uint64_t address;
	uint8_t size;
	struct cost cost;
	enum transfer transfer;
	bool is_begin, is_end, is_handler, is_switch;
};

struct counts {
	uint64_t instructions, cycles, switches;
};

struct point {
	struct counts begun;
	bool is_open;
};

struct array {
	uint64_t start, count;
	struct point *points;
};

struct addresses {
	uint64_t values[MAX_ADDRESSES];
	size_t count;
};

static uint64_t begin, end, element;
static struct addresses starts, ends, handlers, switches;
static struct array arrays[MAX_ARRAYS];
static size_t array_count;
static FILE *out;

static struct counts now;
/** The calls of each handler that runs. */
static unsigned int calls[MAX_LEVELS];
static size_t level;
/** The last instruction, and the last one that was counted. */
static const struct instruction *last, *before;
/** The call of a function of the profile: its kind, the address after it, and the point. */
static const struct instruction *hook;
static uint64_t after_hook;
static size_t hook_array = NONE, hook_point;

static bool contains(const struct addresses *these, uint64_t address)
{
	for (size_t i = 0; i < these->count; i++) {
		if (these->values[i] == address) {
			return true;
		}
	}
	return false;
}

static bool follows(const struct instruction *one, const struct instruction *other)
{
	return other != NULL && one->address == other->address + other->size;
}

/** Follow the calls of handlers. */
static void follow_handlers(const struct instruction *one)
{
	if (follows(one, last)) {
		return;
	}
	if (level > 0 && last->transfer == CALL) {
		calls[level - 1]++;
	} else if (level > 0 && last->transfer == RETURN) {
		if (calls[level - 1] == 0) {
			level--;
		} else {
			calls[level - 1]--;
		}
	}
	if (one->is_handler && level < MAX_LEVELS) {
		calls[level++] = 0;
	}
}

static void end_hook(void)
{
	struct point *point;

	if (hook_array != NONE) {
		point = &arrays[hook_array].points[hook_point];
		if (hook->is_end && point->is_open) {
			fprintf(out, "%zu %zu %llu %llu %d\n", hook_array, hook_point,
				(unsigned long long)(now.instructions - point->begun.instructions),
				(unsigned long long)(now.cycles - point->begun.cycles),
				now.switches != point->begun.switches);
			fflush(out);
		}
		point->begun = now;
		point->is_open = hook->is_begin;
	}
	hook = NULL;
}

static void executed(unsigned int cpu, void *found)
{
	const struct instruction *one = found;

	if (cpu != 0) {
		return;
	}
	follow_handlers(one);
	last = one;
	if (one->is_switch) {
		now.switches++;
		/* On RISC-V a handler calls it, and it continues the other thread without MRET. */
		level = one->is_handler ? level : 0;
	}
	if (level > 0) {
		return;
	}
	if (hook != NULL && one->address == after_hook) {
		end_hook();
	}
	if (hook != NULL) {
		return;
	}
	if (one->is_begin || one->is_end) {
		hook = one;
		hook_array = NONE;
		after_hook = before != NULL ? before->address + before->size : 0;
		return;
	}
	now.instructions++;
	now.cycles += cycles_of(&one->cost, before != NULL ? &before->cost : NULL);
	if (thumb && before != NULL && !follows(one, before)) {
		now.cycles += 2;
	}
	before = one;
}

static void accessed(unsigned int cpu, uint32_t kind, uint64_t address, void *unused)
{
	(void)kind;
	(void)unused;
	if (cpu != 0 || hook == NULL || level > 0) {
		return;
	}
	for (size_t i = 0; i < array_count; i++) {
		if (address >= arrays[i].start && address - arrays[i].start < arrays[i].count * element) {
			hook_array = i;
			hook_point = (size_t)((address - arrays[i].start) / element);
		}
	}
}

/** Arm v7-M Architecture Reference Manual, A5.2 and A5.3; RISC-V Privileged Architecture, 3.3.2. */
static enum transfer transfer_of(const uint8_t *bytes, size_t size)
{
	const uint32_t first = bytes[0] | (uint32_t)bytes[1] << 8;
	const uint32_t second = size == 4 ? bytes[2] | (uint32_t)bytes[3] << 8 : 0;

	if (!thumb) {
		return first == 0x0073 && second == 0x3020 ? RETURN : OTHER; /* MRET */
	}
	if (size == 2) {
		if (first == 0x4770 || (first & 0xff00) == 0xbd00) {
			return RETURN; /* BX LR; POP with PC */
		}
		return (first & 0xff87) == 0x4780 ? CALL : OTHER; /* BLX */
	}
	if ((first & 0xf800) == 0xf000 && (second & 0xd000) == 0xd000) {
		return CALL; /* BL */
	}
	if ((first & 0xfe50) == 0xe810 && (second & 0x8000) != 0) {
		return RETURN; /* LDM with PC */
	}
	return first == 0xf85d && (second & 0xf000) == 0xf000 ? RETURN : OTHER; /* LDR PC, [SP], #4 */
}

static bool is_code_of_profile(uint64_t address)
{
	for (size_t i = 0; i < ends.count; i++) {
		if (address >= starts.values[i] && address < ends.values[i]) {
			return true;
		}
	}
	return false;
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
		one->size = read_instruction(found, bytes);
		one->cost = cost_of(bytes, one->size);
		one->transfer = transfer_of(bytes, one->size);
		one->is_begin = one->address == begin;
		one->is_end = one->address == end;
		one->is_handler = contains(&handlers, one->address);
		one->is_switch = contains(&switches, one->address);
		qemu_plugin_register_vcpu_insn_exec_cb(found, executed, 0, one);
		if (is_code_of_profile(one->address)) {
			qemu_plugin_register_vcpu_mem_cb(found, accessed, 0, ACCESSES, NULL);
		}
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static struct addresses measures, counts;
	static const struct {
		const char *key;
		uint64_t *value;
		struct addresses *values;
	} numbers[] = {{"begin", &begin, NULL},	    {"end", &end, NULL},
		       {"size", &element, NULL},    {"m3", &m3, NULL},
		       {"thumb", &thumb, NULL},     {"code", NULL, &starts},
		       {"code_end", NULL, &ends},   {"measures", NULL, &measures},
		       {"count", NULL, &counts},    {"handler", NULL, &handlers},
		       {"switch", NULL, &switches}};

	(void)info;
	for (int i = 0; i < argc; i++) {
		const char *value = value_of(argv[i], "out");

		if (value != NULL) {
			out = fopen(value, "w");
		}
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			struct addresses *values = numbers[k].values;

			value = value_of(argv[i], numbers[k].key);
			if (value == NULL) {
				continue;
			}
			if (values == NULL) {
				*numbers[k].value = strtoull(value, NULL, 0);
			} else if (values->count < MAX_ADDRESSES) {
				values->values[values->count++] = strtoull(value, NULL, 0);
			}
		}
	}
	array_count = counts.count < MAX_ARRAYS ? counts.count : MAX_ARRAYS;
	for (size_t i = 0; i < array_count; i++) {
		arrays[i].start = measures.values[i];
		arrays[i].count = counts.values[i];
		arrays[i].points = calloc(arrays[i].count, sizeof(struct point));
		if (arrays[i].points == NULL) {
			return 1;
		}
	}
	if (out == NULL || begin == 0 || end == 0 || element == 0 || starts.count != ends.count ||
	    measures.count != counts.count) {
		fprintf(stderr, "points: begin, end, size and out are required, code and measures with their ends\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

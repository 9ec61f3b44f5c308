/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A QEMU TCG plugin: what the processor executes between two addresses. One processor only.
 *
 *   -plugin ./count.so,from=ADDRESS,to=ADDRESS[,m3=1][,thumb=0][,skip=ADDRESS,skip_end=ADDRESS][,data=ADDRESS,data_end=ADDRESS]
 *           [,mark=ADDRESS...]
 *           [,flash_from=ADDRESS,flash_to=ADDRESS...,wait_states=N,line=BYTES[,icache=BYTES][,dcache=BYTES][,prefetch=1]],out=FILE
 *
 * Counting begins after the instruction at `from` and ends before the one at `to`: neither is counted. Each time a line
 * is written to FILE: instructions, instructions in skip <= address < skip_end, loaded words, stored words, taken
 * branches, modelled cycles, loads from data <= address < data_end, modelled cycles with the flash, and the stalls for
 * code and for data in them. Before each instruction at a `mark`, a line with the counts so far is written as well.
 *
 * The flash is at flash_from <= address < flash_to, which may be repeated; flash.h describes its model. Without these
 * options it has no stalls.
 *
 * The model of cycles is for Arm's Thumb code on processors without caches and wait states (Cortex-M3: r2p1's
 * Technical Reference Manual, 3.3; Cortex-M4: r0p1's, 3.3):
 *
 *   every instruction                      1
 *   a load of n words                     +n, one less for a load of one word after a load of one word (pipelined)
 *   a store of n words, n > 1             +n; a store of one word is buffered
 *   a taken branch                        +2 (refill of the pipeline; the manual has 1 to 3)
 *   SDIV, UDIV                            +6 (the manuals have 2 to 12 cycles in total, which depend on the operands)
 *   Cortex-M3 (m3=1): MLA, MLS            +1; a multiplication with a 64-bit result +3, with addition +4
 *
 * With thumb=0, for other processors, each instruction takes one cycle. For vector instructions the column means nothing.
 *
 * The prototypes are those of QEMU's plugin interface: distributions do not ship qemu-plugin.h.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flash.h"

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION 1
#endif
#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
						  void (*callback)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
						   void (*callback)(unsigned int, void *), int flags, void *data);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
					     void (*callback)(unsigned int, uint32_t, uint64_t, void *), int flags,
					     int access, void *data);

/* QEMU_PLUGIN_MEM_RW: with QEMU_PLUGIN_MEM_R QEMU 7.2 reports few loads. Constants are not written. */
#define ACCESSES 3

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

/** What the model reads of one instruction. */
struct instruction {
	uint64_t address;
	uint8_t size;
	/** Words that it loads and stores. */
	uint8_t loads;
	uint8_t stores;
	/** Whether it is a load of one word that a following load can overlap. */
	bool is_single;
	/** Further cycles of a multiplication or division. */
	uint8_t more;
	bool is_mark;
	/** Its line of flash; NULL if it is in another memory. */
	uint8_t *line;
};

/** The addresses of the option `mark`. */
#define MAX_MARKS 1024

static uint64_t from, to, skip, skip_end, data, data_end, m3, thumb = 1, mark;
static uint64_t marks[MAX_MARKS];
static size_t mark_count;
static uint64_t total, skipped, loaded, stored, branches, cycles, read;
static bool is_counting;
static const struct instruction *before;
static FILE *out;

/** Return the cycles with those of the flash. */
static uint64_t now(void)
{
	return cycles + code_stalls + data_stalls;
}

static void write_counts(void)
{
	const uint64_t counts[] = {total, skipped, loaded, stored, branches,
				   cycles, read, now(), code_stalls, data_stalls};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		fprintf(out, "%s%llu", i == 0 ? "" : " ", (unsigned long long)counts[i]);
	}
	fputc('\n', out);
	fflush(out);
}

static void executed(unsigned int cpu, void *found)
{
	const struct instruction *one = found;

	(void)cpu;
	if (one->address == from) {
		total = skipped = loaded = stored = branches = cycles = read = 0;
		clear_flash();
		before = NULL;
		is_counting = true;
		return;
	}
	if (!is_counting) {
		return;
	}
	if (before != NULL && one->address != before->address + before->size) {
		branches++;
		cycles += thumb ? 2 : 0;
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
	loaded += one->loads;
	stored += one->stores;
	cycles += 1 + one->loads + one->more + (one->stores > 1 ? one->stores : 0);
	if (one->is_single && before != NULL && before->is_single) {
		cycles--;
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
	line = line_of(address);
	if (line != NULL) {
		data_stalls += stall_of_data(line, now());
	}
}

/** Read a 16-bit Thumb instruction: Arm v7-M Architecture Reference Manual, A5.2. */
static void read_narrow(struct instruction *one, uint32_t code)
{
	const uint32_t top = code >> 12;
	const bool is_load = (code & 0x800) != 0;

	if ((code & 0xf800) == 0x4800) {
		one->loads = 1; /* LDR (literal) */
		one->is_single = true;
	} else if (top == 5) {
		one->is_single = (code >> 9 & 7) >= 3; /* register offset */
		one->loads = one->is_single;
		one->stores = !one->is_single;
	} else if (top >= 6 && top <= 9) {
		one->is_single = is_load; /* immediate offset */
		one->loads = is_load;
		one->stores = !is_load;
	} else if ((code & 0xfe00) == 0xbc00) {
		one->loads = (uint8_t)__builtin_popcount(code & 0x1ff); /* POP */
	} else if ((code & 0xfe00) == 0xb400) {
		one->stores = (uint8_t)__builtin_popcount(code & 0x1ff); /* PUSH */
	} else if (top == 12) {
		*(is_load ? &one->loads : &one->stores) = (uint8_t)__builtin_popcount(code & 0xff); /* LDM, STM */
	}
}

/** Read a 32-bit Thumb instruction: Arm v7-M Architecture Reference Manual, A5.3. */
static void read_wide(struct instruction *one, uint32_t first, uint32_t second)
{
	const bool is_load = (first & 0x10) != 0;

	if ((first & 0xfe40) == 0xe800) {
		*(is_load ? &one->loads : &one->stores) = (uint8_t)__builtin_popcount(second); /* LDM, STM */
	} else if ((first & 0xfe40) == 0xe840 && (first & 0x0120) != 0) {
		*(is_load ? &one->loads : &one->stores) = 2; /* LDRD, STRD */
	} else if ((first & 0xfe00) == 0xf800) {
		one->is_single = is_load; /* LDR, STR and their narrow forms */
		one->loads = is_load;
		one->stores = !is_load;
	} else if ((first & 0xffd0) == 0xfb90) {
		one->more = 6; /* SDIV, UDIV */
	} else if (m3 && (first & 0xfff0) == 0xfb00 && second >> 12 != 15) {
		one->more = 1; /* MLA, MLS */
	} else if (m3 && (first & 0xff90) == 0xfb80) {
		one->more = (first & 0x40) != 0 ? 4 : 3; /* SMLAL, UMLAL; SMULL, UMULL */
	}
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	const size_t count = qemu_plugin_tb_n_insns(block);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *found = qemu_plugin_tb_get_insn(block, i);
		const uint8_t *bytes = qemu_plugin_insn_data(found);
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
		one->size = (uint8_t)qemu_plugin_insn_size(found);
		if (!thumb) {
			/* Loads and stores are not counted. */
		} else if (one->size == 2) {
			read_narrow(one, bytes[0] | (uint32_t)bytes[1] << 8);
		} else {
			read_wide(one, bytes[0] | (uint32_t)bytes[1] << 8, bytes[2] | (uint32_t)bytes[3] << 8);
		}
		qemu_plugin_register_vcpu_insn_exec_cb(found, executed, 0, one);
		if (data_end != 0 || range_count != 0) {
			qemu_plugin_register_vcpu_mem_cb(found, accessed, 0, ACCESSES, NULL);
		}
	}
}

static const char *value_of(const char *argument, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(argument, key, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static uint64_t flash_from, flash_to;
	static const struct {
		const char *key;
		uint64_t *value;
	} numbers[] = {{"from", &from},		  {"to", &to},
		       {"skip", &skip},		  {"skip_end", &skip_end},
		       {"data", &data},		  {"data_end", &data_end},
		       {"m3", &m3},		  {"thumb", &thumb},	      {"mark", &mark},
		       {"flash_from", &flash_from}, {"flash_to", &flash_to},
		       {"wait_states", &wait_states}, {"line", &line_size},
		       {"icache", &code_bytes},	  {"dcache", &data_bytes},
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
				ranges[range_count++] = (struct range){.start = flash_from, .end = flash_to};
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
		fprintf(stderr, "count: line=BYTES of the flash is missing, or there is no memory for its lines\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

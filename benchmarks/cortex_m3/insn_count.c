/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A QEMU TCG plugin: exact instruction counts between two addresses.
 *
 *   -plugin ./insn_count.so,from=ADDRESS,to=ADDRESS,skip=ADDRESS,skip_end=ADDRESS,out=FILE
 *
 * Counting begins after the instruction at `from` was executed and ends before the one at `to`: neither is counted.
 * Each time a line "TOTAL SKIPPED" is written to FILE, where SKIPPED are the instructions of TOTAL with an address in
 * skip <= address < skip_end. One processor only.
 *
 * The prototypes are QEMU's plugin interface, declared here because distributions do not ship qemu-plugin.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
						   void (*callback)(unsigned int, void *), int flags, void *data);

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

static uint64_t from, to, skip, skip_end;
static uint64_t total, skipped;
static int counting;
static FILE *out;

static void executed(unsigned int cpu, void *data)
{
	const uint64_t address = (uint64_t)(uintptr_t)data;

	(void)cpu;
	if (address == from) {
		total = 0;
		skipped = 0;
		counting = 1;
	} else if (address == to && counting) {
		fprintf(out, "%llu %llu\n", (unsigned long long)total, (unsigned long long)skipped);
		fflush(out);
		counting = 0;
	} else if (counting) {
		total++;
		skipped += address >= skip && address < skip_end;
	}
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	const size_t count = qemu_plugin_tb_n_insns(block);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		void *address = (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction);

		qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, 0, address);
	}
}

static const char *value_of(const char *argument, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(argument, key, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static const struct {
		const char *key;
		uint64_t *value;
	} numbers[] = {{"from", &from}, {"to", &to}, {"skip", &skip}, {"skip_end", &skip_end}};

	(void)info;
	for (int i = 0; i < argc; i++) {
		const char *value;

		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			value = value_of(argv[i], numbers[k].key);
			if (value != NULL) {
				*numbers[k].value = strtoull(value, NULL, 0);
			}
		}
		value = value_of(argv[i], "out");
		if (value != NULL) {
			out = fopen(value, "w");
		}
	}
	if (out == NULL || from == 0 || to == 0) {
		fprintf(stderr, "insn_count: from, to and out are required\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

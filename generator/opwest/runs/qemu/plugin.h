/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QEMU's plugin interface, as far as plugins of this package use it: distributions do not ship qemu-plugin.h.
 */
#ifndef PLUGIN_H_
#define PLUGIN_H_

#include <stddef.h>
#include <stdint.h>
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
/* From version 3 on (QEMU 9.1) it copies the bytes; QEMU also loads plugins of version 2. */
#if PLUGIN_VERSION >= 3
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction, void *bytes, size_t size);
#else
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
#endif
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
						   void (*callback)(unsigned int, void *), int flags, void *data);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
					     void (*callback)(unsigned int, uint32_t, uint64_t, void *), int flags,
					     int access, void *data);

/* QEMU_PLUGIN_MEM_RW: with QEMU_PLUGIN_MEM_R QEMU 7.2 reports few loads. Constants are not written. */
#define ACCESSES 3

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

/** The longest instruction that a plugin reads. */
#define MAX_BYTES 4

/** Read an instruction; return its size. */
static inline uint8_t read_instruction(const struct qemu_plugin_insn *instruction, uint8_t bytes[MAX_BYTES])
{
	const size_t size = qemu_plugin_insn_size(instruction);
	const size_t count = size < MAX_BYTES ? size : MAX_BYTES;

#if PLUGIN_VERSION >= 3
	(void)qemu_plugin_insn_data(instruction, bytes, count);
#else
	memcpy(bytes, qemu_plugin_insn_data(instruction), count);
#endif
	return (uint8_t)size;
}

/** Return the value of an option KEY=VALUE of a plugin; NULL for another option. */
static const char *value_of(const char *argument, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(argument, key, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

#endif

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

/** Return the value of an option KEY=VALUE of a plugin; NULL for another option. */
static const char *value_of(const char *argument, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(argument, key, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

#endif

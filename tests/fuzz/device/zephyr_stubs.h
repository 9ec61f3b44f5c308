/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of Zephyr's headers that the service needs, for the fuzzers: fuzz_device.py makes each header of Zephyr. */
#ifndef ZEPHYR_STUBS_H_
#define ZEPHYR_STUBS_H_
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* zephyr/toolchain.h */
#define BUILD_ASSERT(condition, ...) static_assert(condition, "" __VA_ARGS__)

/* zephyr/devicetree.h */
#define DT_HAS_CHOSEN(node) 0

/* zephyr/kernel.h */
/* Threads, identified by number only. */

struct k_spinlock {
	int held;
};
typedef int k_spinlock_key_t;

const void *k_current_get(void);
k_spinlock_key_t k_spin_lock(struct k_spinlock *lock);
void k_spin_unlock(struct k_spinlock *lock, k_spinlock_key_t key);

/* zephyr/logging/log.h */
/* A log that keeps its last line. */

#define LOG_MODULE_DECLARE(...) void stub_log(const char *format, ...)
#define LOG_ERR(...) stub_log(__VA_ARGS__)

/* zephyr/sys/util.h */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define ARG_UNUSED(argument) ((void)(argument))
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

static inline int stub_digit(char c)
{
	const char *const digits = "0123456789abcdef0123456789ABCDEF";
	const char *const at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)((at - digits) % 16) : -1;
}

static inline size_t hex2bin(const char *hex, size_t length, uint8_t *out, size_t room)
{
	if (room < length / 2U) {
		return 0;
	}
	for (size_t i = 0; i < length / 2U; i++) {
		const int high = stub_digit(hex[2U * i]), low = stub_digit(hex[2U * i + 1U]);

		if (high < 0 || low < 0) {
			return 0;
		}
		out[i] = (uint8_t)(high * 16 + low);
	}
	return length / 2U;
}

static inline size_t bin2hex(const uint8_t *data, size_t size, char *hex, size_t room)
{
	if (room < 2U * size + 1U) {
		return 0;
	}
	for (size_t i = 0; i < size; i++) {
		(void)snprintf(&hex[2U * i], 3, "%02x", data[i]);
	}
	return 2U * size;
}

/* zephyr/shell/shell.h */
struct shell;
typedef int (*shell_cmd_handler)(const struct shell *sh, size_t argc, char **argv);
enum { SHELL_NORMAL };

void shell_print(const struct shell *sh, const char *format, ...) __attribute__((format(printf, 2, 3)));
void shell_fprintf(const struct shell *sh, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void stub_add_command(const char *name, shell_cmd_handler handler, size_t argc);

#define SHELL_SUBCMD_ADD(parent, name, subcommand, help, handler, mandatory, optional)                                 \
	__attribute__((constructor)) static void add_##name(void)                                                      \
	{                                                                                                              \
		stub_add_command(#name, handler, mandatory);                                                           \
	}                                                                                                              \
	struct shell

/* zephyr/mgmt/mcumgr/mgmt/handlers.h */
void stub_register_opwest_service(void);

#define MCUMGR_HANDLER_DEFINE(name, function)                                                                          \
	void stub_register_##name(void)                                                                                \
	{                                                                                                              \
		function();                                                                                            \
	}                                                                                                              \
	struct shell

/* zephyr/mgmt/mcumgr/mgmt/mgmt.h */
struct smp_streamer;
typedef int (*mgmt_handler_fn)(struct smp_streamer *ctxt);

struct mgmt_handler {
	mgmt_handler_fn mh_read;
	mgmt_handler_fn mh_write;
};

struct mgmt_group {
	const struct mgmt_handler *mg_handlers;
	uint16_t mg_handlers_count;
	uint16_t mg_group_id;
};

/* enum mcumgr_err_t */
enum {
	MGMT_ERR_EOK = 0,
	MGMT_ERR_EINVAL = 3,
	MGMT_ERR_ENOENT = 5,
	MGMT_ERR_EBADSTATE = 6,
	MGMT_ERR_EMSGSIZE = 7,
	MGMT_ERR_EACCESSDENIED = 11,
};

void mgmt_register_group(struct mgmt_group *group);

/* zephyr/mgmt/mcumgr/smp/smp.h */
#if __has_include(<zcbor_common.h>)
#include <zcbor_common.h>

/* CONFIG_MCUMGR_SMP_CBOR_MAX_DECODING_LEVELS + 2, and as many for encoding */
struct cbor_nb_reader {
	zcbor_state_t zs[7];
};

struct cbor_nb_writer {
	zcbor_state_t zs[7];
};

struct smp_streamer {
	struct cbor_nb_reader *reader;
	struct cbor_nb_writer *writer;
};
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#ifndef STUB_SHELL_H_
#define STUB_SHELL_H_
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
#endif

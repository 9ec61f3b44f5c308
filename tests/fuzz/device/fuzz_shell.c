/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of commands for Zephyr's shell: names, numbers and data of any kind, several in a row. */
#include <stdarg.h>
#include <string.h>

#include <zephyr/shell/shell.h>

#include "source.h"

#define COMMANDS 16
#define WORDS 8

static struct {
	const char *name;
	shell_cmd_handler handler;
	size_t argc;
} commands[COMMANDS];
static size_t command_count;

void stub_add_command(const char *name, shell_cmd_handler handler, size_t argc)
{
	commands[command_count].name = name;
	commands[command_count].handler = handler;
	commands[command_count++].argc = argc;
}

#define FORMAT_ALL(format)                                                                         \
	do {                                                                                       \
		char text[1024];                                                                   \
		va_list arguments;                                                                 \
		va_start(arguments, format);                                                       \
		(void)vsnprintf(text, sizeof(text), format, arguments);                            \
		va_end(arguments);                                                                 \
	} while (0)

void shell_print(const struct shell *sh, const char *format, ...)
{
	(void)sh;
	FORMAT_ALL(format);
}

void shell_fprintf(const struct shell *sh, int level, const char *format, ...)
{
	(void)sh;
	(void)level;
	FORMAT_ALL(format);
}

/* The shell passes words that end in NUL, in the number that a command declares. */
static void execute(char *line)
{
	char *argv[WORDS + 1] = {0};
	size_t argc = 0;

	for (char *word = strtok(line, " "); word != NULL && argc < WORDS; word = strtok(NULL, " ")) {
		argv[argc++] = word;
	}
	for (size_t i = 0; argc > 0U && i < command_count; i++) {
		if (strcmp(argv[0], commands[i].name) == 0 && commands[i].argc == argc) {
			(void)commands[i].handler(NULL, argc, argv);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	subject_reset();
	while (size > 0U) {
		const uint8_t *end = memchr(data, '\n', size);
		const size_t length = end != NULL ? (size_t)(end - data) : size;
		char *line = malloc(length + 1U);

		memcpy(line, data, length);
		line[length] = '\0';
		execute(line);
		free(line);
		data += length + (end != NULL);
		size -= length + (end != NULL);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell commands with which a host, or a person, sends and installs bundles. The response is one
 * line: "@opwest bundle key=value ... *CRC-32". Programs add a last word to each command of a job:
 * "@" with session, number, poll and the CRC-32 of the words before. It permits repetitions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zephyr/shell/shell.h>
#include <zephyr/sys/base64.h>
#include <zephyr/sys/crc.h>
#include <zephyr/sys/util.h>

#include "service_internal.h"

/* The size of a command line without the data: words and numbers. */
#define WORDS 256
/* Bytes of data in a command: base64. */
#define CHUNK ((CONFIG_SHELL_CMD_BUFF_SIZE - WORDS) / 4 * 3)
BUILD_ASSERT(CHUNK > 0, "CONFIG_SHELL_CMD_BUFF_SIZE is too small for data: 1024 is enough");

/* A response. Commands of several shells take turns. */
static K_MUTEX_DEFINE(mutex);
static struct line {
	char text[640];
	size_t length;
} line;

static void append(const char *text)
{
	const size_t length = MIN(strlen(text), sizeof(line.text) - 1U - line.length);

	memcpy(&line.text[line.length], text, length);
	line.length += length;
	line.text[line.length] = '\0';
}

static void put_key(const char *key)
{
	append(" ");
	append(key);
	append("=");
}

static void put_unsigned(struct opwest_bundle_writer *writer, const char *key, uint64_t value)
{
	char digits[21];
	char *digit = &digits[sizeof(digits) - 1U];

	ARG_UNUSED(writer);
	*digit = '\0'; /* not every printf of Zephyr has 64 bits */
	do {
		*--digit = (char)('0' + (char)(value % 10U));
		value /= 10U;
	} while (value != 0U);
	put_key(key);
	append(digit);
}

static void put_signed(struct opwest_bundle_writer *writer, const char *key, int32_t value)
{
	char text[12];

	ARG_UNUSED(writer);
	(void)snprintf(text, sizeof(text), "%" PRId32, value);
	put_key(key);
	append(text);
}

/* Spaces separate fields: they and "%" are percent-encoded. */
static void put_text(struct opwest_bundle_writer *writer, const char *key, const char *text)
{
	ARG_UNUSED(writer);
	put_key(key);
	for (; *text != '\0'; text++) {
		const char c[2] = {*text, '\0'};

		append(*text == ' ' ? "%20" : *text == '%' ? "%25" : c);
	}
}

static void put_bytes(struct opwest_bundle_writer *writer, const char *key, const uint8_t *data,
		      uint32_t size)
{
	ARG_UNUSED(writer);
	put_key(key);
	for (uint32_t i = 0; i < size; i++) {
		char text[3];

		(void)bin2hex(&data[i], 1U, text, sizeof(text));
		append(text);
	}
}

static const struct opwest_bundle_sink sink = {
	.put_unsigned = put_unsigned,
	.put_signed = put_signed,
	.put_text = put_text,
	.put_bytes = put_bytes,
};

static void begin_line(void)
{
	(void)k_mutex_lock(&mutex, K_FOREVER);
	line.length = 0;
	append("@opwest bundle");
}

/* Print the response, or the error of a command without one. */
static int end_line(const struct shell *sh, int rc)
{
	if (rc != 0) {
		line.length = 0;
		append("@opwest bundle");
		put_signed(NULL, "refused", rc);
		put_text(NULL, "error",
			 rc == -EACCES   ? "EACCES"
			 : rc == -EILSEQ ? "EILSEQ"
					 : "EINVAL");
	}
	shell_print(sh, "%s *%08" PRIx32, line.text,
		    crc32_ieee((const uint8_t *)line.text, line.length));
	(void)k_mutex_unlock(&mutex);
	return rc;
}

static bool read_number(const char *word, uint32_t *number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(word, &end, 10);
	*number = (uint32_t)value;
	return end != word && *end == '\0' && errno == 0 && value <= UINT32_MAX;
}

static uint32_t crc_of(size_t argc, char **argv)
{
	uint32_t crc = 0;

	for (size_t i = 0; i < argc; i++) {
		crc = crc32_ieee_update(crc, (const uint8_t *)argv[i], strlen(argv[i]));
		crc = crc32_ieee_update(crc, (const uint8_t *)" ", 1U);
	}
	return crc;
}

/*
 * Take the last word of a program, "@SESSION.NUMBER.POLL.CRC" in hexadecimal digits. The checksum
 * covers the words from the name of the command on, with a space after each, and this one without
 * its last 8 digits.
 */
static int take_mark(size_t *argc, char **argv, struct opwest_bundle_request *request)
{
	char *mark = argv[*argc - 1U];
	const size_t length = strlen(mark);
	uint32_t numbers[3];
	uint32_t found;
	uint32_t crc;
	char *end = mark;

	if (*argc < 2U || mark[0] != '@') {
		return 0;
	}
	if (length < 9U) {
		return -EILSEQ;
	}
	found = (uint32_t)strtoul(&mark[length - 8U], NULL, 16);
	crc = crc_of(*argc - 1U, argv);
	crc = crc32_ieee_update(crc, (const uint8_t *)mark, length - 8U);
	if (crc != found) {
		return -EILSEQ;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		numbers[i] = (uint32_t)strtoul(end + 1, &end, 16);
		if (*end != '.') {
			return -EILSEQ;
		}
	}
	request->session = numbers[0];
	request->number = numbers[1];
	request->polls = numbers[2];
	(*argc)--;
	return 0;
}

static int run_job(const struct shell *sh, const struct opwest_bundle_request *request, int rc)
{
	begin_line();
	if (rc == 0) {
		/* A command without a mark returns at the end of the job. */
		rc = opwest_bundle_put_job(
			request, request->number == 0U ? -1 : OPWEST_BUNDLE_WAIT_MS, &sink);
	}
	return end_line(sh, rc);
}

/* A command without arguments but the mark. */
static int plain(const struct shell *sh, size_t argc, char **argv, enum opwest_bundle_job job)
{
	struct opwest_bundle_request request = {.job = job};
	int rc;

	rc = take_mark(&argc, argv, &request);
	return run_job(sh, &request, rc == 0 && argc != 1U ? -EINVAL : rc);
}

static int cmd_info(const struct shell *sh, size_t argc, char **argv)
{
	int rc;

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	begin_line();
	rc = opwest_bundle_put_info(&sink);
	if (rc == 0) {
		put_unsigned(NULL, "chunk", CHUNK);
	}
	return end_line(sh, rc);
}

static int cmd_state(const struct shell *sh, size_t argc, char **argv)
{
	return plain(sh, argc, argv, OPWEST_BUNDLE_JOB_STATE);
}

static int cmd_list(const struct shell *sh, size_t argc, char **argv)
{
	struct opwest_bundle_request request = {.job = OPWEST_BUNDLE_JOB_LIST};
	int rc;

	rc = take_mark(&argc, argv, &request);
	if (rc == 0 && (argc != 2U || !read_number(argv[1], &request.slot))) {
		rc = -EINVAL;
	}
	return run_job(sh, &request, rc);
}

static int cmd_begin(const struct shell *sh, size_t argc, char **argv)
{
	struct opwest_bundle_request request = {
		.job = OPWEST_BUNDLE_JOB_BEGIN,
		.slot = OPWEST_BUNDLE_NO_SLOT,
	};
	int rc;

	rc = take_mark(&argc, argv, &request);
	if (rc == 0 && (argc < 3U || !read_number(argv[1], &request.size) ||
			strlen(argv[2]) != 2U * sizeof(request.digest) ||
			hex2bin(argv[2], 2U * sizeof(request.digest), request.digest,
				sizeof(request.digest)) != sizeof(request.digest) ||
			(argc == 4U && !read_number(argv[3], &request.slot)) || argc > 4U)) {
		rc = -EINVAL;
	}
	return run_job(sh, &request, rc);
}

/* Decode in place; no data is "-". */
static int take_data(char *word, const uint8_t **data, uint32_t *size)
{
	const size_t length = strlen(word);
	size_t decoded = 0;

	*data = (const uint8_t *)word;
	*size = 0;
	if (strcmp(word, "-") == 0) {
		return 0;
	}
	if (base64_decode((uint8_t *)word, length, &decoded, (const uint8_t *)word, length) != 0) {
		return -EILSEQ;
	}
	*size = (uint32_t)decoded;
	return 0;
}

static int cmd_write(const struct shell *sh, size_t argc, char **argv)
{
	const uint32_t check = (uint32_t)strtoul(argv[3], NULL, 16);
	const uint8_t *data = NULL;
	uint32_t offset = 0;
	uint32_t size = 0;
	int rc;

	ARG_UNUSED(argc);
	rc = read_number(argv[1], &offset) ? take_data(argv[2], &data, &size) : -EINVAL;
	begin_line();
	if (rc == 0) {
		rc = opwest_bundle_put_part(offset, data, size, check, &sink);
	}
	return end_line(sh, rc);
}

static int cmd_install(const struct shell *sh, size_t argc, char **argv)
{
	return plain(sh, argc, argv, OPWEST_BUNDLE_JOB_INSTALL);
}

static int cmd_confirm(const struct shell *sh, size_t argc, char **argv)
{
	return plain(sh, argc, argv, OPWEST_BUNDLE_JOB_CONFIRM);
}

static int cmd_rollback(const struct shell *sh, size_t argc, char **argv)
{
	struct opwest_bundle_request request = {
		.job = OPWEST_BUNDLE_JOB_ROLL_BACK,
		.slot = OPWEST_BUNDLE_NO_SLOT,
	};
	int rc;

	rc = take_mark(&argc, argv, &request);
	if (rc == 0 && ((argc == 2U && !read_number(argv[1], &request.slot)) || argc > 2U)) {
		rc = -EINVAL;
	}
	return run_job(sh, &request, rc);
}

static int cmd_steps(const struct shell *sh, size_t argc, char **argv)
{
	return plain(sh, argc, argv, OPWEST_BUNDLE_JOB_STEPS);
}

static int cmd_part(const struct shell *sh, size_t argc, char **argv)
{
	struct opwest_bundle_request request = {.job = OPWEST_BUNDLE_JOB_PART};
	int rc;

	rc = take_mark(&argc, argv, &request);
	if (rc == 0 &&
	    (argc != 5U || !read_number(argv[1], &request.point) ||
	     !read_number(argv[2], &request.buffer) || !read_number(argv[3], &request.offset))) {
		rc = -EINVAL;
	}
	if (rc == 0) {
		rc = take_data(argv[4], &request.data, &request.data_size);
	}
	return run_job(sh, &request, rc);
}

SHELL_STATIC_SUBCMD_SET_CREATE(
	commands,
	SHELL_CMD_ARG(info, NULL, "Print the versions and the number of slots.", cmd_info, 1, 0),
	SHELL_CMD_ARG(state, NULL, "Print which slots are active, being tried, previous.",
		      cmd_state, 1, 1),
	SHELL_CMD_ARG(list, NULL,
		      "Describe a slot and verify its bundle.\n"
		      "Usage: opwest bundle list SLOT",
		      cmd_list, 2, 1),
	SHELL_CMD_ARG(begin, NULL,
		      "Erase a slot and begin an upload, or continue it.\n"
		      "Usage: opwest bundle begin SIZE SHA512 [SLOT]",
		      cmd_begin, 3, 2),
	SHELL_CMD_ARG(write, NULL,
		      "Write a part of the upload. CHECK is the CRC-32 of 8 bytes of the SHA-512, "
		      "4 of the offset, and the part.\n"
		      "Usage: opwest bundle write OFFSET BASE64 CHECK",
		      cmd_write, 4, 0),
	SHELL_CMD_ARG(install, NULL, "Verify, try and activate the uploaded bundle.", cmd_install,
		      1, 1),
	SHELL_CMD_ARG(confirm, NULL, "Confirm the model that is being tried.", cmd_confirm, 1, 1),
	SHELL_CMD_ARG(rollback, NULL,
		      "Return to the previous model, if the current one is in SLOT.\n"
		      "Usage: opwest bundle rollback [SLOT]",
		      cmd_rollback, 1, 2),
	SHELL_CMD_ARG(steps, NULL, "Compare the results of steps with those in the bundle.",
		      cmd_steps, 1, 1),
	SHELL_CMD_ARG(part, NULL,
		      "Compare a part of a tensor after a step with given bytes.\n"
		      "Usage: opwest bundle part POINT BUFFER OFFSET BASE64",
		      cmd_part, 5, 1),
	SHELL_SUBCMD_SET_END);

SHELL_SUBCMD_ADD((opwest), bundle, &commands, "Send, install and roll back bundles.", NULL, 1, 0);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell commands with which a host runs the models of this image. Lines for
 * programs begin with "@opwest", to distinguish them from other output.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <zephyr/shell/shell.h>
#include <zephyr/sys/util.h>

#include <opwest/errors.h>

#include "service_internal.h"

/* The size of a command line without the data of "opwest write": names and numbers. */
#define WORDS 256
/* Bytes of data in a command and in a response. */
#define CHUNK ((CONFIG_SHELL_CMD_BUFF_SIZE - WORDS) / 2)
BUILD_ASSERT(CHUNK > 0, "CONFIG_SHELL_CMD_BUFF_SIZE is too small for data: 1024 is enough");

static int refuse(const struct shell *sh, int error)
{
	shell_print(sh, "@opwest error %d %s", error, opwest_error_name(error));
	return error;
}

/* The first check of every command. */
static int check_access(const struct shell *sh)
{
	return opwest_service_is_permitted() ? 0 : refuse(sh, -EACCES);
}

static const struct opwest_served_model *find_model(const char *name)
{
	for (uint32_t i = 0; i < opwest_service_model_count(); i++) {
		const struct opwest_served_model *served = opwest_service_model(i);

		if (strcmp(served->model->name, name) == 0) {
			return served;
		}
	}
	return NULL;
}

static const char *role_of(const struct opwest_served_model *served, uint16_t tensor)
{
	const struct opwest_model *const model = served->model;

	if (tensor < model->input_count) {
		return "input";
	}
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (opwest_service_tensor(served, tensor) == served->arguments) {
		return "arguments";
	}
#endif
#ifdef CONFIG_OPWEST_CHECK_STEPS
	if (tensor - model->input_count >= model->output_count) {
		return "buffer";
	}
#endif
	return "output";
}

/* All models and tensors, in one response. */
static int cmd_describe(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	shell_print(sh, "@opwest service %d %u %u", OPWEST_SERVICE_VERSION,
		    (unsigned int)opwest_service_model_count(), (unsigned int)CHUNK);
	for (uint32_t i = 0; i < opwest_service_model_count(); i++) {
		const struct opwest_served_model *served = opwest_service_model(i);
		const struct opwest_tensor *tensor;

		shell_print(sh, "@opwest model %s", served->model->name);
		for (uint16_t j = 0; (tensor = opwest_service_tensor(served, j)) != NULL; j++) {
#ifdef CONFIG_OPWEST_CHECK_STEPS
			if (strchr(tensor->name, ' ') != NULL) {
				continue; /* the scratch memory of a step: no word of a command */
			}
#endif
			shell_fprintf(sh, SHELL_NORMAL, "@opwest %s %s %s %" PRIu32,
				      role_of(served, j), tensor->name,
				      opwest_dtype_name(tensor->dtype), tensor->size);
			for (uint8_t k = 0; k < tensor->rank; k++) {
				shell_fprintf(sh, SHELL_NORMAL, " %" PRIu32, tensor->shape[k]);
			}
			shell_fprintf(sh, SHELL_NORMAL, "\n");
		}
	}
	shell_print(sh, "@opwest end");
	return 0;
}

/* "-" for an empty field. */
static const char *word(const char *text)
{
	return text[0] != '\0' ? text : "-";
}

static int print_report(const struct shell *sh, const struct opwest_service_report *report)
{
	shell_print(sh, "@opwest done %d %s %d %s %s %s %d %" PRIu64, report->result,
		    word(report->error), (int)report->code, word(report->hook),
		    word(report->device), word(report->operator_name), (int)report->step,
		    report->nanoseconds);
	return report->result;
}

static int act(const struct shell *sh, const char *name, enum opwest_service_action action)
{
	const struct opwest_served_model *served = find_model(name);
	struct opwest_service_report report;

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (served == NULL) {
		return refuse(sh, -ENOENT);
	}
	opwest_service_lock();
	opwest_service_do(served, action, &report);
	opwest_service_unlock();
	return print_report(sh, &report);
}

static int cmd_open(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return act(sh, argv[1], OPWEST_SERVICE_OPEN);
}

static int cmd_run(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return act(sh, argv[1], OPWEST_SERVICE_RUN);
}

static int cmd_close(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	return act(sh, argv[1], OPWEST_SERVICE_CLOSE);
}

static int cmd_write(const struct shell *sh, size_t argc, char **argv)
{
	const struct opwest_served_model *served = find_model(argv[1]);
	const uint32_t offset = strtoul(argv[3], NULL, 10);
	const size_t length = strlen(argv[4]);
	uint16_t index;
	int rc = served != NULL ? opwest_service_find(served, argv[2], &index) : -ENOENT;
	uint32_t done = 0;

	ARG_UNUSED(argc);

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (rc == 0 && length % 2U != 0U) {
		rc = -EINVAL;
	}
	opwest_service_lock();
	while (rc == 0 && 2U * done < length) {
		uint8_t data[32];
		const size_t part = MIN(sizeof(data), length / 2U - done);

		if (hex2bin(&argv[4][2U * done], 2U * part, data, sizeof(data)) != part) {
			rc = -EINVAL;
			break;
		}
		rc = opwest_service_write(served, index, offset + done, data, part);
		done += part;
	}
	opwest_service_unlock();
	if (rc != 0) {
		return refuse(sh, rc);
	}
	shell_print(sh, "@opwest wrote %" PRIu32 " %" PRIu32, offset, done);
	return 0;
}

static int cmd_read(const struct shell *sh, size_t argc, char **argv)
{
	const struct opwest_served_model *served = find_model(argv[1]);
	const uint32_t offset = strtoul(argv[3], NULL, 10);
	const uint8_t *data;
	uint32_t size = CHUNK;
	uint16_t index;
	int rc = served != NULL ? opwest_service_find(served, argv[2], &index) : -ENOENT;

	ARG_UNUSED(argc);

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (rc != 0) {
		return refuse(sh, rc);
	}
	opwest_service_lock();
	rc = opwest_service_read(served, index, offset, &data, &size);
	if (rc != 0) {
		opwest_service_unlock();
		return refuse(sh, rc);
	}
	shell_fprintf(sh, SHELL_NORMAL, "@opwest data %" PRIu32 " %" PRIu32 " ", offset, size);
	for (uint32_t done = 0; done < size; done += 32U) {
		char text[65];

		(void)bin2hex(data + done, MIN(32U, size - done), text, sizeof(text));
		shell_fprintf(sh, SHELL_NORMAL, "%s", text);
	}
	opwest_service_unlock();
	shell_fprintf(sh, SHELL_NORMAL, "\n");
	return 0;
}

#ifdef CONFIG_OPWEST_CHECK_STEPS
static int cmd_until(const struct shell *sh, size_t argc, char **argv)
{
	const struct opwest_served_model *served = find_model(argv[1]);
	const uint32_t point = strtoul(argv[2], NULL, 10);
	struct opwest_service_report report;

	ARG_UNUSED(argc);

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (served == NULL) {
		return refuse(sh, -ENOENT);
	}
	opwest_service_lock();
	opwest_service_run_until(served, point, &report);
	opwest_service_unlock();
	if (report.stopped) {
		shell_print(sh, "@opwest stopped %" PRIu32, point);
		return 0;
	}
	return print_report(sh, &report);
}

SHELL_SUBCMD_ADD((opwest), until, NULL,
		 "Run an open model until a point ends, or continue to the next one.\n"
		 "Usage: opwest until MODEL POINT",
		 cmd_until, 3, 0);
#endif

#ifdef CONFIG_OPWEST_SERVICE_CALL
static int cmd_call(const struct shell *sh, size_t argc, char **argv)
{
	const struct opwest_served_model *served = find_model(argv[1]);
	const uint32_t device = argc > 3U ? strtoul(argv[3], NULL, 10) : OPWEST_NO_DEVICE;
	struct opwest_service_report report;

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (served == NULL) {
		return refuse(sh, -ENOENT);
	}
	opwest_service_lock();
	opwest_service_do_call(served, strtoul(argv[2], NULL, 10), device, &report);
	opwest_service_unlock();
	return print_report(sh, &report);
}

SHELL_SUBCMD_ADD((opwest), call, NULL,
		 "Call an operator of an open model, by index, on the written arguments.\n"
		 "Usage: opwest call MODEL OPERATOR [DEVICE]",
		 cmd_call, 3, 1);
#endif

#ifdef CONFIG_OPWEST_PROFILE
static int cmd_measures(const struct shell *sh, size_t argc, char **argv)
{
	const struct opwest_served_model *served = find_model(argv[1]);
	uint32_t used = 0U;
	uint32_t size = 0U;

	ARG_UNUSED(argc);

	if (check_access(sh) != 0) {
		return -EACCES;
	}
	if (served == NULL) {
		return refuse(sh, -ENOENT);
	}
	opwest_service_lock();
	(void)opwest_service_stack(&used, &size);
	shell_print(sh, "@opwest measures %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32,
		    served->profile->count, opwest_profile_frequency(), used, size);
	for (uint32_t i = 0; i < served->profile->count; i++) {
		const struct opwest_measure *const measure = &served->profile->measures[i];
		const struct opwest_point *const point = &served->profile->points[i];

		shell_print(sh,
			    "@opwest point %" PRIu32 " %s %s %u %u %" PRIu32 " %" PRIu64 " %" PRIu64
			    " %" PRIu64 " %" PRIu64,
			    i, opwest_point_kind_name(point->kind), point->name, point->step,
			    point->device, measure->runs, measure->last, measure->min, measure->max,
			    measure->total);
	}
	opwest_service_unlock();
	shell_print(sh, "@opwest end");
	return 0;
}

SHELL_SUBCMD_ADD((opwest), measures, NULL,
		 "Print the measurements of a model, for a program.\n"
		 "Usage: opwest measures MODEL",
		 cmd_measures, 2, 0);
#endif

SHELL_SUBCMD_ADD((opwest), describe, NULL, "Describe the models of this image, for a program.",
		 cmd_describe, 1, 0);
SHELL_SUBCMD_ADD((opwest), open, NULL,
		 "Open a model.\n"
		 "Usage: opwest open MODEL",
		 cmd_open, 2, 0);
SHELL_SUBCMD_ADD((opwest), write, NULL,
		 "Write a part of an input.\n"
		 "Usage: opwest write MODEL INPUT OFFSET HEX",
		 cmd_write, 5, 0);
SHELL_SUBCMD_ADD((opwest), run, NULL,
		 "Run an open model.\n"
		 "Usage: opwest run MODEL",
		 cmd_run, 2, 0);
SHELL_SUBCMD_ADD((opwest), read, NULL,
		 "Read a part of an input or output.\n"
		 "Usage: opwest read MODEL TENSOR OFFSET",
		 cmd_read, 4, 0);
SHELL_SUBCMD_ADD((opwest), close, NULL,
		 "Close a model.\n"
		 "Usage: opwest close MODEL",
		 cmd_close, 2, 0);

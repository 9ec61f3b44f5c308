/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <zephyr/shell/shell.h>

#include <opwest/zephyr.h>

static void print_tensor(const struct shell *sh, const char *role,
			 const struct opwest_tensor *tensor)
{
	shell_fprintf(sh, SHELL_NORMAL, "    %-7s %-24s %s", role, tensor->name,
		      opwest_dtype_name(tensor->dtype));
	for (uint8_t i = 0; i < tensor->rank; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%s%u", i == 0U ? " [" : ", ",
			      (unsigned int)tensor->shape[i]);
	}
	shell_fprintf(sh, SHELL_NORMAL, "%s, %u bytes\n", tensor->rank == 0U ? "" : "]",
		      (unsigned int)tensor->size);
}

static int cmd_models(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);

	STRUCT_SECTION_FOREACH(opwest_listed_model, listed) {
		const struct opwest_model *model = listed->model;

		shell_print(sh, "%s: %u operators, %u steps, %u devices, %u bytes of constants",
			    model->name, model->operator_count, model->step_count,
			    model->device_count, (unsigned int)model->constant_size);
		for (uint16_t i = 0; i < model->pool_count; i++) {
			shell_print(sh, "    pool    %-24s %u bytes", model->pools[i].name,
				    (unsigned int)model->pools[i].size);
		}
		for (uint16_t i = 0; i < model->device_count; i++) {
			shell_print(sh, "    device  %s", model->devices[i].name);
		}
		for (uint16_t i = 0; i < model->input_count; i++) {
			print_tensor(sh, "input", &model->inputs[i]);
		}
		for (uint16_t i = 0; i < model->output_count; i++) {
			print_tensor(sh, "output", &model->outputs[i]);
		}
	}
	return 0;
}

static int cmd_operators(const struct shell *sh, size_t argc, char **argv)
{
	static const char *const roles[] = {"in", "out", "inout", "scratch"};

	ARG_UNUSED(argc);

	STRUCT_SECTION_FOREACH(opwest_listed_model, listed) {
		const struct opwest_model *model = listed->model;

		if (strcmp(model->name, argv[1]) != 0) {
			continue;
		}
		for (uint16_t i = 0; i < model->operator_count; i++) {
			const struct opwest_operator *info = &model->operators[i];

			shell_print(sh, "%s%s%s", info->name,
				    (info->flags & OPWEST_OPERATOR_DEVICE) != 0U ? ", on a device"
										 : "",
				    (info->flags & OPWEST_OPERATOR_STATEFUL) != 0U ? ", stateful"
										   : "");
			for (uint16_t j = 0; j < info->arg_count; j++) {
				print_tensor(sh, roles[info->args[j].direction], &info->args[j]);
			}
		}
		return 0;
	}
	shell_error(sh, "There is no model %s. \"opwest models\" lists them.", argv[1]);
	return -ENOENT;
}

/* Other files add subcommands. */
SHELL_SUBCMD_SET_CREATE(opwest_commands, (opwest));

SHELL_SUBCMD_ADD((opwest), models, NULL, "List the models of this image.", cmd_models, 1, 0);
SHELL_SUBCMD_ADD((opwest), operators, NULL,
		 "List the operators of a model.\n"
		 "Usage: opwest operators MODEL",
		 cmd_operators, 2, 0);

SHELL_CMD_REGISTER(opwest, &opwest_commands, "Models made by opwest", NULL);

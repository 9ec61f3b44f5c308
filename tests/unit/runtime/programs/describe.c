/* SPDX-License-Identifier: Apache-2.0 */
/* Prints all metadata of models as JSON, one a line. */
#include <stdio.h>
#include <string.h>

#include <MODEL_HEADER>
#include <opwest/accelerator.h>

static void text(const char *value)
{
	if (value == NULL) {
		printf("null");
		return;
	}
	putchar('"');
	for (const char *c = value; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\') {
			putchar('\\');
		}
		putchar(*c);
	}
	putchar('"');
}

static void tensor(const struct opwest_tensor *t)
{
	static const char *const directions[] = {"in", "out", "inout", "scratch"};

	printf("{\"name\": ");
	text(t->name);
	printf(", \"dtype\": ");
	text(opwest_dtype_name(t->dtype));
	printf(", \"shape\": [");
	for (unsigned int i = 0; i < t->rank; i++) {
		printf("%s%lu", i == 0U ? "" : ", ", (unsigned long)t->shape[i]);
	}
	printf("], \"no_shape\": %s", t->shape == NULL ? "true" : "false");
	printf(", \"size\": %lu, \"direction\": \"%s\", \"scalar\": %s, \"quantization\": ", (unsigned long)t->size,
	       directions[t->direction], (t->flags & OPWEST_TENSOR_SCALAR) != 0U ? "true" : "false");
	if (t->quantization == NULL) {
		printf("null}");
		return;
	}

	const struct opwest_quantization *const q = t->quantization;

	printf("{\"scales\": [");
	for (uint32_t i = 0; i < q->scale_count; i++) {
		printf("%s%.17g", i == 0U ? "" : ", ", (double)q->scales[i]);
	}
	printf("], \"zero_points\": [");
	for (uint32_t i = 0; i < q->zero_point_count; i++) {
		printf("%s%ld", i == 0U ? "" : ", ", (long)q->zero_points[i]);
	}
	printf("], \"axis\": %ld}}", (long)q->axis);
}

static void tensors(const char *key, const struct opwest_tensor *list, unsigned int count)
{
	printf("\"%s\": [", key);
	for (unsigned int i = 0; i < count; i++) {
		printf("%s", i == 0U ? "" : ", ");
		tensor(&list[i]);
	}
	printf("]");
}

static void describe(const struct opwest_model *m)
{
	printf("{\"name\": ");
	text(m->name);
	printf(", \"version\": %u, \"constant_size\": %lu, ", m->version, (unsigned long)m->constant_size);
	tensors("inputs", m->inputs, m->input_count);
	printf(", ");
	tensors("outputs", m->outputs, m->output_count);
	printf(", \"operators\": [");
	for (unsigned int i = 0; i < m->operator_count; i++) {
		const struct opwest_operator *const o = &m->operators[i];

		printf("%s{\"name\": ", i == 0U ? "" : ", ");
		text(o->name);
		printf(", \"description\": ");
		text(o->description);
		printf(", \"status\": %s, \"device\": %s, \"stateful\": %s, \"async\": %s, ",
		       (o->flags & OPWEST_OPERATOR_STATUS) != 0U ? "true" : "false",
		       (o->flags & OPWEST_OPERATOR_DEVICE) != 0U ? "true" : "false",
		       (o->flags & OPWEST_OPERATOR_STATEFUL) != 0U ? "true" : "false",
		       (o->flags & OPWEST_OPERATOR_ASYNC) != 0U ? "true" : "false");
		tensors("args", o->args, o->arg_count);
		printf("}");
	}
	printf("], \"steps\": [");
	for (uint16_t i = 0; i < m->step_count; i++) {
		const struct opwest_step *const s = &m->steps[i];

		printf("%s[", i == 0U ? "" : ", ");
		text(opwest_model_step_name(m, i));
		printf(", ");
		text(s->device_index == OPWEST_NO_DEVICE ? NULL : m->devices[s->device_index].name);
		printf("]");
	}
	printf("], \"pools\": [");
	for (unsigned int i = 0; i < m->pool_count; i++) {
		printf("%s{\"name\": ", i == 0U ? "" : ", ");
		text(m->pools[i].name);
		printf(", \"size\": %lu, \"align\": %lu}", (unsigned long)m->pools[i].size,
		       (unsigned long)m->pools[i].align);
	}
	printf("], \"devices\": [");
	for (unsigned int i = 0; i < m->device_count; i++) {
		printf("%s{\"name\": ", i == 0U ? "" : ", ");
		text(m->devices[i].name);
		printf(", \"type\": ");
		text(m->devices[i].type);
		printf(", \"program\": ");
		text(m->devices[i].program == NULL ? NULL : m->devices[i].program->name);
		printf(", \"bytes\": [");
		for (uint32_t k = 0; m->devices[i].program != NULL && k < m->devices[i].program->size; k++) {
			printf("%s%u", k == 0U ? "" : ", ", m->devices[i].program->data[k]);
		}
		printf("], \"timeout_ms\": %ld, \"hooks\": %s, \"foreign\": %s}", (long)m->devices[i].timeout_ms,
		       (m->devices[i].flags & OPWEST_DEVICE_HOOKS) != 0U ? "true" : "false",
		       (m->devices[i].flags & OPWEST_DEVICE_FOREIGN) != 0U ? "true" : "false");
	}
	printf("], \"past_the_end\": ");
	text(opwest_model_step_name(m, m->step_count));
	printf(", \"found\": %s}\n",
	       (m->input_count == 0U || opwest_model_input(m, m->inputs[m->input_count - 1U].name) ==
						&m->inputs[m->input_count - 1U]) &&
			       opwest_model_output(m, m->outputs[m->output_count - 1U].name) ==
				       &m->outputs[m->output_count - 1U] &&
			       opwest_model_input(m, "no such tensor") == NULL &&
			       opwest_model_output(m, "") == NULL
		       ? "true"
		       : "false");
}

int main(void)
{
	static const struct opwest_model *const models[] = {MODELS};

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		describe(models[i]);
	}
	return 0;
}

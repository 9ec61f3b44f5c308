/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <opwest/model.h>

#define DTYPE(NAME, value, name, size, kind, exponent) [OPWEST_##NAME] = {name, size},

static const struct {
	const char name[12];
	uint8_t size;
} dtypes[] = {OPWEST_DTYPES(DTYPE)};

const char *opwest_dtype_name(uint8_t dtype)
{
	return dtype < OPWEST_ARRAY_SIZE(dtypes) ? dtypes[dtype].name : NULL;
}

size_t opwest_dtype_size(uint8_t dtype)
{
	return dtype < OPWEST_ARRAY_SIZE(dtypes) ? dtypes[dtype].size : 0;
}

static const struct opwest_tensor *find(const struct opwest_tensor *tensors, size_t count,
					const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(tensors[i].name, name) == 0) {
			return &tensors[i];
		}
	}
	return NULL;
}

const struct opwest_tensor *opwest_model_input(const struct opwest_model *model, const char *name)
{
	return find(model->inputs, model->input_count, name);
}

const struct opwest_tensor *opwest_model_output(const struct opwest_model *model, const char *name)
{
	return find(model->outputs, model->output_count, name);
}

const char *opwest_model_step_name(const struct opwest_model *model, uint16_t step)
{
	if (step >= model->step_count) {
		return NULL;
	}
	return model->operators[model->steps[step].operator_index].name;
}

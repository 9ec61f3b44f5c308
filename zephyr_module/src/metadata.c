/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <opwest/model.h>

static const struct {
	const char name[9];
	uint8_t size;
} dtypes[] = {
	[OPWEST_INT8] = {"int8", 1},       [OPWEST_UINT8] = {"uint8", 1},
	[OPWEST_INT16] = {"int16", 2},     [OPWEST_UINT16] = {"uint16", 2},
	[OPWEST_INT32] = {"int32", 4},     [OPWEST_UINT32] = {"uint32", 4},
	[OPWEST_INT64] = {"int64", 8},     [OPWEST_UINT64] = {"uint64", 8},
	[OPWEST_FLOAT16] = {"float16", 2}, [OPWEST_FLOAT32] = {"float32", 4},
	[OPWEST_FLOAT64] = {"float64", 8}, [OPWEST_BOOL] = {"bool", 1},
};

const char *opwest_dtype_name(uint8_t dtype)
{
	return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].name : NULL;
}

size_t opwest_dtype_size(uint8_t dtype)
{
	return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].size : 0;
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

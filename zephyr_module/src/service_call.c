/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <opwest/device_calls.h>
#include <opwest/service.h>

/* An entry of the table at the begin of the argument memory: little-endian on all machines. */
static uint64_t entry_of(const uint8_t *memory, uint16_t index)
{
	uint64_t bits = 0U;

	for (int i = 7; i >= 0; i--) {
		bits = bits << 8 | memory[8U * index + (unsigned int)i];
	}
	return bits;
}

static int value_of(const struct opwest_served_model *served, const struct opwest_tensor *declared,
		    uint64_t bits, struct opwest_value *value)
{
	if ((declared->flags & OPWEST_TENSOR_SCALAR) != 0U) {
		if (declared->dtype == OPWEST_FLOAT32 || declared->dtype == OPWEST_FLOAT64) {
			double number;

			memcpy(&number, &bits, sizeof(number));
			*value = opwest_real(declared->dtype, number);
		} else {
			*value = opwest_integer(declared->dtype, (int64_t)bits);
		}
		return 0;
	}
	if (bits > served->arguments->size || declared->size > served->arguments->size - bits) {
		return -ERANGE;
	}

	uint8_t *const data = served->argument_memory + bits;

	*value = declared->direction == OPWEST_IN
			 ? opwest_in(declared->dtype, data, declared->size)
			 : opwest_out(declared->dtype, data, declared->size);
	return 0;
}

int opwest_service_call(const struct opwest_served_model *served, uint32_t index, uint32_t device)
{
	const struct opwest_model *const model = served->model;
	const struct opwest_operator *info;
	struct opwest_call_device called;

	if (index >= model->operator_count) {
		return -ENOENT;
	}
	if (!*served->opened) {
		return -EPERM;
	}
	if (device != OPWEST_NO_DEVICE && device >= model->device_count) {
		return -ENODEV;
	}
	info = &model->operators[index];
	for (uint16_t i = 0; i < info->arg_count; i++) {
		const uint64_t bits = entry_of(served->argument_memory, i);
		const int rc = value_of(served, &info->args[i], bits, &served->values[i]);

		if (rc != 0) {
			return rc;
		}
	}
	if (device != OPWEST_NO_DEVICE) {
		called = served->device(device);
	}
	return opwest_call(opwest_find(served->registry, info->name), served->values,
			   info->arg_count, device != OPWEST_NO_DEVICE ? &called : NULL);
}

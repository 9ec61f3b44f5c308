/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>

#include <opwest/registry.h>

static bool is_real(uint8_t dtype)
{
	return dtype == OPWEST_FLOAT32 || dtype == OPWEST_FLOAT64;
}

/* Whether an integer is a value of the type: an adapter casts it without another look. */
static bool in_range(uint8_t dtype, int64_t number)
{
	switch (dtype) {
	case OPWEST_INT8:
		return number >= INT8_MIN && number <= INT8_MAX;
	case OPWEST_UINT8:
		return number >= 0 && number <= UINT8_MAX;
	case OPWEST_INT16:
		return number >= INT16_MIN && number <= INT16_MAX;
	case OPWEST_UINT16:
	case OPWEST_FLOAT16:
		return number >= 0 && number <= UINT16_MAX;
	case OPWEST_INT32:
		return number >= INT32_MIN && number <= INT32_MAX;
	case OPWEST_UINT32:
		return number >= 0 && number <= (int64_t)UINT32_MAX;
	case OPWEST_BOOL:
		return number == 0 || number == 1;
	default:
		return true;
	}
}

static bool fits(const struct opwest_tensor *wanted, const struct opwest_value *given)
{
	if (given->dtype != wanted->dtype) {
		return false;
	}
	if ((wanted->flags & OPWEST_TENSOR_SCALAR) != 0U) {
		if (is_real(wanted->dtype)) {
			return given->kind == OPWEST_VALUE_REAL;
		}
		return given->kind == OPWEST_VALUE_INTEGER &&
		       in_range(wanted->dtype, given->as.integer);
	}
	if (given->kind != (wanted->direction == OPWEST_IN ? OPWEST_VALUE_IN : OPWEST_VALUE_OUT)) {
		return false;
	}

	const uintptr_t address = given->kind == OPWEST_VALUE_IN ? (uintptr_t)given->as.in
								 : (uintptr_t)given->as.out;

	return address != 0U && address % OPWEST_TENSOR_ALIGN(wanted->flags) == 0U &&
	       given->size >= wanted->size;
}

int opwest_call(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		const struct device *dev)
{
	if (entry == NULL) {
		return -ENOENT;
	}

	const struct opwest_operator *info = entry->info;

	if (count != info->arg_count || (count > 0U && args == NULL)) {
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (!fits(&info->args[i], &args[i])) {
			return -EINVAL;
		}
	}
	if ((dev != NULL) != ((info->flags & OPWEST_OPERATOR_DEVICE) != 0U)) {
		return -ENODEV;
	}
	if (entry->adapter == NULL) {
		return -ENOTSUP;
	}

	const int32_t code = entry->adapter(args, dev);

	return code > 0 ? -EIO : (int)code;
}

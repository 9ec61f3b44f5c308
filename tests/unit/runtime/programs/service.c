/* SPDX-License-Identifier: Apache-2.0 */
/* The portable part of the service with a test model: any request of a host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <opwest/errors.h>
#include <opwest/service.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%d: %s\n", __LINE__, #condition);                                  \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static const uint32_t shape[] = {2, 5};
static const struct opwest_tensor inputs[] = {
	{.name = "a", .shape = shape, .size = 10, .rank = 2},
	{.name = "placed", .size = 1},
};
static const struct opwest_tensor outputs[] = {{.name = "y", .size = 4}};
static const struct opwest_model model = {
	.name = "subject", .inputs = inputs, .outputs = outputs, .input_count = 2, .output_count = 1};

static bool opened;
static int opens, closes, open_result;
static struct opwest_status status = OPWEST_STATUS_INIT;
static uint8_t a[10], y[4] = {1, 2, 3, 4};

static int open_model(void)
{
	opens++;
	opened = open_result == 0;
	return open_result;
}

static int run_model(void)
{
	return 0;
}

static int close_model(void)
{
	closes++;
	opened = false;
	return 0;
}

static uint8_t *memory(uint16_t index)
{
	return index == 0 ? a : index == 2 ? y : NULL;
}

static const struct opwest_served_model served = {
	.model = &model,
	.status = &status,
	.opened = &opened,
	.open = open_model,
	.run = run_model,
	.close = close_model,
	.memory = memory,
};

static int tensors(void)
{
	uint16_t index = 99;

	CHECK(opwest_service_tensor(&served, 0) == &inputs[0]);
	CHECK(opwest_service_tensor(&served, 1) == &inputs[1]);
	CHECK(opwest_service_tensor(&served, 2) == &outputs[0]);
	CHECK(opwest_service_tensor(&served, 3) == NULL);
	CHECK(opwest_service_tensor(&served, UINT16_MAX) == NULL);
	CHECK(opwest_service_find(&served, "y", &index) == 0 && index == 2);
	CHECK(opwest_service_find(&served, "placed", &index) == 0 && index == 1);
	CHECK(opwest_service_find(&served, "plac", &index) == -ENOENT);
	CHECK(opwest_service_find(&served, "", &index) == -ENOENT);
	return 0;
}

static int closed_models_have_no_data(void)
{
	const uint8_t *data;
	uint32_t size = 1;

	CHECK(opwest_service_write(&served, 0, 0, a, 1) == -EPERM);
	CHECK(opwest_service_read(&served, 2, 0, &data, &size) == -EPERM);
	CHECK(opwest_service_read(&served, 3, 0, &data, &size) == -ENOENT);
	return 0;
}

static int sessions(void)
{
	CHECK(opwest_service_open(&served) == 0 && opens == 1 && closes == 0);
	CHECK(opwest_service_open(&served) == 0 && opens == 2 && closes == 1);
	open_result = -ENODEV;
	CHECK(opwest_service_open(&served) == -ENODEV && closes == 2);
	CHECK(opwest_service_open(&served) == -ENODEV && closes == 2);
	open_result = 0;
	CHECK(opwest_service_open(&served) == 0);
	return 0;
}

static int writes(void)
{
	static const uint8_t part[] = {7, 8, 9};

	CHECK(opwest_service_write(&served, 0, 0, part, 3) == 0 && memcmp(a, part, 3) == 0);
	CHECK(opwest_service_write(&served, 0, 7, part, 3) == 0 && memcmp(a + 7, part, 3) == 0);
	CHECK(opwest_service_write(&served, 0, 8, part, 3) == -ERANGE);
	CHECK(opwest_service_write(&served, 0, 10, part, 0) == 0);
	CHECK(opwest_service_write(&served, 0, 11, part, 0) == -ERANGE);
	CHECK(opwest_service_write(&served, 0, UINT32_MAX, part, 3) == -ERANGE);
	CHECK(opwest_service_write(&served, 0, 1, part, UINT32_MAX) == -ERANGE);
	CHECK(opwest_service_write(&served, 1, 0, part, 1) == -ENOENT); /* no memory */
	CHECK(opwest_service_write(&served, 2, 0, part, 1) == -ENOENT); /* an output */
	CHECK(opwest_service_write(&served, 3, 0, part, 1) == -ENOENT);
	CHECK(a[3] == 0 && y[0] == 1);
	return 0;
}

static int reads(void)
{
	const uint8_t *data = NULL;
	uint32_t size = 3;

	CHECK(opwest_service_read(&served, 2, 0, &data, &size) == 0 && data == y && size == 3);
	size = UINT32_MAX;
	CHECK(opwest_service_read(&served, 2, 1, &data, &size) == 0 && data == y + 1 && size == 3);
	size = 5;
	CHECK(opwest_service_read(&served, 2, 4, &data, &size) == 0 && size == 0);
	CHECK(opwest_service_read(&served, 2, 5, &data, &size) == -ERANGE);
	CHECK(opwest_service_read(&served, 2, UINT32_MAX, &data, &size) == -ERANGE);
	CHECK(opwest_service_read(&served, 1, 0, &data, &size) == -ENOENT);
	return 0;
}

static int names(void)
{
	CHECK(strcmp(opwest_error_name(-EBUSY), "EBUSY") == 0);
	CHECK(strcmp(opwest_error_name(-ETIMEDOUT), "ETIMEDOUT") == 0);
	CHECK(strcmp(opwest_error_name(0), "") == 0);
	CHECK(strcmp(opwest_error_name(-4711), "") == 0);
	return 0;
}

#ifdef CONFIG_OPWEST_SERVICE_CALL
static uint8_t arguments[64];
static const uint32_t arguments_shape[] = {sizeof(arguments)};
static const struct opwest_tensor arguments_tensor = {.name = "@arguments",
						      .shape = arguments_shape,
						      .size = sizeof(arguments),
						      .dtype = OPWEST_UINT8,
						      .rank = 1};
static const uint32_t four[] = {4};
static const struct opwest_tensor args[] = {
	{.name = "x", .shape = four, .size = 4, .dtype = OPWEST_UINT8, .rank = 1},
	{.name = "k", .size = 1, .dtype = OPWEST_INT8, .flags = OPWEST_TENSOR_SCALAR},
	{.name = "r", .size = 4, .dtype = OPWEST_FLOAT32, .flags = OPWEST_TENSOR_SCALAR},
	{.name = "y", .shape = four, .size = 4, .dtype = OPWEST_UINT8, .rank = 1,
	 .direction = OPWEST_OUT},
};
static const struct opwest_operator operators[] = {
	{.name = "add", .args = args, .arg_count = 4},
	{.name = "unknown"},
};
static const struct opwest_model callable_model = {
	.name = "callable", .inputs = inputs, .outputs = outputs, .operators = operators,
	.input_count = 2, .output_count = 1, .operator_count = 2};

static int32_t add(const struct opwest_value *values, const struct opwest_launch *launch)
{
	const uint8_t *const x = values[0].as.in;
	uint8_t *const y_ = values[3].as.out;

	(void)launch;
	for (int i = 0; i < 4; i++) {
		y_[i] = (uint8_t)(x[i] + values[1].as.integer + (int)values[2].as.real);
	}
	return 0;
}

static const struct opwest_entry entry = {.info = operators, .adapter = add};
static struct opwest_value values[4];

/* A registry with one operator. */
const struct opwest_entry *opwest_find(const struct opwest_registry *registry, const char *name)
{
	return registry == NULL && strcmp(name, "add") == 0 ? &entry : NULL;
}

static const struct opwest_served_model callable = {
	.model = &callable_model,
	.status = &status,
	.opened = &opened,
	.open = open_model,
	.run = run_model,
	.close = close_model,
	.memory = memory,
	.arguments = &arguments_tensor,
	.argument_memory = arguments,
	.values = values,
};

static int calls(void)
{
	/* x at 32, k = -1, r = 2.0, y at 60. */
	static const uint8_t table[32] = {32, [8] = 255, 255, 255, 255, 255, 255, 255, 255,
					  [23] = 0x40,   [24] = 60};
	static const uint8_t x[] = {1, 2, 3, 250};
	const uint8_t *data;
	uint32_t size = 64;
	uint16_t index;

	opened = false;
	CHECK(opwest_service_call(&callable, 0, OPWEST_NO_DEVICE) == -EPERM);
	CHECK(opwest_service_open(&callable) == 0);
	CHECK(opwest_service_find(&callable, "@arguments", &index) == 0 && index == 3);
	CHECK(opwest_service_tensor(&callable, 4) == NULL);
	CHECK(opwest_service_write(&callable, 3, 0, table, 32) == 0);
	CHECK(opwest_service_write(&callable, 3, 32, x, 4) == 0);
	CHECK(opwest_service_write(&callable, 3, 61, x, 4) == -ERANGE);
	CHECK(opwest_service_write(&callable, 2, 0, x, 1) == -ENOENT);
	CHECK(opwest_service_call(&callable, 2, OPWEST_NO_DEVICE) == -ENOENT);
	CHECK(opwest_service_call(&callable, 1, OPWEST_NO_DEVICE) == -ENOENT);
	CHECK(opwest_service_call(&callable, 0, 0) == -ENODEV);
	CHECK(opwest_service_call(&callable, 0, OPWEST_NO_DEVICE) == 0);
	CHECK(opwest_service_read(&callable, 3, 60, &data, &size) == 0 && size == 4);
	CHECK(data[0] == 2 && data[1] == 3 && data[2] == 4 && data[3] == 251);
	for (int i = 0; i < 32; i += 24) { /* the offsets of x and y */
		const uint8_t was = arguments[i];

		arguments[i] = 61;
		CHECK(opwest_service_call(&callable, 0, OPWEST_NO_DEVICE) == -ERANGE);
		arguments[i] = was;
		arguments[i + 7] = 255;
		CHECK(opwest_service_call(&callable, 0, OPWEST_NO_DEVICE) == -ERANGE);
		arguments[i + 7] = 0;
	}
	return 0;
}
#endif

int main(void)
{
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (calls() != 0) {
		return 1;
	}
	return 0;
#endif
	CHECK(served.run() == 0 && served.status->code == 0);
	return tensors() | closed_models_have_no_data() | sessions() | writes() | reads() | names();
}

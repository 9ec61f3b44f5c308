/* SPDX-License-Identifier: Apache-2.0 */
/* The portable part of the service with a test model: any request of a host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	CHECK(strcmp(opwest_service_error_name(-EBUSY), "EBUSY") == 0);
	CHECK(strcmp(opwest_service_error_name(-ETIMEDOUT), "ETIMEDOUT") == 0);
	CHECK(strcmp(opwest_service_error_name(0), "") == 0);
	CHECK(strcmp(opwest_service_error_name(-4711), "") == 0);
	return 0;
}

int main(void)
{
	CHECK(served.run() == 0 && served.status->code == 0);
	return tensors() | closed_models_have_no_data() | sessions() | writes() | reads() | names();
}

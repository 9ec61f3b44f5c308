/* SPDX-License-Identifier: Apache-2.0 */
/* The operator, the programs, and all accesses to the registers. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <vector_adder.h>

#include "vector_adder_internal.h"
#include "vector_adder_registers.h"

#define PROGRAM_SIZE 16U

static const char magic[4] = {'V', 'A', 'D', 'D'};

int vector_adder_device_check(const struct opwest_program *program)
{
	return program != NULL && program->size == PROGRAM_SIZE &&
			       memcmp(program->data, magic, sizeof(magic)) == 0
		       ? 0
		       : -EINVAL;
}

/* The program is in the descriptors. */
void vector_adder_device_load(const struct device *dev, const struct opwest_program *program)
{
	(void)dev;
	(void)program;
}

void vector_adder_device_start(const struct device *dev, const struct vector_adder_job *job)
{
	const uint64_t address = (uint64_t)(uintptr_t)job;

	(void)opwest_port_cache_flush((const uint8_t *)job, sizeof(*job));
	vector_adder_write(dev, REG_DESCRIPTOR, (uint32_t)address);
	vector_adder_write(dev, REG_DESCRIPTOR + 4U, (uint32_t)(address >> 32));
	vector_adder_write(dev, REG_CONTROL, REG_CONTROL_ENABLE | REG_CONTROL_START);
}

bool vector_adder_device_acknowledge(const struct device *dev, int *error)
{
	const uint32_t status = vector_adder_read(dev, REG_STATUS);

	if ((status & REG_STATUS_DONE) == 0U) {
		return false;
	}
	vector_adder_write(dev, REG_ACKNOWLEDGE, 1U);
	*error = (status & REG_STATUS_ERROR) != 0U ? -EIO : 0;
	return true;
}

void vector_adder_device_abort(const struct device *dev)
{
	vector_adder_write(dev, REG_CONTROL, REG_CONTROL_ENABLE | REG_CONTROL_ABORT);
	while ((vector_adder_read(dev, REG_STATUS) & REG_STATUS_BUSY) != 0U) {
	}
	vector_adder_write(dev, REG_ACKNOWLEDGE, 1U);
}

void vector_adder_device_enable(const struct device *dev, bool on)
{
	vector_adder_write(dev, REG_CONTROL, on ? REG_CONTROL_ENABLE : 0U);
}

int32_t vector_adder_add(const int8_t *a, const int8_t *b, int8_t *result, int32_t count,
			 const struct opwest_launch *launch)
{
	if (count < 1) {
		return -EINVAL;
	}
	if (launch->program == NULL) {
		return -EPERM;
	}

	const struct vector_adder_job job = {
		.program = (uint64_t)(uintptr_t)launch->program->data,
		.a = (uint64_t)(uintptr_t)a,
		.b = (uint64_t)(uintptr_t)b,
		.result = (uint64_t)(uintptr_t)result,
		.count = (uint32_t)count,
	};

	return vector_adder_put(launch->dev, &job);
}

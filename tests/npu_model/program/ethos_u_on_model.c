/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function in place of the driver of Ethos-U: the model of the NPU runs each launch, at once.
 *
 * Environment: OPWEST_NPU_MODEL is the command (`python -m npu_model`), OPWEST_NPU_FOLDER a
 * directory for its files. The file `launches` there gets a line for each launch: its step.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/accelerator.h>
#include <opwest/ethos_u.h>

#define ALIGNMENT 16U
#define LONGEST   4096

static FILE *open_file(const char *name, const char *mode)
{
	const char *const folder = getenv("OPWEST_NPU_FOLDER");
	char path[LONGEST];

	return folder == NULL || snprintf(path, LONGEST, "%s/%s", folder, name) >= LONGEST
		       ? NULL
		       : fopen(path, mode);
}

static int put(const char *name, const char *mode, const void *data, size_t size)
{
	FILE *const file = open_file(name, mode);

	if (file == NULL) {
		return -EIO;
	}

	const size_t done = size == 0U ? 0U : fwrite(data, 1, size, file);

	return fclose(file) == 0 && done == size ? 0 : -EIO;
}

/* Reads a region after the launch. The weights can be in flash: they are compared. */
static int get(uint32_t number, const struct opwest_ethos_u_region *region)
{
	char name[32];
	int rc = 0;

	(void)snprintf(name, sizeof(name), "after/region%u.bin", (unsigned int)number);

	FILE *const file = open_file(name, "rb");

	if (file == NULL) {
		return -EIO;
	}
	for (uint32_t i = 0; i < region->size && rc == 0; i++) {
		const int byte = fgetc(file);

		if (byte == EOF || (number == 0U && byte != region->data[i])) {
			rc = -EIO;
		} else if (number != 0U) {
			((uint8_t *)region->data)[i] = (uint8_t)byte;
		}
	}
	if (fgetc(file) != EOF) {
		rc = -EIO;
	}
	(void)fclose(file);
	return rc;
}

static int note(const struct opwest_launch *launch)
{
	char line[16];

	return put("launches", "a", line,
		   (size_t)snprintf(line, sizeof(line), "%u\n", (unsigned int)launch->step));
}

/* Returns the first region with the memory of region `number`: they are one file. */
static uint32_t first_of(const struct opwest_ethos_u_inference *inference, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++) {
		if (inference->regions[i].size != 0U &&
		    inference->regions[i].data == inference->regions[number].data) {
			return i;
		}
	}
	return number;
}

int opwest_ethos_u_enqueue(const struct opwest_launch *launch,
			   const struct opwest_ethos_u_inference *inference)
{
	char command[LONGEST] = "cd \"$OPWEST_NPU_FOLDER\" && eval \"$OPWEST_NPU_MODEL program.cop";
	int rc = 0;

	if (launch->program == NULL || inference->count > OPWEST_ETHOS_U_REGIONS) {
		return -EINVAL;
	}
	rc = put("program.cop", "wb", launch->program->data, launch->program->size);
	for (uint32_t i = 0; i < inference->count && rc == 0; i++) {
		const struct opwest_ethos_u_region *const region = &inference->regions[i];
		const uint32_t first = first_of(inference, i);
		char name[32];

		if (((uintptr_t)region->data % ALIGNMENT) != 0U ||
		    (region->data == NULL && region->size != 0U) ||
		    region->size != inference->regions[first].size) {
			return -EINVAL;
		}
		(void)snprintf(name, sizeof(name), " region%u.bin", (unsigned int)first);
		(void)strcat(command, name);
		rc = first == i ? put(&name[1], "wb", region->data, region->size) : 0;
	}
	(void)strcat(command, " -o after\"");
	if (rc == 0 && system(command) != 0) {
		rc = -EIO;
	}
	for (uint32_t i = 0; i < inference->count && rc == 0; i++) {
		rc = first_of(inference, i) == i ? get(i, &inference->regions[i]) : 0;
	}
	return rc == 0 ? note(launch) : rc;
}

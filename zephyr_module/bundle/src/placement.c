/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bundle_internal.h"

/* The largest alignment of an output that opwest_bundles_needs() allows for: a cache line. */
#define OUTPUT_ALIGN 64U

/* Addresses are computed in 64 bits, so that sums of sizes do not overflow. */
static uint64_t take(uint64_t *cursor, uint64_t size, uint64_t align)
{
	const uint64_t address = (*cursor + align - 1U) & ~(align - 1U);

	*cursor = address + size;
	return address;
}

static uint8_t *pointer_of(uint64_t address)
{
	return (uint8_t *)(uintptr_t)address;
}

static const struct opwest_bundle_pool *own_memory(const struct opwest_bundle_memory *memory,
						   const char *name)
{
	for (uint8_t i = 0U; memory->pools != NULL && i < memory->pool_count; i++) {
		if (strcmp(memory->pools[i].name, name) == 0) {
			return &memory->pools[i];
		}
	}
	return NULL;
}

static bool fits_own_memory(const struct opwest_bundle_pool *own, const struct opwest_pool *pool)
{
	return own->memory != NULL && own->size >= pool->size &&
	       (uintptr_t)own->memory % pool->align == 0U;
}

static bool place_pools(const struct opwest_bundle_memory *memory, const struct opwest_model *model,
			uint64_t *cursor, struct opwest_bundle_placement *placement,
			struct opwest_bundle_verdict *verdict)
{
	uint32_t align = 1U;

	for (uint16_t i = 0U; i < model->pool_count; i++) {
		if (own_memory(memory, model->pools[i].name) == NULL &&
		    model->pools[i].align > align) {
			align = model->pools[i].align;
		}
	}
	/* From here on, the pools need no more than the header's pools_size. */
	(void)take(cursor, 0U, align);
	for (uint16_t i = 0U; i < model->pool_count; i++) {
		const struct opwest_pool *const pool = &model->pools[i];
		const struct opwest_bundle_pool *const own = own_memory(memory, pool->name);

		if (own == NULL) {
			placement->pools[i] = pointer_of(take(cursor, pool->size, pool->align));
		} else if (fits_own_memory(own, pool)) {
			placement->pools[i] = own->memory;
		} else {
			return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_MEMORY, 0, pool->size,
						    own->size);
		}
	}
	return true;
}

static uint64_t place_outputs(const struct opwest_model *model, uint64_t cursor, void **outputs)
{
	for (uint16_t i = 0U; i < model->output_count; i++) {
		const struct opwest_tensor *const output = &model->outputs[i];
		const uint64_t address =
			take(&cursor, output->size, OPWEST_TENSOR_ALIGN(output->flags));

		if (outputs != NULL) {
			outputs[i] = pointer_of(address);
		}
	}
	return cursor;
}

bool opwest_bundle_place(const struct opwest_bundle_memory *memory,
			 const struct opwest_bundle_descriptor *descriptor, bool with_outputs,
			 struct opwest_bundle_placement *placement,
			 struct opwest_bundle_verdict *verdict)
{
	const struct opwest_model *const model = descriptor->details->model;
	const uint64_t begin = (uintptr_t)memory->memory;
	uint64_t cursor = begin;
	uint64_t table = 0U;
	uint64_t end;

	memset(placement, 0, sizeof(*placement));
	placement->workspace = (struct opwest_bundle_workspace *)(uintptr_t)take(
		&cursor, descriptor->workspace_size, descriptor->workspace_align);
	if (!place_pools(memory, model, &cursor, placement, verdict)) {
		return false;
	}
	if (with_outputs) {
		table = take(&cursor, (uint64_t)model->output_count * sizeof(void *),
			     sizeof(void *));
	}
	end = with_outputs ? place_outputs(model, cursor, NULL) : cursor;
	if (memory->memory == NULL || end - begin > memory->size) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_MEMORY, 0, end - begin,
					    memory->memory == NULL ? 0U : memory->size);
	}
	if (with_outputs) {
		placement->outputs = (void **)(uintptr_t)table;
		(void)place_outputs(model, cursor, placement->outputs);
	}
	return true;
}

uint32_t opwest_bundles_needs(const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_abi *const abi = &header->abi;
	const uint64_t outputs = sizeof(void *) - 1U + abi->outputs_size +
				 (uint64_t)abi->output_count * (sizeof(void *) + OUTPUT_ALIGN - 1U);
	const uint64_t needs = (uint64_t)abi->workspace_size + abi->workspace_align +
			       abi->pools_size + abi->pools_align + outputs;

	return needs > UINT32_MAX ? UINT32_MAX : (uint32_t)needs;
}

static bool has_type(const struct opwest_bundle_device *device, const struct opwest_device *wanted)
{
	return wanted->type == NULL ||
	       (device->type != NULL && strcmp(device->type, wanted->type) == 0);
}

static bool has_name(const struct opwest_bundle_device *device, const struct opwest_device *wanted)
{
	return device->name != NULL && strcmp(device->name, wanted->name) == 0;
}

static bool is_taken(const struct device *const *devices, uint16_t count, const struct device *dev)
{
	for (uint16_t i = 0U; i < count; i++) {
		if (devices[i] == dev) {
			return true;
		}
	}
	return false;
}

/* A model without a type of its own accepts a device by its name only. */
static const struct device *find(const struct opwest_bundles_config *config,
				 const struct opwest_model *model,
				 const struct device *const *devices,
				 const struct opwest_device *wanted, bool by_name)
{
	for (uint8_t i = 0U; i < config->device_count; i++) {
		const struct opwest_bundle_device *const device = &config->devices[i];

		if (has_type(device, wanted) &&
		    (by_name ? has_name(device, wanted) : wanted->type != NULL) &&
		    !is_taken(devices, model->device_count, device->dev)) {
			return device->dev;
		}
	}
	return NULL;
}

bool opwest_bundle_assign(const struct opwest_bundles_config *config,
			  const struct opwest_model *model,
			  const struct device *devices[OPWEST_BUNDLE_MOST_DEVICES],
			  struct opwest_bundle_verdict *verdict)
{
	const uint16_t count = model->device_count;

	memset(devices, 0, OPWEST_BUNDLE_MOST_DEVICES * sizeof(devices[0]));
	if (count > OPWEST_BUNDLE_MOST_DEVICES || (count > 0U && config->host->devices == NULL)) {
		return opwest_bundle_refuse(
			verdict, OPWEST_BUNDLE_DEVICES, 0, count,
			config->host->devices == NULL ? 0U : OPWEST_BUNDLE_MOST_DEVICES);
	}
	/* All names first: a device without its name must not take that of a later one. */
	for (uint16_t i = 0U; i < count; i++) {
		devices[i] = find(config, model, devices, &model->devices[i], true);
	}
	for (uint16_t i = 0U; i < count; i++) {
		if (devices[i] == NULL) {
			devices[i] = find(config, model, devices, &model->devices[i], false);
		}
		if (devices[i] == NULL || (model->devices[i].flags & OPWEST_DEVICE_FOREIGN) != 0U) {
			return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_DEVICES, i, count,
						    config->device_count);
		}
	}
	return true;
}

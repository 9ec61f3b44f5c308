/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <opwest/state.h>

/* The memory of a state. The pools are the first members of every workspace. */
static uint8_t *memory_of(const struct opwest_state_tensor *tensor, const void *workspace)
{
	uint8_t *pool;

	memcpy(&pool, (const uint8_t *)workspace + tensor->pool * sizeof(pool), sizeof(pool));
	return pool + tensor->offset;
}

void opwest_state_reset(const struct opwest_state *state, void *workspace)
{
	for (uint32_t i = 0; i < state->count; i++) {
		const struct opwest_state_tensor *tensor = &state->tensors[i];
		uint8_t *memory = memory_of(tensor, workspace);

		if (tensor->initial == NULL) {
			memset(memory, 0, tensor->size);
			continue;
		}
		for (uint32_t at = 0; at < tensor->size; at += tensor->initial_size) {
			memcpy(memory + at, tensor->initial, tensor->initial_size);
		}
	}
}

int opwest_state_save(const struct opwest_state *state, const void *workspace, void *data,
		      uint32_t size)
{
	const uint32_t layout[] = {state->layout_low, state->layout_high};
	uint8_t *to = data;

	if (data == NULL) {
		return -EINVAL;
	}
	if (size < state->size) {
		return -ENOMEM;
	}
	memcpy(to, layout, sizeof(layout));
	to += sizeof(layout);
	for (uint32_t i = 0; i < state->count; i++) {
		const struct opwest_state_tensor *tensor = &state->tensors[i];

		memcpy(to, memory_of(tensor, workspace), tensor->size);
		to += tensor->size;
	}
	return 0;
}

int opwest_state_restore(const struct opwest_state *state, void *workspace, const void *data,
			 uint32_t size)
{
	const uint32_t layout[] = {state->layout_low, state->layout_high};
	const uint8_t *from = data;

	if (data == NULL) {
		return -EINVAL;
	}
	if (size < state->size || memcmp(from, layout, sizeof(layout)) != 0) {
		return -EBADMSG;
	}
	from += sizeof(layout);
	for (uint32_t i = 0; i < state->count; i++) {
		const struct opwest_state_tensor *tensor = &state->tensors[i];

		memcpy(memory_of(tensor, workspace), from, tensor->size);
		from += tensor->size;
	}
	return 0;
}

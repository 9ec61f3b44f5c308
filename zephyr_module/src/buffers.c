/* SPDX-License-Identifier: Apache-2.0 */
#include <opwest/buffers.h>
#include <opwest/status.h>

/* Check whether a buffer overlaps one of several others, whose sizes end at `end`. */
static bool hits(const void *buffer, uint32_t size, const void *const *others,
		 const uint32_t *sizes, const uint32_t *end)
{
	for (; sizes != end; others++, sizes++) {
		if (opwest_overlap(buffer, size, *others, *sizes)) {
			return true;
		}
	}
	return false;
}

uint32_t opwest_buffers_overlap(const uint32_t *table, const void *inputs, const void *outputs,
				const void *workspace)
{
	const void *const *at = inputs;
	const uint32_t *const in = &table[OPWEST_BUFFERS_COUNTS];
	const uint32_t *const out = in + table[1];
	const uint32_t *const pools = out + table[2];
	const uint32_t *const end = pools + table[3];
	uint32_t found = (uint32_t)OPWEST_HOOK_INPUT << 16;

	for (const uint32_t *size = in; size != pools; size++, at++, found++) {
		if (size == out) {
			at = outputs;
			found = (uint32_t)OPWEST_HOOK_OUTPUT << 16;
		}
		if (opwest_overlap(*at, *size, workspace, table[0]) ||
		    hits(*at, *size, workspace, pools, end) ||
		    (size >= out && (hits(*at, *size, inputs, in, out) ||
				     hits(*at, *size, outputs, out, size)))) {
			return found;
		}
	}
	return 0U;
}

uint32_t opwest_buffers_of_frames(const uint32_t *table, const void *inputs, const void *outputs,
				  const void *other_inputs, const void *other_outputs)
{
	const void *const *at = inputs;
	const uint32_t *const in = &table[OPWEST_BUFFERS_COUNTS];
	const uint32_t *const out = in + table[1];
	const uint32_t *const end = out + table[2];
	uint32_t found = (uint32_t)OPWEST_HOOK_INPUT << 16;

	for (const uint32_t *size = in; size != end; size++, at++, found++) {
		if (size == out) {
			at = outputs;
			found = (uint32_t)OPWEST_HOOK_OUTPUT << 16;
		}
		if (hits(*at, *size, other_outputs, out, end) ||
		    (size >= out && hits(*at, *size, other_inputs, in, out))) {
			return found;
		}
	}
	return 0U;
}

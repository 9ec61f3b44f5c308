/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of an Ethos-U's programs: a payload of exactly the given size, for one of some NPUs. A payload that one
 * NPU accepts is no payload for another NPU, nor when its command stream is cut short.
 */
#include <string.h>

#include "ethos_u_payload.h"
#include "source.h"

#define ALIGNMENT 16U

static const char *check(const uint8_t *payload, size_t size, const struct ethos_u_npu *npu)
{
	const char *fault;
	void *block = NULL;

	/* The sanitizer finds a read behind the last byte: the size is not rounded up. */
	CHECK(posix_memalign(&block, ALIGNMENT, size == 0U ? 1U : size) == 0);
	if (size != 0U) {
		memcpy(block, payload, size);
	}
	fault = ethos_u_payload_fault(block, (uint32_t)size, npu);
	free(block);
	return fault;
}

/* Returns the end of the last action with a content, in an accepted payload. */
static size_t end_of(const uint8_t *payload, size_t size)
{
	size_t end = 0;

	for (size_t at = 4; at < size;) {
		const uint8_t *const word = &payload[at];
		const size_t words = word[0] == 1U   ? 2U
				     : word[0] == 2U ? (size_t)word[1] << 16 | word[3] << 8 | word[2]
						     : 0U;

		at += 4U + 4U * words;
		end = words != 0U ? at : end;
	}
	return end;
}

static void check_accepted(const uint8_t *payload, size_t size, const struct ethos_u_npu *npu)
{
	struct ethos_u_npu other = *npu;

	other.macs ^= 1U;
	CHECK(check(payload, size, &other) != NULL);
	other = *npu;
	other.product ^= 1U;
	CHECK(check(payload, size, &other) != NULL);
	size = end_of(payload, size);
	CHECK(check(payload, size, npu) == NULL);
	CHECK(check(payload, size - 4U, npu) != NULL && check(payload, size - 1U, npu) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ethos_u_npu npus[] = {
		{.product = ETHOS_U55, .macs = 7U, .arch_major = 1U, .arch_minor = 0U},
		{.product = ETHOS_U65, .macs = 8U, .arch_major = 1U, .arch_minor = 1U, .custom_dma = true},
		{.product = ETHOS_U85, .macs = 8U, .stream_version = 1U, .arch_major = 2U},
	};
	struct source from = {data, size};
	const struct ethos_u_npu *const npu = &npus[take(&from, 1) % 3U];
	const char *fault;

	if (size == 0U) {
		return 0;
	}
	fault = check(data + 1, size - 1U, npu);
	CHECK(fault == NULL || strlen(fault) >= 8U);
	if (fault == NULL) {
		check_accepted(data + 1, size - 1U, npu);
	}
	return 0;
}

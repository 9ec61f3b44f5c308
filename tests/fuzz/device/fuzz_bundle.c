/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of bundles: the reader with the real signatures, and an upload with parts of changing sizes,
 * an installation and a list on simulated slots. Only seeds are signed: nothing of a changed file is
 * executed.
 */
#include <string.h>

#include "bundle_internal.h"
#include "simulated.h"
#include "source.h"

#include "fuzz_bundle_key.h"

static const struct opwest_bundle_key keys[] = {{{0}}, {FUZZ_BUNDLE_KEY}};
static uint8_t trial[2000];
static const struct opwest_bundles_config config = {
	.storage = &simulated_storage,
	.keys = keys,
	.host = &opwest_bundle_host,
	.trial = {.memory = trial, .size = sizeof(trial)},
	.key_count = 2U,
};

/* A copy of exactly the file, so the sanitizer finds reads behind it. */
static bool read_file(const uint8_t *data, size_t size)
{
	uint8_t *const copy = malloc(size == 0U ? 1U : size);
	struct opwest_bundle_header header;
	struct opwest_bundle_verdict verdict = {0};
	bool is_signed = false;

	memcpy(copy, data, size);
	if (opwest_bundle_parse(copy, size, &header) == OPWEST_BUNDLE_GOOD) {
		const size_t total = opwest_bundle_total(copy, size, &header);

		CHECK(total <= size && header.length <= size);
		CHECK(opwest_bundle_abi_agrees(&header, &verdict) == (verdict.fault == 0U));
		CHECK(opwest_bundle_fault_name(verdict.fault) != NULL);
		CHECK(opwest_bundles_needs(&header) > 0U);
		is_signed = opwest_bundle_signed(copy, size, &header, keys, 2U);
		CHECK(!is_signed || total != 0U);
	}
	free(copy);
	return is_signed;
}

static void upload(struct opwest_bundles *bundles, const uint8_t *data, uint32_t size)
{
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	uint32_t offset = 0U;
	uint32_t part = 1U;

	CHECK(opwest_bundle_sha512(data, size, digest));
	CHECK(opwest_bundles_begin(bundles, OPWEST_BUNDLE_NO_SLOT, size, digest, &offset) == 0);
	while (offset < size) {
		const uint32_t rest = size - offset;
		const uint32_t now = rest < part ? rest : part;

		CHECK(opwest_bundles_write(bundles, offset, &data[offset], now, &offset) == 0);
		part = part * 3U + 1U;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct opwest_bundles bundles;
	struct opwest_bundle_verdict verdict;
	struct opwest_bundle_info info;
	const bool is_signed = read_file(data, size);
	int rc;

	if (size > SLOT_SIZE) {
		return 0;
	}
	simulated_open(2U, 8U, 0xffU);
	memset(&bundles, 0, sizeof(bundles));
	CHECK(opwest_bundles_start(&bundles, &config) == -2);
	upload(&bundles, data, (uint32_t)size);
	rc = opwest_bundles_install(&bundles, &verdict);
	CHECK(rc == -74 || (rc == 0 && is_signed));
	CHECK((rc == 0) == (verdict.fault == OPWEST_BUNDLE_GOOD));
	CHECK(is_signed || verdict.fault <= OPWEST_BUNDLE_SIGNATURE);
	CHECK(opwest_bundles_list(&bundles, 0U, &info) == 0 && info.is_active == (rc == 0));
	CHECK(opwest_bundles_start(&bundles, &config) == (rc == 0 ? 0 : -2));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bundle_internal.h"
#include "format_internal.h"

static bool names(const uint8_t *signature, const struct opwest_bundle_key *key)
{
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];

	return opwest_bundle_sha512(key->bytes, sizeof(key->bytes), digest) &&
	       memcmp(signature, digest, OPWEST_BUNDLE_KEY_ID_SIZE) == 0;
}

bool opwest_bundle_signed(const uint8_t *data, size_t size,
			  const struct opwest_bundle_header *header,
			  const struct opwest_bundle_key *keys, size_t count)
{
	if (opwest_bundle_total(data, size, header) == 0U) {
		return false;
	}

	const size_t signatures =
		opwest_bundle_read16(&data[header->length + OPWEST_BUNDLE_AT_SIGNATURE_COUNT]);

	for (size_t i = 0U; i < signatures; i++) {
		const uint8_t *const signature = opwest_bundle_signature(data, header, i);

		if (opwest_bundle_read16(&signature[OPWEST_BUNDLE_AT_ALGORITHM]) !=
			    OPWEST_BUNDLE_ED25519 ||
		    opwest_bundle_read16(&signature[OPWEST_BUNDLE_AT_VALUE_SIZE]) !=
			    OPWEST_BUNDLE_VALUE_SIZE) {
			continue;
		}
		for (size_t k = 0U; k < count; k++) {
			if (names(signature, &keys[k]) &&
			    opwest_bundle_ed25519(&signature[OPWEST_BUNDLE_AT_VALUE], &keys[k],
						  data, header->length)) {
				return true;
			}
		}
	}
	return false;
}

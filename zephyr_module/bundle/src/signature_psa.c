/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ed25519 and SHA-512 of a PSA driver that offers pure EdDSA. Mbed TLS has none: this file is for
 * the drivers of vendors.
 */
#include <psa/crypto.h>

#include "bundle_internal.h"
#include "format_internal.h"

#define KEY_BITS 255U

bool opwest_bundle_sha512(const uint8_t *data, size_t size,
			  uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE])
{
	size_t written = 0U;

	return psa_hash_compute(PSA_ALG_SHA_512, data, size, digest, OPWEST_BUNDLE_DIGEST_SIZE,
				&written) == PSA_SUCCESS &&
	       written == OPWEST_BUNDLE_DIGEST_SIZE;
}

bool opwest_bundle_ed25519(const uint8_t signature[OPWEST_BUNDLE_VALUE_SIZE],
			   const struct opwest_bundle_key *key, const uint8_t *data, size_t size)
{
	psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
	psa_key_id_t id = 0;

	psa_set_key_type(&attributes, PSA_KEY_TYPE_ECC_PUBLIC_KEY(PSA_ECC_FAMILY_TWISTED_EDWARDS));
	psa_set_key_bits(&attributes, KEY_BITS);
	psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_VERIFY_MESSAGE);
	psa_set_key_algorithm(&attributes, PSA_ALG_PURE_EDDSA);
	if (psa_import_key(&attributes, key->bytes, sizeof(key->bytes), &id) != PSA_SUCCESS) {
		return false;
	}

	const psa_status_t verified = psa_verify_message(id, PSA_ALG_PURE_EDDSA, data, size,
							 signature, OPWEST_BUNDLE_VALUE_SIZE);

	(void)psa_destroy_key(id);
	return verified == PSA_SUCCESS;
}

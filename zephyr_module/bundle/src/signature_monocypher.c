/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ed25519 with the curve of Monocypher and the SHA-512 of libsodium: bundle/ext. Both are used
 * through their public interfaces.
 */
#include "../ext/libsodium/opwest_sha512.h"
#include "../ext/monocypher/opwest_monocypher.h"
#include "bundle_internal.h"
#include "format_internal.h"

#define POINT_SIZE 32U

bool opwest_bundle_sha512(const uint8_t *data, size_t size,
			  uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE])
{
	return crypto_hash_sha512(digest, data, size) == 0;
}

/* RFC 8032, 5.1.7: the hash of R, the key and the message, modulo the order; then the equation. */
bool opwest_bundle_ed25519(const uint8_t signature[OPWEST_BUNDLE_VALUE_SIZE],
			   const struct opwest_bundle_key *key, const uint8_t *data, size_t size)
{
	crypto_hash_sha512_state state;
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	uint8_t reduced[32];

	(void)crypto_hash_sha512_init(&state);
	(void)crypto_hash_sha512_update(&state, signature, POINT_SIZE);
	(void)crypto_hash_sha512_update(&state, key->bytes, sizeof(key->bytes));
	(void)crypto_hash_sha512_update(&state, data, size);
	(void)crypto_hash_sha512_final(&state, digest);
	crypto_eddsa_reduce(reduced, digest);
	return crypto_eddsa_check_equation(signature, key->bytes, reduced) == 0;
}

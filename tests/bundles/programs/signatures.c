/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of key, signature and message in hexadecimal ("-": none), prints 1 or 0 for each. */
#include "given.h"

int main(void)
{
	static char key_text[128];
	static char signature_text[256];
	static char message_text[16384];

	while (scanf("%127s %255s %16383s", key_text, signature_text, message_text) == 3) {
		struct opwest_bundle_key key;
		uint8_t signature[64];
		uint8_t digest[64];
		uint8_t *const message = malloc(strlen(message_text) / 2U + 1U);
		const size_t size = bytes_of(message_text, message);

		(void)bytes_of(key_text, key.bytes);
		(void)bytes_of(signature_text, signature);
		printf("%d ", opwest_bundle_ed25519(signature, &key, message, size));
		if (!opwest_bundle_sha512(message, size, digest)) {
			return 1;
		}
		for (size_t i = 0U; i < sizeof(digest); i++) {
			printf("%02x", digest[i]);
		}
		printf("\n");
		free(message);
	}
	return 0;
}

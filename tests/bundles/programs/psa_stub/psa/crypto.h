/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stub for the syntax of signature_psa.c only: the declarations of the PSA Certified Crypto API 1.2 that it uses,
 * with the values of the specification. No function is defined.
 */
#ifndef PSA_CRYPTO_H
#define PSA_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t psa_status_t;
typedef uint32_t psa_algorithm_t;
typedef uint16_t psa_key_type_t;
typedef uint8_t psa_ecc_family_t;
typedef uint32_t psa_key_usage_t;
typedef uint32_t psa_key_id_t;

struct psa_key_attributes_s {
	psa_key_type_t type;
	size_t bits;
	psa_key_usage_t usage;
	psa_algorithm_t alg;
};
typedef struct psa_key_attributes_s psa_key_attributes_t;

#define PSA_SUCCESS                         ((psa_status_t)0)
#define PSA_ALG_SHA_512                     ((psa_algorithm_t)0x0200000b)
#define PSA_ALG_PURE_EDDSA                  ((psa_algorithm_t)0x06000800)
#define PSA_ECC_FAMILY_TWISTED_EDWARDS      ((psa_ecc_family_t)0x42)
#define PSA_KEY_TYPE_ECC_PUBLIC_KEY(family) ((psa_key_type_t)(0x4100 | (family)))
#define PSA_KEY_USAGE_VERIFY_MESSAGE        ((psa_key_usage_t)0x00000800)
#define PSA_KEY_ATTRIBUTES_INIT             {0, 0, 0, 0}

void psa_set_key_type(psa_key_attributes_t *attributes, psa_key_type_t type);
void psa_set_key_bits(psa_key_attributes_t *attributes, size_t bits);
void psa_set_key_usage_flags(psa_key_attributes_t *attributes, psa_key_usage_t usage_flags);
void psa_set_key_algorithm(psa_key_attributes_t *attributes, psa_algorithm_t alg);
psa_status_t psa_import_key(const psa_key_attributes_t *attributes, const uint8_t *data,
			    size_t data_length, psa_key_id_t *key);
psa_status_t psa_destroy_key(psa_key_id_t key);
psa_status_t psa_hash_compute(psa_algorithm_t alg, const uint8_t *input, size_t input_length,
			      uint8_t *hash, size_t hash_size, size_t *hash_length);
psa_status_t psa_verify_message(psa_key_id_t key, psa_algorithm_t alg, const uint8_t *input,
				size_t input_length, const uint8_t *signature,
				size_t signature_length);

#endif

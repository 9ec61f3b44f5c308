/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief SHA-512 of libsodium, with names that do not clash with libsodium in the same image.
 */
#ifndef OPWEST_BUNDLE_SHA512_H_
#define OPWEST_BUNDLE_SHA512_H_

#define crypto_hash_sha512        opwest_bundle_ext_sha512
#define crypto_hash_sha512_init   opwest_bundle_ext_sha512_init
#define crypto_hash_sha512_update opwest_bundle_ext_sha512_update
#define crypto_hash_sha512_final  opwest_bundle_ext_sha512_final

#include "crypto_hash_sha512.h"

#endif /* OPWEST_BUNDLE_SHA512_H_ */

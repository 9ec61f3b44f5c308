/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Monocypher, with names that do not clash with Monocypher in the same image.
 */
#ifndef OPWEST_BUNDLE_MONOCYPHER_H_
#define OPWEST_BUNDLE_MONOCYPHER_H_

#define crypto_aead_init_djb        opwest_bundle_ext_aead_init_djb
#define crypto_aead_init_ietf       opwest_bundle_ext_aead_init_ietf
#define crypto_aead_init_x          opwest_bundle_ext_aead_init_x
#define crypto_aead_lock            opwest_bundle_ext_aead_lock
#define crypto_aead_read            opwest_bundle_ext_aead_read
#define crypto_aead_unlock          opwest_bundle_ext_aead_unlock
#define crypto_aead_write           opwest_bundle_ext_aead_write
#define crypto_argon2               opwest_bundle_ext_argon2
#define crypto_argon2_no_extras     opwest_bundle_ext_argon2_no_extras
#define crypto_blake2b              opwest_bundle_ext_blake2b
#define crypto_blake2b_final        opwest_bundle_ext_blake2b_final
#define crypto_blake2b_init         opwest_bundle_ext_blake2b_init
#define crypto_blake2b_keyed        opwest_bundle_ext_blake2b_keyed
#define crypto_blake2b_keyed_init   opwest_bundle_ext_blake2b_keyed_init
#define crypto_blake2b_update       opwest_bundle_ext_blake2b_update
#define crypto_chacha20_djb         opwest_bundle_ext_chacha20_djb
#define crypto_chacha20_h           opwest_bundle_ext_chacha20_h
#define crypto_chacha20_ietf        opwest_bundle_ext_chacha20_ietf
#define crypto_chacha20_x           opwest_bundle_ext_chacha20_x
#define crypto_eddsa_check          opwest_bundle_ext_eddsa_check
#define crypto_eddsa_check_equation opwest_bundle_ext_eddsa_check_equation
#define crypto_eddsa_key_pair       opwest_bundle_ext_eddsa_key_pair
#define crypto_eddsa_mul_add        opwest_bundle_ext_eddsa_mul_add
#define crypto_eddsa_reduce         opwest_bundle_ext_eddsa_reduce
#define crypto_eddsa_scalarbase     opwest_bundle_ext_eddsa_scalarbase
#define crypto_eddsa_sign           opwest_bundle_ext_eddsa_sign
#define crypto_eddsa_to_x25519      opwest_bundle_ext_eddsa_to_x25519
#define crypto_eddsa_trim_scalar    opwest_bundle_ext_eddsa_trim_scalar
#define crypto_elligator_key_pair   opwest_bundle_ext_elligator_key_pair
#define crypto_elligator_map        opwest_bundle_ext_elligator_map
#define crypto_elligator_rev        opwest_bundle_ext_elligator_rev
#define crypto_lock                 opwest_bundle_ext_lock
#define crypto_poly1305             opwest_bundle_ext_poly1305
#define crypto_poly1305_final       opwest_bundle_ext_poly1305_final
#define crypto_poly1305_init        opwest_bundle_ext_poly1305_init
#define crypto_poly1305_update      opwest_bundle_ext_poly1305_update
#define crypto_verify16             opwest_bundle_ext_verify16
#define crypto_verify32             opwest_bundle_ext_verify32
#define crypto_verify64             opwest_bundle_ext_verify64
#define crypto_wipe                 opwest_bundle_ext_wipe
#define crypto_x25519               opwest_bundle_ext_x25519
#define crypto_x25519_dirty_fast    opwest_bundle_ext_x25519_dirty_fast
#define crypto_x25519_dirty_small   opwest_bundle_ext_x25519_dirty_small
#define crypto_x25519_inverse       opwest_bundle_ext_x25519_inverse
#define crypto_x25519_public_key    opwest_bundle_ext_x25519_public_key
#define crypto_x25519_to_eddsa      opwest_bundle_ext_x25519_to_eddsa

#include "monocypher.h"

#endif /* OPWEST_BUNDLE_MONOCYPHER_H_ */

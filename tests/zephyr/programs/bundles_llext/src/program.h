/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRAM_H_
#define PROGRAM_H_

#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle_port.h>

/* The bytes of LLEXT's heap in use. */
size_t heap_used(void);

/* Prints a check and counts failed ones. */
void check(bool passed, const char *text, int value);

/* Loads damaged copies of an image. */
void damage_images(const uint8_t *bundle, size_t size);

#endif /* PROGRAM_H_ */

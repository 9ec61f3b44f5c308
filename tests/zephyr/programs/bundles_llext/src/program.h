/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRAM_H_
#define PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of LLEXT's heap in use. */
size_t heap_used(void);

/* Print a check and count failed ones. */
void check(bool passed, const char *text, int value);

/* Load damaged copies of an image, with one changed byte in `count` of them. */
void damage_images(const uint8_t *bundle, size_t size, uint32_t count);

#endif /* PROGRAM_H_ */

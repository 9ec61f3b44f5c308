/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the start of the image and its measured part. */
#ifndef IMAGE_H_
#define IMAGE_H_

#include <stdbool.h>

/** Any of the functions that are measured, after a cast. */
typedef int (*any_run_t)(const void *, const void *, const void *, const void *);

/** Call a function so that the plugin counts its instructions. */
int invoke(const void *a, const void *b, const void *c, const void *d, any_run_t run);

/** Call all measured functions, in the order of the report; return whether all returned 0. */
bool measure(void);

#endif /* IMAGE_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/* The models that the service serves to the fuzzers, and what Zephyr would do around it. */
#ifndef SUBJECT_H_
#define SUBJECT_H_

#include <stddef.h>
#include <stdint.h>

/* Forget what earlier inputs did. */
void subject_reset(void);

#endif /* SUBJECT_H_ */

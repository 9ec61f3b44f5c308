/* SPDX-License-Identifier: Apache-2.0 */
/* The models of the service for the fuzzers, and Zephyr's part of the service. */
#ifndef SUBJECT_H_
#define SUBJECT_H_

#include <stddef.h>
#include <stdint.h>

/* Reset the state of earlier inputs. */
void subject_reset(void);

#endif /* SUBJECT_H_ */

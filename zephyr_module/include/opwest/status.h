/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What became of a run: the first failure, by step.
 */
#ifndef OPWEST_STATUS_H_
#define OPWEST_STATUS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The step of a status that no failure was recorded in. */
#define OPWEST_NO_STEP UINT16_MAX

/** The first failure of the latest run. */
struct opwest_status {
	/** What the operator returned, unchanged; 0 after a good run. */
	int32_t code;
	/** The step that failed, counted from 0; OPWEST_NO_STEP after a good run. */
	uint16_t step;
};

/**
 * @brief Record a failed step.
 *
 * Called by generated code only.
 *
 * @param status Where to record it.
 * @param model  The model's name, for the log.
 * @param step   The step, counted from 0.
 * @param code   What the operator returned, not 0.
 *
 * @retval -EIO if @p code is positive
 * @return @p code otherwise: a negative errno
 */
int opwest_status_failed(struct opwest_status *status, const char *model, uint16_t step,
			 int32_t code);

/**
 * @brief Tell the error of opening what is open, or closing what is closed.
 *
 * For code that is generated without the C library's headers, where this errno has no fixed value.
 *
 * @retval -EALREADY Always.
 */
int opwest_status_already(void);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STATUS_H_ */

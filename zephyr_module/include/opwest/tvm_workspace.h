/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The workspace of an operator while it runs. Called by generated code only.
 *
 * TVMBackendAllocWorkspace() has no argument for its caller. The workspace of a running operator is
 * therefore recorded per thread during the call. An image has one list of these records. Each is on
 * the stack of its call and is found by the handle of the thread (port_tvm_zephyr.c; a thread-local
 * variable on hosts). This works with and without CONFIG_THREAD_LOCAL_STORAGE, does not use
 * k_thread_custom_data, and permits any number of threads.
 */
#ifndef OPWEST_TVM_WORKSPACE_H_
#define OPWEST_TVM_WORKSPACE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The workspace of the operator on a thread. --metadata=llvm depends on the order of members. */
struct opwest_tvm_workspace {
	/** The next record of the list: of another thread, or of an outer call. */
	struct opwest_tvm_workspace *next;
	/** The thread. */
	const void *thread;
	/**
	 * Units of memory, then a bit for each (begin of an allocation), then another (not freed).
	 */
	uint8_t *memory;
	/** The number of units. */
	uint32_t units;
	/** The number of allocated units, from the first. */
	uint32_t used;
	/** The binary logarithm of the size of a unit, which is the alignment of allocations. */
	uint32_t shift;
	/** Whether an allocation failed. */
	uint32_t exhausted;
};

/**
 * @brief Record the workspace of the next operator on this thread.
 *
 * @param workspace The record, until opwest_tvm_leave().
 * @param memory    @p units of memory, then two bits for each unit; aligned to a unit.
 * @param units     The number of units.
 * @param shift     The binary logarithm of a unit's bytes.
 */
void opwest_tvm_enter(struct opwest_tvm_workspace *workspace, uint8_t *memory, uint32_t units,
		      uint32_t shift);

/**
 * @brief Remove the record.
 *
 * @param workspace The record.
 * @param code      The return value of the operator.
 *
 * @retval 0       The operator succeeded.
 * @retval -ENOMEM It failed because its workspace was exhausted.
 * @return Otherwise opwest_tvm_code() of @p code
 */
int32_t opwest_tvm_leave(struct opwest_tvm_workspace *workspace, int32_t code);

/**
 * @brief Convert the return value of a TVM function to a status.
 *
 * @param code The return value.
 *
 * @retval -EIO @p code is -1, TVM's code for any failure. As an errno it would be -EPERM, which
 *              run() returns for a workspace that is not open.
 * @return @p code otherwise
 */
int32_t opwest_tvm_code(int32_t code);

/** @brief Add a record for this thread. Part of the port. */
void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace);

/** @brief Remove the latest record of this thread. Part of the port. */
void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace);

/** @brief Return the latest record of this thread, or NULL. Part of the port. */
struct opwest_tvm_workspace *opwest_port_tvm_current(void);

/** @brief Log the failure of an operator. Part of the port. @p kind and parts may be NULL. */
void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_TVM_WORKSPACE_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The workspace of an operator while it runs. Called by generated code only.
 *
 * TVMBackendAllocWorkspace() has no argument that says for whom it allocates. So what the running
 * operator may take is noted per thread for the time of the call: one list of such notes an image,
 * each on the stack of the call it is about, found by the thread's handle (port_tvm_zephyr.c; a
 * thread-local variable on hosts). That works on every board, with CONFIG_THREAD_LOCAL_STORAGE or
 * without, leaves k_thread_custom_data to the application, and any number of threads can run
 * operators at once.
 */
#ifndef OPWEST_TVM_WORKSPACE_H_
#define OPWEST_TVM_WORKSPACE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What the operator that runs on a thread may allocate. The order of members is known to
 * --metadata=llvm.
 */
struct opwest_tvm_workspace {
	/** The next note of the list: of another thread, or of the call around this one. */
	struct opwest_tvm_workspace *next;
	/** The thread. */
	const void *thread;
	/**
	 * Units of memory, then a bit for each (an allocation begins there), then another (it is
	 * not given back).
	 */
	uint8_t *memory;
	/** How many units there are. */
	uint32_t units;
	/** How many are taken, from the first on. */
	uint32_t used;
	/** The binary logarithm of a unit's bytes: the alignment of allocations. */
	uint32_t shift;
	/** Whether an allocation failed. */
	uint32_t exhausted;
};

/**
 * @brief Let the operator that is called next on this thread allocate.
 *
 * @param workspace Where it is noted until opwest_tvm_leave().
 * @param memory    @p units of memory, and behind them twice a bit for each unit; aligned to a
 *                  unit.
 * @param units     How many.
 * @param shift     The binary logarithm of a unit's bytes.
 */
void opwest_tvm_enter(struct opwest_tvm_workspace *workspace, uint8_t *memory, uint32_t units,
		      uint32_t shift);

/**
 * @brief Take the note away.
 *
 * @param workspace The note.
 * @param code      What the operator returned.
 *
 * @retval 0       The operator did its work.
 * @retval -ENOMEM It failed after its workspace was used up.
 * @return What opwest_tvm_code() makes of @p code otherwise
 */
int32_t opwest_tvm_leave(struct opwest_tvm_workspace *workspace, int32_t code);

/**
 * @brief Make a status of what a function of TVM's returned.
 *
 * @param code What it returned.
 *
 * @retval -EIO @p code is -1, TVM's word for any failure. As an errno it would be -EPERM, by which
 *              run() means a workspace that is not open.
 * @return @p code otherwise
 */
int32_t opwest_tvm_code(int32_t code);

/** @brief Note a workspace for this thread. Of the port. */
void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace);

/** @brief Take a note of this thread away: the latest. Of the port. */
void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace);

/** @brief Find the latest note of this thread. Of the port. @return It, or NULL if there is none */
struct opwest_tvm_workspace *opwest_port_tvm_current(void);

/** @brief Log why an operator failed. Of the port. @p kind may be NULL, and so may parts. */
void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_TVM_WORKSPACE_H_ */

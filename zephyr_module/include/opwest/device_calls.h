/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Calls of operators on devices, by name: ownership, launches and waits.
 *
 * opwest_call() in <opwest/registry.h> does all of it for one operator. The functions below are for
 * several operators on an owned device. A failure of a device is recorded in the status of the
 * workspace.
 *
 * One thread at a time uses a workspace. From opwest_own() to opwest_release() it is that thread:
 * run, close, submit, reset, save and restore are refused with -EBUSY, on that thread too, and
 * other threads are refused here with -EBUSY or -EPERM. Refused calls, which are those with
 * -EINVAL, -EPERM, -EBUSY of a workspace in use, and -EALREADY, change nothing: neither ownership
 * nor launched work nor the status.
 *
 * Each function also returns -EBUSY without an effect while another function of the workspace runs,
 * such as `<model>_run()` of another thread (`run: checks: {busy: true}`).
 */
#ifndef OPWEST_DEVICE_CALLS_H_
#define OPWEST_DEVICE_CALLS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/devices.h>
#include <opwest/registry.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device of a workspace; `<model>_call_device()` returns it. */
struct opwest_call_device {
	/** The model's devices. */
	const struct opwest_device_set *set;
	/** The slots, the status and the state of the workspace. */
	struct opwest_slot *slots;
	struct opwest_status *status;
	bool *opened;
	/** Set while a function of the workspace runs; NULL: the application excludes others. */
	opwest_port_flag_t *running;
	/** The index in the device context. */
	uint32_t index;
};

/**
 * @brief Become the owner of a device, for opwest_launch(). The calling thread owns it.
 *
 * The thread may own several devices of the workspace. `<model>_cancel()` applies to all of them,
 * until the last one is released.
 *
 * @param device The device.
 *
 * @retval 0          The caller owns the device, or it has no hooks.
 * @retval -EINVAL    The model has no device of this index.
 * @retval -EPERM     The workspace is not open.
 * @retval -EALREADY  The thread owns the device for this workspace: call opwest_launch().
 * @retval -EBUSY     Another thread owns a device of the workspace, or a run or a frame is in
 *                    progress, or another function of the workspace runs. Or another workspace did
 * not release the device in own_timeout_ms: see the status.
 * @retval -EDEADLK   The thread owns the device for another workspace, or through its driver:
 *                    release it there.
 * @retval -ECANCELED `<model>_cancel()` was called: release the owned devices.
 * @return Another negative errno of the driver
 */
int opwest_own(const struct opwest_call_device *device);

/**
 * @brief Start an operator on an owned device, without waiting for asynchronous work.
 *
 * 0 does not mean that the results are written: they are after opwest_wait(). Keep the memory of
 * the arguments until then. If the device is not coherent (OPWEST_DEVICE_COHERENT), call
 * opwest_port_cache_invalidate() for each result after opwest_wait(). An operator that is not
 * asynchronous has written its results.
 *
 * @param entry  The operator, as opwest_find() returned it.
 * @param args   The arguments in the order of the C function.
 * @param count  The number of arguments.
 * @param device The device, owned by the calling thread.
 *
 * @retval 0          The work is in the queue of the device, or done.
 * @retval -EPERM     The workspace is not open, or the calling thread does not own the device by
 *                    opwest_own().
 * @retval -EBUSY     Another function of the workspace runs.
 * @retval -ECANCELED `<model>_cancel()` was called: opwest_release() aborts the work.
 * @retval -ETIMEDOUT The queue stayed full: as opwest_wait(). Or the operator returned it: the
 *                    device is owned.
 * @return Another negative errno, as opwest_call(); the device is owned
 */
int opwest_launch(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		  const struct opwest_call_device *device);

/**
 * @brief Wait for all launched work of an owned device, on the thread that owns it.
 *
 * @param device The device.
 *
 * @retval 0          The results are written.
 * @retval -EINVAL    The model has no device of this index.
 * @retval -EPERM     The workspace is not open, or the calling thread does not own the device by
 *                    opwest_own().
 * @retval -ECANCELED `<model>_cancel()` was called: opwest_release() aborts the work.
 * @retval -ETIMEDOUT Some work is unfinished. No device of the workspace is owned any more, and
 *                    none is active: open the workspace again.
 * @retval -EBUSY     Another function of the workspace runs.
 * @return Another negative errno of the work; all of it has ended
 */
int opwest_wait(const struct opwest_call_device *device);

/**
 * @brief Wait for launched work, and give the device back, on the thread that owns it.
 *
 * @param device The device.
 *
 * @retval 0          Others can own the device.
 * @retval -EINVAL    The model has no device of this index.
 * @retval -EPERM     The workspace is not open, or the calling thread does not own the device by
 *                    opwest_own().
 * @retval -EBUSY     Another function of the workspace runs: the device is still owned.
 * @retval -ECANCELED `<model>_cancel()` was called: the work is aborted, and no device of the
 *                    workspace is owned any more. Open again unless workspace->opened.
 * @return The first error of opwest_wait() or the driver; the device is not owned nevertheless
 */
int opwest_release(const struct opwest_call_device *device);

/**
 * @brief Call an operator whose arguments are checked. Part of opwest_call().
 *
 * @param entry  The operator.
 * @param args   The arguments.
 * @param device The device.
 *
 * @return As opwest_call()
 */
int opwest_call_on_device(const struct opwest_entry *entry, const struct opwest_value *args,
			  const struct opwest_call_device *device);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_DEVICE_CALLS_H_ */

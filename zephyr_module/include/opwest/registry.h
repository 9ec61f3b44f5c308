/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The function registry: operators by name, with checked calls.
 */
#ifndef OPWEST_REGISTRY_H_
#define OPWEST_REGISTRY_H_

#include <stddef.h>
#include <stdint.h>

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opwest_launch;
struct opwest_program;

/**
 * An argument of a call by name: see opwest_in(), opwest_out(), opwest_integer(), opwest_real().
 */
struct opwest_value {
	union {
		const void *in;
		void *out;
		int64_t integer;
		double real;
	} as;
	/** The size of the memory in bytes; 0 for a number. */
	size_t size;
	/** enum opwest_dtype */
	uint8_t dtype;
	/** enum opwest_value_kind */
	uint8_t kind;
};

/** The kinds of struct opwest_value. */
enum opwest_value_kind {
	OPWEST_VALUE_IN = 0,
	OPWEST_VALUE_OUT = 1,
	OPWEST_VALUE_INTEGER = 2,
	OPWEST_VALUE_REAL = 3,
};

/**
 * Calls one operator with checked arguments; `launch` is NULL without a device. Emitted per
 * operator; not for direct calls.
 */
typedef int32_t (*opwest_adapter_t)(const struct opwest_value *args,
				    const struct opwest_launch *launch);

struct opwest_call_device;
struct opwest_entry;

/** Calls an operator on a device: opwest_call_on_device(). Not for direct calls. */
typedef int (*opwest_device_call_t)(const struct opwest_entry *entry,
				    const struct opwest_value *args,
				    const struct opwest_call_device *device);

/** The device that an operator requires. */
struct opwest_requirement {
	/** The type of the device; NULL for any. */
	const char *type;
	/** The name of the program that the device runs; NULL for any. */
	const char *program;
	/** The program of the operator; NULL for that of the device. */
	const struct opwest_program *own_program;
	/** opwest_call_on_device(): only images with such operators link it. */
	opwest_device_call_t call;
};

/** An operator that can be called by name. */
struct opwest_entry {
	const struct opwest_operator *info;
	/** NULL if the operator's device is no struct device. */
	opwest_adapter_t adapter;
	/** NULL for an operator without a device. */
	const struct opwest_requirement *requirement;
};

/**
 * A constant table from names to operators, with a minimal perfect hash that opwest computed.
 */
struct opwest_registry {
	/** @ref count entries, each at the hash of its name. */
	const struct opwest_entry *entries;
	/** @ref bucket_count displacements. */
	const uint16_t *displacements;
	uint32_t seed;
	uint32_t bucket_count;
	uint32_t count;
};

/**
 * @brief Find an operator by name.
 *
 * The time does not depend on the number of operators.
 *
 * @param registry The registry, for example &digits_registry.
 * @param name     The operator's name.
 *
 * @return The operator, or NULL if there is none of that name
 */
const struct opwest_entry *opwest_find(const struct opwest_registry *registry, const char *name);

/**
 * @brief Call an operator by its entry, and wait until it has written its results.
 *
 * Count, kinds, element types and sizes of the arguments are checked against the operator's
 * signature before the call. Pass scratch arguments like results. The memory of a result may not
 * overlap that of another argument; `in_place` of the manifest permits the same memory.
 *
 * An operator of an accelerator needs an open workspace and nothing else: the function owns the
 * device during the call, waits for asynchronous work, and makes caches coherent. It uses the
 * device of an owner (opwest_own()) without releasing it. opwest_launch() in
 * <opwest/device_calls.h> does not wait.
 *
 * @param entry  The operator, as opwest_find() returned it.
 * @param args   The arguments in the order of the C function.
 * @param count  The number of arguments.
 * @param device The operator's device, from `<model>_call_device()`; NULL for an operator without a
 *               device.
 *
 * @retval 0          The operator succeeded; its results are written.
 * @retval -ENOENT    @p entry is NULL.
 * @retval -EINVAL    An argument is surplus, missing, NULL, too small, misaligned, of a wrong
 *                    type, or overlaps another one; or the model has no device of this index.
 * Memory that a device without cache coherence writes must consist of whole cache lines.
 * @retval -ENODEV    The operator takes a device and @p device is NULL, or the reverse.
 * @retval -ENOTSUP   The operator's device is no struct device: call the operator directly.
 * @retval -EPERM     The workspace of the device is not open.
 * @retval -EXDEV     The device is not of the type that the operator requires, or no struct device.
 * @retval -ENOEXEC   The program of the operator or the device is not the one that it requires.
 * @retval -EIO       The operator returned a positive status.
 * @retval -ETIMEDOUT The device did not finish in time: open the workspace again.
 * @retval -EBUSY     Another thread owns a device of the workspace, or a run or a frame is in
 *                    progress, or another function of the workspace runs: nothing is changed. Or
 * another owner did not release the device: the workspace is still open.
 * @retval -EDEADLK   The calling thread owns the device for another workspace.
 * @return Another negative errno that the operator or the device returned
 */
int opwest_call(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		const struct opwest_call_device *device);

/**
 * @brief Check the arguments of a call. Part of opwest_call() and opwest_launch().
 *
 * @param entry  The operator.
 * @param args   The arguments.
 * @param count  The number of arguments.
 * @param device The device, or NULL.
 *
 * @retval 0 The operator can be called.
 * @return -ENOENT, -EINVAL, -ENODEV or -ENOTSUP, as opwest_call()
 */
int opwest_call_check(const struct opwest_entry *entry, const struct opwest_value *args,
		      size_t count, const struct opwest_call_device *device);

/** @brief Make an argument that the operator reads: @p size bytes of @p dtype. */
static inline struct opwest_value opwest_in(uint8_t dtype, const void *data, size_t size)
{
	struct opwest_value value;

	value.as.in = data;
	value.size = size;
	value.dtype = dtype;
	value.kind = OPWEST_VALUE_IN;
	return value;
}

/**
 * @brief Make an argument that the operator writes (or reads and writes): @p size bytes of @p
 * dtype.
 */
static inline struct opwest_value opwest_out(uint8_t dtype, void *data, size_t size)
{
	struct opwest_value value;

	value.as.out = data;
	value.size = size;
	value.dtype = dtype;
	value.kind = OPWEST_VALUE_OUT;
	return value;
}

/**
 * @brief Make a scalar of an integer type, of float16 (its bits) or of bool.
 *
 * Pass a uint64 above INT64_MAX as the negative number with the same bits.
 */
static inline struct opwest_value opwest_integer(uint8_t dtype, int64_t number)
{
	struct opwest_value value;

	value.as.integer = number;
	value.size = 0;
	value.dtype = dtype;
	value.kind = OPWEST_VALUE_INTEGER;
	return value;
}

/** @brief Make a scalar of float32 or float64. */
static inline struct opwest_value opwest_real(uint8_t dtype, double number)
{
	struct opwest_value value;

	value.as.real = number;
	value.size = 0;
	value.dtype = dtype;
	value.kind = OPWEST_VALUE_REAL;
	return value;
}

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_REGISTRY_H_ */

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

struct device;

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

/** Calls one operator with checked arguments. Emitted per operator; not for direct calls. */
typedef int32_t (*opwest_adapter_t)(const struct opwest_value *args, const struct device *dev);

/** An operator that can be called by name. */
struct opwest_entry {
	const struct opwest_operator *info;
	/** NULL if the operator's device is no struct device. */
	opwest_adapter_t adapter;
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
 * @brief Call an operator by its entry.
 *
 * Count, kinds, element types and sizes of the arguments are checked against the operator's
 * signature before the call. Pass scratch arguments like results.
 *
 * @param entry The operator, as opwest_find() returned it.
 * @param args  The arguments in the order of the C function.
 * @param count The number of arguments.
 * @param dev   The operator's device; NULL for an operator without a device.
 *
 * @retval 0 The operator succeeded.
 * @retval -ENOENT @p entry is NULL.
 * @retval -EINVAL An argument is surplus, missing, NULL, too small, misaligned, or of a wrong type.
 * @retval -ENODEV The operator takes a device and @p dev is NULL, or the reverse.
 * @retval -ENOTSUP The operator's device is no struct device: call the operator directly.
 * @retval -EIO The operator returned a positive status.
 * @return Another negative errno that the operator returned
 */
int opwest_call(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		const struct device *dev);

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

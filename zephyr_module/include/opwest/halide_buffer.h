/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The buffers of Halide, and the functions that pipelines compiled by Halide call.
 *
 * The structures and prototypes are those of Halide's HalideRuntime.h (Halide 10 to 21), a binary
 * interface. Unneeded parts are omitted.
 */
#ifndef OPWEST_HALIDE_BUFFER_H_
#define OPWEST_HALIDE_BUFFER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of elements: halide_type_code_t. */
enum opwest_halide_type {
	OPWEST_HALIDE_INT,
	OPWEST_HALIDE_UINT,
	OPWEST_HALIDE_FLOAT,
	OPWEST_HALIDE_HANDLE,
	OPWEST_HALIDE_BFLOAT,
};

/** The type of an element. */
struct halide_type_t {
	/** enum opwest_halide_type */
	uint8_t code;
	/** Bits of an element; 1 for bool. */
	uint8_t bits;
	/** Always 1. */
	uint16_t lanes;
};

/** One dimension. */
struct halide_dimension_t {
	int32_t min;
	int32_t extent;
	/** In elements. */
	int32_t stride;
	uint32_t flags;
};

/** A tensor. Dimension 0 is the innermost one. */
struct halide_buffer_t {
	uint64_t device;
	const struct halide_device_interface_t *device_interface;
	/** The data. */
	uint8_t *host;
	uint64_t flags;
	struct halide_type_t type;
	int32_t dimensions;
	struct halide_dimension_t *dim;
	void *padding;
};

/**
 * @brief Convert the return value of a pipeline to a status.
 *
 * @param code The return value: 0, or a halide_error_code_t, which is negative.
 *
 * @retval 0       The pipeline succeeded.
 * @retval -ENOMEM halide_error_code_out_of_memory
 * @return Otherwise the code without its sign: run() returns -EIO, and the status has the code.
 */
int32_t opwest_halide_code(int32_t code);

/**
 * @brief Allocate from the workspace of the running operator, as TVMBackendAllocWorkspace().
 *
 * Reads of 8 bytes before and after the memory are permitted, as Halide requires.
 *
 * @param user_context Unused.
 * @param x            The size in bytes.
 *
 * @return Memory aligned to a unit of the workspace, or NULL if it is exhausted.
 */
void *halide_malloc(void *user_context, size_t x);

/** @brief Free memory of halide_malloc(). */
void halide_free(void *user_context, void *ptr);

/** @brief Write a message to the log. */
void halide_error(void *user_context, const char *msg);

/** @name Failures of checks in pipelines
 * Each writes its reason to the log and returns its halide_error_code_t.
 * @{
 */
int halide_error_bounds_inference_call_failed(void *user_context, const char *extern_stage_name,
					      int result);
int halide_error_extern_stage_failed(void *user_context, const char *extern_stage_name, int result);
int halide_error_explicit_bounds_too_small(void *user_context, const char *func_name,
					   const char *var_name, int min_bound, int max_bound,
					   int min_required, int max_required);
int halide_error_bad_type(void *user_context, const char *func_name, uint32_t type_given,
			  uint32_t correct_type);
int halide_error_bad_dimensions(void *user_context, const char *func_name, int32_t dimensions_given,
				int32_t correct_dimensions);
int halide_error_access_out_of_bounds(void *user_context, const char *func_name, int dimension,
				      int min_touched, int max_touched, int min_valid,
				      int max_valid);
int halide_error_buffer_allocation_too_large(void *user_context, const char *buffer_name,
					     uint64_t allocation_size, uint64_t max_size);
int halide_error_buffer_extents_negative(void *user_context, const char *buffer_name, int dimension,
					 int extent);
int halide_error_buffer_extents_too_large(void *user_context, const char *buffer_name,
					  int64_t actual_size, int64_t max_size);
int halide_error_constraints_make_required_region_smaller(void *user_context,
							  const char *buffer_name, int dimension,
							  int constrained_min,
							  int constrained_extent, int required_min,
							  int required_extent);
int halide_error_constraint_violated(void *user_context, const char *var, int val,
				     const char *constrained_var, int constrained_val);
int halide_error_param_too_small_i64(void *user_context, const char *param_name, int64_t val,
				     int64_t min_val);
int halide_error_param_too_small_u64(void *user_context, const char *param_name, uint64_t val,
				     uint64_t min_val);
int halide_error_param_too_small_f64(void *user_context, const char *param_name, double val,
				     double min_val);
int halide_error_param_too_large_i64(void *user_context, const char *param_name, int64_t val,
				     int64_t max_val);
int halide_error_param_too_large_u64(void *user_context, const char *param_name, uint64_t val,
				     uint64_t max_val);
int halide_error_param_too_large_f64(void *user_context, const char *param_name, double val,
				     double max_val);
int halide_error_out_of_memory(void *user_context);
int halide_error_buffer_argument_is_null(void *user_context, const char *buffer_name);
int halide_error_debug_to_file_failed(void *user_context, const char *func, const char *filename,
				      int error_code);
int halide_error_unaligned_host_ptr(void *user_context, const char *func_name, int alignment);
int halide_error_host_is_null(void *user_context, const char *func_name);
int halide_error_bad_fold(void *user_context, const char *func_name, const char *var_name,
			  const char *loop_name);
int halide_error_bad_extern_fold(void *user_context, const char *func_name, int dim, int min,
				 int extent, int valid_min, int fold_factor);
int halide_error_fold_factor_too_small(void *user_context, const char *func_name,
				       const char *var_name, int fold_factor, const char *loop_name,
				       int required_extent);
int halide_error_requirement_failed(void *user_context, const char *condition, const char *message);
int halide_error_specialize_fail(void *user_context, const char *message);
int halide_error_no_device_interface(void *user_context);
int halide_error_device_interface_no_device(void *user_context);
int halide_error_host_and_device_dirty(void *user_context);
int halide_error_buffer_is_null(void *user_context, const char *routine);
int halide_error_device_dirty_with_no_device_support(void *user_context, const char *buffer_name);
int halide_error_storage_bound_too_small(void *user_context, const char *func_name,
					 const char *var_name, int provided_size,
					 int required_size);
int halide_error_device_crop_failed(void *user_context);
int halide_error_split_factor_not_positive(void *user_context, const char *func_name,
					   const char *orig, const char *outer, const char *inner,
					   const char *factor_str, int factor);
int halide_error_vscale_invalid(void *user_context, const char *func_name, int runtime_vscale,
				int compiletime_vscale);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_HALIDE_BUFFER_H_ */

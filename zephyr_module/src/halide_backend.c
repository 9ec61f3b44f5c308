/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/dlpack.h>
#include <opwest/halide_buffer.h>
#include <opwest/tvm_backend.h>
#include <opwest/tvm_workspace.h>

/* halide_error_code_out_of_memory */
#define OUT_OF_MEMORY (-11)
/* Bytes that pipelines may read before and after their memory. */
#define MARGIN        8U

int32_t opwest_halide_code(int32_t code)
{
	if (code == OUT_OF_MEMORY) {
		return -ENOMEM;
	}
	return code < 0 && code > INT32_MIN ? -code : code;
}

void *halide_malloc(void *user_context, size_t x)
{
	const struct opwest_tvm_workspace *const workspace = opwest_port_tvm_current();

	(void)user_context;
	if (workspace == NULL || x > SIZE_MAX / 2U) {
		return NULL;
	}

	/* A unit before the memory keeps the alignment. */
	const size_t unit = (size_t)1U << workspace->shift;
	uint8_t *const memory = TVMBackendAllocWorkspace(kDLCPU, 0, unit + x + MARGIN, kDLInt, 8);

	return memory == NULL ? NULL : memory + unit;
}

void halide_free(void *user_context, void *ptr)
{
	const struct opwest_tvm_workspace *const workspace = opwest_port_tvm_current();

	(void)user_context;
	if (workspace != NULL && ptr != NULL) {
		(void)TVMBackendFreeWorkspace(kDLCPU, 0,
					      (uint8_t *)ptr - ((size_t)1U << workspace->shift));
	}
}

void halide_error(void *user_context, const char *msg)
{
	(void)user_context;
	opwest_port_tvm_log("Halide", &msg, 1);
}

static int fail(int code, const char *reason, const char *name)
{
	const char *const parts[] = {reason, ": ", name};

	opwest_port_tvm_log("Halide", parts, name == NULL ? 1 : 3);
	return code;
}

int halide_error_bounds_inference_call_failed(void *user_context, const char *extern_stage_name,
					      int result)
{
	(void)user_context;
	return fail(result, "a call of an extern stage failed", extern_stage_name);
}

int halide_error_extern_stage_failed(void *user_context, const char *extern_stage_name, int result)
{
	(void)user_context;
	return fail(result, "an extern stage failed", extern_stage_name);
}

int halide_error_explicit_bounds_too_small(void *user_context, const char *func_name,
					   const char *var_name, int min_bound, int max_bound,
					   int min_required, int max_required)
{
	(void)user_context;
	(void)var_name;
	(void)min_bound;
	(void)max_bound;
	(void)min_required;
	(void)max_required;
	return fail(-2, "the bounds of bound() are too small", func_name);
}

int halide_error_bad_type(void *user_context, const char *func_name, uint32_t type_given,
			  uint32_t correct_type)
{
	(void)user_context;
	(void)type_given;
	(void)correct_type;
	return fail(-3, "a buffer has another element type than the pipeline", func_name);
}

int halide_error_bad_dimensions(void *user_context, const char *func_name, int32_t dimensions_given,
				int32_t correct_dimensions)
{
	(void)user_context;
	(void)dimensions_given;
	(void)correct_dimensions;
	return fail(-43, "a buffer has another number of dimensions than the pipeline", func_name);
}

int halide_error_access_out_of_bounds(void *user_context, const char *func_name, int dimension,
				      int min_touched, int max_touched, int min_valid,
				      int max_valid)
{
	(void)user_context;
	(void)dimension;
	(void)min_touched;
	(void)max_touched;
	(void)min_valid;
	(void)max_valid;
	return fail(-4, "the pipeline accesses elements outside a buffer", func_name);
}

int halide_error_buffer_allocation_too_large(void *user_context, const char *buffer_name,
					     uint64_t allocation_size, uint64_t max_size)
{
	(void)user_context;
	(void)allocation_size;
	(void)max_size;
	return fail(-5, "a buffer is too large", buffer_name);
}

int halide_error_buffer_extents_negative(void *user_context, const char *buffer_name, int dimension,
					 int extent)
{
	(void)user_context;
	(void)dimension;
	(void)extent;
	return fail(-28, "a buffer has a negative extent", buffer_name);
}

int halide_error_buffer_extents_too_large(void *user_context, const char *buffer_name,
					  int64_t actual_size, int64_t max_size)
{
	(void)user_context;
	(void)actual_size;
	(void)max_size;
	return fail(-6, "a buffer has too many elements", buffer_name);
}

int halide_error_constraints_make_required_region_smaller(void *user_context,
							  const char *buffer_name, int dimension,
							  int constrained_min,
							  int constrained_extent, int required_min,
							  int required_extent)
{
	(void)user_context;
	(void)dimension;
	(void)constrained_min;
	(void)constrained_extent;
	(void)required_min;
	(void)required_extent;
	return fail(-7, "the constraints exclude elements that the pipeline needs", buffer_name);
}

int halide_error_constraint_violated(void *user_context, const char *var, int val,
				     const char *constrained_var, int constrained_val)
{
	(void)user_context;
	(void)val;
	(void)constrained_var;
	(void)constrained_val;
	return fail(-8, "a buffer violates a constraint of the pipeline", var);
}

int halide_error_param_too_small_i64(void *user_context, const char *param_name, int64_t val,
				     int64_t min_val)
{
	(void)user_context;
	(void)val;
	(void)min_val;
	return fail(-9, "a parameter is too small", param_name);
}

int halide_error_param_too_small_u64(void *user_context, const char *param_name, uint64_t val,
				     uint64_t min_val)
{
	(void)user_context;
	(void)val;
	(void)min_val;
	return fail(-9, "a parameter is too small", param_name);
}

int halide_error_param_too_small_f64(void *user_context, const char *param_name, double val,
				     double min_val)
{
	(void)user_context;
	(void)val;
	(void)min_val;
	return fail(-9, "a parameter is too small", param_name);
}

int halide_error_param_too_large_i64(void *user_context, const char *param_name, int64_t val,
				     int64_t max_val)
{
	(void)user_context;
	(void)val;
	(void)max_val;
	return fail(-10, "a parameter is too large", param_name);
}

int halide_error_param_too_large_u64(void *user_context, const char *param_name, uint64_t val,
				     uint64_t max_val)
{
	(void)user_context;
	(void)val;
	(void)max_val;
	return fail(-10, "a parameter is too large", param_name);
}

int halide_error_param_too_large_f64(void *user_context, const char *param_name, double val,
				     double max_val)
{
	(void)user_context;
	(void)val;
	(void)max_val;
	return fail(-10, "a parameter is too large", param_name);
}

int halide_error_out_of_memory(void *user_context)
{
	(void)user_context;
	return fail(-11, "`workspace` in the manifest is missing or too small", NULL);
}

int halide_error_buffer_argument_is_null(void *user_context, const char *buffer_name)
{
	(void)user_context;
	return fail(-12, "a buffer is missing", buffer_name);
}

int halide_error_debug_to_file_failed(void *user_context, const char *func, const char *filename,
				      int error_code)
{
	(void)user_context;
	(void)filename;
	(void)error_code;
	return fail(-13, "debug_to_file() failed", func);
}

int halide_error_unaligned_host_ptr(void *user_context, const char *func_name, int alignment)
{
	(void)user_context;
	(void)alignment;
	return fail(-24, "a buffer has a smaller alignment than set_host_alignment()", func_name);
}

int halide_error_host_is_null(void *user_context, const char *func_name)
{
	(void)user_context;
	return fail(-34, "a buffer has no data", func_name);
}

int halide_error_bad_fold(void *user_context, const char *func_name, const char *var_name,
			  const char *loop_name)
{
	(void)user_context;
	(void)var_name;
	(void)loop_name;
	return fail(-25, "a folded loop does not fit", func_name);
}

int halide_error_bad_extern_fold(void *user_context, const char *func_name, int dim, int min,
				 int extent, int valid_min, int fold_factor)
{
	(void)user_context;
	(void)dim;
	(void)min;
	(void)extent;
	(void)valid_min;
	(void)fold_factor;
	return fail(-35, "a folded buffer does not fit an extern stage", func_name);
}

int halide_error_fold_factor_too_small(void *user_context, const char *func_name,
				       const char *var_name, int fold_factor, const char *loop_name,
				       int required_extent)
{
	(void)user_context;
	(void)var_name;
	(void)fold_factor;
	(void)loop_name;
	(void)required_extent;
	return fail(-26, "a fold factor is too small", func_name);
}

int halide_error_requirement_failed(void *user_context, const char *condition, const char *message)
{
	(void)user_context;
	(void)condition;
	return fail(-27, "a require() failed", message);
}

int halide_error_specialize_fail(void *user_context, const char *message)
{
	(void)user_context;
	return fail(-31, "specialize_fail()", message);
}

int halide_error_no_device_interface(void *user_context)
{
	(void)user_context;
	return fail(-19, "a buffer has no device interface", NULL);
}

int halide_error_device_interface_no_device(void *user_context)
{
	(void)user_context;
	return fail(-36, "a buffer has a device interface and no device", NULL);
}

int halide_error_host_and_device_dirty(void *user_context)
{
	(void)user_context;
	return fail(-37, "a buffer is dirty on host and device", NULL);
}

int halide_error_buffer_is_null(void *user_context, const char *routine)
{
	(void)user_context;
	return fail(-38, "a buffer is missing", routine);
}

int halide_error_device_dirty_with_no_device_support(void *user_context, const char *buffer_name)
{
	(void)user_context;
	return fail(-44, "a buffer is on a device", buffer_name);
}

int halide_error_storage_bound_too_small(void *user_context, const char *func_name,
					 const char *var_name, int provided_size, int required_size)
{
	(void)user_context;
	(void)var_name;
	(void)provided_size;
	(void)required_size;
	return fail(-45, "a bound_storage() is too small", func_name);
}

int halide_error_device_crop_failed(void *user_context)
{
	(void)user_context;
	return fail(-41, "cropping failed", NULL);
}

int halide_error_split_factor_not_positive(void *user_context, const char *func_name,
					   const char *orig, const char *outer, const char *inner,
					   const char *factor_str, int factor)
{
	(void)user_context;
	(void)orig;
	(void)outer;
	(void)inner;
	(void)factor_str;
	(void)factor;
	return fail(-46, "a split factor is not positive", func_name);
}

int halide_error_vscale_invalid(void *user_context, const char *func_name, int runtime_vscale,
				int compiletime_vscale)
{
	(void)user_context;
	(void)runtime_vscale;
	(void)compiletime_vscale;
	return fail(-47, "the vector length differs", func_name);
}

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The constant description of a model: its operators, tensors, pools and devices.
 *
 * All of it is constant, in flash. The linker drops unreferenced parts.
 */
#ifndef OPWEST_MODEL_H_
#define OPWEST_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define OPWEST_ALIGNED(bytes)                    alignas(bytes)
#define OPWEST_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
/** Alignment of storage in bytes, in C and C++. */
#define OPWEST_ALIGNED(bytes)                    _Alignas(bytes)
/** A check at compile time, in C and C++. */
#define OPWEST_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/** The argument of a macro for attributes that a definition does not have. */
#define OPWEST_NO_ATTRIBUTE

/** The number of elements of an array. */
#define OPWEST_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/** The version of the structures below; generated code checks it. */
#define OPWEST_METADATA_VERSION 8

struct opwest_program;
struct opwest_state;

/**
 * @brief The element types, one row each.
 *
 * ROW(NAME, value, name, size, kind, exponent): the enumerator without OPWEST_ and its value, the
 * name in manifests, the size in bytes, the kind, and the width of the exponent in bits (0 for
 * whole numbers). Kinds:
 *
 * - SIGNED, UNSIGNED, BOOLEAN: whole numbers; BOOLEAN is 0 or 1 in a uint8_t.
 * - REAL: float and double.
 * - BITS: floating-point numbers without a C type, as bits (sign, exponent, fraction) in an
 *   unsigned integer of their size.
 * - FINITE: the same without infinity, and with one NaN, whose bits are all set except the sign.
 */
#define OPWEST_DTYPES(ROW)                                                                         \
	ROW(INT8, 0, "int8", 1, SIGNED, 0)                                                         \
	ROW(UINT8, 1, "uint8", 1, UNSIGNED, 0)                                                     \
	ROW(INT16, 2, "int16", 2, SIGNED, 0)                                                       \
	ROW(UINT16, 3, "uint16", 2, UNSIGNED, 0)                                                   \
	ROW(INT32, 4, "int32", 4, SIGNED, 0)                                                       \
	ROW(UINT32, 5, "uint32", 4, UNSIGNED, 0)                                                   \
	ROW(INT64, 6, "int64", 8, SIGNED, 0)                                                       \
	ROW(UINT64, 7, "uint64", 8, UNSIGNED, 0)                                                   \
	ROW(FLOAT16, 8, "float16", 2, BITS, 5)                                                     \
	ROW(FLOAT32, 9, "float32", 4, REAL, 8)                                                     \
	ROW(FLOAT64, 10, "float64", 8, REAL, 11)                                                   \
	ROW(BOOL, 11, "bool", 1, BOOLEAN, 0)                                                       \
	ROW(BFLOAT16, 12, "bfloat16", 2, BITS, 8)                                                  \
	ROW(FLOAT8_E4M3, 13, "float8_e4m3", 1, FINITE, 4)                                          \
	ROW(FLOAT8_E5M2, 14, "float8_e5m2", 1, BITS, 5)

/** @cond INTERNAL_HIDDEN */
#define OPWEST_DTYPE_VALUE(NAME, value, name, size, kind, exponent) OPWEST_##NAME = (value),
/** @endcond */

/** Element types: see OPWEST_DTYPES(). */
enum opwest_dtype {
	OPWEST_DTYPES(OPWEST_DTYPE_VALUE)
};

/** The kinds of element types: see OPWEST_DTYPES(). */
enum opwest_dtype_kind {
	OPWEST_KIND_SIGNED = 0,
	OPWEST_KIND_UNSIGNED = 1,
	OPWEST_KIND_BOOLEAN = 2,
	OPWEST_KIND_REAL = 3,
	OPWEST_KIND_BITS = 4,
	OPWEST_KIND_FINITE = 5,
};

/** The use of an argument by an operator. */
enum opwest_direction {
	OPWEST_IN = 0,
	OPWEST_OUT = 1,
	OPWEST_INOUT = 2,
	OPWEST_SCRATCH = 3,
};

/** The argument is passed by value. */
#define OPWEST_TENSOR_SCALAR       0x01U
/**
 * The memory of a result and of an argument that both have this flag may be the same: `in_place` of
 * the manifest.
 */
#define OPWEST_TENSOR_IN_PLACE     0x02U
/** The alignment of the data in bytes; the flags have its binary logarithm in bits 4 to 7. */
#define OPWEST_TENSOR_ALIGN(flags) (1U << ((flags) >> 4))
/** The flags of data that is aligned to @p bytes, a power of two up to 32768. */
#define OPWEST_TENSOR_ALIGNED(bytes)                                                               \
	((((bytes) & 0xaaaaU) != 0U ? 0x10U : 0U) | (((bytes) & 0xccccU) != 0U ? 0x20U : 0U) |     \
	 (((bytes) & 0xf0f0U) != 0U ? 0x40U : 0U) | (((bytes) & 0xff00U) != 0U ? 0x80U : 0U))

/** The operator returns a status; without this flag it returns void. */
#define OPWEST_OPERATOR_STATUS   0x01U
/** The operator takes its device as the explicit last argument. */
#define OPWEST_OPERATOR_DEVICE   0x02U
/** The operator has writable state: it is not reentrant. */
#define OPWEST_OPERATOR_STATEFUL 0x04U

/** The operator enqueues its work and returns. */
#define OPWEST_OPERATOR_ASYNC          0x08U
/** The last argument is a struct opwest_launch instead of the device. */
#define OPWEST_OPERATOR_LAUNCH         0x10U
/** The operator may use the heap. */
#define OPWEST_OPERATOR_HEAP           0x20U
/** The operator may read or write files and devices. */
#define OPWEST_OPERATOR_IO             0x40U
/** The results of the operator may depend on the time, a random source or the environment. */
#define OPWEST_OPERATOR_NONDETERMINISM 0x80U
/** The operator may end, suspend or interrupt the program. */
#define OPWEST_OPERATOR_CONTROL        0x100U
/** The operator may change the floating-point environment. */
#define OPWEST_OPERATOR_FENV           0x200U

/** Operators have writable state: the model is not reentrant, and one workspace can be open. */
#define OPWEST_MODEL_STATEFUL 0x01U

/** The device's driver is of the class of accelerators: its hooks are called. */
#define OPWEST_DEVICE_HOOKS     0x01U
/** The handle is no struct device, but a type of its vendor. */
#define OPWEST_DEVICE_FOREIGN   0x02U
/** The device shares the processor's view of memory: no cache maintenance is required. */
#define OPWEST_DEVICE_COHERENT  0x04U
/** The device is powered during the ownership of a run; without this flag, while it is active. */
#define OPWEST_DEVICE_POWER_RUN 0x08U

/** The processor can access the pool. */
#define OPWEST_POOL_CPU         0x01U
/** All devices can access the pool. */
#define OPWEST_POOL_ALL_DEVICES 0x02U

/** The registers that pass floating-point arguments. */
enum opwest_float_abi {
	/** The machine has only one such ABI. */
	OPWEST_FLOAT_ABI_ONLY = 0,
	/** Integer registers. */
	OPWEST_FLOAT_ABI_SOFT = 1,
	/** Arm: registers of the FPU. */
	OPWEST_FLOAT_ABI_HARD = 2,
	/** RISC-V: registers of the FPU, for float; for float and double; for all types. */
	OPWEST_FLOAT_ABI_SINGLE = 3,
	OPWEST_FLOAT_ABI_DOUBLE = 4,
	OPWEST_FLOAT_ABI_QUAD = 5,
};

/** The use of a buffer in the workspace. */
enum opwest_buffer_role {
	OPWEST_BUFFER_INTERMEDIATE = 0,
	OPWEST_BUFFER_SCRATCH = 1,
	OPWEST_BUFFER_INPUT = 2,
	OPWEST_BUFFER_OUTPUT = 3,
	/** The copy of a constant, made when the model is opened. */
	OPWEST_BUFFER_CONSTANT = 4,
	/** Lasts from one run to the next: see opwest/state.h. */
	OPWEST_BUFFER_STATE = 5,
};

/** The table that the index of a binding refers to. */
enum opwest_binding_kind {
	/** The model's inputs, in memory of the caller. */
	OPWEST_BINDING_INPUT = 0,
	/** The model's outputs, in memory of the caller. */
	OPWEST_BINDING_OUTPUT = 1,
	/** The constants, read from flash. */
	OPWEST_BINDING_CONSTANT = 2,
	/** The buffers of the workspace. */
	OPWEST_BINDING_BUFFER = 3,
	/** The scalars of struct opwest_details. */
	OPWEST_BINDING_SCALAR = 4,
	/** The views, which are parts of other tensors. */
	OPWEST_BINDING_VIEW = 5,
};

/** The device of a step that runs on the CPU. */
#define OPWEST_NO_DEVICE UINT16_MAX

/** real = scale * (value - zero_point). */
struct opwest_quantization {
	/** One scale, or one per slice along @ref axis. */
	const float *scales;
	/** One zero point, or one per slice along @ref axis. */
	const int32_t *zero_points;
	uint32_t scale_count;
	uint32_t zero_point_count;
	/** The dimension along which they vary; -1 for a single pair. */
	int32_t axis;
};

/** A tensor or scalar: an argument, an input or an output. */
struct opwest_tensor {
	const char *name;
	/** @ref rank dimensions, outermost first; NULL when the rank is 0. */
	const uint32_t *shape;
	/** NULL if the tensor is not quantised. */
	const struct opwest_quantization *quantization;
	/** Bytes, in C order without padding. */
	uint32_t size;
	/** enum opwest_dtype */
	uint8_t dtype;
	uint8_t rank;
	/** enum opwest_direction */
	uint8_t direction;
	/** OPWEST_TENSOR_SCALAR, OPWEST_TENSOR_IN_PLACE and OPWEST_TENSOR_ALIGNED(). */
	uint8_t flags;
};

/** An operator's signature. */
struct opwest_operator {
	const char *name;
	/** The description in the manifest; NULL if there is none. */
	const char *description;
	/** @ref arg_count arguments in the order of the C function, without the device. */
	const struct opwest_tensor *args;
	uint16_t arg_count;
	/** OPWEST_OPERATOR_* */
	uint16_t flags;
};

/** One call of run. */
struct opwest_step {
	/** Index into the model's operators. */
	uint16_t operator_index;
	/** Index into the model's devices, or OPWEST_NO_DEVICE. */
	uint16_t device_index;
};

/** A memory pool of the workspace. */
struct opwest_pool {
	const char *name;
	/** Bytes that the plan uses. */
	uint32_t size;
	/** Bytes. */
	uint32_t align;
};

/** A member of the device context. */
struct opwest_device {
	const char *name;
	/** The type that operators may require; NULL when none was declared. */
	const char *type;
	/** The program of steps and operators without another one; NULL for none. */
	const struct opwest_program *program;
	/** The longest wait for work, milliseconds, or OPWEST_FOREVER. */
	int32_t timeout_ms;
	/** The longest wait for another owner, milliseconds, or OPWEST_FOREVER. */
	int32_t own_timeout_ms;
	/** The first step that uses the device, or OPWEST_NO_STEP. */
	uint16_t first_step;
	/** The step before which it is released. */
	uint16_t last_step;
	/** The largest number of unfinished launches; 0 for no limit by the model. */
	uint16_t queue_depth;
	/** OPWEST_DEVICE_* */
	uint16_t flags;
};

/** A model. */
struct opwest_model {
	const char *name;
	const struct opwest_tensor *inputs;
	const struct opwest_tensor *outputs;
	/** In the manifest's order. */
	const struct opwest_operator *operators;
	const struct opwest_step *steps;
	const struct opwest_pool *pools;
	const struct opwest_device *devices;
	/** Bytes of all constants in flash. */
	uint32_t constant_size;
	/** OPWEST_METADATA_VERSION */
	uint16_t version;
	uint16_t input_count;
	uint16_t output_count;
	uint16_t operator_count;
	uint16_t step_count;
	uint16_t pool_count;
	uint16_t device_count;
	/** OPWEST_MODEL_* */
	uint16_t flags;
};

/** The generator, the content and the ABI of a model. */
struct opwest_build {
	/** The version of opwest. */
	const char *generator;
	/**
	 * SHA-256 of everything that defines the behaviour of the model, hexadecimal: operators,
	 * steps, tensors, constants, devices, programs. Equal for all targets.
	 */
	const char *model_hash;
	/** The target of the operators in the manifest; "any" for C sources. */
	const char *target;
	/** The number of the machine in ELF files (e_machine). */
	uint16_t machine;
	/** enum opwest_float_abi */
	uint8_t float_abi;
	/** Bytes. */
	uint8_t pointer_size;
	/** 1 for big-endian machines, else 0. */
	uint8_t big_endian;
};

/** A constant tensor in flash. */
struct opwest_constant {
	struct opwest_tensor tensor;
	/** Its elements, in C order. */
	const void *data;
};

/** A tensor in the workspace. */
struct opwest_buffer {
	struct opwest_tensor tensor;
	/** The offset in the pool, bytes. */
	uint32_t offset;
	/** Index into the model's pools. */
	uint16_t pool;
	/** The steps between which the content is defined; the memory is shared at other times. */
	uint16_t first_step;
	uint16_t last_step;
	/** enum opwest_buffer_role */
	uint8_t role;
};

/** The memory region of a pool. */
struct opwest_region {
	/** NULL: all boards. */
	const char *board;
	/** The devicetree node, as in the manifest: "nodelabel dtcm". */
	const char *node;
};

/** The location of a pool and the devices that reach it. */
struct opwest_pool_place {
	/** @ref region_count regions; other boards have the pool in ordinary memory. */
	const struct opwest_region *regions;
	/** @ref device_count indices of devices, besides OPWEST_POOL_ALL_DEVICES. */
	const uint16_t *devices;
	/** Bytes; 0 if the pool is not cached. */
	uint32_t cache_line;
	uint16_t region_count;
	uint16_t device_count;
	/** OPWEST_POOL_* */
	uint32_t flags;
};

/** The value of one argument of a step. */
struct opwest_binding {
	/** enum opwest_binding_kind */
	uint16_t kind;
	/** Index into the table of that kind. */
	uint16_t index;
};

/** A contiguous part of a tensor. */
struct opwest_view {
	struct opwest_tensor tensor;
	/** The whole tensor. */
	struct opwest_binding base;
	/** The start of the view in it, bytes. */
	uint32_t offset;
};

/** The arguments of a step; its operator is in struct opwest_step. */
struct opwest_step_bindings {
	/** @ref binding_count bindings, in the order of the operator's arguments. */
	const struct opwest_binding *bindings;
	uint32_t binding_count;
};

/**
 * The optional parts of the metadata. Each part is also a symbol of its own: `<model>_build`,
 * `<model>_constants`, `<model>_buffers`, `<model>_pool_places`, `<model>_step_bindings`,
 * `<model>_views`. The linker drops those that nothing refers to.
 */
struct opwest_details {
	const struct opwest_model *model;
	const struct opwest_build *build;
	const struct opwest_constant *constants;
	const struct opwest_buffer *buffers;
	/** In the order of the model's pools. */
	const struct opwest_pool_place *pool_places;
	/** In the order of the model's steps. */
	const struct opwest_step_bindings *step_bindings;
	const struct opwest_view *views;
	/** NULL for a model without state. */
	const struct opwest_state *state;
	/** Values of scalars: an int64_t, or the bits of a double for float types. */
	const uint64_t *scalars;
	uint16_t constant_count;
	uint16_t buffer_count;
	uint16_t pool_count;
	uint16_t step_count;
	uint16_t view_count;
	uint16_t reserved;
	uint32_t scalar_count;
};

/** @cond INTERNAL_HIDDEN */
/* The initialisers of the structures above: an argument for each member. */
#define OPWEST_QUANTIZATION(_scales, _zero_points, _scale_count, _zero_point_count, _axis)         \
	{                                                                                          \
		.scales = (_scales),                                                               \
		.zero_points = (_zero_points),                                                     \
		.scale_count = (_scale_count),                                                     \
		.zero_point_count = (_zero_point_count),                                           \
		.axis = (_axis),                                                                   \
	}
#define OPWEST_TENSOR(_name, _shape, _quantization, _size, _dtype, _rank, _direction, _flags)      \
	{                                                                                          \
		.name = (_name),                                                                   \
		.shape = (_shape),                                                                 \
		.quantization = (_quantization),                                                   \
		.size = (_size),                                                                   \
		.dtype = (_dtype),                                                                 \
		.rank = (_rank),                                                                   \
		.direction = (_direction),                                                         \
		.flags = (_flags),                                                                 \
	}
#define OPWEST_OPERATOR(_name, _description, _args, _arg_count, _flags)                            \
	{                                                                                          \
		.name = (_name),                                                                   \
		.description = (_description),                                                     \
		.args = (_args),                                                                   \
		.arg_count = (_arg_count),                                                         \
		.flags = (_flags),                                                                 \
	}
#define OPWEST_DEVICE(_name, _type, _program, _timeout_ms, _own_timeout_ms, _first_step,           \
		      _last_step, _queue_depth, _flags)                                            \
	{                                                                                          \
		.name = (_name),                                                                   \
		.type = (_type),                                                                   \
		.program = (_program),                                                             \
		.timeout_ms = (_timeout_ms),                                                       \
		.own_timeout_ms = (_own_timeout_ms),                                               \
		.first_step = (_first_step),                                                       \
		.last_step = (_last_step),                                                         \
		.queue_depth = (_queue_depth),                                                     \
		.flags = (_flags),                                                                 \
	}
#define OPWEST_CONSTANT(_name, _shape, _quantization, _size, _dtype, _rank, _direction, _flags,    \
			_data)                                                                     \
	{                                                                                          \
		.tensor = OPWEST_TENSOR(_name, _shape, _quantization, _size, _dtype, _rank,        \
					_direction, _flags),                                       \
		.data = (_data),                                                                   \
	}
#define OPWEST_BUFFER(_name, _shape, _quantization, _size, _dtype, _rank, _direction, _flags,      \
		      _offset, _pool, _first_step, _last_step, _role)                              \
	{                                                                                          \
		.tensor = OPWEST_TENSOR(_name, _shape, _quantization, _size, _dtype, _rank,        \
					_direction, _flags),                                       \
		.offset = (_offset),                                                               \
		.pool = (_pool),                                                                   \
		.first_step = (_first_step),                                                       \
		.last_step = (_last_step),                                                         \
		.role = (_role),                                                                   \
	}
#define OPWEST_VIEW(_name, _shape, _quantization, _size, _dtype, _rank, _direction, _flags, _kind, \
		    _index, _offset)                                                               \
	{                                                                                          \
		.tensor = OPWEST_TENSOR(_name, _shape, _quantization, _size, _dtype, _rank,        \
					_direction, _flags),                                       \
		.base = {.kind = (_kind), .index = (_index)},                                      \
		.offset = (_offset),                                                               \
	}
#define OPWEST_POOL_PLACE(_regions, _devices, _cache_line, _region_count, _device_count, _flags)   \
	{                                                                                          \
		.regions = (_regions),                                                             \
		.devices = (_devices),                                                             \
		.cache_line = (_cache_line),                                                       \
		.region_count = (_region_count),                                                   \
		.device_count = (_device_count),                                                   \
		.flags = (_flags),                                                                 \
	}
/** @endcond */

/**
 * @brief Return the name of an element type.
 *
 * @param dtype A value of enum opwest_dtype.
 *
 * @return Its name in manifests ("int8"), or NULL if there is no such type
 */
const char *opwest_dtype_name(uint8_t dtype);

/**
 * @brief Return the size of an element.
 *
 * @param dtype A value of enum opwest_dtype.
 *
 * @return Bytes, or 0 if there is no such type
 */
size_t opwest_dtype_size(uint8_t dtype);

/**
 * @brief Find an input of a model by name.
 *
 * @param model The model.
 * @param name  The input's name.
 *
 * @return The input, or NULL if there is none of that name
 */
const struct opwest_tensor *opwest_model_input(const struct opwest_model *model, const char *name);

/**
 * @brief Find an output of a model by name.
 *
 * @param model The model.
 * @param name  The output's name.
 *
 * @return The output, or NULL if there is none of that name
 */
const struct opwest_tensor *opwest_model_output(const struct opwest_model *model, const char *name);

/**
 * @brief Return the name of the operator that a step calls.
 *
 * @param model The model.
 * @param step  The step, counted from 0, as in struct opwest_status.
 *
 * @return The operator's name, or NULL if there is no such step
 */
const char *opwest_model_step_name(const struct opwest_model *model, uint16_t step);

#if !defined(CONFIG_OPWEST_PROFILE) && !defined(CONFIG_OPWEST_CHECK_INPUTS)
/* The points of a run: <opwest/profile.h> has their measurement and the comparison of inputs. */
#define OPWEST_PROFILE_BEGIN(measures, points, index) ((void)0)
#ifdef OPWEST_BUNDLE_STEPS
/* An image whose run reports the end of each point: see opwest/bundle_image.h. */
#define OPWEST_PROFILE_END(measures, points, index)                                                \
	opwest_bundle_ended(OPWEST_BUNDLE_TRAILER(workspace), index)
#else
#define OPWEST_PROFILE_END(measures, points, index) ((void)0)
#endif
#define OPWEST_PROFILE_AFTER(...) __VA_ARGS__
#define OPWEST_PROFILE_LIST(name, variable)                                                        \
	OPWEST_STATIC_ASSERT(sizeof(variable) > 0U, "the workspace is defined")
#define OPWEST_CHECK_INPUTS(details, inputs, outputs, workspace) ((void)0)
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_MODEL_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model for tests, linked at the address of a slot and executed there. It has no libraries. Macros
 * select its behaviour: see bundle_files.py.
 *
 * y[i] = 3 * x[i] + MARK + (runs since the reset, if STATE); z = the sum of x, as float.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>
#include <opwest/state.h>

#define IMAGE __attribute__((used, section(".rodata.image")))

/* A part that is wrong: bundle_files.Variant.broken. */
enum broken {
	NOTHING,
	MAGIC, VERSION, SIZE,
	PREPARE, OPEN, RUN, CLOSE, STATUS, PLACED, RESET, CANCEL, OBSERVE,
	DETAILS, MODEL, MODEL_NAME, MODEL_NAME_END, OTHER_NAME, MODEL_VERSION,
	INPUTS, TENSOR_NAME, SHAPE, QUANTIZATION, DTYPE, TENSOR_SIZE, OUTPUTS,
	MANY_POOLS, POOLS, POOL_ALIGN, POOL_NAME,
	DEVICE_TABLE, DEVICE_NAME, DEVICE_TYPE,
	OPERATORS, OPERATOR_NAME, STEPS, OPERATOR_INDEX,
	BUILD, HASH_POINTER, HASH_DIGIT, HASH_SHORT,
	BUFFERS, BUFFER_POOL, BUFFER_OFFSET, BUFFER_SIZE, BUFFER_NAME, BUFFER_DTYPE,
	VECTORS_POINTER, TOLERANCES, TOLERANCES_ALIGN, VECTOR_INPUTS, VECTOR_OUTPUTS,
	INPUT_NULL, INPUT_OUTSIDE, OUTPUT_OUTSIDE, OUTPUT_END,
	STEP_TABLE, STEP_BUFFER, STEP_STEP, STEP_EXPECTED, FOREIGN, OUTPUT_LAST,
};

/* The code after that of the last dtype. */
#define ONE(NAME, value, name, size, kind, exponent) +1U
#define NO_DTYPE (0U OPWEST_DTYPES(ONE))
#define IS(part)             (BROKEN == (part))
/* Outside of the image. */
#define POINTER(part, value) (IS(part) ? (__typeof__(&(value)[0]))8 : (value))
#define FUNCTION(part, name) (IS(part) ? (__typeof__(&(name)))8 : (name))

/* The last bytes of the image: no NUL is behind them. */
const char last[] __attribute__((used, section(".last"))) = {'o', 'n', 'e', 'x'};

struct opwest_bundle_workspace {
	uint32_t guard;
	struct opwest_status status;
	uint8_t *pools[2];
	const struct opwest_host *host;
	struct opwest_bundle_observer *observer;
	const struct device *devices[DEVICES == 0 ? 1 : DEVICES];
	uint32_t runs;
	uint8_t is_open;
	uint8_t padding[PADDING];
};

static const uint32_t shape_x[] = {4U};
static const uint32_t shape_z[] = {1U};

static const struct opwest_tensor inputs[] = {
	{POINTER(TENSOR_NAME, "x"), POINTER(SHAPE, shape_x),
	 IS(QUANTIZATION) ? (const struct opwest_quantization *)8 : NULL, 4U,
	 IS(DTYPE) ? NO_DTYPE : IS(TENSOR_SIZE) ? OPWEST_INT64 : OPWEST_INT8, 1U, OPWEST_IN, 0U},
};
static const struct opwest_tensor outputs[] = {
	{"y", shape_x, NULL, 16U, OPWEST_INT32, 1U, OPWEST_OUT, 2U << 4},
	{"z", shape_z, NULL, 4U, OPWEST_FLOAT32, 1U, OPWEST_OUT, 2U << 4},
};
static const struct opwest_tensor arguments[] = {
	{"x", shape_x, NULL, 4U, OPWEST_INT8, 1U, OPWEST_IN, 0U},
	{"t", shape_x, NULL, 16U, OPWEST_INT32, 1U, OPWEST_OUT, 0U},
};
static const struct opwest_operator operators[] = {
	{POINTER(OPERATOR_NAME, "triple"), NULL, arguments, 2U, 0U},
	{"add_mark", NULL, arguments, 2U, 0U},
};
static const struct opwest_step steps[] = {
	{0U, OPWEST_NO_DEVICE},
	{IS(OPERATOR_INDEX) ? 2U : 1U, OPWEST_NO_DEVICE},
};
static const struct opwest_pool pools[] = {
	{POINTER(POOL_NAME, "fast"), 20U, IS(POOL_ALIGN) ? 3U : 4U},
	{"main", POOL_SIZE, 64U},
};
static const struct opwest_device devices[] = {
	{POINTER(DEVICE_NAME, "first"), POINTER(DEVICE_TYPE, "npu"), NULL, 0, 0, 0U, 0U, 0U,
	 IS(FOREIGN) ? OPWEST_DEVICE_FOREIGN : 0U},
	{"second", "npu", NULL, 0, 0, 0U, 0U, 0U, 0U},
	{"clock", "timer", NULL, 0, 0, 0U, 0U, 0U, 0U},
	{"untyped", NULL, NULL, 0, 0, 0U, 0U, 0U, 0U},
};
static const struct opwest_model model = {
	.name = IS(MODEL_NAME)       ? (const char *)8
		: IS(MODEL_NAME_END) ? last
		: IS(OTHER_NAME)     ? "other"
				     : NAME,
	.inputs = POINTER(INPUTS, inputs),
	.outputs = POINTER(OUTPUTS, outputs),
	.operators = POINTER(OPERATORS, operators),
	.steps = POINTER(STEPS, steps),
	.pools = POINTER(POOLS, pools),
	.devices = POINTER(DEVICE_TABLE, &devices[FIRST_DEVICE]),
	.version = OPWEST_METADATA_VERSION + IS(MODEL_VERSION),
	.input_count = 1U,
	.output_count = 2U,
	.operator_count = 2U,
	.step_count = 2U,
	.pool_count = IS(MANY_POOLS) ? 9U : 2U,
	.device_count = DEVICES,
};
static const struct opwest_build build = {
	.generator = "stand-in",
	.model_hash = IS(HASH_POINTER) ? (const char *)8
		      : IS(HASH_DIGIT) ? &(HASH "g")[1]
		      : IS(HASH_SHORT) ? HASH_START
				       : HASH,
};
static const struct opwest_buffer buffers[] = {
	{{POINTER(BUFFER_NAME, "t"), shape_x, NULL, IS(BUFFER_SIZE) ? POOL_SIZE : 16U,
	  IS(BUFFER_DTYPE) ? NO_DTYPE : OPWEST_INT32, 1U, OPWEST_OUT, 2U << 4},
	 IS(BUFFER_OFFSET) ? POOL_SIZE + 64U : 64U, IS(BUFFER_POOL) ? 2U : 1U, 0U, 1U,
	 OPWEST_BUFFER_INTERMEDIATE},
	{{"r", shape_z, NULL, 4U, OPWEST_FLOAT32, 1U, OPWEST_OUT, 2U << 4}, 4U, 0U, 1U, 1U,
	 OPWEST_BUFFER_INTERMEDIATE},
};
static const struct opwest_details details = {
	.model = POINTER(MODEL, &model),
	.build = POINTER(BUILD, &build),
	.buffers = POINTER(BUFFERS, buffers),
	.buffer_count = 2U,
	.pool_count = 2U,
	.step_count = 2U,
};

static void prepare(struct opwest_bundle_workspace *workspace, uint8_t *const *memory)
{
	workspace->guard = 0x600dU + MARK;
	workspace->pools[0] = memory[0];
	workspace->pools[1] = memory[1];
	workspace->observer = NULL;
	workspace->is_open = 0U;
	workspace->status = (struct opwest_status)OPWEST_STATUS_INIT;
}

static int open(struct opwest_bundle_workspace *workspace, opwest_bundle_devices_t context,
		const struct opwest_host *host)
{
	if (workspace->guard != 0x600dU + MARK) {
		return -ENOTRECOVERABLE;
	}
	if (workspace->is_open != 0U) {
		return -EALREADY;
	}
	if (OPEN_CODE != 0) {
		workspace->status.code = OPEN_CODE;
		return OPEN_CODE;
	}
	for (uint32_t i = 0U; i < DEVICES; i++) {
		workspace->devices[i] = context[i];
	}
	workspace->host = host;
	workspace->runs = 0U;
	workspace->is_open = 1U;
	return 0;
}

static void ended(struct opwest_bundle_workspace *workspace, uint32_t point)
{
	if (workspace->observer != NULL) {
		workspace->observer->ended(workspace->observer, point);
	}
}

static int run(const void *const *in, void *const *out, struct opwest_bundle_workspace *workspace,
	       opwest_bundle_devices_t context)
{
	const int8_t *const x = in[0];
	int32_t *const y = out[0];
	int32_t *const t = (int32_t *)(void *)&workspace->pools[1][64];
	float *const r = (float *)(void *)&workspace->pools[0][4];
	int32_t sum = 0;

	workspace->status = (struct opwest_status)OPWEST_STATUS_INIT;
	if (x == NULL || y == NULL || ((uintptr_t)y & 3U) != 0U) {
		workspace->status.code = -EINVAL;
		return -EINVAL;
	}
	if (workspace->is_open == 0U) {
		return -EPERM;
	}
	if (workspace->guard != 0x600dU + MARK) {
		return -ENOTRECOVERABLE;
	}
	for (uint32_t i = 0U; i < DEVICES; i++) {
		if (workspace->devices[i] != context[i]) {
			return -EXDEV;
		}
	}
	if (RUN_CODE != 0 || x[0] == -128) {
		workspace->is_open = CLOSES ? 0U : 1U;
		workspace->status.code = RUN_CODE != 0 ? RUN_CODE : -EIO;
		workspace->status.step = 1U;
		workspace->host->log_failure(NAME, 1U, workspace->status.code);
		return workspace->status.code;
	}
	for (volatile uint32_t i = 0U; i < 4U; i++) {
		t[i] = 3 * x[i];
		sum += x[i];
	}
	ended(workspace, 1U);
	for (volatile uint32_t i = 0U; i < 4U; i++) {
		y[i] = t[i] + MARK + (int32_t)(HAS_STATE ? workspace->runs : 0U);
	}
	r[0] = (float)sum;
	*(float *)out[1] = r[0];
	workspace->runs++;
	ended(workspace, 2U);
	ended(workspace, 0U);
	return 0;
}

static int close(struct opwest_bundle_workspace *workspace, opwest_bundle_devices_t context)
{
	(void)context;
	if (workspace->guard != 0x600dU + MARK) {
		__builtin_trap(); /* another model's workspace */
	}
	if (workspace->is_open == 0U) {
		return -EALREADY;
	}
	workspace->is_open = 0U;
	workspace->guard = 0U;
	return 0;
}

static int __attribute__((unused)) reset(struct opwest_bundle_workspace *workspace)
{
	workspace->runs = 0U;
	return 0;
}

static const struct opwest_status *status(const struct opwest_bundle_workspace *workspace)
{
	return &workspace->status;
}

static uint8_t *placed(struct opwest_bundle_workspace *workspace, uint16_t index)
{
	return PLACES && index == 2U ? &workspace->pools[0][8] : NULL;
}

static void __attribute__((unused)) observe(struct opwest_bundle_workspace *workspace,
					    struct opwest_bundle_observer *observer)
{
	workspace->observer = observer;
}

static const int8_t x0[4] = {1, -2, 3, 40};
static const int32_t y0[4] = {3 + MARK, -6 + MARK, 9 + MARK, 120 + MARK + WRONG};
static const float z0[1] = {42.0F + NEARLY};
static const int8_t x1[4] = {-1, 0, 0, 127};
static const int32_t y1[4] = {-3 + MARK + HAS_STATE, MARK + HAS_STATE, MARK + HAS_STATE,
			      381 + MARK + HAS_STATE};
static const float z1[1] = {126.0F};
static const void *const in0[] = {IS(INPUT_NULL)      ? NULL
				  : IS(INPUT_OUTSIDE) ? (const void *)8
						      : (const void *)x0};
static const void *const out0[] = {IS(OUTPUT_OUTSIDE) ? (const void *)8
				   : IS(OUTPUT_END)   ? (const void *)&last[-8]
				   : IS(OUTPUT_LAST)  ? (const void *)&last[-12]
						      : (const void *)y0,
				   z0};
static const void *const in1[] = {x1};
static const void *const out1[] = {y1, z1};
static const struct opwest_bundle_vector vectors[] = {
	{POINTER(VECTOR_INPUTS, in0), POINTER(VECTOR_OUTPUTS, out0), true},
	{in1, out1, false},
	{in0, out0, true},
};
static const struct opwest_tolerance tolerances[] = {{0.0, 0.0}, {0.01, 0.0}};
#if HAS_STEPS
static const int32_t t0[4] = {3, -6, 9, 120 + WRONG_STEP};
static const float r0[1] = {42.001F};
static const struct opwest_bundle_step expected[] = {
	{IS(STEP_EXPECTED) ? (const void *)8 : (const void *)t0, 1U, IS(STEP_STEP) ? 2U : 0U,
	 IS(STEP_BUFFER) ? 2U : 0U, 0U},
	{r0, 2U, 1U, 1U, 0U},
};
#endif

const struct opwest_bundle_descriptor opwest_bundle IMAGE = {
	.magic = OPWEST_BUNDLE_DESCRIPTOR_MAGIC + IS(MAGIC),
	.version = OPWEST_HOST_VERSION + IS(VERSION),
	.size = sizeof(struct opwest_bundle_descriptor) + IS(SIZE),
	.details = POINTER(DETAILS, &details),
	.prepare = FUNCTION(PREPARE, prepare),
	.open = FUNCTION(OPEN, open),
	.run = FUNCTION(RUN, run),
	.close = FUNCTION(CLOSE, close),
	.reset = IS(RESET) ? (__typeof__(&reset))8 : HAS_STATE ? reset : NULL,
	.cancel = IS(CANCEL) ? (__typeof__(&reset))8 : NULL,
	.status = FUNCTION(STATUS, status),
	.placed = FUNCTION(PLACED, placed),
#if HAS_STEPS
	.observe = FUNCTION(OBSERVE, observe),
	.steps = POINTER(STEP_TABLE, expected),
	.step_count = 2U,
#endif
	.vectors = POINTER(VECTORS_POINTER, vectors),
	.tolerances = IS(TOLERANCES)         ? (const struct opwest_tolerance *)8
		      : IS(TOLERANCES_ALIGN) ? (const void *)((const char *)tolerances + 1)
					     : tolerances,
	.vector_count = VECTORS,
	.workspace_size = sizeof(struct opwest_bundle_workspace),
	.workspace_align = _Alignof(struct opwest_bundle_workspace),
};

/* The numbers of the header, for bundle_files.py. */
const uint32_t stand_in_numbers[] __attribute__((used, section(".numbers"))) = {
	sizeof(struct opwest_bundle_workspace), _Alignof(struct opwest_bundle_workspace),
	sizeof(struct opwest_slot),             OPWEST_METADATA_VERSION,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* npu_kernels PROGRAM CASES: run every case of a file on one of two devices, print the results' bytes. */
#include "npu_test.h"

OPWEST_NPU_EMUL_HOST_DEFINE(first, 0);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(second, 10, 1, 1000, OPWEST_SWITCH_LOAD);

struct header {
	int32_t kind, kernel, height, width, in, out, kernel_height, kernel_width, stride, padding;
	int32_t has_bias, x_size, w_size, y_size;
};

/* Of exactly this size, so that the sanitizer detects every access beyond it. */
static int8_t *read_bytes(FILE *file, int32_t size)
{
	int8_t *const bytes = malloc((size_t)size);

	EXPECT_TRUE(bytes != NULL);
	EXPECT(fread(bytes, 1, (size_t)size, file), size);
	return bytes;
}

static int enqueue(const struct device *dev, const struct header *h, const int8_t *x,
		   const int8_t *w, const int32_t *bias, int8_t *y)
{
	const struct opwest_npu_emul_conv2d_shape shape = {
		(uint16_t)h->height,        (uint16_t)h->width,        (uint16_t)h->in,
		(uint16_t)h->out,           (uint16_t)h->kernel_height, (uint16_t)h->kernel_width,
		(uint16_t)h->stride,        (uint16_t)h->padding,
	};
	const uint16_t kernel = (uint16_t)h->kernel;

	switch (h->kind) {
	case OPWEST_NPU_EMUL_DENSE:
		return opwest_npu_emul_dense(dev, kernel, x, w, bias, y, shape.height,
					     shape.channels_in, shape.channels_out);
	case OPWEST_NPU_EMUL_CONV2D:
		return opwest_npu_emul_conv2d(dev, kernel, x, w, bias, y, &shape);
	case OPWEST_NPU_EMUL_ADD:
		return opwest_npu_emul_add(dev, kernel, x, w, y, (uint32_t)h->y_size);
	default:
		return opwest_npu_emul_relu(dev, kernel, x, y, (uint32_t)h->y_size);
	}
}

static void run_file(FILE *file)
{
	const struct device *const devices[] = {&first, &second};
	struct header h;

	for (int i = 0; fread(&h, sizeof(h), 1, file) == 1; i++) {
		const struct device *const dev = devices[i % 2];
		int8_t *const x = read_bytes(file, h.x_size);
		int8_t *const w = read_bytes(file, h.w_size);
		int32_t *const bias =
			h.has_bias ? (int32_t *)(void *)read_bytes(file, 4 * h.out) : NULL;
		int8_t *const y = malloc((size_t)h.y_size);

		EXPECT(opwest_npu_emul_finish(dev, enqueue(dev, &h, x, w, bias, y), 10000), 0);
		EXPECT(fwrite(y, 1, (size_t)h.y_size, stdout), h.y_size);
		free(x);
		free(w);
		free(bias);
		free(y);
	}
}

int main(int argc, char **argv)
{
	struct opwest_program program = {.name = "p"};
	uint8_t data[4096];
	FILE *file;

	EXPECT(argc, 3);
	file = fopen(argv[1], "rb");
	EXPECT_TRUE(file != NULL);
	program.data = data;
	program.size = (uint32_t)fread(data, 1, sizeof(data), file);
	(void)fclose(file);
	start(&first, &program);
	start(&second, &program);
	file = fopen(argv[2], "rb");
	EXPECT_TRUE(file != NULL);
	run_file(file);
	(void)fclose(file);
	stop(&first);
	stop(&second);
	return 0;
}

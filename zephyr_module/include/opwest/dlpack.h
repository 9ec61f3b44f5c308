/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief DLTensor, the tensor type of the conventions `packed` and `ffi`.
 *
 * The layout is DLPack's (dmlc/dlpack, include/dlpack/dlpack.h, 0.6 to 1.2): a binary interface
 * that these versions share. Unneeded parts are omitted. The include guard is DLPack's own:
 * if its header was included before, that one applies.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The device of memory. Operators receive only memory of the processor. */
typedef enum {
	kDLCPU = 1,
} DLDeviceType;

/** A device: type and number. */
typedef struct {
	/** DLDeviceType: an enum of 32 bits, also where enums are short. */
	int32_t device_type;
	int32_t device_id;
} DLDevice;

/** The kinds of elements. */
typedef enum {
	kDLInt = 0,
	kDLUInt = 1,
	kDLFloat = 2,
	kDLOpaqueHandle = 3,
	kDLBfloat = 4,
	kDLComplex = 5,
	kDLBool = 6,
	kDLFloat8_e3m4 = 7,
	kDLFloat8_e4m3 = 8,
	kDLFloat8_e4m3b11fnuz = 9,
	kDLFloat8_e4m3fn = 10,
	kDLFloat8_e4m3fnuz = 11,
	kDLFloat8_e5m2 = 12,
} DLDataTypeCode;

/** An element type: float32 is {kDLFloat, 32, 1}. */
typedef struct {
	/** DLDataTypeCode */
	uint8_t code;
	/** Bits of one lane. */
	uint8_t bits;
	/** Elements of a vector type; 1. */
	uint16_t lanes;
} DLDataType;

/** A tensor in memory that it does not own. */
typedef struct {
	void *data;
	DLDevice device;
	/** Dimensions. */
	int32_t ndim;
	DLDataType dtype;
	/** @ref ndim extents; never written. */
	int64_t *shape;
	/** @ref ndim strides in elements; NULL for dense C order. */
	int64_t *strides;
	/** Bytes from @ref data to the first element. */
	uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */

#ifndef OPWEST_DLPACK_H_
#define OPWEST_DLPACK_H_

#include <opwest/model.h>

/* Also if DLPack's own header was included. */
OPWEST_STATIC_ASSERT(sizeof(DLDataType) == 4, "DLDataType");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, device) == sizeof(void *), "DLTensor.device");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, ndim) == sizeof(void *) + 8, "DLTensor.ndim");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, dtype) == sizeof(void *) + 12, "DLTensor.dtype");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, shape) == sizeof(void *) + 16, "DLTensor.shape");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, strides) == 2 * sizeof(void *) + 16, "DLTensor.strides");
OPWEST_STATIC_ASSERT(offsetof(DLTensor, byte_offset) >= 3 * sizeof(void *) + 16,
		     "DLTensor.byte_offset");
OPWEST_STATIC_ASSERT(sizeof(DLTensor) <= 48, "DLTensor");

#endif /* OPWEST_DLPACK_H_ */

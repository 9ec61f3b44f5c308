/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COPIES_H_
#define COPIES_H_

#define ELEMENTS 6

#define COPY_OF(name, type) int32_t copy_##name(const type *x, type *y)

COPY_OF(int8, int8_t);
COPY_OF(uint8, uint8_t);
COPY_OF(int16, int16_t);
COPY_OF(uint16, uint16_t);
COPY_OF(int32, int32_t);
COPY_OF(uint32, uint32_t);
COPY_OF(int64, int64_t);
COPY_OF(uint64, uint64_t);
COPY_OF(float16, uint16_t);
COPY_OF(float32, float);
COPY_OF(float64, double);
COPY_OF(bool, uint8_t);

#endif /* COPIES_H_ */

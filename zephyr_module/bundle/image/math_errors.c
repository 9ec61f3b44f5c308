/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of mathematical functions outside of their range, without errno: an image has no
 * writable data. The functions of newlib's and picolibc's libm call these. They are weak, so that
 * the linker reports a library that needs others as writable data and not as a duplicate.
 */
#include <stdint.h>

#define WEAK __attribute__((weak))

float __math_oflowf(uint32_t sign);
float __math_uflowf(uint32_t sign);
float __math_may_uflowf(uint32_t sign);
float __math_divzerof(uint32_t sign);
float __math_invalidf(float x);
float __math_check_oflowf(float y);
float __math_check_uflowf(float y);
float __math_with_errnof(float y, int e);
double __math_oflow(uint32_t sign);
double __math_uflow(uint32_t sign);
double __math_may_uflow(uint32_t sign);
double __math_divzero(uint32_t sign);
double __math_invalid(double x);
double __math_check_oflow(double y);
double __math_check_uflow(double y);
double __math_with_errno(double y, int e);

/* The operations set the flags of the FPU, so the compiler must not compute the results. */
static float evaluatedf(float x)
{
	volatile float kept = x;

	return kept;
}

static double evaluated(double x)
{
	volatile double kept = x;

	return kept;
}

WEAK float __math_oflowf(uint32_t sign)
{
	return evaluatedf(sign != 0U ? -0x1p97f : 0x1p97f) * evaluatedf(0x1p97f);
}

WEAK float __math_uflowf(uint32_t sign)
{
	return evaluatedf(sign != 0U ? -0x1p-95f : 0x1p-95f) * evaluatedf(0x1p-95f);
}

WEAK float __math_may_uflowf(uint32_t sign)
{
	return evaluatedf(sign != 0U ? -0x1.4p-75f : 0x1.4p-75f) * evaluatedf(0x1.4p-75f);
}

WEAK float __math_divzerof(uint32_t sign)
{
	return evaluatedf(sign != 0U ? -1.0f : 1.0f) / evaluatedf(0.0f);
}

WEAK float __math_invalidf(float x)
{
	return (x - x) / evaluatedf(0.0f);
}

WEAK float __math_check_oflowf(float y)
{
	return y;
}

WEAK float __math_check_uflowf(float y)
{
	return y;
}

WEAK float __math_with_errnof(float y, int e)
{
	(void)e;
	return y;
}

WEAK double __math_oflow(uint32_t sign)
{
	return evaluated(sign != 0U ? -0x1p769 : 0x1p769) * evaluated(0x1p769);
}

WEAK double __math_uflow(uint32_t sign)
{
	return evaluated(sign != 0U ? -0x1p-767 : 0x1p-767) * evaluated(0x1p-767);
}

WEAK double __math_may_uflow(uint32_t sign)
{
	return evaluated(sign != 0U ? -0x1.8p-538 : 0x1.8p-538) * evaluated(0x1.8p-538);
}

WEAK double __math_divzero(uint32_t sign)
{
	return evaluated(sign != 0U ? -1.0 : 1.0) / evaluated(0.0);
}

WEAK double __math_invalid(double x)
{
	return (x - x) / evaluated(0.0);
}

WEAK double __math_check_oflow(double y)
{
	return y;
}

WEAK double __math_check_uflow(double y)
{
	return y;
}

WEAK double __math_with_errno(double y, int e)
{
	(void)e;
	return y;
}

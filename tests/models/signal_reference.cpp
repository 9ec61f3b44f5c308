/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of tflite-micro's signal/src as C functions, for tests. The streams call its ring buffers in the order
 * of signal/micro/kernels; memory of results that are not valid is 0.
 */

#include <cstdint>
#include <cstring>
#include <vector>

#include "signal/src/circular_buffer.h"
#include "signal/src/energy.h"
#include "signal/src/fft_auto_scale.h"
#include "signal/src/filter_bank.h"
#include "signal/src/filter_bank_log.h"
#include "signal/src/filter_bank_spectral_subtraction.h"
#include "signal/src/filter_bank_square_root.h"
#include "signal/src/irfft.h"
#include "signal/src/overlap_add.h"
#include "signal/src/pcan_argc_fixed.h"
#include "signal/src/rfft.h"
#include "signal/src/window.h"

namespace micro = tflite::tflm_signal;

namespace {

template <typename T> using Spectrum = Complex<T>;

template <typename T, size_t (*size)(int32_t), void *(*init)(int32_t, void *, size_t),
	  void (*apply)(void *, const T *, Spectrum<T> *)>
void forward(const T *data, int rows, int given, int length, T *result)
{
	std::vector<uint64_t> state(size(length) / 8 + 1);
	std::vector<T> work(length);

	init(length, state.data(), size(length));
	for (int row = 0; row < rows; row++) {
		std::memcpy(work.data(), data + row * given, given * sizeof(T));
		std::memset(work.data() + given, 0, (length - given) * sizeof(T));
		apply(state.data(), work.data(),
		      reinterpret_cast<Spectrum<T> *>(result + row * (length + 2)));
	}
}

template <typename T, size_t (*size)(int32_t), void *(*init)(int32_t, void *, size_t),
	  void (*apply)(void *, const Spectrum<T> *, T *)>
void backward(const T *data, int rows, int length, T *result)
{
	std::vector<uint64_t> state(size(length) / 8 + 1);

	init(length, state.data(), size(length));
	for (int row = 0; row < rows; row++) {
		apply(state.data(),
		      reinterpret_cast<const Spectrum<T> *>(data + row * (length + 2)),
		      result + row * length);
	}
}

struct Ring {
	explicit Ring(size_t capacity)
		: memory(micro::CircularBufferGetNeededMemory(capacity) / 8 + 1),
		  buffer(micro::CircularBufferInit(
			  capacity, memory.data(),
			  micro::CircularBufferGetNeededMemory(capacity)))
	{
	}
	std::vector<uint64_t> memory;
	micro::CircularBuffer *buffer;
};

struct Rings {
	std::vector<Ring *> rows;
	bool has_first = false;
};

} /* namespace */

extern "C" {

void ref_window(const int16_t *data, const int16_t *window, int rows, int length, int shift,
		int16_t *result)
{
	for (int row = 0; row < rows; row++) {
		tflm_signal::ApplyWindow(data + row * length, window, length, shift,
					 result + row * length);
	}
}

void ref_auto_scale(const int16_t *data, int length, int16_t *result, int32_t *bits)
{
	*bits = micro::FftAutoScale(data, length, result);
}

void ref_rfft_int16(const int16_t *data, int rows, int given, int length, int16_t *result)
{
	forward<int16_t, tflm_signal::RfftInt16GetNeededMemory, tflm_signal::RfftInt16Init,
		tflm_signal::RfftInt16Apply>(data, rows, given, length, result);
}

void ref_rfft_int32(const int32_t *data, int rows, int given, int length, int32_t *result)
{
	forward<int32_t, tflm_signal::RfftInt32GetNeededMemory, tflm_signal::RfftInt32Init,
		tflm_signal::RfftInt32Apply>(data, rows, given, length, result);
}

void ref_rfft_float32(const float *data, int rows, int given, int length, float *result)
{
	forward<float, tflm_signal::RfftFloatGetNeededMemory, tflm_signal::RfftFloatInit,
		tflm_signal::RfftFloatApply>(data, rows, given, length, result);
}

void ref_irfft_int16(const int16_t *data, int rows, int length, int16_t *result)
{
	backward<int16_t, micro::IrfftInt16GetNeededMemory, micro::IrfftInt16Init,
		 micro::IrfftInt16Apply>(data, rows, length, result);
}

void ref_irfft_int32(const int32_t *data, int rows, int length, int32_t *result)
{
	backward<int32_t, micro::IrfftInt32GetNeededMemory, micro::IrfftInt32Init,
		 micro::IrfftInt32Apply>(data, rows, length, result);
}

void ref_irfft_float32(const float *data, int rows, int length, float *result)
{
	backward<float, micro::IrfftFloatGetNeededMemory, micro::IrfftFloatInit,
		 micro::IrfftFloatApply>(data, rows, length, result);
}

void ref_energy(const int16_t *data, int start, int end, uint32_t *result)
{
	micro::SpectrumToEnergy(reinterpret_cast<const Complex<int16_t> *>(data), start, end,
				result);
}

void ref_filter_bank(const uint32_t *data, const int16_t *weights, const int16_t *unweights,
		     const int16_t *starts, const int16_t *firsts, const int16_t *widths,
		     int channels, uint64_t *result)
{
	std::vector<uint64_t> work(channels + 1);
	micro::FilterbankConfig config = {};

	config.num_channels = channels;
	config.weights = weights;
	config.unweights = unweights;
	config.channel_frequency_starts = starts;
	config.channel_weight_starts = firsts;
	config.channel_widths = widths;
	micro::FilterbankAccumulateChannels(&config, data, work.data());
	std::memcpy(result, work.data() + 1, channels * sizeof(uint64_t));
}

void ref_square_root(const uint64_t *data, int channels, int bits, uint32_t *result)
{
	micro::FilterbankSqrt(data, channels, bits, result);
}

void ref_log(const uint32_t *data, int channels, int scale, int bits, int16_t *result)
{
	micro::FilterbankLog(data, channels, scale, bits, result);
}

/* numbers: smoothing, one minus it, the same of odd channels, remaining, both counts of bits, clamping. */
void ref_spectral_subtraction(const uint32_t *data, int channels, const uint32_t *numbers,
			      uint32_t *noise, uint32_t *result)
{
	micro::SpectralSubtractionConfig config = {};

	config.num_channels = channels;
	config.smoothing = numbers[0];
	config.one_minus_smoothing = numbers[1];
	config.alternate_smoothing = numbers[2];
	config.alternate_one_minus_smoothing = numbers[3];
	config.min_signal_remaining = numbers[4];
	config.smoothing_bits = numbers[5];
	config.spectral_subtraction_bits = numbers[6];
	config.clamping = numbers[7] != 0;
	micro::FilterbankSpectralSubtraction(&config, data, result, noise);
}

void ref_pcan(const int16_t *gains, int shift, const uint32_t *noise, uint32_t *result,
	      int channels)
{
	micro::ApplyPcanAutoGainControlFixed(gains, shift, noise, result, channels);
}

void ref_overlap_add_int16(const int16_t *data, int16_t *sums, int size, int16_t *result, int step)
{
	tflm_signal::OverlapAdd(data, sums, size, result, step);
}

void ref_overlap_add_float32(const float *data, float *sums, int size, float *result, int step)
{
	tflm_signal::OverlapAdd(data, sums, size, result, step);
}

/* Rings with zeros in them. */
Rings *ref_rings(int rows, int capacity, int zeros)
{
	Rings *rings = new Rings;

	for (int row = 0; row < rows; row++) {
		rings->rows.push_back(new Ring(capacity));
		micro::CircularBufferWriteZeros(rings->rows.back()->buffer, zeros);
	}
	return rings;
}

void ref_release(Rings *rings)
{
	for (Ring *ring : rings->rows) {
		delete ring;
	}
	delete rings;
}

void ref_framer(Rings *rings, const int16_t *data, int frames, int size, int step, int16_t *result,
		uint8_t *valid)
{
	*valid = 1;
	for (Ring *ring : rings->rows) {
		for (int frame = 0; frame < frames; frame++, data += step, result += size) {
			micro::CircularBufferWrite(ring->buffer, data, step);
			if (micro::CircularBufferAvailable(ring->buffer) <
			    static_cast<size_t>(size)) {
				*valid = 0;
				continue;
			}
			micro::CircularBufferGet(ring->buffer, size, result);
			micro::CircularBufferDiscard(ring->buffer, step);
		}
	}
}

void ref_stacker(Rings *rings, const int16_t *data, int channels, int left, int frames, int step,
		 int16_t *result, uint8_t *valid)
{
	micro::CircularBuffer *buffer = rings->rows[0]->buffer;
	const size_t size = static_cast<size_t>(channels) * frames;

	micro::CircularBufferWrite(buffer, data, channels);
	if (!rings->has_first) {
		micro::CircularBufferExtend(buffer, channels, left);
		rings->has_first = true;
	}
	*valid = micro::CircularBufferAvailable(buffer) >= size;
	if (*valid != 0) {
		micro::CircularBufferGet(buffer, size, result);
		micro::CircularBufferDiscard(buffer, static_cast<size_t>(channels) * step);
	}
}

void ref_delay(Rings *rings, const int16_t *data, int size, int16_t *result)
{
	for (Ring *ring : rings->rows) {
		micro::CircularBufferWrite(ring->buffer, data, size);
		micro::CircularBufferGet(ring->buffer, size, result);
		micro::CircularBufferDiscard(ring->buffer, size);
		data += size;
		result += size;
	}
}
}

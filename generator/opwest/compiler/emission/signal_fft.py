# SPDX-License-Identifier: Apache-2.0
"""FFTs of real data as C functions: a function for each radix, dtype and direction that a model has.

The elements are read in the order of the first stage, and the stages work in place: no stage calls another one.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from itertools import accumulate
from operator import mul

from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_of, emits, number
from opwest.compiler.ir.signal import InverseRealFft, RealFft
from opwest.compiler.semantics.signal_fft import GREATEST, radices, real_twiddles, twiddles

_SUFFIXES = {"int16": "16", "int32": "32", "float32": "f"}
_TYPES = """\
/* A complex number. */
struct pair_$s {
	$t r;
	$t i;
};

static inline struct pair_$s pair_at_$s(const $t *x)
{
	struct pair_$s pair = {x[0], x[1]};

	return pair;
}

static inline void pair_put_$s($t *x, struct pair_$s pair)
{
	x[0] = pair.r;
	x[1] = pair.i;
}
"""
_ROUNDING = {
    "16": """\
/* A product of fractions, rounded to nearest, halves up. */
static inline int16_t fraction_16(int32_t product)
{
	return (int16_t)((product + (1 << 14)) >> 15);
}
""",
    "32": """\
/* A product of fractions, rounded to nearest, halves up. */
static inline int32_t fraction_32(int64_t product)
{
	return (int32_t)((product + (1 << 30)) >> 31);
}
""",
    "f": "",
}
_ARITHMETIC = """\
static inline struct pair_$s pair_sum_$s(struct pair_$s a, struct pair_$s b)
{
	struct pair_$s sum = {$rr_plus, $ii_plus};

	return sum;
}

static inline struct pair_$s pair_less_$s(struct pair_$s a, struct pair_$s b)
{
	struct pair_$s difference = {$rr_minus, $ii_minus};

	return difference;
}

static inline struct pair_$s pair_product_$s(struct pair_$s a, struct pair_$s b)
{
	struct pair_$s product = {$product_r, $product_i};

	return product;
}

static inline struct pair_$s pair_scaled_$s(struct pair_$s a, $t factor)
{
	struct pair_$s scaled = {$scaled_r, $scaled_i};

	return scaled;
}

/* A number times -i. */
static inline struct pair_$s pair_turned_$s(struct pair_$s a)
{
	struct pair_$s turned = {a.i, $negative_r};

	return turned;
}
"""
_EXPRESSIONS = {
    "16": {
        "plus": "(int16_t)({} + {})",
        "minus": "(int16_t)({} - {})",
        "times": "{} * {}",
        "negative": "(int16_t)-{}",
    },
    "32": {
        "plus": "(int32_t)((uint32_t){} + (uint32_t){})",
        "minus": "(int32_t)((uint32_t){} - (uint32_t){})",
        "times": "(int64_t){} * {}",
        "negative": "(int32_t)(0 - (uint32_t){})",
    },
    "f": {"plus": "{} + {}", "minus": "{} - {}", "times": "{} * {}", "negative": "-{}"},
}
_TURN = """\
/* The products of the elements with roots of unity before a stage: none for the first ones. */
static void fft_turn_$s($t *x, const $t *twiddles, int blocks, int radix, int width$parameter)
{
	for (int block = 0; block < blocks; block++) {
$first		for (int i = 1; i < radix; i++) {
			for (int k = 0; k < width; k++, x += 2) {
				pair_put_$s(x, pair_product_$s($divided, pair_at_$s(twiddles + 2 * i * k * blocks)));
			}
		}
	}
}
"""
_SCALED = """\
		for (int k = 0; k < width; k++, x += 2) {
			pair_put_$s(x, pair_scaled_$s(pair_at_$s(x), factor));
		}
"""
_STAGES = {
    2: """\
/* A stage of radix 2. */
static void fft_2_$s($t *x, int blocks, int width)
{
	for (int block = 0; block < blocks; block++, x += 2 * width) {
		for (int k = 0; k < width; k++, x += 2) {
			struct pair_$s a = pair_at_$s(x);
			struct pair_$s b = pair_at_$s(x + 2 * width);

			pair_put_$s(x + 2 * width, pair_less_$s(a, b));
			pair_put_$s(x, pair_sum_$s(a, b));
		}
	}
}
""",
    3: """\
/* A stage of radix 3, with the sine of a third of a turn. */
static void fft_3_$s($t *x, int blocks, int width, $t sine)
{
	for (int block = 0; block < blocks; block++, x += 4 * width) {
		for (int k = 0; k < width; k++, x += 2) {
			struct pair_$s a = pair_at_$s(x);
			struct pair_$s b = pair_at_$s(x + 2 * width);
			struct pair_$s c = pair_at_$s(x + 4 * width);
			struct pair_$s sum = pair_sum_$s(b, c);
			struct pair_$s side = pair_turned_$s(pair_scaled_$s(pair_less_$s(b, c), sine));
			struct pair_$s middle = {$half_sum_r, $half_sum_i};

			pair_put_$s(x, pair_sum_$s(a, sum));
			pair_put_$s(x + 2 * width, pair_less_$s(middle, side));
			pair_put_$s(x + 4 * width, pair_sum_$s(middle, side));
		}
	}
}
""",
    4: """\
/* A stage of radix 4. */
static void $name($t *x, int blocks, int width)
{
	for (int block = 0; block < blocks; block++, x += 6 * width) {
		for (int k = 0; k < width; k++, x += 2) {
			struct pair_$s a = pair_at_$s(x);
			struct pair_$s b = pair_at_$s(x + 2 * width);
			struct pair_$s c = pair_at_$s(x + 4 * width);
			struct pair_$s d = pair_at_$s(x + 6 * width);
			struct pair_$s lower = pair_less_$s(a, c);
			struct pair_$s upper = pair_sum_$s(a, c);
			struct pair_$s odd = pair_sum_$s(b, d);
			struct pair_$s side = pair_turned_$s(pair_less_$s(b, d));

			pair_put_$s(x, pair_sum_$s(upper, odd));
			pair_put_$s(x + 2 * width, pair_$second(lower, side));
			pair_put_$s(x + 4 * width, pair_less_$s(upper, odd));
			pair_put_$s(x + 6 * width, pair_$last(lower, side));
		}
	}
}
""",
    5: """\
/* Two results of a stage of radix 5, from sums and differences of pairs of elements. */
static void fft_5_ends_$s($t *low, $t *high, struct pair_$s even, struct pair_$s side)
{
	pair_put_$s(low, pair_less_$s(even, side));
	pair_put_$s(high, pair_sum_$s(even, side));
}

/* A stage of radix 5, with the roots of a fifth and of two fifths of a turn. */
static void fft_5_$s($t *x, int blocks, int width, const $t *near, const $t *far)
{
	for (int block = 0; block < blocks; block++, x += 8 * width) {
		for (int k = 0; k < width; k++, x += 2) {
			const struct pair_$s a = pair_at_$s(x);
			struct pair_$s b = pair_at_$s(x + 2 * width);
			struct pair_$s c = pair_at_$s(x + 4 * width);
			struct pair_$s d = pair_at_$s(x + 6 * width);
			struct pair_$s e = pair_at_$s(x + 8 * width);
			const struct pair_$s wide = pair_less_$s(b, e);
			const struct pair_$s narrow = pair_less_$s(c, d);

			b = pair_sum_$s(b, e);
			c = pair_sum_$s(c, d);
			pair_put_$s(x, pair_sum_$s(a, pair_sum_$s(b, c)));
			d = pair_sum_$s(pair_sum_$s(a, pair_scaled_$s(b, near[0])), pair_scaled_$s(c, far[0]));
			e = pair_turned_$s(pair_scaled_$s(wide, near[1]));
			e = pair_sum_$s(e, pair_turned_$s(pair_scaled_$s(narrow, far[1])));
			fft_5_ends_$s(x + 2 * width, x + 8 * width, d, e);
			d = pair_sum_$s(pair_sum_$s(a, pair_scaled_$s(b, far[0])), pair_scaled_$s(c, near[0]));
			e = pair_turned_$s(pair_scaled_$s(narrow, near[1]));
			e = pair_less_$s(e, pair_turned_$s(pair_scaled_$s(wide, far[1])));
			fft_5_ends_$s(x + 6 * width, x + 4 * width, d, e);
		}
	}
}
""",
}
"""By radix: elements are `width` pairs apart, after the products of their roots of unity."""
_NEXT = """\
/* The place after another one with the digits in reverse: `steps` has the products of the radices. */
static inline int reversed_next(int place, const int *steps, int stages)
{
	for (int i = stages - 1; i >= 0; i--) {
		place += steps[i];
		if (place < steps[i + 1]) {
			break;
		}
		place -= steps[i + 1];
	}
	return place;
}
"""


class _Fft:
    """The parts of the C functions of one dtype and direction."""

    def __init__(self, length: int, dtype: str, is_inverse: bool) -> None:
        self.count = length // 2
        self.dtype = dtype
        self.is_inverse = is_inverse
        self.suffix = _SUFFIXES[dtype]
        self.radices = radices(self.count)

    @property
    def tables(self) -> list[tuple[str, object]]:
        """The constants of the function."""
        make = {"twiddles": twiddles, "ends": real_twiddles}
        return [(name, table(self.count, self.is_inverse, self.dtype)) for name, table in make.items()]

    def divided(self, pair: str, by: int) -> str:
        """Return a pair, of integers divided so that sums do not overflow."""
        if self.dtype == "float32":
            return pair
        return f"pair_scaled_{self.suffix}({pair}, {GREATEST[self.dtype] // by})"

    def operation(self, name: str, *operands: str) -> str:
        """Return an expression in the dtype."""
        return _EXPRESSIONS[self.suffix][name].format(*operands)

    def half(self, text: str) -> str:
        """Return half of a value."""
        return f"({text}) * 0.5f" if self.dtype == "float32" else f"({text}) >> 1"

    def half_of(self, name: str, one: str, other: str) -> str:
        """Return half of a sum or a difference. Those of int16 have more bits, those of int32 wrap."""
        if self.dtype == "int16":
            return f"(int16_t)(({one} {'+' if name == 'plus' else '-'} {other}) >> 1)"
        return self.half(self.operation(name, one, other))

    def definitions(self) -> tuple[str, ...]:
        """Return the types and functions, each after those that it uses."""
        named = {"s": self.suffix, "t": c_type(self.dtype)}
        made = [_NEXT, string.Template(_TYPES).substitute(named)]
        if _ROUNDING[self.suffix]:
            made.append(_ROUNDING[self.suffix])
        made.append(string.Template(_ARITHMETIC).substitute(named, **dict(self._arithmetic())))
        made.append(string.Template(_TURN).substitute(named, **self._turn()))
        for radix in sorted(set(self.radices)):
            made.append(string.Template(_STAGES[radix]).substitute(named, **dict(self._stage(radix))))
        return tuple(made)

    def _arithmetic(self) -> Iterator[tuple[str, str]]:
        for part in "ri":
            for name in ("plus", "minus"):
                yield f"{part}{part}_{name}", self.operation(name, f"a.{part}", f"b.{part}")
            yield f"scaled_{part}", self._rounded(self.operation("times", f"a.{part}", "factor"))

        def times(one: str, other: str) -> str:
            return self.operation("times", f"a.{one}", f"b.{other}")

        yield "product_r", self._rounded(f"{times('r', 'r')} - {times('i', 'i')}")
        yield "product_i", self._rounded(f"{times('r', 'i')} + {times('i', 'r')}")
        yield "negative_r", self.operation("negative", "a.r")

    def _rounded(self, product: str) -> str:
        return product if self.dtype == "float32" else f"fraction_{self.suffix}({product})"

    def stage(self, radix: int) -> str:
        """Return the name of the function of a stage. Only that of radix 4 has a direction of its own."""
        return f"fft_{radix}{'_inverse' if radix == 4 and self.is_inverse else ''}_{self.suffix}"

    def _turn(self) -> dict[str, str]:
        if self.dtype == "float32":
            place = "\t\tx += 2 * width;\n"
            return {"parameter": "", "first": place, "divided": "pair_at_f(x)"}
        named = {"s": self.suffix}
        element = string.Template("pair_scaled_$s(pair_at_$s(x), factor)").substitute(named)
        first = string.Template(_SCALED).substitute(named)
        return {"parameter": f", {c_type(self.dtype)} factor", "first": first, "divided": element}

    def _stage(self, radix: int) -> Iterator[tuple[str, str]]:
        if radix == 3:
            for part in "ri":
                yield f"half_sum_{part}", self.operation("minus", f"a.{part}", f"({self.half(f'sum.{part}')})")
        yield "name", self.stage(radix)
        second, last = ("less", "sum") if self.is_inverse else ("sum", "less")
        yield "second", f"{second}_{self.suffix}"
        yield "last", f"{last}_{self.suffix}"

    def run(self, lines: Lines, memory: str) -> None:
        """Append the stages, the first one first."""
        width = 1
        for radix in reversed(self.radices):
            blocks = self.count // (radix * width)
            divisor = "" if self.dtype == "float32" else f", {GREATEST[self.dtype] // radix}"
            lines.add(f"fft_turn_{self.suffix}({memory}, twiddles, {blocks}, {radix}, {width}{divisor});")
            roots = [f"twiddles + {2 * number * blocks * width}" for number in (1, 2)]
            more = {3: f", twiddles[{2 * blocks * width + 1}]", 5: f", {', '.join(roots)}"}.get(radix, "")
            lines.add(f"{self.stage(radix)}({memory}, {blocks}, {width}{more});")
            width *= radix

    def steps(self, lines: Lines) -> None:
        """Declare the products of the radices."""
        products = ", ".join(map(str, accumulate(self.radices, mul, initial=1)))
        lines.add(f"static const int steps[] = {{{products}}};")

    def order(self) -> str:
        """Return the head of a loop over elements `i` and their places in the data."""
        following = f"place = reversed_next(place, steps, {len(self.radices)})"
        return f"for (int i = 0, place = 0; i < {self.count}; i++, {following})"


@emits(RealFft)
def rfft(operation: RealFft) -> Call:
    """Return the call: the complex FFT is computed in the memory of the result."""
    [data], length = operation.inputs, operation.length
    fft, given = _Fft(length, data.dtype, is_inverse=False), data.shape[-1]
    s, count, lines = fft.suffix, fft.count, Lines()
    rows = data.size // given
    fft.steps(lines)
    lines.add("")
    with lines.block(f"for (int row = 0; row < {rows}; row++, data += {given}, result += {length + 2})"):
        with lines.block(fft.order()):
            for part in range(2):
                element = f"data[2 * place{f' + {part}' if part else ''}]"
                if given < length:
                    limit = f"2 * place{f' + {part}' if part else ''} < {given}"
                    element = f"{limit} ? {element} : {number(0, data.dtype)}"
                lines.add(f"result[2 * i{f' + {part}' if part else ''}] = {element};")
        fft.run(lines, "result")
        lines.add("")
        lines.add(f"const struct pair_{s} first = {fft.divided(f'pair_at_{s}(result)', 2)};", "")
        lines.add(f"result[0] = {fft.operation('plus', 'first.r', 'first.i')};", "result[1] = 0;")
        lines.add(f"result[{length}] = {fft.operation('minus', 'first.r', 'first.i')};", f"result[{length + 1}] = 0;")
        with lines.block(f"for (int k = 1; k <= {count // 2}; k++)"):
            lines.add(f"{c_type(data.dtype)} *low = result + 2 * k;")
            lines.add(f"{c_type(data.dtype)} *high = result + 2 * ({count} - k);")
            lines.add(f"struct pair_{s} a = {fft.divided(f'pair_at_{s}(low)', 2)};")
            lines.add(f"struct pair_{s} b = pair_at_{s}(high);", "")
            lines.add(f"b.i = {fft.operation('negative', 'b.i')};")
            if data.dtype != "float32":
                lines.add(f"b = {fft.divided('b', 2)};")
            lines.add("")
            lines.add(f"const struct pair_{s} sum = pair_sum_{s}(a, b);", "")
            lines.add(f"b = pair_product_{s}(pair_less_{s}(a, b), pair_at_{s}(ends + 2 * (k - 1)));")
            lines.add(f"low[0] = {fft.half_of('plus', 'sum.r', 'b.r')};")
            lines.add(f"low[1] = {fft.half_of('plus', 'sum.i', 'b.i')};")
            lines.add(f"high[0] = {fft.half_of('minus', 'sum.r', 'b.r')};")
            lines.add(f"high[1] = {fft.half_of('minus', 'b.i', 'sum.i')};")
    return call_of(operation, "rfft", lines, constants=fft.tables, definitions=fft.definitions())


@emits(InverseRealFft)
def irfft(operation: InverseRealFft) -> Call:
    """Return the call: the pairs of the spectrum are combined in scratch memory."""
    [data], [result], length = operation.inputs, operation.results, operation.length
    fft = _Fft(length, data.dtype, is_inverse=True)
    s, count, lines = fft.suffix, fft.count, Lines()
    fft.steps(lines)
    lines.add("")
    rows = data.size // (length + 2)
    with lines.block(f"for (int row = 0; row < {rows}; row++, data += {length + 2}, result += {length})"):
        lines.add(f"struct pair_{s} a = pair_at_{s}(data);", f"struct pair_{s} b;", "")
        lines.add(f"b.r = {fft.operation('plus', 'a.r', f'data[{length}]')};")
        lines.add(f"b.i = {fft.operation('minus', 'a.r', f'data[{length}]')};")
        lines.add(f"pair_put_{s}(work, {fft.divided('b', 2)});")
        with lines.block(f"for (int k = 1; k <= {count // 2}; k++)"):
            lines.add(f"a = {fft.divided(f'pair_at_{s}(data + 2 * k)', 2)};")
            lines.add(f"b = pair_at_{s}(data + 2 * ({count} - k));")
            lines.add(f"b.i = {fft.operation('negative', 'b.i')};")
            if data.dtype != "float32":
                lines.add(f"b = {fft.divided('b', 2)};")
            lines.add("")
            lines.add(f"const struct pair_{s} even = pair_sum_{s}(a, b);", "")
            lines.add(f"b = pair_product_{s}(pair_less_{s}(a, b), pair_at_{s}(ends + 2 * (k - 1)));")
            lines.add(f"pair_put_{s}(work + 2 * k, pair_sum_{s}(even, b));")
            lines.add(f"b = pair_less_{s}(even, b);", f"b.i = {fft.operation('negative', 'b.i')};")
            lines.add(f"pair_put_{s}(work + 2 * ({count} - k), b);")
        with lines.block(fft.order()):
            lines.add("result[2 * i] = work[2 * place];", "result[2 * i + 1] = work[2 * place + 1];")
        fft.run(lines, "result")
        if data.dtype == "float32":
            with lines.loop("i", length):
                lines.add(f"result[i] /= {number(length, 'float32')};")
    return call_of(
        operation,
        "irfft",
        lines,
        constants=fft.tables,
        scratch=[Parameter("work", result.dtype, "scratch", (), length)],
        definitions=fft.definitions(),
    )

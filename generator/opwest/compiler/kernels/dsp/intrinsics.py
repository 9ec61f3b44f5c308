# SPDX-License-Identifier: Apache-2.0
"""Instructions of the DSP extension as C functions, and the end of a layer for one sum."""

from __future__ import annotations

from opwest.compiler.kernels.scaling import Epilogue

_HEAD = "static inline __attribute__((always_inline))"


def _three(name: str) -> str:
    return f"""\
{_HEAD} int32_t {name}(uint32_t a, uint32_t b, int32_t sum)
{{
	int32_t result;

	__asm__("{name} %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
	return result;
}}
"""


SMLAD, SMLABT = map(_three, ("smlad", "smlabt"))
LOAD_WORD = f"""\
{_HEAD} uint32_t load_word(const int8_t *from)
{{
	uint32_t word;

	__builtin_memcpy(&word, from, sizeof(word));
	return word;
}}
"""
SUMS_OF_BYTES = f"""\
/* The sums of halves: bytes 0 and 2, or 1 and 3 of a word are added. */
{_HEAD} uint32_t sum_even_bytes(uint32_t sums, uint32_t word)
{{
	uint32_t result;

	__asm__("sxtab16 %0, %1, %2" : "=r"(result) : "r"(sums), "r"(word));
	return result;
}}

{_HEAD} uint32_t sum_odd_bytes(uint32_t sums, uint32_t word)
{{
	uint32_t result;

	__asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(sums), "r"(word));
	return result;
}}
"""
GREATER_BYTES = f"""\
/* The greater one of each pair of signed bytes. */
{_HEAD} uint32_t greater_bytes(uint32_t a, uint32_t b)
{{
	uint32_t result;

	__asm__("ssub8 %0, %1, %2\\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
	return result;
}}
"""


def ended(ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition of the function (sum, multiplier, addend, shift) for one result.

    With Rounding.TWICE the sum is doubled already. In the long form it has 64 bits.
    """
    if ending.is_long:
        return _long(ending)
    lines = [
        f'__asm__("{"smmulr" if ending.is_doubled else "smmul"} %0, %1, %2" : "=r"(high) : "r"(sum), "r"(multiplier));'
    ]
    if ending.is_signed:
        lines.append("high += high >> 31;")
    lines.append("high = (high + addend) >> shift;")
    if ending.is_full:
        lines.append(f'__asm__("ssat %0, #{ending.bits}, %0" : "+r"(high));')
        lines.append(f"return ({ending.kind})high;")
    else:
        lines.append(f"return {_clamp('high', ending)};")
    name = f"end_{ending.name}"
    body = "".join(f"\t{line}\n" for line in lines)
    head = f"{_HEAD} {ending.kind} {name}(int32_t sum, int32_t multiplier, int32_t addend, int32_t shift)"
    text = f"{head}\n{{\n\tint32_t high;\n\n{body}}}\n"
    return name, text


def _clamp(value: str, ending: Epilogue) -> str:
    return f"({ending.kind})({value} < {ending.low} ? {ending.low} : {value} > {ending.high} ? {ending.high} : {value})"


def _long(ending: Epilogue) -> tuple[str, str]:
    name = f"end_{ending.name}"
    body = (
        "\tconst int64_t half = INT64_C(1) << (shift - 1);\n"
        "\tconst int64_t value = ((sum * multiplier + half) >> shift) + addend;\n\n"
        f"\treturn {_clamp('value', ending)};\n"
    )
    head = f"{_HEAD} {ending.kind} {name}(int64_t sum, int32_t multiplier, int32_t addend, int32_t shift)"
    return name, f"{head}\n{{\n{body}}}\n"

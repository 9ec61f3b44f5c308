# SPDX-License-Identifier: Apache-2.0
"""Average and maximum pools: channels in the lanes of a vector, without predicates where there are enough of them.

Windows inside of the image are runs of a function with the numbers of its window; windows at the edges are calls of a
function with the rows and columns that are inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import bounds
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir.operations import Pool
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.semantics.fixed_point import RANGES
from opwest.compiler.semantics.windows import Window

ITEMS = {"int8": 1, "uint8": 1, "int16": 2}
NARROW = {"int8": 255, "uint8": 128, "int16": 0}
"""The elements of a window whose sum, plus half of their number, has 15 bits, by the dtype."""
MAX_EDGE = 255
"""The elements of a padded window: see DIVISION."""
MAX_ELEMENTS = 1 << 15
"""The elements of a window whose sum, plus half of their number, has 31 bits."""
UNROLLED = 16
"""Windows of more elements are loops."""
OFFSETS = {1: 127, 2: 254}
"""The greatest offset of a load, by the bytes of an element."""


@dataclass(frozen=True)
class _Lanes:
    """The vectors of a pool."""

    kind: str
    dtype: str
    depth: int
    bits: int
    """Of a lane."""
    step: tuple[int, int]
    """The bytes from a row, and from an element of a row, of a window to the next one."""
    moved: tuple[int, int]
    """The bytes from a window to the next one, and from its result to the next one."""
    limits: tuple[int, int] | None

    @property
    def is_average(self) -> bool:
        """Whether results are means."""
        return self.kind == "average"

    @property
    def item(self) -> int:
        """The bytes of an element."""
        return ITEMS[self.dtype]

    @property
    def lanes(self) -> int:
        """The channels of a vector."""
        return 128 // self.bits

    @property
    def sign(self) -> str:
        """The letter of the type of a lane."""
        return "u" if self.dtype == "uint8" else "s"

    @property
    def type(self) -> str:
        """The type of a lane."""
        return f"{self.sign}{self.bits}"

    @property
    def is_partial(self) -> bool:
        """Whether the only vector has fewer channels than lanes."""
        return self.depth < self.lanes

    def access(self, name: str, condition: str = "") -> str:
        """Return the name of a load or store."""
        is_widened = name == "vldr" and self.bits > 8 * self.item
        kind = self.type if is_widened else f"u{self.bits}" if name == "vldr" else str(self.bits)
        return f"{name}{'b' if self.item == 1 else 'h'}{condition}.{kind}"

    @property
    def update(self) -> str:
        """The instruction that adds the elements in q1 to q0, or keeps the greater ones."""
        return f"vadd.i{self.bits} q0, q0, q1" if self.is_average else f"vmax.{self.type} q0, q0, q1"

    @property
    def name(self) -> str:
        """The part of names that stands for everything but the window."""
        numbers = "_".join(map(str, (self.depth, *self.step, *self.moved, *(self.limits or ()))))
        return f"{self.kind}_{self.dtype}_{self.bits}_{numbers}".replace("-", "m")


@emits(Pool, "mve-lanes", has_pitch=True)
def render(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes and kinds, and for averages of very large windows."""
    [data], [result], window = operation.inputs, operation.results, operation.window
    _, height, width, depth = data.shape
    size = window.size[0] * window.size[1]
    if data.dtype not in ITEMS or operation.kind not in ("average", "maximum"):
        return None
    is_average = operation.kind == "average"
    is_padded = window.is_padded((height, width))
    if is_average and (size > (MAX_EDGE if is_padded else MAX_ELEMENTS) or window.dilation != (1, 1)):
        return None
    item = ITEMS[data.dtype]
    narrow = 8 * item if depth >= 16 // item else 16 * item
    bits = narrow if not is_average else 16 if size <= NARROW[data.dtype] else 32
    (dy, dx), stride = window.dilation, window.stride[1]
    pixel = depth * item
    low, high = operation.low, operation.high
    limits = None if low is None or high is None else (int(low), int(high))
    lanes = _Lanes(
        operation.kind, data.dtype, depth, bits,
        (dy * width * pixel, dx * pixel), (stride * pixel, result.row * item),
        None if limits == RANGES[data.dtype] else limits,
    )  # fmt: skip
    lines, definitions = Lines(), [NAKED]
    inner, edge = _inner(lanes, window.size), _edge(lanes)
    if _has_inside(window, (height, width)):
        definitions.append(inner[1])
    if is_padded:
        definitions.append(edge[1])
    _body(lines, operation, (inner[0], edge[0]), lanes)
    base = f"{operation.kind}_pool"
    return call_for(operation, base, lines, {"data": data}, definitions=tuple(definitions))


def _has_inside(window: Window, image: tuple[int, int]) -> bool:
    return all(first < end for first, end in (window.inside(axis, length) for axis, length in enumerate(image)))


def _body(lines: Lines, operation: Pool, names: tuple[str, str], lanes: _Lanes) -> None:
    """Append the loops over results."""
    [data], [result], window = operation.inputs, operation.results, operation.window
    images, height, width, depth = data.shape
    (rows, columns), (sy, sx), (top, left) = window.result, window.stride, window.before
    (first_row, end_row), (first, end) = window.inside(0, height), window.inside(1, width)
    has_inside = _has_inside(window, (height, width))
    kind = c_type(data.dtype)
    lines.add(f"{kind} *y = result;", "")
    image = f"n * {height} + " if images > 1 else ""
    with lines.repeat("n", images), lines.loop("oy", rows):
        if has_inside:
            row = f"{image}oy * {sy}{f' - {top}' if top else ''}"
            start = f"data + (({row}) * {width}{f' + {first * sx - left}' if first * sx - left else ''}) * {depth}"
            call = f"{names[0]}({start}, y, {end - first});"
            if not window.is_padded((height, width)):
                lines.add(call, f"y += {columns * result.row};")
                return
        with lines.block(f"for (int ox = 0; ox < {columns}; ox++, y += {result.row})"):
            if has_inside:
                limits = [f"oy >= {first_row}"] * (first_row > 0) + [f"oy < {end_row}"] * (end_row < rows)
                with lines.block(f"if ({' && '.join([f'ox == {first}', *limits])})"):
                    lines.add(call, f"ox += {end - first - 1};", f"y += {(end - first - 1) * result.row};", "continue;")
                lines.add("")
            bounds(lines, operation)
            lines.add(f"const {kind} *from = data + (({image}y0) * {width} + x0) * {depth};")
            counts = [f"({axis}1 - {axis}0{f' + {d - 1}' if d > 1 else ''}){f' / {d}' if d > 1 else ''}"
                      for axis, d in zip("yx", window.dilation, strict=True)]  # fmt: skip
            lines.add(f"const int down = {counts[0]}, over = {counts[1]};")
            if not lanes.is_average:
                lines.add("", f"{names[1]}(from, y, down, over);")
            else:
                lines.add("const uint32_t count = (uint32_t)(down * over);")
                lines.add(*_division(lanes), "", f"{names[1]}(from, y, down, over, count / 2, inverse, places);")


# The quotient of n by count, with c places so that count <= 2**c, is 2 * n * inverse >> (16 + c) with the inverse
# ceil(2**(15 + c) / count) of 16 bits, for n below 2**15: the error of the inverse is below 1, that of the product
# below 2 * n < 2**16, less than the 2**(16 + c) / count to the next integer.
# With 32 bits, 2 * n * ceil(2**31 / count) >> 32 is the quotient of n up to count * (2**15 + 1/2), for counts up to
# 255.
def _division(lanes: _Lanes) -> Iterator[str]:
    """Yield the declarations of the numbers of a division by `count`."""
    if lanes.bits == 32:
        yield "const uint32_t inverse = (UINT32_C(0x7fffffff) + count) / count;"
        yield "const int32_t places = 0;"
        return
    yield "const int32_t places = count > 1 ? 32 - __builtin_clz(count - 1) : 0;"
    yield "const uint32_t inverse = ((UINT32_C(0x8000) << places) + count - 1) / count;"


def _inner(lanes: _Lanes, size: tuple[int, int]) -> tuple[str, str]:
    """Return the name and the definition of void f(from, result, count): windows that follow each other."""
    rows, columns = size
    code = Assembly()
    code.add("push {r4-r11, lr}", "vpush {d8-d13}")
    count = rows * columns
    division = ""
    if lanes.is_average and count > 1:
        places = (count - 1).bit_length()
        division = "power" if count == 1 << places else "quotient"
        if division == "quotient":
            code.constant("r8", count // 2)
            code.constant("r4", -(-(1 << (lanes.bits - 1 + places)) // count))
            code.add(f"vdup.{lanes.bits} q6, r4")
            code.constant("r10", (1 - places) & 0xFFFFFFFF)
    _limits(code, lanes)
    if _has_pointers(lanes, size):
        code.constant("r9", lanes.step[0])
    else:
        code.constant("r6", lanes.step[1])
        code.constant("r9", lanes.step[0] - columns * lanes.step[1] & 0xFFFFFFFF)
    code.add("2:")
    _vectors(code, lanes, size, division)
    code.plus("r0", lanes.moved[0], "r4")
    code.plus("r1", lanes.moved[1], "r4")
    code.add("subs r2, #1", "bne 2b", "vpop {d8-d13}", "pop {r4-r11, pc}")
    name = f"mve_{rows}x{columns}_{lanes.name}"
    kind = c_type(lanes.dtype)
    parameters = [f"const {kind} *from", f"{kind} *result", "int count"]
    return name, code.function(name, parameters, f"Windows of {rows} x {columns} that follow each other.")


def _edge(lanes: _Lanes) -> tuple[str, str]:
    """Return the name and the definition of void f(from, result, rows, columns): one window."""
    code = Assembly()
    code.add("push {r4-r11, lr}", "vpush {d8-d13}")
    if lanes.is_average:
        code.add("ldrd r8, r4, [sp, #84]", "ldr r10, [sp, #92]", "rsbs r10, r10, #0", f"vdup.{lanes.bits} q6, r4")
    _limits(code, lanes)
    code.constant("r6", lanes.step[1])
    code.constant("r9", lanes.step[0])
    code.add("mls r9, r3, r6, r9")
    _vectors(code, lanes, None, "edge" if lanes.is_average else "")
    code.add("vpop {d8-d13}", "pop {r4-r11, pc}")
    name = f"mve_edge_{lanes.name}"
    kind = c_type(lanes.dtype)
    parameters = [f"const {kind} *from", f"{kind} *result", "int rows", "int columns"]
    parameters += ["uint32_t half", "uint32_t inverse", "int32_t places"] if lanes.is_average else []
    return name, code.function(name, parameters, "The part of a window that is inside of the image.")


def _limits(code: Assembly, lanes: _Lanes) -> None:
    if lanes.limits:
        for register, limit in zip(("q4", "q5"), lanes.limits, strict=True):
            code.constant("r4", limit & 0xFFFFFFFF)
            code.add(f"vdup.{lanes.bits} {register}, r4")


def _vectors(code: Assembly, lanes: _Lanes, size: tuple[int, int] | None, division: str) -> None:
    """Append a result: from r0 to r1, with the bytes from an element to the next one in r6, to the next row in r9.

    A small window does not need r6, and its r9 are the bytes from a row to the next one.
    Without a size, the rows and columns are in r2 and r3. r5, r7, r11, r12, lr and r4 are changed.
    """
    whole, rest = divmod(lanes.depth, lanes.lanes)
    count = whole + (rest > 0)
    moved = lanes.lanes * lanes.item
    if lanes.is_partial:
        code.add(f"movs r4, #{lanes.depth}", f"vctp.{lanes.bits} r4")
    if size is not None and _has_pointers(lanes, size):
        _small(code, lanes, size, division)
        return
    code.add("mov r11, r0", "mov r7, r1")
    if count > 1:
        code.constant("r12", count)
        code.add("3:")
    code.add("mov r4, r11")
    _window(code, lanes, size)
    _end(code, lanes, size, division)
    if lanes.is_partial:
        code.add("vpst", f"{lanes.access('vstr', 't')} q0, [r7]")
        return
    code.add(f"{lanes.access('vstr')} q0, [r7]" + (f", #{moved}" if count > 1 else ""))
    if count > 1:
        code.add(f"adds r11, #{moved}", "subs r12, #1")
        if rest:
            # The last vector has the last channels, some of them again.
            back = (lanes.lanes - rest) * lanes.item
            code.add("cmp r12, #1", "itt eq", f"subeq r11, #{back}", f"subeq r7, #{back}", "cmp r12, #0")
        code.add("bne 3b")


def _end(code: Assembly, lanes: _Lanes, size: tuple[int, int] | None, division: str) -> None:
    """Append the result of a sum or greatest value in q0."""
    if division:
        _mean(code, lanes, division, 0 if size is None else (size[0] * size[1] - 1).bit_length())
    if lanes.limits:
        code.add(f"vmax.{lanes.type} q0, q0, q4", f"vmin.{lanes.type} q0, q0, q5")


ROWS = ("r3", "r4", "r5", "r6")
"""The pointers to the rows of a small window."""


def _has_pointers(lanes: _Lanes, size: tuple[int, int]) -> bool:
    """Whether each row of a window has a pointer, and each element of the row an offset."""
    rows, columns = size
    fits = (columns - 1) * lanes.step[1] <= OFFSETS[lanes.item]
    return rows <= len(ROWS) and rows * columns <= UNROLLED and fits


def _small(code: Assembly, lanes: _Lanes, size: tuple[int, int], division: str) -> None:
    """Append a result of a small window: the last vector of several has the last channels, some of them again."""
    whole, rest = divmod(lanes.depth, lanes.lanes)
    pointers, moved = ROWS[: size[0]], lanes.lanes * lanes.item
    code.add("mov r7, r1", f"mov {pointers[0]}, r0")
    code.add(*(f"add {below}, {above}, r9" for above, below in itertools.pairwise(pointers)))
    condition = "t" if lanes.is_partial else ""
    elements = [(row, column) for row in pointers for column in reversed(range(size[1]))]

    def vector() -> None:
        for number, (row, column) in enumerate(elements):
            place = f"[{row}, #{column * lanes.step[1]}]" if column else f"[{row}], #{moved}"
            code.add(*(["vpst"] * lanes.is_partial), f"{lanes.access('vldr', condition)} q{min(number, 1)}, {place}")
            if number:
                code.add(lanes.update)
        _end(code, lanes, size, division)
        code.add(*(["vpst"] * lanes.is_partial), f"{lanes.access('vstr', condition)} q0, [r7], #{moved}")

    if whole > 1:
        code.constant("lr", whole)
        code.add("dls lr, lr", "3:")
    vector()
    if whole > 1:
        code.add("le lr, 3b")
    if whole and rest:
        code.add(*(f"subs {pointer}, #{(lanes.lanes - rest) * lanes.item}" for pointer in (*pointers, "r7")))
        vector()


def _window(code: Assembly, lanes: _Lanes, size: tuple[int, int] | None) -> None:
    """Append the sum or the greatest value of the elements of a window at r4 in q0."""
    if size is not None and size[0] * size[1] <= UNROLLED:
        for row in range(size[0]):
            _row(code, lanes, size[1], row == 0)
            if row + 1 < size[0]:
                code.add("add r4, r9")
        return
    if lanes.is_average or lanes.dtype == "uint8":
        code.add("vmov.i32 q0, #0")
    else:
        code.constant("lr", RANGES[lanes.dtype][0] & ((1 << lanes.bits) - 1))
        code.add(f"vdup.{lanes.bits} q0, lr")
    if size is None:
        # A dilated window can have no element inside of the image.
        code.add("cmp r2, #1", "it ge", "cmpge r3, #1", "blt 6f", "mov r5, r2", "4:", "dls lr, r3", "5:")
        _row(code, lanes, 1, False)
        code.add("le lr, 5b")
    else:
        code.constant("r5", size[0])
        code.add("4:")
        turns, rest = divmod(size[1], UNROLLED)
        if turns > 1:
            code.constant("lr", turns)
            code.add("dls lr, lr", "5:")
        if turns:
            _row(code, lanes, UNROLLED, False)
        if turns > 1:
            code.add("le lr, 5b")
        _row(code, lanes, rest, False)
    code.add("add r4, r9", "subs r5, #1", "bne 4b", "6:")


def _row(code: Assembly, lanes: _Lanes, columns: int, is_start: bool) -> None:
    """Append the elements of a row, and the addition of their number to r4; `is_start`: the first one is the start."""
    step = lanes.step[1]
    for column in range(columns):
        register = "q0" if is_start and column == 0 else "q1"
        is_far = step > OFFSETS[lanes.item]
        code.add(*(["vpst"] if lanes.is_partial else []))
        load = lanes.access("vldr", "t" if lanes.is_partial else "")
        code.add(f"{load} {register}, [r4]{'' if is_far else f', #{step}'}", *(["add r4, r6"] if is_far else []))
        if register == "q1":
            code.add(lanes.update)


def _mean(code: Assembly, lanes: _Lanes, division: str, places: int) -> None:
    """Append the quotient of the sums in q0, rounded half away from zero.

    r8: half, q6: inverse, r10: places to the left; they are not used if the quotient is a power of two.
    """
    bits, is_signed = lanes.bits, lanes.sign == "s"
    if division == "power":
        if is_signed:
            code.add(f"vshr.s{bits} q1, q0, #{bits - 1}", f"vadd.i{bits} q0, q0, q1")
        code.add(f"vrshr.{lanes.type} q0, q0, #{places}")
        return
    source = "q0"
    if is_signed:
        code.add(f"vabs.s{bits} q1, q0")
        source = "q1"
    code.add(f"vadd.i{bits} q1, {source}, r8")
    if division == "edge":
        code.add(f"vshl.i{bits} q1, q1, #1")
    code.add(f"vmulh.u{bits} q1, q1, q6", f"vshl.u{bits} q1, r10")
    if is_signed:
        code.add(f"vshr.s{bits} q0, q0, #{bits - 1}", "veor q1, q1, q0", f"vsub.i{bits} q0, q1, q0")
    else:
        code.add("vmov q0, q1")

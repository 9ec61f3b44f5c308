# SPDX-License-Identifier: Apache-2.0
"""Functions of the C library with the effects that the standards give them, independent of opwest's table."""

from typing import NamedTuple


class Called(NamedTuple):
    """A call of a function; `effects` in every library, `newlib` those that newlib adds."""

    header: str
    call: str
    effects: str = ""
    newlib: str = ""


CALLS = {
    # pure
    "memcpy": Called("string.h", "memcpy(y, x, 4)"),
    "memset": Called("string.h", "memset(y, 0, 4)"),
    "strlen": Called("string.h", "strlen((const char *)x)"),
    "strchr": Called("string.h", "strchr((char *)y, 3)"),
    "strtok_r": Called("string.h", 'strtok_r((char *)y, " ", (char **)z)'),
    "abs": Called("stdlib.h", "abs(*x)"),
    "qsort": Called("stdlib.h", "qsort(y, 1, 4, compare)"),
    "bsearch": Called("stdlib.h", "bsearch(x, x, 1, 4, compare)"),
    "rand_r": Called("stdlib.h", "rand_r((unsigned *)y)"),
    "fabsf": Called("math.h", "fabsf((float)*x)"),
    "floorf": Called("math.h", "floorf((float)*x)"),
    "ldexpf": Called("math.h", "ldexpf((float)*x, 2)"),
    # errno
    "strtol": Called("stdlib.h", "strtol((const char *)x, 0, 10)"),
    "atoi": Called("stdlib.h", "atoi((const char *)x)"),
    "sqrtf": Called("math.h", "sqrtf((float)*x)"),
    "expf": Called("math.h", "expf((float)*x)"),
    "powf": Called("math.h", "powf((float)*x, 2.5f)"),
    "logf": Called("math.h", "logf((float)*x)"),
    "tanhf": Called("math.h", "tanhf((float)*x)"),
    "snprintf": Called("stdio.h", 'snprintf((char *)y, 4, "%d", *x)', newlib="heap"),
    "strtod": Called("stdlib.h", "strtod((const char *)x, 0)", newlib="heap"),
    # state
    "rand": Called("stdlib.h", "rand()", "state"),
    "srand": Called("stdlib.h", "srand(3)", "state"),
    "strtok": Called("string.h", 'strtok((char *)y, " ")', "state"),
    "asctime": Called("time.h", "asctime(z)", "state"),
    "ctime": Called("time.h", "ctime(z)", "state"),
    "gmtime": Called("time.h", "gmtime(z)", "state"),
    "localtime": Called("time.h", "localtime(z)", "state"),
    "setlocale": Called("locale.h", 'setlocale(0, "C")', "state"),
    "localeconv": Called("locale.h", "localeconv()", "state"),
    "lgamma": Called("math.h", "lgamma((double)*x)", "state"),
    "lgammaf": Called("math.h", "lgammaf((float)*x)", "state"),
    "mbtowc": Called("stdlib.h", "mbtowc(0, (const char *)x, 4)", "state"),
    "strerror": Called("string.h", "strerror(*x)", "state"),
    # heap
    "malloc": Called("stdlib.h", "malloc(4)", "heap"),
    "calloc": Called("stdlib.h", "calloc(1, 4)", "heap"),
    "realloc": Called("stdlib.h", "realloc(y, 8)", "heap"),
    "free": Called("stdlib.h", "free(y)", "heap"),
    "strdup": Called("string.h", "strdup((const char *)x)", "heap"),
    "aligned_alloc": Called("stdlib.h", "aligned_alloc(8, 8)", "heap"),
    # io
    "printf": Called("stdio.h", 'printf("%d", *x)', "io", "heap"),
    "puts": Called("stdio.h", 'puts("a")', "io", "heap"),
    "fopen": Called("stdio.h", 'fopen("a", "r")', "io", "heap"),
    "fflush": Called("stdio.h", "fflush(0)", "io", "heap"),
    "setbuf": Called("stdio.h", "setbuf((FILE *)z, 0)", "io", "heap"),
    "remove": Called("stdio.h", 'remove("a")', "io"),
    "perror": Called("stdio.h", 'perror("a")', "io"),
    # non-determinism
    "time": Called("time.h", "time(0)", "nondeterminism"),
    "clock": Called("time.h", "clock()", "nondeterminism"),
    "getenv": Called("stdlib.h", 'getenv("HOME")', "nondeterminism"),
    # control
    "exit": Called("stdlib.h", "exit(0)", "control"),
    "_Exit": Called("stdlib.h", "_Exit(0)", "control"),
    "abort": Called("stdlib.h", "abort()", "control"),
    "atexit": Called("stdlib.h", "atexit(0)", "control"),
    "longjmp": Called("setjmp.h", "longjmp(z, 1)", "control"),
    "signal": Called("signal.h", "signal(2, 0)", "control"),
    "raise": Called("signal.h", "raise(2)", "control"),
    # the floating-point environment
    "fesetround": Called("fenv.h", "fesetround(0)", "fenv"),
    "feclearexcept": Called("fenv.h", "feclearexcept(1)", "fenv"),
    "feraiseexcept": Called("fenv.h", "feraiseexcept(1)", "fenv"),
    "fetestexcept": Called("fenv.h", "fetestexcept(1)", "fenv"),
    "feholdexcept": Called("fenv.h", "feholdexcept(z)", "fenv"),
}
ORDER = ("state", "heap", "io", "nondeterminism", "control", "fenv")


def expected(name: str, libc: str) -> tuple[str, ...]:
    """Return the hidden effects of a function in a C library."""
    found = {CALLS[name].effects, CALLS[name].newlib if libc == "newlib" else ""}
    return tuple(effect for effect in ORDER if effect in found)


def source(name: str) -> str:
    """Return an operator that calls a function; its symbol is `op_<name>`."""
    call = CALLS[name]
    return (
        f"#define _GNU_SOURCE\n#include <stdint.h>\n#include <{call.header}>\n"
        "int compare(const void *a, const void *b);\n"
        f"int32_t op_{name}(const int32_t *x, int32_t *y, void *z);\n"
        f"int32_t op_{name}(const int32_t *x, int32_t *y, void *z)\n"
        f"{{\n\t(void)x;\n\t(void)y;\n\t(void)z;\n\t(void){call.call};\n\treturn 0;\n}}\n"
    )


def ir(name: str) -> str:
    """Return LLVM IR that calls a function, without its arguments."""
    return (
        f"declare i32 @{name}(...)\n"
        f"define i32 @op_{name}(ptr %x, ptr %y, ptr %z) {{\n"
        f"  %r = call i32 (...) @{name}()\n  ret i32 0\n}}\n"
    )

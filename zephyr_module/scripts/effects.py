# SPDX-License-Identifier: Apache-2.0
"""The effects of functions of C libraries that are not visible in their arguments.

`opwest check`, `inspect`, `bundle build` and the check of compiled operators use this module: one judgement.
It requires Python 3.8 and the standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

EFFECTS = ("state", "heap", "io", "nondeterminism", "control", "fenv")
"""The effects that an operator must declare: `state` by `stateful: true`, the others by `uses`."""
EXPECTED = "an operator whose results depend on its arguments only"

_WORDS = {
    "state": "keeps state in static data",
    "heap": "uses the heap",
    "io": "reads or writes files or devices",
    "nondeterminism": "depends on the time, a random source or the environment",
    "control": "can end, suspend or interrupt the program",
    "fenv": "reads or changes the floating-point environment",
}
_WAYS = {
    "state": "pass the state as an argument",
    "heap": "pass the memory as an argument with `direction: scratch`",
    "io": "remove it",
    "nondeterminism": "pass the value as an argument",
    "control": "return an error code",
    "fenv": "remove it",
}
_ASSERTIONS = ("__assert", "__assert_fail", "__assert_func", "__assert_no_args", "__assert_perror_fail", "assert")
_VARIABLES = (
    *("stdin", "stdout", "stderr", "environ", "__environ", "daylight", "timezone", "tzname", "signgam", "_impure_ptr"),
    *("optarg", "optind", "opterr", "optopt"),
)
_HARMLESS = ("pure", "errno")

_TABLE = """
# The result depends on the arguments only. The checks of FORTIFY_SOURCE end the program only
# after memory is damaged.
[pure]
__aeabi_memclr __aeabi_memclr4 __aeabi_memclr8 __aeabi_memcpy __aeabi_memcpy4 __aeabi_memcpy8
__aeabi_memmove __aeabi_memmove4 __aeabi_memmove8 __aeabi_memset __aeabi_memset4 __aeabi_memset8
__aeabi_read_tp __chk_fail __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc
__explicit_bzero_chk __fdelt_chk __finite __finitef __finitel __fpclassify __fpclassifyd
__fpclassifyf __fpclassifyl __iseqsig __isinf __isinfd __isinff __isinfl __isnan __isnand __isnanf
__isnanl __issignaling __issignalingf __mbsnrtowcs_chk __mbsrtowcs_chk __mbstowcs_chk __memcpy_chk
__memmove_chk __mempcpy_chk __memset_chk __signbit __signbitd __signbitf __signbitl
__stack_chk_fail __stack_chk_fail_local __stpcpy_chk __stpncpy_chk __strcat_chk __strcpy_chk
__strncat_chk __strncpy_chk __wcpcpy_chk __wcpncpy_chk __wcrtomb_chk __wcscat_chk __wcscpy_chk
__wcsncat_chk __wcsncpy_chk __wcsnrtombs_chk __wcsrtombs_chk __wcstombs_chk __wctomb_chk
__wmemcpy_chk __wmemmove_chk __wmempcpy_chk __wmemset_chk _ctype_ a64l abs atan atanf atanl bcmp
bcopy bsearch btowc bzero carg cargf cargl cbrt cbrtf cbrtl ceil ceilf ceill cimag cimagf cimagl
conj conjf conjl copysign copysignf copysignl cproj cprojf cprojl creal crealf creall difftime div
drand48_r ecvt_r erand48_r explicit_bzero fabs fabsf fabsl fcvt_r ffs ffsl ffsll finite finitef
finitel floor floorf floorl fma fmaf fmal fmax fmaxf fmaxl fmin fminf fminl frexp frexpf frexpl
gcvt hsearch_r imaxabs imaxdiv index insque isalnum isalpha isascii isblank iscntrl isdigit isgraph
isinf isinff isinfl islower isnan isnanf isnanl isprint ispunct isspace isupper iswalnum iswalpha
iswdigit iswlower iswspace iswupper isxdigit itoa k_busy_wait labs ldiv lfind lgammaf_r lgammal_r
llabs lldiv lsearch mbrlen mbrtowc mbsinit mbsrtowcs memccpy memchr memcmp memcpy memmem memmove
mempcpy memrchr memset modf modff modfl nan nanf nanl nearbyint nearbyintf nearbyintl qsort qsort_r
rand_r random_r rawmemchr remque rindex rint rintf rintl round roundeven roundevenf roundevenl
roundf roundl srandom_r stpcpy stpncpy strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll
strcpy strcspn strlcat strlcpy strlen strlwr strncasecmp strncat strncmp strncpy strnlen strpbrk
strrchr strsep strspn strstr strtok_r strupr strverscmp strxfrm swab tfind timegm toascii tolower
toupper towlower towupper trunc truncf truncl twalk utoa wcrtomb wcscat wcschr wcscmp wcscpy wcslen
wcsncat wcsncmp wcsncpy wcsrchr wcsrtombs wcsstr wcstok wctob wmemchr wmemcmp wmemcpy wmemmove
wmemset z_impl_k_busy_wait

# Pure, and may set errno, which is per thread and which no operator reads before it writes it.
[errno]
___snprintf_chk ___sprintf_chk ___vsnprintf_chk ___vsprintf_chk __errno __errno_location
__isoc23_sscanf __isoc23_strtoimax __isoc23_strtol __isoc23_strtoll __isoc23_strtoul
__isoc23_strtoull __isoc23_strtoumax __isoc23_vsscanf __isoc99_sscanf __isoc99_vsscanf __math_oflow
__math_uflow __snprintf_chk __sprintf_chk __swprintf_chk __vsnprintf_chk __vsprintf_chk
__vswprintf_chk acos acosf acosh acoshf acoshl acosl asctime_r asin asinf asinh asinhf asinhl asinl
atan2 atan2f atan2l atanh atanhf atanhl atof atoi atol atoll cabs cabsf cabsl cacos cacosf cacosh
cacoshf cacoshl cacosl casin casinf casinh casinhf casinhl casinl catan catanf catanh catanhf
catanhl catanl ccos ccosf ccosh ccoshf ccoshl ccosl cexp cexpf cexpl clog clogf clogl cos cosf cosh
coshf coshl cosl cpow cpowf cpowl csin csinf csinh csinhf csinhl csinl csqrt csqrtf csqrtl ctan
ctanf ctanh ctanhf ctanhl ctanl drem dremf dreml erf erfc erfcf erfcl erff erfl errno exp exp10
exp10f exp10l exp2 exp2f exp2l expf expl expm1 expm1f expm1l fdim fdimf fdiml fmod fmodf fmodl
gamma_r gmtime_r hypot hypotf hypotl ilogb ilogbf ilogbl j0 j0f j0l j1 j1f j1l jn jnf jnl ldexp
ldexpf ldexpl lgamma_r llrint llrintf llrintl llround llroundf llroundl log log10 log10f log10l
log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl lrint lrintf lrintl lround lroundf
lroundl mbstowcs nextafter nextafterf nextafterl nexttoward nexttowardf nexttowardl pow pow10 pow10f
pow10l powf powl remainder remainderf remainderl remquo remquof remquol scalb scalbf scalbl scalbln
scalblnf scalblnl scalbn scalbnf scalbnl significand significandf significandl sin sincos sincosf
sincosl sinf sinh sinhf sinhl sinl siprintf sniprintf snprintf sprintf sqrt sqrtf sqrtl sscanf
strerror_r strtod strtof strtoimax strtol strtold strtoll strtoul strtoull strtoumax swprintf tan
tanf tanh tanhf tanhl tanl tgamma tgammaf tgammal vsiprintf vsniprintf vsnprintf vsprintf vsscanf
vswprintf wcstombs y0 y0f y0l y1 y1f y1l yn ynf ynl z_errno_wrap

# Reads or writes static data: the next call or another thread has another result.
[state]
__getreent _impure_ptr asctime basename clearenv ctime ctime_r daylight dirname drand48 ecvt ecvtf
erand48 fcvt fcvtf gamma gammaf gammal getopt getopt_long getopt_long_only gmtime hcreate hdestroy
hsearch initstate jrand48 l64a lcong48 lgamma lgammaf lgammal localeconv localtime localtime_r
lrand48 mblen mbtowc mktime mrand48 nl_langinfo nrand48 optarg opterr optind optopt putenv qecvt
qfcvt rand random seed48 setenv setlocale setstate signgam srand srand48 srandom strerror strftime
strsignal strtok timezone tmpnam tzname tzset unsetenv uselocale wctomb

# Writes static data only in this library.
[state: picolibc]
tgammal

# Takes memory from the heap or returns it.
[heap]
_ZdaPv _ZdaPvj _ZdaPvm _ZdlPv _ZdlPvj _ZdlPvm _Znaj _ZnajRKSt9nothrow_t _Znam _ZnamRKSt9nothrow_t
_Znwj _ZnwjRKSt9nothrow_t _Znwm _ZnwmRKSt9nothrow_t __asprintf_chk __builtin_calloc __builtin_free
__builtin_malloc __builtin_realloc __obstack_printf_chk __obstack_vprintf_chk __vasprintf_chk
_calloc_r _free_r _malloc_r _mlir_memref_to_llvm_aligned_alloc _mlir_memref_to_llvm_alloc
_mlir_memref_to_llvm_free _realloc_r _sbrk _sbrk_r aligned_alloc asprintf brk calloc cfree duplocale
fmemopen free freelocale getdelim getline hcreate_r k_aligned_alloc k_calloc k_free k_heap_alloc
k_heap_free k_malloc k_realloc mallinfo malloc malloc_usable_size mallopt memalign mmap munmap
newlocale open_memstream posix_memalign pvalloc realloc reallocarray reallocf realpath sbrk strdup
strndup tdelete tdestroy tsearch valloc vasprintf wcsdup

# Also takes memory from the heap.
[heap: newlib]
__gets_chk __snprintf_chk __sprintf_chk __vsnprintf_chk __vsprintf_chk asctime_r atof dprintf fclose
fflush fgetc fgets fiprintf fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos fwrite getc
getchar iprintf printf putc putchar puts rewind scanf setbuf setvbuf snprintf sprintf sscanf strtod
strtof strtold tmpfile tmpnam ungetc vfiprintf vfprintf vfscanf viprintf vprintf vscanf vsnprintf
vsprintf vsscanf

# Reads or writes files or devices.
[io]
_IO_getc _IO_printf _IO_putc _IO_puts ___fprintf_chk ___printf_chk ___vfprintf_chk ___vprintf_chk
__builtin_printf __builtin_putchar __builtin_puts __dprintf_chk __fgets_chk __fgets_unlocked_chk
__fgetws_chk __fgetws_unlocked_chk __fprintf_chk __fread_chk __fread_unlocked_chk __fwprintf_chk
__getcwd_chk __gets_chk __getwd_chk __isoc23_fscanf __isoc23_scanf __isoc23_vfscanf __isoc23_vscanf
__isoc99_fscanf __isoc99_scanf __isoc99_vfscanf __isoc99_vscanf __poll_chk __ppoll_chk __pread64_chk
__pread_chk __printf_chk __ptsname_r_chk __read_chk __readlink_chk __readlinkat_chk __realpath_chk
__recv_chk __recvfrom_chk __syslog_chk __ttyname_r_chk __vdprintf_chk __vfprintf_chk __vfwprintf_chk
__vprintf_chk __vsyslog_chk __vwprintf_chk __wprintf_chk _close _lseek _open _read _read_r _write
_write_r access chdir clearerr close closedir connect creat dprintf dup dup2 fclose fcntl fdatasync
fdopen feof ferror fflush fflush_unlocked fgetc fgetpos fgets fgetwc fgetws fileno fiprintf fopen
fprintf fputc fputc_unlocked fputs fputs_unlocked fputwc fputws fread fread_unlocked freopen fscanf
fseek fseeko fsetpos fstat fsync ftell ftello ftruncate fwprintf fwrite fwrite_unlocked getc
getc_unlocked getchar getchar_unlocked getcwd gets getwchar ioctl iprintf isatty lseek lstat mkdir
mkdtemp mkstemp mktemp open openat opendir openlog pclose perror pipe poll popen pread printf printk
psignal putc putc_unlocked putchar putchar_unlocked puts putwchar pwrite read readdir recv recvfrom
remove rename rewind rmdir scanf select send sendto setbuf setbuffer setlinebuf setvbuf socket stat
stderr stdin stdout syslog tmpfile tmpnam truncate ttyname ungetc unlink vdprintf vfiprintf vfprintf
vfscanf vfwprintf viprintf vprintf vprintk vscanf vwprintf wprintf write

# The result depends on the time, on a random source, or on the environment.
[nondeterminism]
__builtin_ia32_rdtsc __builtin_ia32_rdtscp __builtin_readcyclecounter __confstr_chk __environ
__getdomainname_chk __getgroups_chk __gethostname_chk __getlogin_r_chk __rdtsc __rdtscp
_gettimeofday _rdrand32_step _rdseed32_step _times arc4random arc4random_buf arc4random_uniform
clock clock_getres clock_gettime clock_settime confstr environ ftime get_nprocs getauxval getcpu
getdomainname getegid getentropy getenv geteuid getgid getgroups gethostname getlogin getlogin_r
getpagesize getpid getppid getrandom getrusage gettid gettimeofday getuid k_cycle_get_32
k_cycle_get_64 k_uptime_get k_uptime_get_32 k_uptime_seconds k_uptime_ticks pathconf pthread_self
sched_getcpu secure_getenv settimeofday stime sys_clock_cycle_get_32 sys_clock_cycle_get_64
sys_csrand_get sys_rand16_get sys_rand32_get sys_rand64_get sys_rand8_get sys_rand_get sysconf
thrd_current time times timespec_get uname z_impl_k_uptime_ticks z_impl_sys_csrand_get
z_impl_sys_rand_get

# May end the operator or the program, wait, or run other code: exits, jumps, signals, threads,
# assertions.
[control]
NVIC_SystemReset _Exit _Fork __BKPT __SEV __WFE __WFI ____longjmp_chk __aeabi_atexit __assert
__assert_fail __assert_func __assert_no_args __assert_perror_fail __builtin_abort __builtin_longjmp
__builtin_setjmp __cxa_atexit __disable_fault_irq __disable_irq __enable_fault_irq __enable_irq
__longjmp_chk __set_BASEPRI __set_BASEPRI_MAX __set_CONTROL __set_FAULTMASK __set_MSP __set_MSPLIM
__set_PRIMASK __set_PSP __set_PSPLIM __sigsetjmp __sysv_signal _exit _kill _longjmp _setjmp abort
alarm assert_post_action at_quick_exit atexit bsd_signal call_once clock_nanosleep cnd_signal
cnd_wait daemon dlclose dlopen dlsym execl execle execlp execv execve execvp exit fork getcontext
irq_lock irq_unlock k_fatal_halt k_msleep k_oops k_panic k_sched_lock k_sched_unlock k_sleep
k_thread_abort k_usleep k_yield kill killpg longjmp makecontext mprotect mtx_lock mtx_unlock
nanosleep on_exit pause posix_spawn posix_spawnp prctl pthread_barrier_wait pthread_cancel
pthread_cond_broadcast pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_create
pthread_detach pthread_exit pthread_join pthread_kill pthread_mutex_lock pthread_mutex_trylock
pthread_mutex_unlock pthread_once pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock
pthread_sigmask ptrace quick_exit raise sched_yield sem_post sem_timedwait sem_trywait sem_wait
set_fortify_handler setcontext setitimer setjmp sigaction siglongjmp signal sigprocmask sigsetjmp
sigsuspend sigwait sleep swapcontext sys_reboot syscall system sysv_signal thrd_create thrd_exit
thrd_join thrd_sleep thrd_yield ualarm usleep vfork wait waitpid z_fatal_error z_impl_k_sleep
z_impl_k_thread_abort z_impl_k_usleep z_impl_k_yield

# Reads or changes the floating-point environment: rounding mode, exception flags, traps.
[fenv]
_MM_SET_DENORMALS_ZERO_MODE _MM_SET_EXCEPTION_MASK _MM_SET_EXCEPTION_STATE _MM_SET_FLUSH_ZERO_MODE
_MM_SET_ROUNDING_MODE __builtin_aarch64_set_fpcr __builtin_arm_set_fpscr __builtin_ia32_ldmxcsr
__flt_rounds __set_FPSCR __setfpucw _mm_setcsr feclearexcept fedisableexcept feenableexcept fegetenv
fegetexcept fegetexceptflag fegetmode fegetround feholdexcept feraiseexcept fesetenv fesetexcept
fesetexceptflag fesetmode fesetround fetestexcept fetestexceptflag feupdateenv fpgetmask fpgetround
fpgetroundtoi fpgetsticky fpsetmask fpsetround fpsetroundtoi fpsetsticky
"""
"""The effects of functions, by sections; one with a colon is for one library only. A name can be in several sections.

Sources: ISO C (N3220), POSIX.1-2024; glibc 2.36 (manual, "attributes"); the members that a call links from newlib
3.3.0, picolibc 1.8 and Zephyr 4.2 (data, heap, calls of the system).
"""


class Hidden(NamedTuple):
    """A called function, or an instruction, with effects that the manifest does not permit."""

    name: str
    effects: tuple[str, ...]
    text: str
    """What was found, without the name of the object."""
    hint: str
    remedy: str
    """What a manifest can add so that the object is accepted."""


@lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8
def table(libc: str) -> dict[str, tuple[str, ...]]:
    """Return the effects of each function in `libc`: host, picolibc, newlib or minimal."""
    found: dict[str, list[str]] = {}
    effect = ""
    for line in _TABLE.splitlines():
        if line.startswith("["):
            effect, _, only = line.strip("[]").partition(": ")
            if only and only != libc:
                effect = ""
        elif effect and not line.startswith("#"):
            for name in line.split():
                found.setdefault(name, []).append(effect)
    return {name: tuple(effects) for name, effects in found.items()}


def hidden(functions: Iterable[str], libcs: Iterable[str], permitted: Collection[str] = ()) -> list[Hidden]:
    """Return the functions with effects, in any of the libraries `libcs`, that are not permitted."""
    tables = [table(libc) for libc in libcs]
    found = []
    for function in functions:
        effects = {effect for one in tables for effect in one.get(function, ())}
        missing = tuple(effect for effect in EFFECTS if effect in effects and effect not in permitted)
        if missing:
            found.append(_hidden(function, missing, tables[0]))
    return found


def instruction(text: str, function: str, effect: str) -> Hidden:
    """Return the effect of an instruction in a function; `function` is empty for assembly in a source."""
    where = f" in function {function!r}" if function else " in inline assembly"
    return _described(text, f"executes {text!r}{where}", (effect,), _WAYS[effect])


def _hidden(function: str, effects: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> Hidden:
    return _described(
        function,
        f"{'uses' if function in _VARIABLES else 'calls'} {function!r}",
        effects,
        _way(function, effects, known),
    )


def _described(name: str, found: str, effects: tuple[str, ...], way: str) -> Hidden:
    uses = ", ".join(effect for effect in effects if effect != "state")
    keys = [*["`stateful: true`"] * ("state" in effects), *[f"`uses: [{uses}]`"] * bool(uses)]
    what = " and ".join(_WORDS[effect] for effect in effects)
    return Hidden(
        name,
        effects,
        f"{found}, which {what}",
        f"{way}, or set {' and '.join(keys)}",
        f"{' and '.join(keys)} permit{'s' * (len(keys) == 1)} it",
    )


def _way(function: str, effects: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> str:
    """Return what the author of an operator can do instead of a call."""
    if function in _ASSERTIONS:
        return "compile with -DNDEBUG"
    reentrant = f"{function}_r"
    if set(known.get(reentrant, ("io",))) <= set(_HARMLESS):
        return f"call {reentrant!r}"
    return _WAYS[effects[0]]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# riscv64-unknown-elf-gcc (or -g++) of a distribution, so that Zephyr links for RISC-V with it.
#
# The compiler finds libgcc and the C library by the value of -march. Zephyr compiles with -march=..._zicsr_zifencei, and
# Debian's compiler has no libraries with these two extensions in their names: it takes those for 64 bits. Libraries do
# not depend on the two extensions, so this script removes them from -march, except when the compiler only compiles
# (-c, -S, -E): the assembler needs them. The compilers of the Zephyr SDK need no such script.
#
# scripts/riscv_toolchain.py copies this file to the names of the compilers; it runs the program of its name in PATH.
name=${0##*/}
real=$(command -v "$name")
if [ -z "$real" ]; then
	echo "$0: $name not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)" >&2
	exit 127
fi
if [ "$real" -ef "$0" ]; then
	echo "$0: found itself as $name; remove its directory from PATH" >&2
	exit 126
fi
for word in "$@"; do
	case $word in -c | -S | -E) exec "$real" "$@" ;; esac
done
for word in "$@"; do
	shift
	case $word in
	-march=*)
		# Either order, and between other extensions.
		case $word in *_zicsr*) word=${word%%_zicsr*}${word#*_zicsr} ;; esac
		case $word in *_zifencei*) word=${word%%_zifencei*}${word#*_zifencei} ;; esac
		;;
	esac
	set -- "$@" "$word"
done
exec "$real" "$@"

"""The sandbox's seccomp filter: the system calls that right programs need, as a program for the kernel's BPF machine.

All others are denied, so that one which nobody thought of is denied, too. That each is needed is tested: without it
some program of tests/unit/cases/right_programs.txt fails. The filter is installed when Python has started and its
limits are set (tasks.sandbox.runner), so that starting a program (execve) is not among them. Waiting takes no time:
nothing can happen meanwhile, and the grader would wait, too.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # SECCOMP_RET_… in linux/seccomp.h
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ, JGE, JSET|K, BPF_RET
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
X32_BIT = 0x40000000
NEW = 335  # calls from here on do not exist, as on an older kernel, so that libraries use those below
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_… in linux/audit.h
# Numbers on x86-64 and aarch64: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # files, which are read-only, and pipes
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "lseek": (8, 62), "open": (2, None), "openat": (257, 56),
    "stat": (4, None), "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79), "getdents64": (217, 61),
    "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17), "fcntl": (72, 25), "ioctl": (16, 29),
    "pread64": (17, 67),
    # memory
    "brk": (12, 214), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216),
    # this process, its limits, its signal handlers, and what its libraries do once (futex)
    "getpid": (39, 172), "uname": (63, 160), "prlimit64": (302, 261), "getrusage": (98, 165), "rt_sigaction": (13, 134),
    "exit_group": (231, 94), "futex": (202, 98), "getrandom": (318, 278), "clock_gettime": (228, 113),
}  # fmt: skip
# Of these calls the argument of that index has one of these values; its low half, which is all that the kernel reads
VALUES = {
    "fcntl": (1, (1, 2, 1030)),  # F_GETFD, F_SETFD, F_DUPFD_CLOEXEC of linux/fcntl.h: no lease, lock, watch or flag
    "ioctl": (1, (0x5401, 0x5451)),  # TCGETS, FIOCLEX of asm-generic/ioctls.h
    "prlimit64": (0, (0,)),  # this process
    "futex": (1, (129,)),  # FUTEX_WAKE | FUTEX_PRIVATE_FLAG of linux/futex.h
}
FORBIDDEN_BITS = {"mmap": (3, 0x40000 | 0x2000)}  # MAP_HUGETLB, MAP_LOCKED: memory that this machine shares
# These are said to have succeeded: the time is over, and nothing has happened
AT_ONCE: dict[str, tuple[int | None, int | None]] = {
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "poll": (7, None), "ppoll": (271, 73), "select": (23, None),
    "pselect6": (270, 72),
}  # fmt: skip


def available() -> bool:
    """Whether there is a filter for this machine's processor."""
    return platform.machine() in AUDIT


@cache
def program(machine: str = platform.machine(), without: frozenset[str] = frozenset()) -> bytes:
    """The filter, as the kernel reads it: an array of struct sock_filter.

    Args:
        machine: the kind of processor, as platform.machine() names it.
        without: calls that are denied besides, for tests.
    """
    column = list(AUDIT).index(machine)
    lines = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, AUDIT[machine]), (RETURN, 0, 0, KILL)]
    lines += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, X32_BIT), (RETURN, 0, 0, KILL)]
    for numbers, action in ((ALLOWED, ALLOW), (AT_ONCE, ERRNO)):
        for name, columns in numbers.items():
            number = columns[column]
            if number is not None and name not in without:
                rule = _rule(name, action)
                lines += [(EQUAL, 0, len(rule), number), *rule]
    lines += [(AT_LEAST, 0, 1, NEW), (RETURN, 0, 0, ERRNO | errno.ENOSYS), (RETURN, 0, 0, ERRNO | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _rule(name: str, action: int) -> list[tuple[int, int, int, int]]:
    """What happens to a call of that name, in lines that end with a return."""
    answer, refusal = (RETURN, 0, 0, action), (RETURN, 0, 0, ERRNO | errno.EPERM)
    if name in VALUES:
        argument, values = VALUES[name]
        tests = [(EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
        return [(LOAD, 0, 0, ARGUMENTS + 8 * argument), *tests, refusal, answer]
    if name in FORBIDDEN_BITS:
        argument, bits = FORBIDDEN_BITS[name]
        return [(LOAD, 0, 0, ARGUMENTS + 8 * argument), (ANY_BIT, 0, 1, bits), refusal, answer]
    return [answer]

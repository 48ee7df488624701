"""The sandbox's seccomp filter: system calls that are not permitted, as a program for the kernel's BPF machine.

On x86-64; elsewhere there is no filter, and the sandbox has namespaces and limits alone. Where each program starts its
own sandbox, the filter is in place before Python starts. So starting a program (execve) stays allowed; inside there is
none but Python. Locks and inotify are denied because files of Python are shared by all sandboxes.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from functools import cache

X86_64 = 0xC000003E  # AUDIT_ARCH_X86_64 in linux/audit.h
X32_BIT = 0x40000000
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # SECCOMP_RET_… in linux/seccomp.h
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K
# Numbers of arch/x86/entry/syscalls/syscall_64.tbl
DENIED = {
    "clone": 56, "fork": 57, "vfork": 58, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "socket": 41, "socketpair": 53, "connect": 42, "bind": 49, "listen": 50, "accept": 43, "accept4": 288,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "memfd_create": 319, "memfd_secret": 447,
    "shmget": 29, "shmat": 30, "msgget": 68, "semget": 64, "mq_open": 240, "personality": 135, "reboot": 169,
    "swapon": 167, "kexec_load": 246, "init_module": 175, "finit_module": 313, "delete_module": 176, "iopl": 172,
    "ioperm": 173, "quotactl": 179, "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300,
    "pidfd_open": 434, "pidfd_getfd": 438, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "syslog": 103,
    "acct": 163, "vhangup": 153, "sethostname": 170, "setdomainname": 171, "lookup_dcookie": 212, "chmod": 90,
    "fchmod": 91, "fchmodat": 268, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "sched_setscheduler": 144,
    "setpriority": 141, "ioprio_set": 251, "flock": 73, "inotify_init": 253, "inotify_init1": 294,
}  # fmt: skip
# As on an older kernel, so that libraries use the calls above
NO_SUCH_CALL = {"clone3": 435, "fchmodat2": 452, "statmount": 457, "listmount": 458}


def available() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() == "x86_64"


@cache
def program() -> bytes:
    """The filter, as bubblewrap's --seccomp reads it: an array of struct sock_filter."""
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, KILL)]
    lines += [(LOAD, 0, 0, 0), (AT_LEAST, 0, 1, X32_BIT), (RETURN, 0, 0, KILL)]
    for numbers, error in ((DENIED, errno.EPERM), (NO_SUCH_CALL, errno.ENOSYS)):
        for number in numbers.values():
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def descriptor() -> int:
    """A file descriptor from which the filter can be read once; the caller closes it."""
    reader, writer = os.pipe()
    os.write(writer, program())  # far less than what a pipe holds
    os.close(writer)
    return reader

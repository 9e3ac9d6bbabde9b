# SPDX-License-Identifier: Apache-2.0
"""no_notify - runs a command as on a kernel without seccomp notification.

usage:  no_notify.py COMMAND [ARG...]

A seccomp filter, which all children inherit, fails the two calls as such a kernel does: the query
for an action (EOPNOTSUPP) and a filter with a listener (EINVAL)."""
import ctypes
import errno
import os
import struct
import sys

NR_SECCOMP, SET_MODE_FILTER, GET_ACTION_AVAIL, NEW_LISTENER = 317, 1, 2, 8
NO_NEW_PRIVS, SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQ, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NR, ARG0, ARG1 = 0, 16, 24
PROGRAM = [
    (LOAD, 0, 0, NR), (JUMP_EQ, 0, 7, NR_SECCOMP),
    (LOAD, 0, 0, ARG0), (JUMP_EQ, 4, 0, GET_ACTION_AVAIL), (JUMP_EQ, 0, 4, SET_MODE_FILTER),
    (LOAD, 0, 0, ARG1), (JUMP_SET, 0, 2, NEW_LISTENER), (RETURN, 0, 0, ERRNO | errno.EINVAL),
    (RETURN, 0, 0, ERRNO | errno.EOPNOTSUPP), (RETURN, 0, 0, ALLOW),
]


def main():
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in PROGRAM))
    program = struct.pack("HxxxxxxP", len(PROGRAM), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) < 0 or libc.prctl(SET_SECCOMP, MODE_FILTER, program,
                                                              0, 0) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()

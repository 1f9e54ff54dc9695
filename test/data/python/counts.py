# SPDX-License-Identifier: Apache-2.0
"""Writes the number (co_version) of its newest code object into a file, then waits: the interpreter's next number is one
more. For CPython 3.13 and later, where the numbers of all code objects are different."""
import ctypes
import sys
import time

# From the object on; free-threaded builds have another place, and no memo.
VERSION_AT = 92

answer = open(sys.argv[1], 'w')
newest = compile('pass', 'newest', 'exec')
answer.write(str(ctypes.c_uint32.from_address(id(newest) + VERSION_AT).value))
answer.close()
print('ready')
sys.stdout.flush()
while True:
    time.sleep(60)

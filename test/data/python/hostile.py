"""A process that forges its list of interpreters: argv[2] says how. For Python 3.11 and 3.13, those of
Debian 12 and 13. Words of _Py_DebugOffsets: agent/runtimes/python_layout.c."""
import ctypes, os, struct, sys

THREAD = 0x10000  # of the forged bytes, behind the interpreter
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'))


def described(word):
    return struct.unpack_from('<Q', ctypes.string_at(runtime, 256), 8 * word)[0]


if sys.version_info[:2] == (3, 11):
    HEAD = 40  # of _PyRuntime: interpreters.head
    NEXT, THREADS = 0, 16  # of an interpreter
    THREAD_NEXT, THREAD_INTERPRETER, THREAD_ID, THREAD_CFRAME = 8, 16, 152, 56
elif sys.version_info[:2] == (3, 13):
    HEAD, NEXT, THREADS = described(5), described(8), described(9)
    THREAD_NEXT, THREAD_INTERPRETER, THREAD_ID = described(21), described(22), described(24)
    THREAD_CFRAME = None
else:
    sys.exit('the offsets of this release are not known')

forged = ctypes.create_string_buffer(2 * THREAD)
address = ctypes.addressof(forged)


def put(offset, word):
    forged[offset:offset + 8] = struct.pack('<Q', word)


kind = sys.argv[2]
head = address
if kind == 'random':
    head = int.from_bytes(os.urandom(6), 'little') | 1 << 47
elif kind == 'interpreters':
    put(NEXT, address)
elif kind == 'threads':
    put(THREADS, address + THREAD)
    put(THREAD + THREAD_NEXT, address + THREAD)
    put(THREAD + THREAD_INTERPRETER, address)
    put(THREAD + THREAD_ID, address + THREAD + 1024)
    if THREAD_CFRAME is not None:
        put(THREAD + THREAD_CFRAME, address + THREAD + 1024)
ctypes.memmove(runtime + HEAD, struct.pack('<Q', head), 8)
os.write(1, b'ready\n')
os.read(0, 1)
os._exit(0)

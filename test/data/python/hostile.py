"""A process that forges its list of interpreters: argv[1] says how. For Python 3.11."""
import ctypes, os, struct, sys

HEAD = 40  # of _PyRuntime: interpreters.head
NEXT, THREADS = 0, 16  # of an interpreter
THREAD_NEXT, THREAD_INTERPRETER, THREAD_ID, THREAD_CFRAME = 8, 16, 152, 56

forged = ctypes.create_string_buffer(4096)
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
    put(THREADS, address + 1024)
    put(1024 + THREAD_NEXT, address + 1024)
    put(1024 + THREAD_INTERPRETER, address)
    put(1024 + THREAD_ID, address + 2048)
    put(1024 + THREAD_CFRAME, address + 2048)
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'))
ctypes.memmove(runtime + HEAD, struct.pack('<Q', head), 8)
os.write(1, b'ready\n')
os.read(0, 1)
os._exit(0)

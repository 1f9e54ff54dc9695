"""The line of each instruction of the standard library's functions, as the interpreter tells it.
Writes to the file argv[1] for each code object a line "C first-line table-in-hex" and a line of
pairs "place:line", 0 for no line. Runs in CPython 3.6 and later."""
import dis, importlib, sys, types

MODULES = '''argparse ast asyncio.base_events asyncio.tasks asyncio.streams collections configparser
contextlib copy csv dataclasses datetime difflib dis email.message email.header enum fractions ftplib
functools gettext heapq html.parser http.client http.server inspect ipaddress json.decoder locale
logging mailbox optparse os pathlib pdb pickle pickletools platform posixpath random shlex shutil
smtplib socket socketserver ssl statistics string subprocess tarfile tempfile textwrap threading
tokenize traceback turtle types typing unittest.case unittest.mock urllib.parse urllib.request uuid
warnings weakref xml.dom.minidom xmlrpc.client zipfile'''.split()


def codes(code, seen):
    stack = [code]
    while stack:
        code = stack.pop()
        if code in seen:
            continue
        seen.add(code)
        yield code
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def pairs(code):
    n = len(code.co_code)
    if hasattr(code, 'co_lines'):
        unit = 2 if sys.version_info < (3, 11) else 1
        for start, end, line in code.co_lines():
            for at in range(start, end, 2):
                yield at // unit, line or 0
        return
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for at in range(0, n, 2):
        line = starts.get(at, line)
        yield at, line


def main():
    seen = set()
    with open(sys.argv[1], 'w') as out:
        for name in MODULES:
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            with open(module.__file__, 'rb') as source:
                whole = compile(source.read(), module.__file__, 'exec', dont_inherit=True)
            for code in codes(whole, seen):
                table = getattr(code, 'co_linetable', None)
                if table is None:
                    table = code.co_lnotab
                out.write('C %d %s\n' % (code.co_firstlineno, table.hex() or '-'))
                out.write(' '.join('%d:%d' % p for p in pairs(code)) + '\n')
    print('ready', flush=True)
    sys.stdin.read()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a root file system in memory of a few programs and the libraries they are linked with.

    initramfs.py SYSROOT OUT PATH=FILE...

SYSROOT is where the libraries are: / or another architecture's; several are separated by colons. A FILE that is a folder
stands for all files in it. OUT is a cpio archive of the form
that Linux reads ("newc"), not compressed: QEMU hands it over faster than the kernel unpacks it.
"""
import os
import re
import subprocess
import sys


def needs(path):
    """The program's interpreter (or None) and the names of its libraries; of no program, none."""
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return None, []
    said = subprocess.run(["readelf", "-W", "-l", "-d", path], capture_output=True, text=True, check=True).stdout
    interpreter = re.search(r"program interpreter: ([^\]]+)\]", said)
    return interpreter and interpreter[1], re.findall(r"\(NEEDED\).*\[(.+)\]", said)


def find(sysroots, name):
    """A library of the sysroots' one architecture."""
    for sysroot in sysroots.split(":"):
        for folder in ("lib", "usr/lib", "lib64", "usr/lib64"):
            below = [folder] + [os.path.join(folder, d) for d in TRIPLETS]
            for path in (os.path.join(sysroot, d, name) for d in below):
                if os.path.isfile(path):
                    return os.path.realpath(path)
    sys.exit(f"initramfs.py: {name} is not in {sysroots}")


def files_of(inside, path):
    """{path inside: file} of a file, or of all files in a folder but links that lead out of a package."""
    if not os.path.isdir(path):
        return {inside: path}
    below = (os.path.relpath(os.path.join(at, name), path) for at, _, names in os.walk(path) for name in names)
    found = {os.path.join(inside, name): os.path.join(path, name) for name in below}
    return {inside: file for inside, file in found.items() if os.path.exists(file)}


def closure(sysroot, files):
    """{path inside: file} of the files with everything the programs among them need."""
    inside = dict(files)
    todo = list(files.values())
    # A program finds a library that is given, for instance a language runtime's own.
    given = {os.path.basename(path) for path in files}
    while todo:
        interpreter, libraries = needs(todo.pop())
        wanted = {"/lib/" + name for name in libraries if name not in given}
        if interpreter:
            wanted.add(interpreter)
        for path in wanted - inside.keys():
            inside[path] = find(sysroot, os.path.basename(path))
            todo.append(inside[path])
    return inside


def entry(number, path, mode, data=b"", device=(0, 0)):
    name = path.lstrip("/").encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def archive(files):
    folders = {"/dev", "/proc", "/sys", "/tmp"}
    for path in files:
        while path := os.path.dirname(path).rstrip("/"):
            folders.add(path)
    parts = [entry(i, path, 0o40755) for i, path in enumerate(sorted(folders))]
    parts.append(entry(1000, "/dev/console", 0o20600, device=(5, 1)))
    for i, (path, file) in enumerate(sorted(files.items())):
        with open(file, "rb") as f:
            parts.append(entry(2000 + i, path, 0o100755, f.read()))
    return b"".join(parts) + entry(0, "TRAILER!!!", 0)


TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")

if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as out:
        given = (files_of(*a.split("=", 1)) for a in sys.argv[3:])
        out.write(archive(closure(sys.argv[1], {inside: file for files in given for inside, file in files.items()})))

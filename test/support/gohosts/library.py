#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Python program with a Go library in it: the same as library.c, without GOHOST_ALSO."""
import ctypes
import os
import sys

ctypes.CDLL(os.path.realpath(sys.argv[0]) + ".so").goMain(" ".join(sys.argv[1:]).encode())

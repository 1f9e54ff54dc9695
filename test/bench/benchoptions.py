# SPDX-License-Identifier: Apache-2.0
"""The options of the benchmarks, and the file for their figures."""
import argparse
import json
import os
import signal
import sys

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
HELP = {
    "json": "file for the figures",
    "listen": "of the agent",
    "podprof": "binary",
    "rate": "samples a second and CPU",
    "window": "of the agent",
}


class Parser(argparse.ArgumentParser):
    """The text is the help's; a shared option may leave out what it is."""

    def __init__(self, text=None, **more):
        super().__init__(description=text, formatter_class=argparse.RawDescriptionHelpFormatter, **more)

    def option(self, name, default=None, what=None):
        """A value of the default's type. The help has the default."""
        text = what or HELP[name]
        self.add_argument(f"--{name}", default=default, type=str if default is None else type(default),
                          help=text if default is None else f"{text} (%(default)s)")

    def parsed(self):
        """A signal becomes an exit, so that all that was started is stopped."""
        options = self.parse_args()
        for number in SIGNALS:
            signal.signal(number, leave)
        return options


def leave(*_):
    ignore_signals()
    sys.exit(1)


def ignore_signals():
    """While all is stopped, so that a second signal leaves nothing behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def write_json(path, figures):
    """Nothing without a path."""
    if path:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(figures, f, indent=1)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make docs/settings.md out of the help of `podprof agent`.

usage: settings.py PODPROF > docs/settings.md      exit status 1 if the help has no settings
"""
import re
import subprocess
import sys

HEAD = """# Settings

Every setting of `podprof agent`, made from its help by `make settings`; `make lint` checks it. Each is a flag, a variable
with the prefix `PODPROF_`, and a key of the configuration file: `--cpu-rate 19`, `PODPROF_CPU_RATE=19`, `"cpu-rate": 19`.
[Configuration](configuration.md) explains the settings, and the [chart's values](../charts/podprof/values.yaml) set them.
"""
SECTION = re.compile(r"([A-Z][A-Za-z ]+):$")
SETTING = re.compile(r"  --([a-z-]+)(?: ([A-Z:=]+))?(?:\s{2,}(.*))?$")
DEFAULT = re.compile(r"\s*\(default: (.*)\)$")


def settings(text):
    """Yield (section, name, kind of value, text) of each setting."""
    section, found = "", None
    for line in text.split("\n"):
        heading, setting = SECTION.match(line), SETTING.match(line)
        if found and (heading or setting or not line.startswith("     ")):
            yield section, *found
            found = None
        if heading:
            section = heading[1]
        elif setting:
            found = (setting[1], setting[2] or "BOOL", setting[3] or "")
        elif found:
            found = (*found[:2], f"{found[2]} {line.strip()}".strip())


def main():
    text = subprocess.run([sys.argv[1], "agent", "--help"], check=True, capture_output=True, text=True).stdout
    last = None
    print(HEAD, end="")
    for section, name, kind, what in settings(text):
        default = DEFAULT.search(what)
        if section != last:
            print(f"\n## {section}\n\n| setting | value | default | meaning |\n|---|---|---|---|")
        last = section
        what = what.replace("See 'Destinations' below", "See [destinations](destinations.md)")
        print(f"| `{name}` | {kind} | {default[1] if default else ''} | {DEFAULT.sub('', what)} |")
    return last is None


if __name__ == "__main__":
    sys.exit(main())

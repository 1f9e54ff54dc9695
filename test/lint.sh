#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The checks of `make lint` beyond the compilers': shell scripts, include directions, licence lines, that `make
# help` lists every target, and so on. (The Makefile runs clang-tidy, file by file.)
# shellcheck disable=SC2016,SC2317 # awk has dollars of its own; step() calls the functions below
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0

# step NAME COMMAND...: run COMMAND and print the result; its output are the findings
step() {
	local name=$1
	shift
	if "$@"; then
		printf '  %-8s %s\n' LINT "$name"
	else
		printf '  %-8s %s\n' FAIL "$name"
		failed=1
	fi
}

# Tracked and new files, without test data and deleted files.
files() {
	git ls-files -co --exclude-standard -- "$@" ':!test/data' | while read -r file; do
		[ -e "$file" ] && echo "$file"
	done
}

# Print findings; succeed without any.
none() {
	! grep .
}

scripts() {
	files '*.sh' .ci/run | xargs shellcheck --severity=warning --exclude=SC2034,SC2154 # set in one file, used in another
}

# The table of agent/README.md is the rule: "| `folder/` | owns | may include |", and a row "(agent)" for
# agent/ itself. An include without a slash is of agent/ if the file is there, else generated.
includes() {
	files 'agent/*.c' 'agent/*.h' 'agent/*/*.c' 'agent/*/*.cc' 'agent/*/*.h' | sort -u | xargs awk '
		function room(path) { return split(path, p, "/") > 1 ? p[1] : "(agent)" }
		function exists(path,  line, r) { r = (getline line < path) >= 0; close(path); return r }
		BEGIN {
			while ((getline line < "agent/README.md") > 0) {
				if (line !~ /^\| `(\(agent\)|[a-z]+\/)` \|/)
					continue
				split(line, cell, /\|/)
				gsub(/[`\/ ]/, "", cell[2])
				known[cell[2]] = 1
				n = split(cell[4], allowed, ",")
				for (i = 1; i <= n; i++) {
					gsub(/[` ]/, "", allowed[i])
					may[cell[2], allowed[i]] = 1
				}
			}
		}
		FNR == 1 {
			name = FILENAME
			sub(/^agent\//, "", name)
			at = room(name)
			if (!(at in known)) {
				print FILENAME ": agent/README.md does not list " at
				bad = 1
			}
			sub(/\.[ch]$/, "", name)
			if (at == "(agent)" && !(name in loose)) {
				loose[name] = 1
				if (++n_loose > 4) {
					print FILENAME ": agent/ itself has more than four modules"
					bad = 1
				}
			}
		}
		/^#[ \t]*include[ \t]*"/ {
			split($0, quoted, "\"")
			to = quoted[2] ~ /\// || exists("agent/" quoted[2]) ? room(quoted[2]) : "gen"
			if (to != at && !((at, to) in may) && !((at, quoted[2]) in may) &&
			    !((at, "everything") in may)) {
				print FILENAME ":" FNR ": " at " may not include \"" quoted[2] "\""
				bad = 1
			}
		}
		END { exit bad }'
}

# The folders that the README lists.
folders() {
	diff <(files 'agent/*/*.c' | cut -d/ -f1,2 | sort -u) \
		<(sed -nE 's/^\| (`(agent|bpf)\/.*`) \|.*/\1/p' README.md |
			grep -oE 'agent/[a-z]+' | sort -u) |
		sed -n 's/^</README.md lacks/p; s/^>/README.md has, but there is no/p' | none
}

# Each limit has a comment, and docs/design/limits.md is generated from the comments.
limits() {
	test/limits.py | diff -u docs/design/limits.md - | grep '^[-+]'
	[ "${PIPESTATUS[0]}${PIPESTATUS[1]}" = 00 ] || {
		echo "docs/design/limits.md is not what 'make limits' generates"
		return 1
	}
}

# docs/settings.md is generated from the help.
settings() {
	test/settings.py "${B:-build}/podprof" | diff -u docs/settings.md - | grep '^[-+]'
	[ "${PIPESTATUS[0]}${PIPESTATUS[1]}" = 00 ] || {
		echo "docs/settings.md is not what 'make settings' generates"
		return 1
	}
}

# In the first line, or in the second after "#!".
licences() {
	files '*.c' '*.cc' '*.h' '*.S' '*.sh' '*.py' '*.go' '*.js' '*.css' '*.proto' .ci/run Makefile \
		Dockerfile |
		while read -r file; do
			head -n 2 "$file" | grep -q 'SPDX-License-Identifier: ' ||
				echo "$file: no SPDX-License-Identifier line"
		done | none
}

help() {
	local listed
	listed=$(make -s help)
	sed -n 's/^\.PHONY: //p' Makefile | tr ' ' '\n' | grep -v '^FORCE$' |
		while read -r target; do
			echo "$listed" | grep -q "^  make $target " ||
				echo "Makefile: make help does not list $target"
		done | none
}

# A variable that a rule's line uses before its definition is empty there.
variables() {
	make --warn-undefined-variables V= -n help 2>&1 | grep 'undefined variable' | none
}

# Metrics declared in the code as '"name", METRIC_TYPE', in the text format's names, and the rows of the documentation.
metrics() {
	diff <(files 'agent/*.c' | xargs cat | tr '\n' ' ' | grep -oE '"[a-z_]+",[[:space:]]*METRIC_[A-Z]+' |
		sed -E 's/"(.*)",.*_(.*)/\1_\2/; s/_COUNTER$/_total/; s/_INFO$/_info/; s/_(GAUGE|HISTOGRAM)$//' | sort -u) \
		<(sed -nE 's/^\| `([a-z_]+)`.*/\1/p' docs/metrics.md | sort) |
		sed -n 's/^</docs\/metrics.md lacks/p; s/^>/docs\/metrics.md has, but no module declares/p' | none
}

# clang-format breaks an overlong comment line into " *word" and joins the next line, perhaps a row of a table.
comments() {
	files '*.c' '*.h' | xargs grep -nE $'^ \\*[^ \t*/]' | none
}

# A package or a program that is committed by mistake stays in the history.
sizes() {
	git ls-files -coz --exclude-standard | xargs -0 stat --format='%s %n' 2>/dev/null |
		awk '$1 > 256 * 1024 { print $2 ": larger than 256 KiB" }' | none
}

step 'shell scripts' scripts
step 'include direction' includes
step 'folders of the README' folders
step 'table of limits' limits
step 'table of settings' settings
step 'licence lines' licences
step 'make help' help
step 'variables of the Makefile' variables
step 'metrics' metrics
step 'comments' comments
step 'sizes of files' sizes
exit $failed

// SPDX-License-Identifier: Apache-2.0
#include "cmd/heap_explain.h"

#include "cmd/cmd.h"
#include "goprofile/oneshot.h"

/* Names the disabled profiler and its remedy. Exit status. */
static int explain_off(const struct go_profile_oneshot *s, const char *who, const char *version)
{
	switch (s->kind) {
	case GO_PROFILE_MUTEX:
		cmd_error("heap: %s (Go %s) records no mutex contention; call "
			  "runtime.SetMutexProfileFraction() in the program",
			  who, version);
		break;
	case GO_PROFILE_BLOCK:
		cmd_error(
			"heap: %s (Go %s) records no blocking; call runtime.SetBlockProfileRate() "
			"in the program",
			who, version);
		break;
	default:
		cmd_error("heap: %s (Go %s) has set runtime.MemProfileRate to 0; turn sampling on "
			  "in the program, or with --force",
			  who, version);
	}
	return CMD_NOTHING;
}

int heap_explain(const struct go_profile_oneshot *s, const char *who)
{
	const char *version = s->version[0] ? s->version : "of an unknown version";

	switch (s->state) {
	case GORUNTIME_NO_RUNTIME:
		cmd_error("heap: %s is not a Go program; only Go programs keep a profile of "
			  "themselves",
			  who);
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_LINKER:
		cmd_error("heap: %s (Go %s) has its memory profiler off, because nothing in the "
			  "program asks for heap profiles; import net/http/pprof, or use --force",
			  who, version);
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_PROGRAM:
		return explain_off(s, who, version);
	case GORUNTIME_NO_SAMPLES_YET:
		cmd_error("heap: %s (Go %s) has recorded nothing yet; try again later", who,
			  version);
		return CMD_NOTHING;
	case GORUNTIME_FORCED:
		cmd_error("heap: sampling in %s (Go %s) is on from now; run the command again "
			  "later",
			  who, version);
		return CMD_NOTHING;
	case GORUNTIME_DENIED:
		cmd_error("heap: reading %s is not permitted; run as root, or with CAP_SYS_PTRACE",
			  who);
		return CMD_FAILED;
	case GORUNTIME_GONE:
		cmd_error("heap: %s has ended or executed another program", who);
		return CMD_FAILED;
	case GORUNTIME_TOO_LARGE:
		cmd_error("heap: %s has more than %u MiB of records", who,
			  (unsigned int)(s->max_bytes >> 20));
		return CMD_FAILED;
	default:
		cmd_error("heap: %s (Go %s) has an unknown layout; see 'podprof inspect "
			  "goruntime'",
			  who, version);
		return CMD_FAILED;
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Registers and stack bytes are the process's own choice. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "profile/sample.h"
#include "support/usertables.h"
#include "unwindtable/dumpwalk.h"

/* The first bytes are pc, sp, fp and how the others are to be taken; the others are the stack. */
struct input {
	uint64_t pc, sp, fp, at;
	uint8_t n_maps, mode, pad[6];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct usertables *u;
	static struct dumpwalk *cw;
	struct dumpwalk_stack got;
	struct dumpwalk_from from;
	struct sample sample = {0};
	struct input in;
	struct regs regs;

	if (size < sizeof(in))
		return 0;
	if (!u && (!(u = usertables_new()) || dumpwalk_new(usertables_tables(u), &cw)))
		abort();
	memcpy(&in, data, sizeof(in));
	regs = usertables_regs(in.pc, in.sp, in.fp);
	from = (struct dumpwalk_from){
		.regs = &regs,
		.at = in.at & ~7ull,
		.bytes = data + sizeof(in),
		.n_bytes =
			size - sizeof(in) < STACK_DUMP_BYTES ? size - sizeof(in) : STACK_DUMP_BYTES,
		.maps = usertables_maps(u),
		.n_maps = in.n_maps % (USERTABLES_MAPS + 1),
		.mode = in.mode % SETTINGS_UNWIND_MAX,
	};
	dumpwalk_walk(cw, &from, &got);
	dumpwalk_rest(cw);
	if (!got.n || got.n > SAMPLE_USER_FRAMES_MAX || got.n_rows >= got.n ||
	    got.end >= SAMPLE_END_MAX || got.n_missing > DUMPWALK_MISSING_MAX ||
	    sample_set_user(&sample, got.words, got.n, got.n_rows))
		abort();
	return 0;
}

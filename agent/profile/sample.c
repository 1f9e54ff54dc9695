// SPDX-License-Identifier: Apache-2.0
/*
 * From a stack map's key and value (bpf/shared/sample.h) to struct sample. Our own programs wrote
 * them, but whatever crosses the kernel's border is checked once, here.
 */
#include "profile/sample.h"

#include <string.h>

#include "base/cleanup.h"
#include "shared/sample.h"

_Static_assert(sizeof(((struct sample_head *)0)->comm) == PID_COMM_MAX, "TASK_COMM_LEN");
_Static_assert(SAMPLE_THREAD_WORDS * sizeof(uint64_t) == PID_COMM_MAX, "the same");
_Static_assert(sizeof(SAMPLE_OTHER_THREAD) <= PID_COMM_MAX, "fits");

int sample_set_user(struct sample *sample, const uint64_t *words, size_t n_words, size_t n_rows)
{
	size_t n_native = 0, n_runtime = 0, n_innermost = 0;
	struct frame_record frame;
	uint32_t n;

	for (size_t i = 0; i < n_words; i += n) {
		n = frame_decode((const __u64 *)words + i, n_words - i, &frame);
		if (!n)
			return SAMPLE_ODD;
		n_innermost += !i && frame.kind == FRAME_NATIVE;
		*(frame.kind == FRAME_NATIVE ? &n_native : &n_runtime) += 1;
	}
	/* frames found by the walk: all native ones but the innermost */
	if (n_rows > n_native - n_innermost)
		return SAMPLE_ODD;
	sample->user = words;
	sample->n_user = n_words;
	sample->n_rows = n_rows;
	sample->n_native = n_native;
	sample->n_walked = n_native - n_innermost;
	sample->n_runtime = n_runtime;
	return SAMPLE_OK;
}

static size_t words_of_thread(uint32_t flags)
{
	return flags & SAMPLE_FLAG_THREAD ? SAMPLE_THREAD_WORDS : 0;
}

static size_t words_of_names(uint32_t flags)
{
	return words_of_thread(flags) + (flags & SAMPLE_FLAG_TASK ? SAMPLE_TASK_WORDS : 0);
}

void sample_set_names(struct sample *sample, uint32_t flags, const uint64_t *names)
{
	if (flags & SAMPLE_FLAG_THREAD)
		memcpy(sample->thread, names, PID_COMM_MAX - 1);
	else if (flags & SAMPLE_FLAG_OTHER_THREAD)
		memcpy(sample->thread, SAMPLE_OTHER_THREAD, sizeof(SAMPLE_OTHER_THREAD));
	if (flags & SAMPLE_FLAG_TASK)
		memcpy(sample->task, names + words_of_thread(flags), SAMPLE_TASK_BYTES - 1);
	else if (flags & SAMPLE_FLAG_OTHER_TASK)
		memcpy(sample->task, SAMPLE_OTHER_THREAD, sizeof(SAMPLE_OTHER_THREAD));
}

int sample_decode(const void *key, const void *value, size_t value_size, struct sample *ret)
{
	const struct sample_key *k = key;
	const struct sample_deep *v = value; /* or the beginning of one */
	size_t slots = (value_size - sizeof(v->head)) / sizeof(v->frames[0]);
	struct sample sample;

	if (v->head.n_kernel > SAMPLE_KERNEL_FRAMES_MAX ||
	    v->head.n_user > SAMPLE_USER_FRAMES_MAX ||
	    v->head.n_kernel + v->head.n_user + words_of_names(k->flags) > slots)
		return SAMPLE_ODD;
	if (!v->head.count || !k->tgid || k->end >= SAMPLE_END_MAX)
		return SAMPLE_ODD;
	sample = (struct sample){
		.pid = {.pid = k->tgid, .start_ticks = pid_ticks_of_ns(k->start_boottime_ns)},
		.cgroup_id = k->cgroup_id,
		.cgroup_v1_id = k->cgroup_v1_id,
		.exec_id = k->exec_id,
		.start_boottime_ns = k->start_boottime_ns,
		.dump_id = k->flags & SAMPLE_FLAG_DUMPED ? k->stack_hash : 0,
		.count = v->head.count,
		.total = v->head.total,
		.end = k->end,
		.flags = k->flags,
		.n_kernel = v->head.n_kernel,
		.kernel = (const uint64_t *)v->frames,
	};
	if (sample_set_user(&sample, sample.kernel + sample.n_kernel, v->head.n_user,
			    v->head.n_rows))
		return SAMPLE_ODD;
	memcpy(sample.comm, v->head.comm, PID_COMM_MAX - 1);
	sample_set_names(&sample, k->flags, sample.user + sample.n_user);
	*ret = sample;
	return SAMPLE_OK;
}

uint64_t sample_value(const struct sample *sample, uint64_t period)
{
	return (uint64_t)((unsigned __int128)sample->total * period / SAMPLE_ONE);
}

static const char *const stat_names[] = {
	[SAMPLE_END_COMPLETE] = "ok",
	[SAMPLE_END_NO_USER] = "ok_kernel_only",
	[SAMPLE_END_MAX_FRAMES] = "truncated_max_frames",
	[SAMPLE_END_UNREADABLE] = "truncated_unreadable",
	[SAMPLE_END_NO_FP] = "truncated_no_fp",
	[SAMPLE_END_FP_ODD] = "truncated_fp_misaligned",
	[SAMPLE_END_FP_LOW] = "truncated_fp_low",
	[SAMPLE_END_FP_FAR] = "truncated_fp_far",
	[SAMPLE_END_PC_ODD] = "truncated_pc_invalid",
	[SAMPLE_END_32BIT] = "truncated_32bit",
	[SAMPLE_END_NO_PROCESS] = "truncated_no_process",
	[SAMPLE_END_NO_MAPPING] = "truncated_no_mapping",
	[SAMPLE_END_NO_TABLE] = "truncated_no_table",
	[SAMPLE_END_NO_ROW] = "truncated_no_row",
	[SAMPLE_END_UNSUPPORTED] = "truncated_unsupported",
	[SAMPLE_END_REGISTER] = "truncated_register",
	[SAMPLE_END_SP_ODD] = "truncated_sp_misaligned",
	[SAMPLE_END_SP_LOW] = "truncated_sp_low",
	[SAMPLE_END_SP_FAR] = "truncated_sp_far",
	[SAMPLE_END_NO_GOROUTINE] = "truncated_no_goroutine",
	[SAMPLE_END_DUMP] = "truncated_stack_dump",
	[SAMPLE_STAT_DUMPED] = "copied",
	[SAMPLE_STAT_LOST_FULL] = "lost_full",
	[SAMPLE_STAT_LOST_BUSY] = "lost_busy",
	[SAMPLE_STAT_LOST_INTERNAL] = "lost_internal",
	[SAMPLE_STAT_OUTSIDE] = "filtered_other_pid_namespace",
	[SAMPLE_STAT_FILTERED] = "filtered_other_process",
	[SAMPLE_STAT_LEFT_OUT] = "filtered_excluded",
	[SAMPLE_STAT_THINNED] = "filtered_subsampled",
	[SAMPLE_STAT_IDLE] = "filtered_idle",
	[SAMPLE_STAT_NO_FRAMES] = "filtered_no_frames",
};
_Static_assert(array_size(stat_names) == SAMPLE_STAT_MAX, "a name for each");

const char *sample_stat_name(unsigned int stat)
{
	return stat < SAMPLE_STAT_MAX ? stat_names[stat] : "unknown";
}

bool sample_stat_delivered(unsigned int stat)
{
	return stat < SAMPLE_END_MAX;
}

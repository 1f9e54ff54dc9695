/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_RECORDER_H
#define PODPROF_CPU_RECORDER_H

/*
 * One recording of `podprof record`: samples of some processes, of a container or of all, folded by
 * process. At the end one profile labels each sample with its process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pprof/pprof.h"
#include "profile/bpfobj.h"
#include "shared/sample.h"
#include "shared/settings.h"

struct buf;
struct debuginfod;
struct event;
struct labels;
struct loop;
struct root;
struct recorder;

/* Distinct stacks of a recording, all processes together: 30 frames each are 150 MB. Reached:
 * "lost" in the summary. */
#define RECORDER_STACKS_MAX 262144
/* Bytes of the profile before compression; go tool pprof is slow with larger ones. Reached: an
 * error message. */
#define RECORDER_PPROF_MAX  PPROF_BYTES_MAX

/**
 * struct recorder_opts - borrowed until recorder_free()
 * @event, @period, @rate_hz, @kernel_stacks, @unwind, @unsafe_kernel: as in oncpu_opts
 * @off_cpu: share of sampled task switches; 0: no off-CPU samples. Not with an event
 * @thread_names: samples have the name of their thread as a label; @task_names: of their task
 * @scope:   a scope other than all needs recorder_add_process() or recorder_add_container()
 * @tags:    additional labels of every sample
 * @debuginfod: servers with debug files; NULL: none
 */
struct recorder_opts {
	struct loop *loop;
	const struct root *proc;
	const struct root *sys;
	const struct event *event;
	uint64_t period;
	unsigned int rate_hz;
	double off_cpu;
	bool kernel_stacks;
	bool dwarf; /* lines and inlined functions of native code */
	struct debuginfod *debuginfod;
	enum settings_unwind unwind;
	bool thread_names;
	bool task_names;
	bool unsafe_kernel;
	enum settings_scope scope;
	const struct labels *tags;
};

enum recorder_outcome {
	RECORDER_OK = 0,
	RECORDER_GONE,	     /* no such process, no such container */
	RECORDER_AMBIGUOUS,  /* several container ids have this prefix */
	RECORDER_NO_CGROUPS, /* the machine gives no access to containers */
	RECORDER_FULL,	     /* the pid filter is full */
};

/* Start sampling (with scope all; otherwise after an add). Samples before recorder_begin() are not
 * counted: they only prepare tables and mappings. 0; -errno with *@ret_why set (-ENOMEM: without).
 */
int recorder_new(const struct recorder_opts *opts, struct bpfobj_why *ret_why,
		 struct recorder **ret);
void recorder_free(struct recorder *r);

/* Add a process, its threads and its future children; @descendants: also its present descendants.
 * 0, RECORDER_GONE, RECORDER_FULL, -errno. */
int recorder_add_process(struct recorder *r, pid_t pid, bool descendants);
/* Add a child that the caller made by fork() and that has executed nothing yet: a command. Results
 * as above. */
int recorder_add_child(struct recorder *r, pid_t pid);
/* Add a container by its id or a prefix of the id, with nested containers. 0, RECORDER_GONE,
 * RECORDER_AMBIGUOUS, RECORDER_NO_CGROUPS, -errno. */
int recorder_add_container(struct recorder *r, const char *id);

/* Number of unwind tables, and of files to open, that the stacks so far lack and that are still to
 * come. */
size_t recorder_missing(const struct recorder *r);
/* Number of processes and names of language runtimes that are being read, or will be. */
size_t recorder_reading(const struct recorder *r);
/* Number of walks of language runtimes that are being loaded, or will be. */
size_t recorder_loading(const struct recorder *r);
/* Whether a target had a sample. */
bool recorder_seen(const struct recorder *r);
/* Number of drains so far: with each, all earlier samples are known. */
uint64_t recorder_drains(const struct recorder *r);
/* Start counting samples. */
void recorder_begin(struct recorder *r);
/* Follow new and ended processes, about once a second. Returns the number of live target processes;
 * with scope all, or for a container with processes, 1; -errno. */
int recorder_sweep(struct recorder *r);
/* Stop sampling and take the remaining samples. */
void recorder_finish(struct recorder *r);

/**
 * struct recorder_stats - counters of a recording
 * @n_samples:   samples of the targets
 * @n_off_cpu:   task switches of the off-CPU stacks, estimated for all switches
 * @n_ends:      samples by enum sample_end, the end of the user walk
 * @n_complete:  samples with a whole stack
 * @n_lost:      samples lost by a full table, in the kernel or in the agent
 * @n_refused:   children refused by a full pid filter
 * @n_processes: processes with samples, one per executed program
 * @bpf_ns:      run time of the sampling program; 0: not counted by the kernel
 */
struct recorder_stats {
	uint64_t n_samples;
	uint64_t n_off_cpu;
	uint64_t n_ends[SAMPLE_END_MAX];
	uint64_t n_complete;
	uint64_t n_lost;
	uint64_t n_refused;
	uint64_t n_processes;
	uint64_t bpf_ns;
};

void recorder_stats(const struct recorder *r, struct recorder_stats *ret);

/* Open the sampled files for names, so that the servers are asked for missing debug files. After
 * recorder_finish(); again after downloads, for files above DEBUGINFOD_QUEUE_MAX. 0 or -ENOMEM. */
int recorder_ask(struct recorder *r);
/* Append the profile of the recording to @ret; once, after recorder_finish(). @comments: comments
 * of the profile. *@ret_left_out: samples beyond a ceiling of the profile. 0, BUF_FULL, -errno. */
int recorder_report(struct recorder *r, uint64_t start_ns, uint64_t duration_ns,
		    const char *const *comments, size_t n_comments, struct buf *ret,
		    uint64_t *ret_left_out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_RECORDER_H
#define PODPROF_CPU_RECORDER_H

/*
 * One recording: samples of some processes, of a container or of all, folded by process, and at its
 * end one profile in which each sample says whose it is.
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
struct event;
struct labels;
struct loop;
struct root;
struct recorder;

/* Distinct stacks of a recording, all processes together: 30 frames each are 150 MB. Reached:
 * "lost" in the summary. */
#define RECORDER_STACKS_MAX 262144
/* Bytes of the profile before compression; go tool pprof takes more, but not gladly. Reached: an
 * error says so. */
#define RECORDER_PPROF_MAX  PPROF_BYTES_MAX

/**
 * struct recorder_opts - what is borrowed must outlive the recorder
 * @event, @period, @rate_hz, @kernel_stacks, @unwind, @unsafe_kernel: as in oncpu_opts
 * @off_cpu: share of task switches that is looked at; 0: no time off the CPUs. Not with an event
 * @scope: if not all, it is to be said whose samples are wanted: see below
 * @tags:   labels that every sample has, besides its own
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
	enum settings_unwind unwind;
	bool unsafe_kernel;
	enum settings_scope scope;
	const struct labels *tags;
};

enum recorder_outcome {
	RECORDER_OK = 0,
	RECORDER_GONE,	     /* no such process, no such container */
	RECORDER_AMBIGUOUS,  /* more than one container's id begins with that */
	RECORDER_NO_CGROUPS, /* containers cannot be found on this machine */
	RECORDER_FULL,	     /* more processes than can be followed */
};

/* Samples are taken from here on, if all are wanted, but only looked at until recorder_begin(). 0;
 * -errno with a sentence in *@ret_why (-ENOMEM: without). */
int recorder_new(const struct recorder_opts *opts, struct bpfobj_why *ret_why,
		 struct recorder **ret);
void recorder_free(struct recorder *r);

/* A process, its threads, and all that it makes from now on; @descendants: and those that it has
 * made before. 0, RECORDER_GONE, RECORDER_FULL, -errno. */
int recorder_add_process(struct recorder *r, pid_t pid, bool descendants);
/* A container by its id or the beginning of it, with those inside it. 0, RECORDER_GONE,
 * RECORDER_AMBIGUOUS, RECORDER_NO_CGROUPS, -errno. */
int recorder_add_container(struct recorder *r, const char *id);

/* Whether nothing is missing for whole stacks of what was seen until now. */
bool recorder_ready(const struct recorder *r);
/* Samples count from here on. */
void recorder_begin(struct recorder *r);
/* Every second or so: follow what comes and goes. How many of those who are wanted still live:
 * processes; 1 if the container has any, and if all are wanted; -errno. */
int recorder_sweep(struct recorder *r);
/* Stop sampling and take in what is left. */
void recorder_finish(struct recorder *r);

/**
 * struct recorder_stats
 * @n_samples:   taken over from the kernel and wanted
 * @n_off_cpu:      task switches that its off-CPU stacks stand for
 * @n_ends:      of the samples, by enum sample_end: how the user's part ended
 * @n_complete:  of the samples, with a whole stack
 * @n_lost:      samples that found no room, there or here
 * @n_refused:   children that could not be followed
 * @n_processes: that had samples, by their programs
 * @bpf_ns:      what the sampling program took; 0: the kernel did not count it
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

/* The profile of all since the start, appended to @ret; once, after recorder_finish(). @comments
 * are the profile's. *@ret_left_out are samples that a ceiling of the profile kept out. 0,
 * BUF_FULL, -errno. */
int recorder_report(struct recorder *r, uint64_t start_ns, uint64_t duration_ns,
		    const char *const *comments, size_t n_comments, struct buf *ret,
		    uint64_t *ret_left_out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CONFIG_CONFIG_H
#define PODPROF_CONFIG_CONFIG_H

/*
 * The agent's settings. Each has a flag (--cpu-rate), an environment twin (PODPROF_CPU_RATE) and a
 * key in the JSON file that --config names ("cpu-rate"). A flag beats the environment, which beats
 * the file, which beats the default.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"

/* Destinations that can be named; each has a queue and a clock of its own. Reached: wrong usage. */
#define CONFIG_DESTINATIONS_MAX 8
/* Labels that can be given: with an entity's own they have to fit into a set (base/labels.h).
 * Reached: wrong usage. */
#define CONFIG_LABELS_MAX	16
/* Values of any other list: patterns, which are all tried for each entity. Reached: wrong usage. */
#define CONFIG_LIST_MAX		64

enum config_go_heap {
	CONFIG_GO_HEAP_DISABLED,
	CONFIG_GO_HEAP_ENABLED,		/* read where the runtime samples already */
	CONFIG_GO_HEAP_FORCE_ANNOTATED, /* turn sampling on in pods that ask for it */
	CONFIG_GO_HEAP_FORCE,		/* and in all others */
	CONFIG_GO_HEAP_MAX,
};

/* How callers are found in user stacks. */
enum config_unwind {
	CONFIG_UNWIND_AUTO,  /* by unwind tables, by frame pointers where there are none */
	CONFIG_UNWIND_FP,    /* by frame pointers only */
	CONFIG_UNWIND_DWARF, /* by unwind tables only */
	CONFIG_UNWIND_MAX,
};

/* Who is asked for the names of pods. */
enum config_metadata {
	CONFIG_METADATA_AUTO,
	CONFIG_METADATA_KUBELET,
	CONFIG_METADATA_APISERVER,
	CONFIG_METADATA_RUNTIME,
	CONFIG_METADATA_NONE,
	CONFIG_METADATA_MAX,
};

/* How far the kubelet's certificate is checked. */
enum config_verify {
	CONFIG_VERIFY_FULL,
	CONFIG_VERIFY_CHAIN,
	CONFIG_VERIFY_NONE,
	CONFIG_VERIFY_MAX,
};

struct relabel;

struct config_list {
	char *items[CONFIG_LIST_MAX];
	size_t n;
};

/* Owns its strings. */
struct config {
	char *listen; /* ADDRESS:PORT */
	uint64_t window_ns;
	uint64_t cpu_rate;   /* samples per second and CPU; 0: no CPU profiling */
	double off_cpu;	     /* share of task switches; 0: no off-CPU profiling */
	unsigned int unwind; /* enum config_unwind */
	bool kernel_stacks;
	unsigned int go_heap; /* enum config_go_heap */
	bool go_contention;
	bool go_pull;
	char *cgroupfs_root; /* NULL: found by itself */
	char *proc_root;
	char *node_name;
	bool host_processes;
	struct config_list select;   /* patterns of what is profiled; none: everything */
	struct config_list ignore;   /* and of what is not */
	struct config_list labels;   /* NAME=VALUE */
	unsigned int metadata;	     /* enum config_metadata */
	char *kubelet_url;	     /* NULL: by $HOST_IP */
	unsigned int kubelet_verify; /* enum config_verify */
	struct config_list destinations;
	char *store_dir; /* NULL: no store */
	uint64_t store_bytes;
	uint64_t store_age_ns;
	uint64_t memory_budget;
	bool allow_unsafe_kernel;
	unsigned int log_level;	 /* enum log_level */
	unsigned int log_format; /* enum log_format */
	char *config_file;	 /* NULL: none */
	struct relabel *relabel; /* "relabel_configs" of that file; NULL: none */
	int argc;		 /* what it was loaded from, to load it again; borrowed */
	char **argv;
};

enum config_outcome {
	CONFIG_OK = 0,
	CONFIG_BAD,  /* *ret_error is one sentence for the user */
	CONFIG_HELP, /* --help was asked for */
};

/* Room for one sentence, whatever the user typed: it is cut to fit. Reached: cut. */
#define CONFIG_ERROR_MAX 512

struct config_error {
	char text[CONFIG_ERROR_MAX];
};

/* Defaults, file, environment, flags, then validation. @argv[0] is skipped. @ret must be
 * {0}; config_deinit() it whatever is returned. 0, CONFIG_BAD, CONFIG_HELP, -ENOMEM. */
int config_load(int argc, char **argv, struct config *ret, struct config_error *ret_error);
void config_deinit(struct config *c);
/* The names of the settings that differ and that cannot change while the agent runs, separated by
 * blanks, cut to @n bytes; "" if none does. */
void config_diff(const struct config *a, const struct config *b, char *ret, size_t n);
/* The flags with their help, grouped. */
void config_print_help(FILE *to);

#endif

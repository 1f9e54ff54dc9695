/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CONFIG_CONFIG_H
#define PODPROF_CONFIG_CONFIG_H

/*
 * The agent's settings. Each has a flag (--cpu-rate), an environment variable (PODPROF_CPU_RATE)
 * and a key in the JSON file of --config ("cpu-rate"). Precedence: flag, environment, file,
 * default. A list replaces the whole list of a lower level.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"

/* Destinations, each with its own queue and clock. Reached: wrong usage. */
#define CONFIG_DESTINATIONS_MAX 8
/* Configured labels; a label set also holds the entity's own labels (base/labels.h). Reached: wrong
 * usage. */
#define CONFIG_LABELS_MAX	16
/* Values of any other list, such as patterns, all tried for each entity. Reached: wrong usage. */
#define CONFIG_LIST_MAX		64
/* Bytes of the documentation's address, which each profile has. Reached: wrong usage. */
#define CONFIG_DOC_URL_MAX	1024u

enum config_go_heap {
	CONFIG_GO_HEAP_DISABLED,
	CONFIG_GO_HEAP_ENABLED,		/* read profiles of programs that sample already */
	CONFIG_GO_HEAP_FORCE_ANNOTATED, /* turn sampling on in annotated pods */
	CONFIG_GO_HEAP_FORCE,		/* and in all other pods */
	CONFIG_GO_HEAP_MAX,
};

/* The method of finding callers in user stacks. */
enum config_unwind {
	CONFIG_UNWIND_AUTO,  /* by unwind tables, by frame pointers without a table */
	CONFIG_UNWIND_FP,    /* by frame pointers only */
	CONFIG_UNWIND_DWARF, /* by unwind tables only */
	CONFIG_UNWIND_MAX,
};

/* The sources of pod names. */
enum config_metadata {
	CONFIG_METADATA_AUTO,
	CONFIG_METADATA_KUBELET,
	CONFIG_METADATA_APISERVER,
	CONFIG_METADATA_RUNTIME,
	CONFIG_METADATA_NONE,
	CONFIG_METADATA_MAX,
};

/* The extent of checking the kubelet's certificate. */
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

/* The form of --listen, for messages. */
#define CONFIG_LISTEN_FORM "ADDRESS:PORT, such as 127.0.0.1:7070"

/* Owns its strings. */
struct config {
	char *listen;	  /* ADDRESS:PORT */
	char *ui_listen;  /* the same; NULL: as listen_plan() decides (server/listen.h) */
	char *web_config; /* a file's name; NULL: plain HTTP without users */
	uint64_t window_ns;
	uint64_t cpu_rate;   /* samples per second and CPU; 0: no CPU profiling */
	double off_cpu;	     /* share of task switches; 0: no off-CPU profiling */
	unsigned int unwind; /* enum config_unwind */
	bool kernel_stacks;
	bool thread_names;
	bool task_names;
	bool dwarf;
	char *doc_url;
	struct config_list debuginfod; /* URLs */
	char *debuginfod_dir;
	uint64_t debuginfod_bytes;
	unsigned int go_heap; /* enum config_go_heap */
	bool go_contention;
	bool pull;
	char *cgroupfs_root; /* NULL: found by itself */
	char *proc_root;
	char *node_name;
	bool host_processes;
	struct config_list select;   /* patterns of profiled entities; none: everything */
	struct config_list ignore;   /* patterns of excluded entities */
	struct config_list labels;   /* NAME=VALUE */
	unsigned int metadata;	     /* enum config_metadata */
	char *kubelet_url;	     /* NULL: by $HOST_IP */
	unsigned int kubelet_verify; /* enum config_verify */
	struct config_list destinations;
	char *store_dir; /* NULL: no store */
	uint64_t store_bytes;
	uint64_t store_age_ns;
	char *spool_dir; /* NULL: no spool */
	uint64_t spool_bytes;
	uint64_t memory_budget;
	bool allow_unsafe_kernel;
	unsigned int log_level;	 /* enum log_level */
	unsigned int log_format; /* enum log_format */
	char *config_file;	 /* NULL: none */
	struct relabel *relabel; /* "relabel_configs" of the file; NULL: none */
	int argc;		 /* the arguments, for a reload; borrowed */
	char **argv;
};

enum config_outcome {
	CONFIG_OK = 0,
	CONFIG_BAD,  /* *ret_error is one sentence for the user */
	CONFIG_HELP, /* --help was given */
};

/* Bytes of one sentence, for any user input. Reached: cut. */
#define CONFIG_ERROR_MAX 512

struct config_error {
	char text[CONFIG_ERROR_MAX];
};

/* Whether this process runs in a pod of Kubernetes. */
bool config_in_cluster(void);

/* Defaults, file, environment, flags, then validation. @argv[0] is skipped. @ret must be {0} and
 * needs config_deinit() after every result. 0, CONFIG_BAD, CONFIG_HELP, -ENOMEM. */
int config_load(int argc, char **argv, struct config *ret, struct config_error *ret_error);
void config_deinit(struct config *c);
/* The names of differing settings that cannot change while the agent runs, separated by blanks, cut
 * to @n bytes; "" if none differs. */
void config_diff(const struct config *a, const struct config *b, char *ret, size_t n);
/* The flags with their help, grouped. */
void config_print_help(FILE *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_UI_H
#define PODPROF_SERVER_UI_H

/*
 * The pages for people:
 *
 *	/                        entities by CPU time of the last window, the largest first
 *	/entity/ID                one entity: its profiles, and a flame graph
 *	/entity/ID/flame.json     ?kind=cpu&type=cpu&from=MS&until=MS: the tree of the graph
 *	/profile/NUMBER.pb.gz    one stored profile, for any pprof tool
 *	/assets/NAME             style and script
 *
 * The tables are plain HTML without a script; the graph needs a script. Names and labels come from
 * containers and are escaped on output.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/job.h"

struct labels;

/* Entities on the first page; a node's kubelet allows 110 pods by default. Reached: the page shows
 * the number of omitted entities. */
#define UI_ENTITIES_MAX 4096
/* Profiles listed on an entity's page, the newest; a day of 60 s windows of two kinds is 2,880.
 * Reached: the page says how many there are. */
#define UI_PROFILES_MAX 3000

/**
 * struct ui_slow - what does not answer in the processes of an entity
 * @n_files:     mapped files on silent file systems, in @n_processes
 * @pid, @path:  one of these processes, and such a file in it; NULL: none
 * @n_lists:     processes whose mapping list does not answer; @list_pid: one of them
 */
struct ui_slow {
	size_t n_files;
	size_t n_processes;
	uint64_t pid;
	const char *path;
	size_t n_lists;
	uint64_t list_pid;
};

/**
 * struct ui_entity - the entity of a profile's labels; borrowed for the call
 * @id:       letters, digits, '.', '_' and '-' only; constant for the entity's whole life
 * @name:     for people: "shop/checkout-7d4f/app", "sshd.service"
 * @kind:     "container", "pod", "unit", "process"
 * @runtime:  "containerd", ...; "" if none
 * @excluded: the reason why it is not profiled, for people; NULL: it is profiled
 * @samples, @cpu_ns: of the last window
 * @go_state: state of the Go heap profile as in container_go_heap_profile_info; NULL: no Go process
 * @go_version, @go_inuse_bytes: with @go_state
 * @slow:     what does not answer
 * @n_profiles: stored
 */
struct ui_entity {
	const char *id;
	const char *name;
	const char *kind;
	const char *runtime;
	const struct labels *labels;
	const char *excluded;
	uint64_t samples;
	uint64_t cpu_ns;
	const char *go_state;
	const char *go_version;
	uint64_t go_inuse_bytes;
	struct ui_slow slow;
	size_t n_profiles;
};

/* One stored profile. @kind: "cpu", "go_heap". */
struct ui_profile {
	uint64_t id;
	const char *kind;
	uint64_t start_ns; /* wall clock */
	uint64_t duration_ns;
	uint64_t bytes;
};

/**
 * struct ui_off - why profiles are missing on all pages, each a sentence without its full stop;
 * constant and borrowed; NULL: they are there
 * @cpu, @off_cpu, @go: none of the kind is recorded
 * @store: none is kept for the pages
 */
struct ui_off {
	const char *cpu;
	const char *off_cpu;
	const char *go;
	const char *store;
};

/* The profiles of a flame graph: of @entity and @kind, started in [from, until), added up. @type:
 * sample type, NULL for the kind's first. */
struct ui_flame_query {
	const char *entity;
	const char *kind;
	const char *type;
	uint64_t from_ns;
	uint64_t until_ns;
};

enum ui_outcome {
	UI_OK = 0,
	UI_GONE = HTTP_JOB_GONE, /* no such entity, profile or sample type (any more): 404 */
	UI_MORE = HTTP_JOB_MORE, /* of list_step(): call again */
};

struct ui_listing;

typedef void (*ui_entity_fn)(void *arg, const struct ui_entity *entity);
typedef void (*ui_profile_fn)(void *arg, const struct ui_profile *profile);

/**
 * struct ui_source - the source of the pages' data; uisource_get() gives it
 * @node:      name of the node, borrowed
 * @window_ns: length of a window
 * @last_window_ns: of the last ended one; 0: none has ended. The first one is shorter
 * @off:       missing profiles
 * @list:      begins a listing of all entities, or of the one with @id. 0, -errno
 * @list_step: calls @fn for some entities. UI_MORE, 0, UI_GONE, -errno
 * @list_free: ends the listing; NULL is fine
 * @profiles:  call @fn for each stored profile of @entity, the oldest first
 * @flame:     a job that appends the tree of flame_json() (pprof/flame.h). 0, UI_GONE, -errno
 * @raw:       a job that appends the file's bytes. 0, UI_GONE, -errno
 *
 * All are called on the loop. The caller owns the listing and the jobs.
 */
struct ui_source {
	void *ctx;
	const char *node;
	uint64_t window_ns;
	uint64_t last_window_ns;
	struct ui_off off;
	int (*list)(void *ctx, const char *id, struct ui_listing **ret);
	int (*list_step)(struct ui_listing *listing, ui_entity_fn fn, void *arg);
	void (*list_free)(struct ui_listing *listing);
	void (*profiles)(void *ctx, const char *entity, ui_profile_fn fn, void *arg);
	int (*flame)(void *ctx, const struct ui_flame_query *query, struct http_job **ret);
	int (*raw)(void *ctx, uint64_t profile, struct http_job **ret);
};

/**
 * struct ui_data - the data of a page, as values of one moment
 * @entities: call @fn for each
 * @entity:   call @fn once, for @id. 0, UI_GONE
 * @now_ns:   the moment, wall clock
 * others as in struct ui_source
 */
struct ui_data {
	void *ctx;
	const char *node;
	uint64_t now_ns;
	uint64_t window_ns;
	uint64_t last_window_ns;
	struct ui_off off;
	void (*entities)(void *ctx, ui_entity_fn fn, void *arg);
	int (*entity)(void *ctx, const char *id, ui_entity_fn fn, void *arg);
	void (*profiles)(void *ctx, const char *entity, ui_profile_fn fn, void *arg);
};

/* Answer @request, mostly by a job, if its path is in the list above; else false. */
bool ui_handle(const struct ui_source *ui, struct http_jobs *jobs,
	       const struct httpd_request *request, struct httpd_response *ret);

#endif

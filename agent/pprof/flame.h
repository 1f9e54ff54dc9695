/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_FLAME_H
#define PODPROF_PPROF_FLAME_H

/*
 * Where the value of one sample type went: the tree of calls for a flame graph, and the functions
 * by what they used. Several profiles of one series add up. A frame is a function's name; what is
 * at an address without one is "image+0xaddress".
 */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct flame;
struct pprof_tables;

/* Distinct calls (paths from the root) kept; some 8 MB. What a profile has above that is shown as
 * "(other)" below the last frame that fits, and counted as cut. Reached: "(other)", `cut` in the
 * JSON. */
#define FLAME_NODES_MAX 65536
/* Frames of one stack, from the root; the rest is "(other)", too. Reached: "(other)", `cut` in the
 * JSON. */
#define FLAME_DEPTH_MAX 1024
/* For the page: at 1 % of a screen's pixels each, more cannot be seen. Reached: "(other)". */
#define FLAME_SHOWN_MAX 4096

enum flame_outcome {
	FLAME_OK = 0,
	FLAME_NO_TYPE, /* the profile has no such sample type, or none at all */
	FLAME_FULL,    /* its names take too much memory; what was added so far stays */
};

int flame_new(struct flame **ret);
void flame_free(struct flame *f);

/* Add one profile. @type: a sample type ("cpu"), or NULL for the one the profile shows first; the
 * first call's stays. Values below 0 are left out and counted. 0, FLAME_NO_TYPE, FLAME_FULL,
 * -ENOMEM. */
int flame_add(struct flame *f, const struct pprof_tables *t, const char *type);

/**
 * flame_json() - the tree
 * @max_nodes: show so many of the largest nodes; the smaller children of each become one "(other)"
 * @ret: the caller's reference
 *
 *	{"type": "cpu", "unit": "nanoseconds", "total": 90, "profiles": 1,
 *	 "cut": 0, "negative": 0,
 *	 "names": ["", "main", "work", "(other)"],
 *	 "kinds": ["unknown", "native", "go", "unknown"],
 *	 "nodes": {"name": [0, 1, 2, 3], "depth": [0, 1, 2, 2],
 *	           "value": [90, 90, 60, 20], "self": [0, 10, 60, 0]}}
 *
 * A name's kind says whose code it is: "native", "go", "kernel", or "unknown" where there is no
 * function. Nodes come in depth-first order, children by name, so that a node's children are those
 * that follow with its depth + 1; the first one is the root. "(other)" is last among its siblings.
 *
 * Return: 0 or -ENOMEM.
 */
int flame_json(const struct flame *f, size_t max_nodes, json_t **ret);

struct flame_function {
	const char *name; /* borrowed from the flame */
	int64_t flat;	  /* where it was the innermost frame */
	int64_t cum;	  /* where it was anywhere on the stack; recursion counts once */
};

enum flame_order { FLAME_BY_FLAT, FLAME_BY_CUM };

/* All functions, the largest first, equal ones by name; free(). 0 or -ENOMEM. */
int flame_functions(const struct flame *f, enum flame_order order, struct flame_function **ret,
		    size_t *ret_n);

int64_t flame_total(const struct flame *f);
/* "" before the first flame_add(); borrowed. */
const char *flame_type(const struct flame *f);
const char *flame_unit(const struct flame *f);

#endif

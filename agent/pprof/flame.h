/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_FLAME_H
#define PODPROF_PPROF_FLAME_H

/*
 * The distribution of one sample type's value: a call tree for a flame graph, and a list of
 * functions. Several profiles of one series add up. A frame is a function's name, or
 * "image+0xaddress" for an address without a name.
 */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct flame;
struct pprof_tables;

/* Distinct calls (paths from the root), some 8 MB. Further calls appear as "(other)" below the last
 * known frame and count as cut. Reached: "(other)", `cut` in the JSON. */
#define FLAME_NODES_MAX 65536
/* Frames of one stack, from the root. Reached: "(other)", `cut` in the JSON. */
#define FLAME_DEPTH_MAX 1024
/* Nodes for the page: at 1 % of a screen's pixels each, further nodes are invisible. Reached:
 * "(other)". */
#define FLAME_SHOWN_MAX 4096

/* Images with unnamed frames that are remembered, once for each reason; the page shows
 * FLAME_UNNAMED_SHOWN. Reached: further ones are left out. */
#define FLAME_UNNAMED_MAX   64
#define FLAME_UNNAMED_SHOWN 3

enum flame_outcome {
	FLAME_OK = 0,
	FLAME_NO_TYPE, /* the profile lacks the sample type, or has no types */
	FLAME_FULL,    /* too much memory of names, or work; earlier samples stay */
};

int flame_new(struct flame **ret);
void flame_free(struct flame *f);

/* Add one profile. @type: a sample type ("cpu"), or NULL for the profile's default; the first call
 * decides for all. Negative values are left out and counted. 0, FLAME_NO_TYPE, FLAME_FULL, -ENOMEM.
 */
int flame_add(struct flame *f, const struct pprof_tables *t, const char *type);

/**
 * flame_json() - the tree
 * @max_nodes: maximum number of nodes, the largest; the smaller children of each node become one
 *             "(other)"
 * @ret: a reference owned by the caller
 *
 *	{"type": "cpu", "unit": "nanoseconds", "total": 90, "profiles": 1,
 *	 "cut": 0, "negative": 0,
 *	 "unnamed": [{"share": 0.341, "reason": "stripped_no_debug", "path": "/usr/lib/libfoo.so"}],
 *	 "names": ["", "main", "work", "(other)"],
 *	 "kinds": ["unknown", "native", "go", "unknown"],
 *	 "nodes": {"name": [0, 1, 2, 3], "depth": [0, 1, 2, 2],
 *	           "value": [90, 90, 60, 20], "self": [0, 10, 60, 0]}}
 *
 * "unnamed" has the images with the largest shares of samples without names (pprof/unnamed.h).
 *
 * A name's kind is the origin of its code: "native", "go", "python", "java", "javascript" or
 * "kernel"; "python_library" and so on for the standard library of the language; "unknown" without
 * a function. Nodes come in depth-first order, the root first, children by name. The children of a
 * node follow the node, with its depth + 1. "(other)" is the last of its siblings.
 *
 * Return: 0 or -ENOMEM.
 */
int flame_json(const struct flame *f, size_t max_nodes, json_t **ret);

struct flame_function {
	const char *name; /* borrowed from the flame */
	int64_t flat;	  /* value as the innermost frame */
	int64_t cum;	  /* value anywhere on the stack; recursion counts once */
};

enum flame_order { FLAME_BY_FLAT, FLAME_BY_CUM };

/* All functions, the largest first, equal values by name; the caller calls free(). 0 or -ENOMEM. */
int flame_functions(const struct flame *f, enum flame_order order, struct flame_function **ret,
		    size_t *ret_n);

int64_t flame_total(const struct flame *f);
/* "" before the first flame_add(); borrowed. */
const char *flame_type(const struct flame *f);
const char *flame_unit(const struct flame *f);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Compilers save registers in the same few orders everywhere, and each push and each pop is a row.
 * Rows within a few bytes of each other become a rule run, if the same sequence is frequent enough
 * to pay for the rule run.
 *
 * A tree counts the sequences. A node stands for the steps from the root to the node. Its key has
 * the number of the parent, the distance from the parent and the rule, so a hash table holds all
 * nodes. Each group of close rows is split into pieces of the length of a rule run, and the
 * prefixes of these pieces are counted. Then, at each row, the longest frequent sequence from that
 * row becomes a slot. The end of a prologue is mostly a unique frame size; the longest prefix
 * leaves it out.
 *
 * Little of this needs a hash: the child is mostly the one that was found last, and a step keeps
 * the node from the counting for the choice.
 *
 * Considered and left out: counting sequences from every row on (0.01 bytes a row less, half as
 * many rule runs more), and replacing frequent pairs again and again (slow).
 */
#include "unwindtable/rule_runs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

/* A rule run costs 24 bytes and its number. Each use saves at least a slot of 2 bytes. */
#define USES_MIN 8
/* Larger counts are equal in the choice of the most frequent sequences. */
#define COUNTS	 1024

/* A node's number counts from 1; NO_NODE is the root as a parent. */
struct node {
	uint64_t key;
	uint32_t count;
	uint32_t child; /* found last; or NO_NODE */
};

/* The hash table has the nodes' numbers and grows with the nodes: most of the time of a small image
 * would be the first use of a large table's memory. */
struct rule_runs {
	uint32_t *slots; /* a node's number by hash; NO_NODE: free */
	size_t n_slots;	 /* a power of two */
	uint32_t *first; /* nodes of sequences of one step, by its rule; or NO_NODE */
	struct node *nodes;
	size_t n_nodes, nodes_cap;
	uint32_t uses_min;
};

DEFINE_CLEANUP(struct rule_runs *, rule_runs_freep, rule_runs_free);

#define NO_NODE	      0u
#define SLOTS_INITIAL 256u
/* Keeps every key above 0. */
#define KEY_USED      (1ull << 63)
/* In a step's rule: the number of the step's node, whose key has the rule. */
#define COUNTED	      (1u << 31)

static struct node *node_at(const struct rule_runs *rule_runs, uint32_t number)
{
	return &rule_runs->nodes[number - 1];
}

static uint64_t key_make(uint32_t parent, uint32_t rule, uint32_t distance)
{
	return KEY_USED | (uint64_t)parent << 40 | (uint64_t)rule << 8 | distance;
}

static uint32_t key_parent(uint64_t key)
{
	return key >> 40 & 0x7fffff;
}

static uint32_t key_rule(uint64_t key)
{
	return key >> 8 & 0xffffffff;
}

/* The node's slot, or the free slot for a new node. At most half of the slots are used. */
static uint32_t *slot_find(const struct rule_runs *rule_runs, uint64_t key)
{
	size_t i = hash_words(key, 0) & (rule_runs->n_slots - 1);

	while (rule_runs->slots[i] && node_at(rule_runs, rule_runs->slots[i])->key != key)
		i = (i + 1) & (rule_runs->n_slots - 1);
	return &rule_runs->slots[i];
}

static int grow_slots(struct rule_runs *rule_runs)
{
	const size_t n = rule_runs->n_slots ? 2 * rule_runs->n_slots : SLOTS_INITIAL;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(rule_runs->slots);
	rule_runs->slots = slots;
	rule_runs->n_slots = n;
	for (uint32_t number = 1; number <= rule_runs->n_nodes; number++)
		*slot_find(rule_runs, node_at(rule_runs, number)->key) = number;
	return 0;
}

/* 0; VEC_FULL; -ENOMEM. */
static int node_add(struct rule_runs *rule_runs, uint32_t *slot, uint64_t key, uint32_t *ret)
{
	int r = vec_grow(&rule_runs->nodes, &rule_runs->nodes_cap, rule_runs->n_nodes + 1,
			 sizeof(*rule_runs->nodes), RULE_RUNS_NODES_MAX);

	if (r)
		return r;
	rule_runs->nodes[rule_runs->n_nodes++] = (struct node){.key = key};
	*ret = *slot = (uint32_t)rule_runs->n_nodes;
	return 2 * rule_runs->n_nodes > rule_runs->n_slots ? grow_slots(rule_runs) : 0;
}

/* The child of @parent, or for the root of this rule, that was found last. */
static inline uint32_t *last_child(const struct rule_runs *rule_runs, uint32_t parent,
				   uint32_t rule)
{
	return parent ? &node_at(rule_runs, parent)->child : &rule_runs->first[rule];
}

/* Finds the node of this key, and makes it if there is room. 0; VEC_FULL; -ENOMEM. */
static __attribute__((noinline)) int node_find(struct rule_runs *rule_runs, uint64_t key,
					       uint32_t *ret)
{
	uint32_t *slot = slot_find(rule_runs, key);
	int r = 0;

	*ret = *slot;
	if (!*slot)
		r = node_add(rule_runs, slot, key, ret);
	if (!r)
		*last_child(rule_runs, key_parent(key), key_rule(key)) = *ret;
	return r;
}

/* Counts the child of node @parent for @rule after @distance. 0; VEC_FULL; -ENOMEM. */
static inline int node_count(struct rule_runs *rule_runs, uint32_t parent, uint32_t rule,
			     uint32_t distance, uint32_t *ret)
{
	const uint64_t key = key_make(parent, rule, distance);
	uint32_t number = *last_child(rule_runs, parent, rule);
	int r = 0;

	if (!number || node_at(rule_runs, number)->key != key)
		r = node_find(rule_runs, key, &number);
	if (r)
		return r;
	node_at(rule_runs, number)->count++;
	*ret = number;
	return 0;
}

/* Whether @b can follow @a in a rule run: close, and in the same block. */
static inline bool together(const struct step *a, const struct step *b)
{
	return b->unit - a->unit <= RULE_RUNS_DISTANCE_MAX && a->unit >> 8 == b->unit >> 8;
}

/* The step's node; NO_NODE if it was not counted. */
static inline uint32_t step_node(const struct step *step)
{
	return step->rule & COUNTED ? step->rule & ~COUNTED : NO_NODE;
}

static inline uint32_t step_rule(const struct rule_runs *rule_runs, const struct step *step)
{
	const uint32_t node = step_node(step);

	return node ? key_rule(node_at(rule_runs, node)->key) : step->rule;
}

/* Of the @i-th step of a sequence; @parent: the node of the step before. */
static inline uint64_t step_key(const struct rule_runs *rule_runs, const struct step *steps,
				size_t i, uint32_t parent)
{
	return key_make(parent, step_rule(rule_runs, &steps[i]),
			i ? steps[i].unit - steps[i - 1].unit : 0);
}

/* Counts the beginnings of the run at @steps: as many as a rule run can have. *@ret_n is how many.
 * 0 or -ENOMEM. */
static inline int count_run(struct rule_runs *rule_runs, struct step *steps, size_t n,
			    size_t *ret_n)
{
	uint32_t node = NO_NODE, distance = 0;
	size_t len = 0;
	int r = 0;

	if (n < 2 || !together(&steps[0], &steps[1])) {
		*ret_n = 1;
		return 0;
	}
	do {
		r = node_count(rule_runs, node, steps[len].rule, distance, &node);
		if (!r)
			steps[len].rule = COUNTED | node;
		len++;
		distance = len < n ? steps[len].unit - steps[len - 1].unit : 0;
	} while (!r && len < n && len < TABLE_RULE_RUN_STEPS &&
		 together(&steps[len - 1], &steps[len]));
	*ret_n = len;
	return r < 0 ? r : 0;
}

int rule_runs_new(struct step *steps, size_t n, size_t n_rules, struct rule_runs **ret)
{
	_cleanup_(rule_runs_freep) struct rule_runs *rule_runs = calloc(1, sizeof(*rule_runs));
	int r;

	if (!rule_runs)
		return -ENOMEM;
	rule_runs->uses_min = UINT32_MAX;
	rule_runs->first = calloc(n_rules, sizeof(*rule_runs->first));
	if (!rule_runs->first)
		return -ENOMEM;
	r = grow_slots(rule_runs);
	for (size_t i = 0, len; i < n && !r; i += len)
		r = count_run(rule_runs, &steps[i], n - i, &len);
	if (r)
		return r;
	*ret = take_ptr(rule_runs);
	return 0;
}

void rule_runs_free(struct rule_runs *rule_runs)
{
	if (!rule_runs)
		return;
	free(rule_runs->slots);
	free(rule_runs->first);
	free(rule_runs->nodes);
	free(rule_runs);
}

void rule_runs_limit(struct rule_runs *rule_runs, size_t n)
{
	size_t counts[COUNTS + 1] = {0}, sum = 0;
	uint32_t min = COUNTS;

	for (size_t i = 0; i < rule_runs->n_nodes; i++)
		counts[rule_runs->nodes[i].count < COUNTS ? rule_runs->nodes[i].count : COUNTS]++;
	while (min >= USES_MIN && sum + counts[min] <= n)
		sum += counts[min--];
	rule_runs->uses_min = min + 1 > COUNTS ? UINT32_MAX : min + 1;
}

size_t rule_runs_bound(const struct rule_runs *rule_runs)
{
	return rule_runs->n_nodes;
}

static inline bool begins_run(const struct rule_runs *rule_runs, const struct step *step)
{
	return key_parent(node_at(rule_runs, step_node(step))->key) == NO_NODE;
}

/* The longest frequent sequence from @steps on, where the counting began a run: its length and, if
 * that is not 0, its node. */
static size_t match_counted(const struct rule_runs *rule_runs, const struct step *steps, size_t n,
			    uint32_t *ret)
{
	size_t len;

	for (len = 0; len < n && step_node(&steps[len]); len++) {
		const uint32_t node = step_node(&steps[len]);

		if (node_at(rule_runs, node)->count < rule_runs->uses_min ||
		    (len && begins_run(rule_runs, &steps[len])))
			break;
		*ret = node;
	}
	return len;
}

/* The same from another place on. */
static size_t match_other(const struct rule_runs *rule_runs, const struct step *steps, size_t n,
			  uint32_t *ret)
{
	uint32_t node = NO_NODE;
	size_t len;

	for (len = 0; len < n && len < TABLE_RULE_RUN_STEPS; len++) {
		if (len && !together(&steps[len - 1], &steps[len]))
			break;
		node = *slot_find(rule_runs, step_key(rule_runs, steps, len, node));
		if (!node || node_at(rule_runs, node)->count < rule_runs->uses_min)
			break;
		*ret = node;
	}
	return len;
}

size_t rule_runs_match(const struct rule_runs *rule_runs, const struct step *steps, size_t n,
		       uint32_t *ret)
{
	uint32_t node = NO_NODE;
	size_t len = 0;

	if (!step_node(&steps[0])) {
		*ret = steps[0].rule;
		return 1;
	}
	len = begins_run(rule_runs, &steps[0]) ? match_counted(rule_runs, steps, n, &node)
					       : match_other(rule_runs, steps, n, &node);
	*ret = len < 2 ? step_rule(rule_runs, &steps[0]) : node - 1;
	return len < 2 ? 1 : len;
}

void rule_runs_get(const struct rule_runs *rule_runs, uint32_t number, struct table_rule_run *ret)
{
	uint64_t keys[TABLE_RULE_RUN_STEPS];
	uint32_t node = number + 1;
	uint8_t at = 0;
	size_t n = 0;

	for (; node != NO_NODE && n < TABLE_RULE_RUN_STEPS; node = key_parent(keys[n++]))
		keys[n] = node_at(rule_runs, node)->key;
	for (size_t i = 0; i < TABLE_RULE_RUN_STEPS; i++) {
		uint64_t key = i < n ? keys[n - 1 - i] : 0;

		at += key & 0xff;
		ret->at[i] = i < n ? at : TABLE_RULE_RUN_END;
		ret->rules[i] = (uint16_t)(key >> 8);
	}
}

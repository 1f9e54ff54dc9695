// SPDX-License-Identifier: Apache-2.0
/*
 * Compilers save registers in the same few orders everywhere, and each push and each pop is a row.
 * Rows within a few bytes of each other become a rule run, if the same sequence is frequent enough
 * to pay for the rule run.
 *
 * A tree counts the sequences. A node stands for the steps from the root to the node. Its key has
 * the slot of the parent, the distance from the parent and the rule, so a hash table holds all
 * nodes. Each group of close rows is split into pieces of the length of a rule run, and the
 * prefixes of these pieces are counted. Then, at each row, the longest frequent sequence from that
 * row becomes a slot. The end of a prologue is mostly a unique frame size; the longest prefix
 * leaves it out.
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

struct node {
	uint64_t key;
	uint32_t count;
	uint32_t slot;
};

/* The hash table has the nodes' numbers, which are few beside the slots: it takes a quarter of the
 * memory, and most of the time of a small image would be the first use of that memory. */
struct rule_runs {
	uint32_t *slots; /* a node's number + 1 by hash; 0: free */
	size_t n_slots;	 /* a power of two */
	struct node *nodes;
	size_t n_nodes, nodes_cap;
	uint32_t uses_min;
};

DEFINE_CLEANUP(struct rule_runs *, rule_runs_freep, rule_runs_free);

#define NO_PARENT  0u
/* Places looked at for a key. The table is at most three quarters full, so longer searches are
 * rare. Reached: the sequence is not counted. */
#define PROBES_MAX 1024
/* Keeps every key above 0. */
#define KEY_USED   (1ull << 63)

static uint64_t key_make(uint32_t parent, uint32_t rule, uint32_t distance)
{
	return KEY_USED | (uint64_t)parent << 40 | (uint64_t)rule << 8 | distance;
}

/* The node's slot, or the free slot for a new node; NULL if there is neither near the hash. */
static uint32_t *slot_find(const struct rule_runs *rule_runs, uint64_t key)
{
	size_t i = hash_words(key, 0) & (rule_runs->n_slots - 1);

	for (size_t probes = 0; probes < PROBES_MAX; probes++) {
		uint32_t *slot = &rule_runs->slots[i];

		if (!*slot || rule_runs->nodes[*slot - 1].key == key)
			return slot;
		i = (i + 1) & (rule_runs->n_slots - 1);
	}
	return NULL;
}

/* Counts the node below @parent (its slot's index + 1) for @rule, and makes it if there is room.
 * 0; 1 without room; -ENOMEM. */
static int node_count(struct rule_runs *rule_runs, uint32_t parent, uint32_t rule,
		      uint32_t distance, uint32_t *ret)
{
	uint64_t key = key_make(parent, rule, distance);
	uint32_t *slot = slot_find(rule_runs, key), index;

	if (!slot)
		return 1;
	index = (uint32_t)(slot - rule_runs->slots);
	if (!*slot) {
		if (rule_runs->n_nodes >= rule_runs->n_slots - rule_runs->n_slots / 4)
			return 1;
		if (vec_grow(&rule_runs->nodes, &rule_runs->nodes_cap, rule_runs->n_nodes + 1,
			     sizeof(*rule_runs->nodes), RULE_RUNS_NODES_MAX))
			return -ENOMEM;
		rule_runs->nodes[rule_runs->n_nodes++] = (struct node){.key = key, .slot = index};
		*slot = (uint32_t)rule_runs->n_nodes;
	}
	rule_runs->nodes[*slot - 1].count++;
	*ret = index + 1;
	return 0;
}

/* Whether @b can follow @a in a rule run: close, and in the same block. */
static inline bool together(const struct step *a, const struct step *b)
{
	return b->unit - a->unit <= RULE_RUNS_DISTANCE_MAX && a->unit >> 8 == b->unit >> 8;
}

/* Counts the beginnings of the run at @steps: as many as a rule run can have. *@ret_n is how many.
 * 0 or -ENOMEM. */
static int count_run(struct rule_runs *rule_runs, const struct step *steps, size_t n, size_t *ret_n)
{
	uint32_t parent = NO_PARENT;
	size_t len = 1;
	int r = 0;

	while (len < n && len < TABLE_RULE_RUN_STEPS && together(&steps[len - 1], &steps[len]))
		len++;
	for (size_t i = 0; len > 1 && i < len && !r; i++)
		r = node_count(rule_runs, parent, steps[i].rule,
			       i ? steps[i].unit - steps[i - 1].unit : 0, &parent);
	*ret_n = len;
	return r < 0 ? r : 0;
}

int rule_runs_new(const struct step *steps, size_t n, struct rule_runs **ret)
{
	_cleanup_(rule_runs_freep) struct rule_runs *rule_runs = calloc(1, sizeof(*rule_runs));
	int r = 0;

	if (!rule_runs)
		return -ENOMEM;
	rule_runs->n_slots = 64;
	while (rule_runs->n_slots < n && rule_runs->n_slots < RULE_RUNS_NODES_MAX)
		rule_runs->n_slots *= 2;
	rule_runs->slots = calloc(rule_runs->n_slots, sizeof(*rule_runs->slots));
	if (!rule_runs->slots)
		return -ENOMEM;
	rule_runs->uses_min = UINT32_MAX;
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

uint32_t rule_runs_place(const struct rule_runs *rule_runs, uint32_t number)
{
	return rule_runs->nodes[number].slot;
}

size_t rule_runs_match(const struct rule_runs *rule_runs, const struct step *steps, size_t n,
		       uint32_t *ret)
{
	uint32_t parent = NO_PARENT, number = 0;
	size_t len = 0;

	if (n < 2 || !together(&steps[0], &steps[1]))
		return 1;
	for (;;) {
		const uint32_t *slot = slot_find(
			rule_runs, key_make(parent, steps[len].rule,
					    len ? steps[len].unit - steps[len - 1].unit : 0));

		if (!slot || !*slot || rule_runs->nodes[*slot - 1].count < rule_runs->uses_min)
			break;
		number = *slot - 1;
		parent = (uint32_t)(slot - rule_runs->slots) + 1;
		len++;
		if (len == n || len == TABLE_RULE_RUN_STEPS ||
		    !together(&steps[len - 1], &steps[len]))
			break;
	}
	if (len < 2)
		return 1;
	*ret = number;
	return len;
}

void rule_runs_get(const struct rule_runs *rule_runs, uint32_t number, struct table_rule_run *ret)
{
	uint64_t keys[TABLE_RULE_RUN_STEPS];
	uint32_t node = rule_runs->nodes[number].slot + 1;
	uint8_t at = 0;
	size_t n = 0;

	for (; node != NO_PARENT && n < TABLE_RULE_RUN_STEPS; node = keys[n++] >> 40 & 0x7fffff)
		keys[n] = rule_runs->nodes[rule_runs->slots[node - 1] - 1].key;
	for (size_t i = 0; i < TABLE_RULE_RUN_STEPS; i++) {
		uint64_t key = i < n ? keys[n - 1 - i] : 0;

		at += key & 0xff;
		ret->at[i] = i < n ? at : TABLE_RULE_RUN_END;
		ret->rules[i] = (uint16_t)(key >> 8);
	}
}

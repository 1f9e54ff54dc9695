// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table over stacks in an arena. One array has all frames of all stacks, in the order of
 * first appearance, and a second array of bytes has the return-address marks: 17 bytes a frame, and
 * no allocation for each stack. The end of the window frees everything at once.
 *
 * Open addressing with linear probing; a slot has the number of a stack plus one. The hash of each
 * stack is stored, so growth does not read frames, and probing seldom compares frames. The hash has
 * a seed, because a target chooses its code addresses.
 */
#include "cpu/fold.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "profile/sample.h"

/* Slots at first; always a power of two and at least twice the number of stacks. */
#define FOLD_SLOTS_MIN 64

struct entry {
	uint64_t hash;
	uint64_t count;
	uint64_t value;
	uint32_t first; /* frame in the arena */
	uint16_t n;	/* FOLD_DEPTH_MAX at most */
	uint16_t names; /* number of the names plus one; 0: none */
};
/* "(other)" is the name of the thread, of the task, or of both. */
#define FOLD_OTHERS 3
_Static_assert(FOLD_NAMES_MAX + FOLD_OTHERS < UINT16_MAX, "numbers, and those of all others");

struct names {
	char thread[PID_COMM_MAX];
	char task[SAMPLE_TASK_BYTES];
};

struct fold {
	struct frame *frames; /* the arena */
	uint8_t *marks;	      /* return-address mark of each */
	size_t n_frames;
	size_t frames_cap;
	size_t marks_cap;
	struct names *names;
	size_t n_names;
	size_t names_cap;
	struct entry *entries;
	size_t n;
	size_t entries_cap;
	uint32_t *slots;
	size_t n_slots;
	struct fold_totals totals;
};

DEFINE_CLEANUP(struct fold *, fold_freep, fold_free);

_Static_assert(sizeof(struct frame) == 16, "frames are compared as bytes: no padding");

int fold_new(struct fold **ret)
{
	_cleanup_(fold_freep) struct fold *fold = calloc(1, sizeof(*fold));

	if (!fold)
		return -ENOMEM;
	fold->slots = calloc(FOLD_SLOTS_MIN, sizeof(*fold->slots));
	if (!fold->slots)
		return -ENOMEM;
	fold->n_slots = FOLD_SLOTS_MIN;
	*ret = take_ptr(fold);
	return 0;
}

void fold_free(struct fold *fold)
{
	if (!fold)
		return;
	for (size_t i = 0; i < fold->n_frames; i++)
		image_unref(fold->frames[i].image);
	free(fold->frames);
	free(fold->marks);
	free(fold->names);
	free(fold->entries);
	free(fold->slots);
	free(fold);
}

/* A stack to find. @hash: of all of it; @names: as in struct entry */
struct key {
	const struct fold_sample *sample;
	uint64_t hash;
	uint16_t names;
};

static struct key key_of(const struct fold_sample *sample, uint16_t names)
{
	const uint64_t hash =
		hash_words(hash_bytes(sample->frames, sample->n_frames * sizeof(*sample->frames)),
			   hash_bytes(sample->return_address, sample->n_frames));

	return (struct key){
		.sample = sample,
		.hash = names ? hash_words(hash, names) : hash,
		.names = names,
	};
}

static bool is(const struct fold *fold, const struct entry *entry, const struct key *key)
{
	const struct fold_sample *s = key->sample;
	const size_t n = s->n_frames;

	return entry->hash == key->hash && entry->n == n && entry->names == key->names &&
	       (!n ||
		(memcmp(fold->frames + entry->first, s->frames, n * sizeof(*s->frames)) == 0 &&
		 memcmp(fold->marks + entry->first, s->return_address, n) == 0));
}

/* The slot of the stack, or the free slot for it. */
static uint32_t *find(const struct fold *fold, const struct key *key)
{
	const size_t mask = fold->n_slots - 1;

	for (size_t i = key->hash & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &fold->slots[i];

		if (!*slot || is(fold, &fold->entries[*slot - 1], key))
			return slot;
	}
}

/* Double the slots if half are used. */
static int grow_slots(struct fold *fold)
{
	const size_t n_slots = fold->n_slots * 2;
	uint32_t *slots;

	if (fold->n < fold->n_slots / 2)
		return 0;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t e = 0; e < fold->n; e++) {
		size_t i = fold->entries[e].hash & (n_slots - 1);

		while (slots[i])
			i = (i + 1) & (n_slots - 1);
		slots[i] = (uint32_t)e + 1;
	}
	free(fold->slots);
	fold->slots = slots;
	fold->n_slots = n_slots;
	return 0;
}

/* Room for another stack of @n frames, without adding anything. 0, VEC_FULL, -ENOMEM. */
static int make_room(struct fold *fold, size_t n)
{
	size_t need;
	int r;

	if (n > FOLD_DEPTH_MAX || __builtin_add_overflow(fold->n_frames, n, &need))
		return VEC_FULL;
	r = vec_grow(&fold->entries, &fold->entries_cap, fold->n + 1, sizeof(*fold->entries),
		     FOLD_STACKS_MAX);
	if (r)
		return r;
	r = vec_grow(&fold->frames, &fold->frames_cap, need, sizeof(*fold->frames),
		     FOLD_FRAMES_MAX);
	if (r)
		return r;
	r = vec_grow(&fold->marks, &fold->marks_cap, need, sizeof(*fold->marks), FOLD_FRAMES_MAX);
	if (r)
		return r;
	return grow_slots(fold);
}

/* There is room. */
static void append(struct fold *fold, const struct key *key)
{
	const struct fold_sample *s = key->sample;

	fold->entries[fold->n++] = (struct entry){
		.hash = key->hash,
		.first = (uint32_t)fold->n_frames,
		.n = (uint16_t)s->n_frames,
		.names = key->names,
	};
	for (size_t i = 0; i < s->n_frames; i++) {
		fold->frames[fold->n_frames] = s->frames[i];
		image_ref(s->frames[i].image);
		fold->marks[fold->n_frames++] = s->return_address[i];
	}
}

/* The number of the names plus one, or one more than there are. In a series with very many names,
 * the search takes some microseconds for each of its samples. */
static size_t find_names(const struct fold *fold, const struct names *names)
{
	size_t i = 0;

	while (i < fold->n_names && memcmp(&fold->names[i], names, sizeof(*names)) != 0)
		i++;
	return i + 1;
}

static void copy_name(const char *name, char *ret, size_t size)
{
	memcpy(ret, name, strnlen(name, size - 1));
	utf8_make_printable(ret);
}

/* All names that there are become "(other)". */
static void make_other(struct names *names)
{
	const struct names before = *names;

	*names = (struct names){{0}, {0}};
	if (*before.thread)
		copy_name(SAMPLE_OTHER_THREAD, names->thread, sizeof(names->thread));
	if (*before.task)
		copy_name(SAMPLE_OTHER_THREAD, names->task, sizeof(names->task));
}

/* The number of the sample's names as in struct entry, and whether they are above the limit. */
static int enter_names(struct fold *fold, const struct fold_sample *sample, uint16_t *ret,
		       bool *ret_is_other)
{
	const char *thread = sample->thread ? sample->thread : "";
	const char *task = sample->task ? sample->task : "";
	struct names names = {{0}, {0}}, other;
	size_t at;

	*ret = 0;
	*ret_is_other = false;
	if (!*thread && !*task)
		return 0;
	copy_name(thread, names.thread, sizeof(names.thread));
	copy_name(task, names.task, sizeof(names.task));
	at = find_names(fold, &names);
	if (at > FOLD_NAMES_MAX) {
		other = names;
		make_other(&other);
		*ret_is_other = memcmp(&names, &other, sizeof(names)) != 0;
		at = find_names(fold, &other);
		names = other;
	}
	if (at > fold->n_names) {
		if (vec_grow(&fold->names, &fold->names_cap, at, sizeof(names),
			     FOLD_NAMES_MAX + FOLD_OTHERS))
			return -ENOMEM;
		fold->names[fold->n_names++] = names;
	}
	*ret = (uint16_t)at;
	return 0;
}

/* The entry of the sample's stack, made if there is none. 0, VEC_FULL, -ENOMEM. */
static int enter(struct fold *fold, const struct fold_sample *sample, uint16_t names,
		 struct entry **ret)
{
	const struct key key = key_of(sample, names);
	uint32_t *slot = find(fold, &key);
	int r;

	if (!*slot) {
		r = make_room(fold, sample->n_frames);
		if (r)
			return r;
		slot = find(fold, &key); /* the slots may have moved */
		append(fold, &key);
		*slot = (uint32_t)fold->n;
	}
	*ret = &fold->entries[*slot - 1];
	return 0;
}

static void refuse(struct fold *fold, uint64_t count, uint64_t value)
{
	fold->totals.n_refused += count;
	fold->totals.refused_value += value;
}

int fold_add(struct fold *fold, const struct fold_sample *sample, uint64_t count, uint64_t value)
{
	struct entry *entry;
	uint16_t names;
	bool is_other;
	int r;

	if (sample->is_lost) {
		refuse(fold, count, value);
		return 0;
	}
	r = enter_names(fold, sample, &names, &is_other);
	if (!r) {
		fold->totals.n_other += is_other ? count : 0;
		r = enter(fold, sample, names, &entry);
	}
	if (r) {
		refuse(fold, count, value);
		return r == VEC_FULL ? FOLD_FULL : r;
	}
	entry->count += count;
	entry->value += value;
	fold->totals.n_truncated += sample->is_truncated ? count : 0;
	return 0;
}

struct fold_totals fold_totals(const struct fold *fold)
{
	return fold->totals;
}

void fold_settle(struct fold *fold)
{
	for (size_t i = 0; i < fold->n_frames; i++) {
		struct frame settled = frame_settle(&fold->frames[i]);

		image_ref(settled.image);
		image_unref(fold->frames[i].image);
		fold->frames[i] = settled;
	}
}

size_t fold_n(const struct fold *fold)
{
	return fold->n;
}

static const char *text_of(const char *name)
{
	return *name ? name : NULL;
}

struct fold_stack fold_get(const struct fold *fold, size_t i)
{
	const struct entry *entry = &fold->entries[i];
	const struct names *names = entry->names ? &fold->names[entry->names - 1] : NULL;

	return (struct fold_stack){
		.frames = entry->n ? fold->frames + entry->first : NULL,
		.return_address = entry->n ? fold->marks + entry->first : NULL,
		.n_frames = entry->n,
		.thread = text_of(names ? names->thread : ""),
		.task = text_of(names ? names->task : ""),
		.count = entry->count,
		.value = entry->value,
	};
}

size_t fold_bytes(const struct fold *fold)
{
	return sizeof(*fold) + fold->frames_cap * sizeof(*fold->frames) + fold->marks_cap +
	       fold->entries_cap * sizeof(*fold->entries) + fold->n_slots * sizeof(*fold->slots) +
	       fold->names_cap * sizeof(*fold->names);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One table has the pods by UID, another has the aliases: container ids, and the other UID of a
 * static pod. Several pods may claim an alias. Then none of these is found by it, because a wrong
 * name is worse than none. An alias has the list of its claims, so that the end of one takes the
 * same time however many there are.
 *
 * A third table has the texts of the pods. A kubelet lists all pods each time, in changing order,
 * and most texts are unchanged and need no parsing. The table keeps a text's length and two
 * checksums, 64 bits. The author of a pod could construct a collision. The effect is that podprof
 * misses a change, or the start, of the author's own pod.
 */
#include "metadata/pods.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* A container's id with its NUL. */
#define ID_BYTES 65

/* Fingerprint of a text; all 0 for none. Compared by bytes: no padding. */
struct text_mark {
	uint64_t n;
	uint32_t crc32;
	uint32_t adler32;
};
_Static_assert(sizeof(struct text_mark) == 16, "no padding");

struct entry;

/* The claim of a pod to an alias. @container: NULL for a UID. */
struct claim {
	struct alias *alias; /* NULL: none */
	const struct entry *entry;
	const struct pod_container *container;
	LIST_ENTRY(claim) in_alias;
};

struct entry {
	struct pod *pod;
	struct claim *claims; /* of the UID, and of each container */
	size_t bytes;
	unsigned int list; /* number of the latest list that had begun at the last put or keep */
	struct text_mark text;
	UT_hash_handle hh;
	UT_hash_handle hh_text; /* valid if @text is set */
};

struct alias {
	LIST_HEAD(, claim) claims; /* not empty */
	UT_hash_handle hh;
	char key[];
};

struct pods {
	struct entry *by_uid;
	struct entry *by_text;
	struct alias *aliases;
	unsigned int list;
	uint64_t version;
	size_t bytes;
};

int pods_new(struct pods **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

/* ---------------------------------------------------------------- aliases */

static struct alias *alias_find(const struct pods *pods, const char *key)
{
	struct alias *alias;

	HASH_FIND(hh, pods->aliases, key, strlen(key), alias);
	return alias;
}

static int alias_new(struct pods *pods, const char *key, struct alias **ret)
{
	size_t n = strlen(key) + 1;
	struct alias *alias = calloc(1, sizeof(*alias) + n);
	bool hash_oom = false;

	if (!alias)
		return -ENOMEM;
	memcpy(alias->key, key, n);
	HASH_ADD(hh, pods->aliases, key[0], n - 1, alias);
	if (hash_oom) {
		free(alias);
		return -ENOMEM;
	}
	*ret = alias;
	return 0;
}

/* A pod that has the alias twice has it by the first claim, which is then the newest of all. */
static int alias_claim(struct pods *pods, const char *key, struct claim *claim)
{
	struct alias *alias = alias_find(pods, key);
	const struct claim *newest = alias ? LIST_FIRST(&alias->claims) : NULL;
	int r;

	if (newest && newest->entry == claim->entry)
		return 0;
	r = alias ? 0 : alias_new(pods, key, &alias);
	if (r)
		return r;
	claim->alias = alias;
	LIST_INSERT_HEAD(&alias->claims, claim, in_alias);
	return 0;
}

static void alias_drop(struct pods *pods, struct alias *alias)
{
	HASH_DELETE(hh, pods->aliases, alias);
	free(alias);
}

static void claim_release(struct pods *pods, struct claim *claim)
{
	if (!claim->alias)
		return;
	LIST_REMOVE(claim, in_alias);
	if (LIST_EMPTY(&claim->alias->claims))
		alias_drop(pods, claim->alias);
}

static int claim_all(struct pods *pods, struct entry *entry)
{
	const struct pod *pod = entry->pod;
	struct claim *claim = entry->claims;
	int r = 0;

	claim->entry = entry;
	if (*pod->static_uid && strcmp(pod->static_uid, pod->uid) != 0)
		r = alias_claim(pods, pod->static_uid, claim);
	for (size_t i = 0; i < pod->n_containers && !r; i++) {
		claim++;
		claim->entry = entry;
		claim->container = &pod->containers[i];
		r = alias_claim(pods, pod->containers[i].id, claim);
	}
	return r;
}

/* The only claim to the alias, or NULL. */
static const struct claim *claim_find(const struct pods *pods, const char *key)
{
	const struct alias *alias = alias_find(pods, key);
	const struct claim *claim = alias ? LIST_FIRST(&alias->claims) : NULL;

	return claim && !LIST_NEXT(claim, in_alias) ? claim : NULL;
}

/* ---------------------------------------------------------------- texts */

static struct text_mark mark_of(const char *json, size_t n)
{
	return (struct text_mark){
		.n = n,
		.crc32 = (uint32_t)crc32_z(0, (const Bytef *)json, n),
		.adler32 = (uint32_t)adler32_z(1, (const Bytef *)json, n),
	};
}

static struct entry *entry_by_text(const struct pods *pods, const struct text_mark *text)
{
	struct entry *entry;

	HASH_FIND(hh_text, pods->by_text, text, sizeof(*text), entry);
	return entry;
}

static void entry_unmark(struct pods *pods, struct entry *entry)
{
	if (entry->text.n)
		HASH_DELETE(hh_text, pods->by_text, entry);
	entry->text = (struct text_mark){0};
}

/* Sets the entry's fingerprint. If another entry has the same one, the old fingerprint stays valid.
 */
static int entry_mark(struct pods *pods, struct entry *entry, const struct text_mark *text)
{
	bool hash_oom = false;

	if (!text->n || entry_by_text(pods, text))
		return 0;
	entry_unmark(pods, entry);
	entry->text = *text;
	HASH_ADD(hh_text, pods->by_text, text, sizeof(entry->text), entry);
	if (hash_oom)
		entry->text = (struct text_mark){0};
	return hash_oom ? -ENOMEM : 0;
}

bool pods_keep(struct pods *pods, const char *json, size_t n)
{
	const struct text_mark text = mark_of(json, n);
	struct entry *entry = entry_by_text(pods, &text);

	if (entry)
		entry->list = pods->list;
	return entry;
}

/* ---------------------------------------------------------------- pods */

/* The pod stays. */
static void entry_free(struct entry *entry)
{
	free(entry->claims);
	free(entry);
}

/* Frees the entry, but not the pod. */
static void entry_unlink(struct pods *pods, struct entry *entry)
{
	for (size_t i = 0; i <= entry->pod->n_containers; i++)
		claim_release(pods, &entry->claims[i]);
	pods->version++;
	pods->bytes -= entry->bytes;
	entry_unmark(pods, entry);
	HASH_DELETE(hh, pods->by_uid, entry);
	entry_free(entry);
}

static void entry_drop(struct pods *pods, struct entry *entry)
{
	struct pod *pod = entry->pod;

	entry_unlink(pods, entry);
	pod_free(pod);
}

void pods_free(struct pods *pods)
{
	struct entry *entry, *next_entry;
	struct alias *alias, *next;

	if (!pods)
		return;
	HASH_ITER(hh, pods->aliases, alias, next) {
		alias_drop(pods, alias);
	}
	HASH_CLEAR(hh_text, pods->by_text);
	HASH_ITER(hh, pods->by_uid, entry, next_entry) {
		HASH_DELETE(hh, pods->by_uid, entry);
		pod_free(entry->pod);
		entry_free(entry);
	}
	free(pods);
}

static struct entry *entry_find(const struct pods *pods, const char *uid)
{
	struct entry *entry;

	HASH_FIND(hh, pods->by_uid, uid, strlen(uid), entry);
	return entry;
}

/* Bytes of a pod with its entry and aliases. */
static size_t bytes_of(const struct pod *pod)
{
	return pod_bytes(pod) + sizeof(struct entry) +
	       pod->n_containers * (sizeof(struct alias) + ID_BYTES) +
	       (pod->n_containers + 1) * sizeof(struct claim);
}

/* Takes @pod on success. *@ret: borrowed from the table. */
static int entry_add(struct pods *pods, struct pod *pod, struct entry **ret)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	bool hash_oom = false;
	int r;

	if (!entry)
		return -ENOMEM;
	entry->claims = calloc(pod->n_containers + 1, sizeof(*entry->claims));
	if (!entry->claims) {
		free(entry);
		return -ENOMEM;
	}
	pod->version = ++pods->version;
	entry->pod = pod;
	entry->bytes = bytes_of(pod);
	entry->list = pods->list;
	HASH_ADD_KEYPTR(hh, pods->by_uid, pod->uid, strlen(pod->uid), entry);
	if (hash_oom) {
		entry_free(entry);
		return -ENOMEM;
	}
	pods->bytes += entry->bytes;
	r = claim_all(pods, entry);
	if (r)
		entry_unlink(pods, entry);
	else
		*ret = entry;
	return r;
}

DEFINE_CLEANUP(struct pod *, pod_freep, pod_free);

static int put(struct pods *pods, struct pod *pod, const struct text_mark *text)
{
	_cleanup_(pod_freep) struct pod *taken = pod;
	struct entry *entry = entry_find(pods, pod->uid);
	int r;

	if (entry && pod_equal(entry->pod, pod)) {
		entry->list = pods->list;
		return entry_mark(pods, entry, text);
	}
	if (entry)
		entry_drop(pods, entry);
	if (pods_count(pods) >= PODS_MAX || pods->bytes + bytes_of(pod) > PODS_BYTES_MAX)
		return PODS_TOO_MANY;
	r = entry_add(pods, pod, &entry);
	if (r)
		return r;
	(void)take_ptr(taken);
	return entry_mark(pods, entry, text);
}

int pods_put(struct pods *pods, struct pod *pod)
{
	return put(pods, pod, &(struct text_mark){0});
}

int pods_put_text(struct pods *pods, struct pod *pod, const char *json, size_t n)
{
	const struct text_mark text = mark_of(json, n);

	return put(pods, pod, &text);
}

void pods_remove(struct pods *pods, const char *uid)
{
	struct entry *entry = entry_find(pods, uid);

	if (entry)
		entry_drop(pods, entry);
}

unsigned int pods_begin_list(struct pods *pods)
{
	return ++pods->list;
}

void pods_end_list(struct pods *pods, unsigned int list)
{
	struct entry *entry, *next;

	HASH_ITER(hh, pods->by_uid, entry, next) {
		if (entry->list < list)
			entry_drop(pods, entry);
	}
}

/* ---------------------------------------------------------------- looking up */

const struct pod *pods_by_container(const struct pods *pods, const char *id,
				    const struct pod_container **ret)
{
	const struct claim *claim = claim_find(pods, id);

	if (!claim || !claim->container)
		return NULL;
	*ret = claim->container;
	return claim->entry->pod;
}

const struct pod *pods_by_uid(const struct pods *pods, const char *uid)
{
	const struct entry *entry = entry_find(pods, uid);
	const struct claim *claim = entry ? NULL : claim_find(pods, uid);

	if (entry)
		return entry->pod;
	return claim && !claim->container ? claim->entry->pod : NULL;
}

uint64_t pods_version(const struct pods *pods)
{
	return pods->version;
}

size_t pods_count(const struct pods *pods)
{
	return HASH_COUNT(pods->by_uid);
}

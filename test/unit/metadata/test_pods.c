// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "metadata/pods.h"
#include "support/allocfail.h"

static struct pod *make(const char *uid, const char *name, const char *static_uid, const char *ids)
{
	char json[1024];
	struct pod *pod;
	size_t n =
		(size_t)snprintf(json, sizeof(json),
				 "{\"metadata\":{\"uid\":\"%s\",\"namespace\":\"s\",\"name\":"
				 "\"%s\",\"annotations\":{\"kubernetes.io/config.mirror\":\"%s\"}},"
				 "\"status\":{\"containerStatuses\":[",
				 uid, name, static_uid);

	for (; *ids; ids++)
		n += (size_t)snprintf(json + n, sizeof(json) - n,
				      "{\"name\":\"c%c\",\"containerID\":\"x://%c\"}%s", *ids, *ids,
				      ids[1] ? "," : "");
	n += (size_t)snprintf(json + n, sizeof(json) - n, "]}}");
	assert_int_equal(pod_parse(json, n, &pod), 0);
	return pod;
}

static void put(struct pods *pods, const char *uid, const char *name, const char *ids)
{
	assert_int_equal(pods_put(pods, make(uid, name, "", ids)), 0);
}

/* "POD/CONTAINER", or "-" */
static const char *by_container(const struct pods *pods, const char *id)
{
	static char text[64];
	const struct pod_container *container;
	const struct pod *pod = pods_by_container(pods, id, &container);

	snprintf(text, sizeof(text), "%s", "-");
	if (pod)
		snprintf(text, sizeof(text), "%s/%s", pod->name, container->name);
	return text;
}

static const char *by_uid(const struct pods *pods, const char *uid)
{
	const struct pod *pod = pods_by_uid(pods, uid);

	return pod ? pod->name : "-";
}

static void finds(void **state)
{
	struct pods *pods;

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	put(pods, "u1", "web", "ab");
	put(pods, "u2", "db", "c");
	assert_string_equal(by_container(pods, "a"), "web/ca");
	assert_string_equal(by_container(pods, "c"), "db/cc");
	assert_string_equal(by_container(pods, "u1"), "-");
	assert_string_equal(by_uid(pods, "u1"), "web");
	assert_string_equal(by_uid(pods, "a"), "-");
	assert_string_equal(by_uid(pods, ""), "-");

	/* the container has been started again */
	put(pods, "u2", "db", "d");
	assert_string_equal(by_container(pods, "c"), "-");
	assert_string_equal(by_container(pods, "d"), "db/cd");
	assert_int_equal(pods_count(pods), 2);

	pods_remove(pods, "u1");
	pods_remove(pods, "u1");
	assert_string_equal(by_container(pods, "a"), "-");
	assert_string_equal(by_uid(pods, "u1"), "-");
	pods_free(pods);
}

static void static_pods_have_two_uids(void **state)
{
	struct pods *pods;

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	assert_int_equal(pods_put(pods, make("mirror", "etcd", "0123", "a")), 0);
	assert_int_equal(pods_put(pods, make("4567", "api", "4567", "b")), 0);
	assert_string_equal(by_uid(pods, "0123"), "etcd");
	assert_string_equal(by_uid(pods, "mirror"), "etcd");
	assert_string_equal(by_uid(pods, "4567"), "api");
	pods_remove(pods, "mirror");
	assert_string_equal(by_uid(pods, "0123"), "-");
	pods_free(pods);
}

static void what_two_claim_is_nobodys(void **state)
{
	struct pods *pods;

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	put(pods, "u1", "web", "ab");
	put(pods, "u2", "liar", "ac");
	assert_string_equal(by_container(pods, "a"), "-");
	assert_string_equal(by_container(pods, "b"), "web/cb");
	assert_string_equal(by_container(pods, "c"), "liar/cc");
	put(pods, "u1", "web", "ab"); /* no change */
	assert_string_equal(by_container(pods, "a"), "-");
	pods_remove(pods, "u1");
	assert_string_equal(by_container(pods, "a"), "liar/ca");
	put(pods, "u3", "third", "a");
	put(pods, "u2", "liar", "c");
	assert_string_equal(by_container(pods, "a"), "third/ca");
	/* the same name twice in one pod is no conflict */
	put(pods, "u4", "twice", "zz");
	assert_string_equal(by_container(pods, "z"), "twice/cz");
	pods_free(pods);
}

/* Whichever of three claims is the last, its pod is found. A pod that claims an id twice has it by
 * its first container of that id. */
static void the_last_claim_counts(void **state)
{
	static const char *const uids[] = {"u1", "u2", "u3"};
	static const char *const names[] = {"one/ca", "two/ca", "three/ca"};

	(void)state;
	for (size_t last = 0; last < array_size(uids); last++) {
		const size_t first = (last + 1) % 3, second = (last + 2) % 3;
		struct pods *pods;

		assert_int_equal(pods_new(&pods), 0);
		put(pods, "u1", "one", "aab");
		put(pods, "u2", "two", "ac");
		put(pods, "u3", "three", "daa");
		pods_remove(pods, uids[first]);
		assert_string_equal(by_container(pods, "a"), "-");
		pods_remove(pods, uids[second]);
		assert_string_equal(by_container(pods, "a"), names[last]);
		pods_remove(pods, uids[last]);
		assert_string_equal(by_container(pods, "a"), "-");
		pods_free(pods);
	}
}

static void lists(void **state)
{
	unsigned int first, second;
	struct pods *pods;

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	put(pods, "u1", "one", "a");
	pods_begin_list(pods);
	put(pods, "u2", "two", "b");
	/* cut short: nothing goes */
	first = pods_begin_list(pods);
	put(pods, "u3", "three", "c");
	assert_int_equal(pods_count(pods), 3);
	pods_end_list(pods, first);
	assert_int_equal(pods_count(pods), 1);
	assert_string_equal(by_container(pods, "c"), "three/cc");
	assert_string_equal(by_container(pods, "b"), "-");
	first = pods_begin_list(pods);
	pods_end_list(pods, first);
	assert_int_equal(pods_count(pods), 0);

	/* two at a time: each survives the other's end, in any overlap */
	put(pods, "u0", "none", "");
	first = pods_begin_list(pods);
	put(pods, "u1", "one", "a");
	second = pods_begin_list(pods);
	put(pods, "u2", "two", "b");
	put(pods, "u3", "three", "c");
	pods_end_list(pods, first);
	assert_string_equal(by_uid(pods, "u0"), "-");
	assert_int_equal(pods_count(pods), 3);
	pods_end_list(pods, second);
	assert_string_equal(by_uid(pods, "u1"), "-");
	assert_int_equal(pods_count(pods), 2);
	pods_free(pods);
}

/* A stored text identifies its pod, until the pod changes. */
static void texts(void **state)
{
	unsigned int list;
	uint64_t version;
	struct pods *pods;

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	assert_false(pods_keep(pods, "", 0));
	assert_int_equal(pods_put_text(pods, make("u1", "one", "", "a"), "one", 3), 0);
	put(pods, "u2", "two", "b");
	version = pods_version(pods);
	list = pods_begin_list(pods);
	assert_true(pods_keep(pods, "one", 3));
	assert_false(pods_keep(pods, "on", 2));
	assert_false(pods_keep(pods, "two", 3));
	pods_end_list(pods, list);
	assert_string_equal(by_uid(pods, "u1"), "one");
	assert_string_equal(by_uid(pods, "u2"), "-"); /* missing from the list */
	assert_true(pods_version(pods) > version);
	/* another text of the same pod, a text of two pods, another pod */
	assert_int_equal(pods_put_text(pods, make("u1", "one", "", "a"), "uno", 3), 0);
	assert_true(pods_keep(pods, "uno", 3));
	assert_false(pods_keep(pods, "one", 3));
	assert_int_equal(pods_put_text(pods, make("u3", "three", "", "c"), "uno", 3), 0);
	assert_true(pods_keep(pods, "uno", 3));
	put(pods, "u1", "one", "a"); /* unchanged */
	assert_true(pods_keep(pods, "uno", 3));
	put(pods, "u1", "changed", "a");
	assert_false(pods_keep(pods, "uno", 3));
	assert_int_equal(pods_put_text(pods, make("u3", "three", "", "c"), "3", 1), 0);
	pods_remove(pods, "u3");
	assert_false(pods_keep(pods, "3", 1));
	assert_int_equal(pods_put_text(pods, make("u3", "three", "", "c"), "3", 1), 0);
	pods_free(pods);
}

static void ceiling(void **state)
{
	struct pods *pods;
	char uid[16];

	(void)state;
	assert_int_equal(pods_new(&pods), 0);
	for (int i = 0; i < PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%d", i);
		put(pods, uid, uid, "");
	}
	assert_int_equal(pods_put(pods, make("more", "more", "", "")), PODS_TOO_MANY);
	put(pods, "u7", "seven", ""); /* an existing pod may change */
	assert_string_equal(by_uid(pods, "u7"), "seven");
	assert_int_equal(pods_count(pods), PODS_MAX);
	pods_free(pods);
}

static int put_one(struct pod *pod)
{
	struct pods *pods = NULL;
	int r = pods_new(&pods);

	if (r) {
		pod_free(pod);
		return r;
	}
	r = pods_put(pods, pod);
	assert_int_equal(pods_count(pods), r ? 0 : 1);
	pods_free(pods);
	return r;
}

static void out_of_memory(void **state)
{
	bool failed = true;

	(void)state;
	for (size_t n = 1; failed; n++) {
		struct pod *pod = make("u", "n", "static", "ab");
		int r;

		allocfail_arm(n);
		r = put_one(pod);
		failed = allocfail_disarm();
		assert_int_equal(r, failed ? -ENOMEM : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(static_pods_have_two_uids),
		cmocka_unit_test(what_two_claim_is_nobodys),
		cmocka_unit_test(the_last_claim_counts),
		cmocka_unit_test(lists),
		cmocka_unit_test(texts),
		cmocka_unit_test(ceiling),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

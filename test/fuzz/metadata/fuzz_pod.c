// SPDX-License-Identifier: Apache-2.0
/* One pod, described by a server or an impostor. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "metadata/pod.h"
#include "metadata/pods.h"
#include "metadata/workload.h"

/* Skipped parts make no difference. The trimming parser does not recognise names with escapes,
 * which nobody writes, and of two members with one name both count. */
static void check_trimmed(const uint8_t *data, size_t size, const struct pod *pod)
{
	json_t *whole = json_loadb((const char *)data, size,
				   JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	struct pod *again = NULL;

	if (whole && !memchr(data, '\\', size)) {
		if (pod_of_json(whole, &again) || !pod_equal(pod, again))
			abort();
	}
	pod_free(again);
	json_decref(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pod_container *container;
	struct workload workload;
	struct pods *pods;
	struct pod *pod;

	if (pod_parse((const char *)data, size, &pod))
		return 0;
	check_trimmed(data, size, pod);
	workload_of_pod(pod, &workload);
	if (!workload.name[0] || !*workload_service(pod, &workload))
		abort();
	if (pods_new(&pods)) {
		pod_free(pod);
		return 0;
	}
	if (pods_put(pods, pod) == 0) {
		if (pods_by_uid(pods, pod->uid) != pod)
			abort();
		for (size_t i = 0; i < pod->n_containers; i++)
			if (pods_by_container(pods, pod->containers[i].id, &container) != pod &&
			    strcmp(pod->containers[i].id, pod->static_uid) != 0)
				abort();
	}
	pods_free(pods);
	return 0;
}

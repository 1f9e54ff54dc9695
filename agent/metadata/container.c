// SPDX-License-Identifier: Apache-2.0
#include "metadata/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int container_new(const char *source, struct container **ret)
{
	_cleanup_(container_freep) struct container *c = calloc(1, sizeof(*c));

	if (!c || container_set_name(c, "") || container_set_image(c, ""))
		return -ENOMEM;
	c->source = source;
	*ret = take_ptr(c);
	return 0;
}

void container_free(struct container *c)
{
	if (!c)
		return;
	pod_free(c->pod);
	pod_pairs_deinit(&c->labels);
	free(c->name);
	free(c->image);
	free(c);
}

static int replace(char **text, const char *by)
{
	char *fresh = strdup(by);

	if (!fresh)
		return -ENOMEM;
	free(*text);
	*text = fresh;
	return 0;
}

int container_set_name(struct container *c, const char *name)
{
	return replace(&c->name, name);
}

int container_set_image(struct container *c, const char *image)
{
	return replace(&c->image, image);
}

const char *container_label(const struct container *c, const char *key)
{
	return pod_pairs_get(&c->labels, key);
}

int container_add_labels(struct container *c, const json_t *labels)
{
	size_t n_left_out = 0;

	return pod_pairs_add(&c->labels, labels, &n_left_out);
}

int container_read_pod(struct container *c, const struct container_keys *keys, const json_t *texts,
		       const char *id)
{
	const char *name = pod_text(texts, keys->container);
	int r;

	pod_free(c->pod); /* for duplicate members the last counts */
	c->pod = NULL;
	if (keys->image && container_set_image(c, pod_text(texts, keys->image)))
		return -ENOMEM;
	r = pod_make(pod_text(texts, keys->namespace), pod_text(texts, keys->pod),
		     pod_text(texts, keys->uid), &c->pod);
	if (r)
		return r < 0 ? r : 0;
	c->sandbox = strcmp(pod_text(texts, keys->type), keys->sandbox) == 0;
	if (c->sandbox || !*name)
		return 0;
	/* Runtimes do not know the kind of a container. */
	return pod_add_container(c->pod, POD_CONTAINER_ORDINARY, name, id, c->image);
}

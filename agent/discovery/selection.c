// SPDX-License-Identifier: Apache-2.0
#include "discovery/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/discovery.h"
#include "discovery/entity.h"

static bool label_is(const struct entity *entity, const char *name, const char *value, size_t n)
{
	const char *has = labels_get(&entity->labels, name);

	return has && strlen(has) == n && memcmp(has, value, n) == 0;
}

static bool in_pod(const struct entity *entity, const char *pod)
{
	const char *slash = strchr(pod, '/');

	return slash && label_is(entity, "namespace", pod, (size_t)(slash - pod)) &&
	       label_is(entity, "pod", slash + 1, strlen(slash + 1));
}

bool selection_is_all(const struct selection *s)
{
	return !*s->id && !s->name && !s->pod && !s->service;
}

bool selection_has(const struct selection *s, const struct entity *entity)
{
	return (!*s->id || discovery_in_container(entity, s->id)) &&
	       (!s->name || label_is(entity, "container", s->name, strlen(s->name))) &&
	       (!s->pod || in_pod(entity, s->pod)) &&
	       (!s->service || label_is(entity, "service_name", s->service, strlen(s->service)));
}

bool selection_may_have(const struct selection *s, const struct entity *entity)
{
	if (entity->pending)
		return !*s->id || discovery_in_container(entity, s->id);
	return selection_has(s, entity);
}

/* Without names the label "container" is the id itself. */
static bool is_name(struct discovery *discovery, const char *text)
{
	const struct entity *entity = NULL;

	while ((entity = discovery_next_entity(discovery, entity)))
		if (entity_alive(entity) && label_is(entity, "container", text, strlen(text)) &&
		    strcmp(entity->id.container_id, text) != 0)
			return true;
	return false;
}

static int set_container(struct selection *s, struct discovery *discovery, const char *text)
{
	enum discovery_find found = DISCOVERY_NO_SUCH;

	if (!is_name(discovery, text))
		found = discovery_find_container(discovery, text, s->id);
	if (found == DISCOVERY_AMBIGUOUS)
		return SELECTION_AMBIGUOUS;
	if (found == DISCOVERY_FOUND)
		return 0;
	s->name = strdup(text);
	return s->name ? 0 : -ENOMEM;
}

static int set(struct selection *s, struct discovery *discovery,
	       const struct selection_words *words)
{
	int r = words->container ? set_container(s, discovery, words->container) : 0;

	if (r)
		return r;
	s->pod = words->pod ? strdup(words->pod) : NULL;
	s->service = words->service ? strdup(words->service) : NULL;
	if (!s->pod != !words->pod || !s->service != !words->service)
		return -ENOMEM;
	return 0;
}

int selection_init(struct selection *ret, struct discovery *discovery,
		   const struct selection_words *words)
{
	struct selection s = {.id = ""};
	int r = set(&s, discovery, words);

	if (r)
		selection_deinit(&s);
	else
		*ret = s;
	return r;
}

void selection_deinit(struct selection *s)
{
	free(s->name);
	free(s->pod);
	free(s->service);
	*s = (struct selection){.id = ""};
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The zones that the program may forward. While hydnsd does not have the present list, the page names none, so nothing is
 * forwarded: a change of the list holds at once, with or without hydnsd.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/internal.h"

void hydns_forward_list_init(struct hydns_forward_list *f)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
}

void hydns_forward_list_destroy(struct hydns_forward_list *f)
{
	free(f->of.zone);
	pthread_mutex_destroy(&f->lock);
}

static bool same(const struct hydns_plugin_forwards *a, const struct hydns_plugin_forwards *b)
{
	return a->servers == b->servers && a->zones == b->zones && a->max_ttl == b->max_ttl && a->flags == b->flags &&
	       a->max_negative_ttl == b->max_negative_ttl &&
	       !memcmp(a->server, b->server, a->servers * sizeof(a->server[0])) &&
	       (!a->zones || !memcmp(a->zone, b->zone, a->zones * sizeof(a->zone[0])));
}

/* False: no memory, and the list is empty. */
static bool replace(struct hydns_forward_list *f, const struct hydns_plugin_forwards *by)
{
	struct hydns_forward_name *zone = by->zones ? malloc(by->zones * sizeof(*zone)) : NULL;
	bool good = zone || !by->zones;

	free(f->of.zone);
	f->of = good ? *by : (struct hydns_plugin_forwards){ .servers = 0 };
	f->of.zone = zone;
	if (zone)
		memcpy(zone, by->zone, by->zones * sizeof(*zone));
	f->changed++;
	return good;
}

bool hydns_plugin_forward(struct hydns_plugin *p, const struct hydns_plugin_forwards *f)
{
	struct hydns_request q = { .type = HYDNS_MSG_FORWARDS };
	bool news, good = f->servers <= HYDNS_FORWARD_UPSTREAMS && f->zones <= HYDNS_FORWARD_ZONES;
	static const struct hydns_plugin_forwards none;

	if (!good)
		f = &none;
	pthread_mutex_lock(&p->forwards.lock);
	news = !same(&p->forwards.of, f);
	if (news) {
		hydns_pages_set_forward(p->pages, 0);
		good &= replace(&p->forwards, f);
	}
	pthread_mutex_unlock(&p->forwards.lock);
	if (news && p->started)
		(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
	return good;
}

/* -- for the link thread ------------------------------------------------------------------------------------ */
uint32_t hydns_forward_list_begin(struct hydns_forward_list *f, struct hydns_pages *pages, uint32_t *changed,
				  struct hydns_plugin_forwards *copy)
{
	uint32_t number;

	pthread_mutex_lock(&f->lock);
	hydns_pages_set_forward(pages, 0);
	number = ++f->number;
	*changed = f->changed;
	*copy = f->of;
	copy->zone = f->of.zones ? malloc(f->of.zones * sizeof(*copy->zone)) : NULL;
	if (copy->zone)
		memcpy(copy->zone, f->of.zone, f->of.zones * sizeof(*copy->zone));
	else
		copy->servers = copy->zones = 0;
	pthread_mutex_unlock(&f->lock);
	return number;
}

void hydns_forward_list_known(struct hydns_forward_list *f, struct hydns_pages *pages, uint32_t number, uint32_t changed)
{
	pthread_mutex_lock(&f->lock);
	if (f->changed == changed && f->of.zones)
		hydns_pages_set_forward(pages, number);
	pthread_mutex_unlock(&f->lock);
}

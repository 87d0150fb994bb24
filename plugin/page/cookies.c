/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver's secrets of DNS cookies, kept because each new hydnsd must get them. Each set has a number, and the page
 * has the number of the valid one. So one store to the page ends the use of a former set, with hydnsd or without.
 */
#include <string.h>
#include "plugin/page/page.h"

void hydns_secrets_init(struct hydns_secrets *s)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
}

void hydns_secrets_destroy(struct hydns_secrets *s)
{
	explicit_bzero(&s->cookies, sizeof(s->cookies));
	pthread_mutex_destroy(&s->lock);
}

bool hydns_secrets_change(struct hydns_secrets *s, struct hydns_pages *g,
			  const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN], size_t n)
{
	struct hydns_cookies *c = &s->cookies;
	size_t len = n * HYDNS_COOKIE_SECRET_LEN;
	bool changed;

	pthread_mutex_lock(&s->lock);
	changed = !c->set || c->count != n || memcmp(c->secret, secret, len);
	if (changed) {
		explicit_bzero(c->secret, sizeof(c->secret));
		memcpy(c->secret, secret, len);
		c->count = (uint32_t)n;
		if (!++c->set)
			c->set = 1;
		hydns_pages_set_cookies(g, c->set);
	}
	pthread_mutex_unlock(&s->lock);
	return changed;
}

void hydns_secrets_publish(struct hydns_secrets *s, struct hydns_pages *g)
{
	pthread_mutex_lock(&s->lock);
	hydns_pages_set_cookies(g, s->cookies.set);
	pthread_mutex_unlock(&s->lock);
}

void hydns_secrets_copy(struct hydns_secrets *s, struct hydns_cookies *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->cookies;
	pthread_mutex_unlock(&s->lock);
}

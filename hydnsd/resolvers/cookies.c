/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/cookies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/log.h"

struct cookie_write {
	struct hydnsd *daemon;
	uint32_t resolver;
	uint64_t number;               /* it counts while it is the resolver's last */
	uint32_t set;                  /* 0: wipe */
	hydnsd_cookies_done *done;
	uint64_t client;
	uint32_t tag;
};

static int wipe_now(struct hydnsd *d, uint32_t i, uint32_t set)
{
	const struct hydns_cookies none = { 0 };
	int rc = hydns_kern_cookies(d->kern, i, set, &none);

	if (rc)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot wipe the cookie secrets of resolver %u: %s", i,
			   strerror(-rc));
	return rc;
}

/* The grace period is over: gives the set its number, and wipes the other one. */
static int make_valid(struct hydnsd *d, uint32_t i, uint32_t set)
{
	struct hydns_cookies c;
	int rc = hydns_kern_cookies_get(d->kern, i, set, &c);

	if (!rc) {
		c.set = set;
		rc = hydns_kern_cookies(d->kern, i, set, &c);
	}
	explicit_bzero(&c, sizeof(c));
	wipe_now(d, i, set + 1);
	return rc;
}

static void after_grace(void *arg)
{
	struct cookie_write *write = arg;
	struct hydnsd *d = write->daemon;
	int rc;

	if (d->cookie_write[write->resolver] == write->number) {
		if (write->set) {
			rc = make_valid(d, write->resolver, write->set);
			write->done(d, write->client, write->tag, rc);
		} else {
			wipe_now(d, write->resolver, 0);
			wipe_now(d, write->resolver, 1);
		}
	}
	free(write);
}

static int start(struct hydnsd *d, const struct cookie_write *what)
{
	struct cookie_write *write = malloc(sizeof(*write));

	if (!write)
		return -ENOMEM;
	*write = *what;
	write->daemon = d;
	write->number = d->cookie_write[write->resolver] = ++d->cookie_writes;
	if (hydnsd_grace_after(d->grace, after_grace, write)) {
		free(write);
		return -ENOMEM;
	}
	return 0;
}

/* A plugin that comes back sends what is in the map already. */
static bool known(struct hydnsd *d, uint32_t i, const struct hydns_cookies *c)
{
	struct hydns_cookies old;
	bool same = !hydns_kern_cookies_get(d->kern, i, c->set, &old) && !memcmp(&old, c, sizeof(old));

	explicit_bzero(&old, sizeof(old));
	return same;
}

int hydnsd_cookies_set(struct hydnsd *d, uint32_t i, const struct hydns_cookies *c,
		       hydnsd_cookies_done *done, uint64_t client, uint32_t tag)
{
	const struct cookie_write write = {
		.resolver = i, .set = c->set, .done = done, .client = client, .tag = tag,
	};
	struct hydns_cookies not_yet = *c;
	int rc;

	if (known(d, i, c)) {
		d->cookie_write[i] = ++d->cookie_writes;
		wipe_now(d, i, c->set + 1);
		done(d, client, tag, 0);
		return 0;
	}
	not_yet.set = 0;
	rc = hydns_kern_cookies(d->kern, i, c->set, &not_yet);
	explicit_bzero(&not_yet, sizeof(not_yet));
	return rc ? rc : start(d, &write);
}

void hydnsd_cookies_wipe(struct hydnsd *d, uint32_t i, bool at_once)
{
	const struct cookie_write write = { .resolver = i };

	if (!at_once && !start(d, &write))
		return;
	d->cookie_write[i] = ++d->cookie_writes;
	wipe_now(d, i, 0);
	wipe_now(d, i, 1);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/cookies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/log.h"

struct job {
	struct hydnsd *daemon;
	uint32_t resolver;
	uint64_t number;               /* no longer the resolver's last: overtaken by another */
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
	struct job *job = arg;
	struct hydnsd *d = job->daemon;
	int rc;

	if (d->cookie_write[job->resolver] == job->number) {
		if (job->set) {
			rc = make_valid(d, job->resolver, job->set);
			job->done(d, job->client, job->tag, rc);
		} else {
			wipe_now(d, job->resolver, 0);
			wipe_now(d, job->resolver, 1);
		}
	}
	free(job);
}

static int start(struct hydnsd *d, const struct job *what)
{
	struct job *job = malloc(sizeof(*job));

	if (!job)
		return -ENOMEM;
	*job = *what;
	job->daemon = d;
	job->number = d->cookie_write[job->resolver] = ++d->cookie_writes;
	if (hydnsd_grace_after(d->grace, after_grace, job)) {
		free(job);
		return -ENOMEM;
	}
	return 0;
}

/* What a plugin that comes back hands over is there already. */
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
	const struct job job = { .resolver = i, .set = c->set, .done = done, .client = client, .tag = tag };
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
	return rc ? rc : start(d, &job);
}

void hydnsd_cookies_wipe(struct hydnsd *d, uint32_t i, bool at_once)
{
	const struct job job = { .resolver = i };

	if (!at_once && !start(d, &job))
		return;
	d->cookie_write[i] = ++d->cookie_writes;
	wipe_now(d, i, 0);
	wipe_now(d, i, 1);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The configuration is replaced while the resolver's threads go on. The order makes it safe:
 *
 *   the caller     (1) replaces the configuration and takes ready back, (2) kills all rules by advancing the epoch, (3) waits for a
 *                  grace period, (4) has the link thread send RESET and the new configuration.
 *   an offerer     (a) takes its stamp, the epoch in it, (b) reads ready, (c) writes its offer with that stamp.
 *
 * An offerer that read ready in (b) before (1) took its stamp before (2), so its rule is dead. One that reads it later does so after
 * hydnsd has acknowledged READY to the new configuration. All accesses are sequentially consistent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/internal.h"

/* (1) Takes the entries over. */
static void replace(struct hydns_plugin *p, const struct hydns_plugin_options *o, struct hydns_acl_entry *e, size_t n)
{
	pthread_mutex_lock(&p->configuring);
	p->configuration++;
	atomic_store(&p->ready, false);
	free(p->acl);
	p->acl = e;
	p->acls = n;
	p->o.flags = o->flags | (p->o.flags & (HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LOGS_ALL)); /* the tap stays */
	p->o.max_udp = o->max_udp;
	p->o.stale = o->stale;
	/* the resolver's threads read these */
	__atomic_store_n(&p->o.edns_size, o->edns_size, __ATOMIC_RELAXED);
	__atomic_store_n(&p->o.park_ms, o->park_ms, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->configuring);
	atomic_store(&p->edns_size_logged, false);
}

int hydns_plugin_reconfigure(struct hydns_plugin *p, const struct hydns_plugin_options *o, const struct hydns_acl_entry *e,
			      size_t n)
{
	struct hydns_request q = { .type = HYDNS_MSG_RESET };
	struct hydns_acl_entry *copy = n <= HYDNS_ACL_ENTRIES ? malloc((n + 1) * sizeof(*copy)) : NULL;

	if (copy && n)
		memcpy(copy, e, n * sizeof(*copy));
	replace(p, o, copy, copy ? n : 0);
	hydns_plugin_withdraw_all(p);
	if (p->started)
		(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
	if (copy)
		return 0;
	return n > HYDNS_ACL_ENTRIES ? -E2BIG : -ENOMEM;
}

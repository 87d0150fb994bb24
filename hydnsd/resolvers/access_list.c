/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/access_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/clients.h"
#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/resolvers/configuration.h"

int hydnsd_access_list_add(struct hydnsd *d, uint32_t i, const struct hydns_acl_entry *e, uint32_t n, char *why,
			   size_t room)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	struct hydns_acl_entry *more;

	if (n > HYDNS_ACL_ENTRIES - r->acl_count) {
		snprintf(why, room, "more than %d access-control prefixes: merge some", HYDNS_ACL_ENTRIES);
		return -E2BIG;
	}
	for (uint32_t k = 0; k < n; k++)
		if (e[k].prefixlen > 128 || e[k].action > HYDNS_ACL_ALLOW_EXEMPT || e[k].why >= HYDNS_CLIENTS) {
			snprintf(why, room, "an access-control entry has prefix length %u and action %u: "
				 "use a plugin of this hydnsd's version", e[k].prefixlen, e[k].action);
			return -EINVAL;
		}
	more = realloc(r->acl, (r->acl_count + n + 1) * sizeof(*more));
	if (!more) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	r->acl = more;
	memcpy(r->acl + r->acl_count, e, n * sizeof(*e));
	r->acl_count += n;
	return 0;
}

int hydnsd_access_list_fill(struct hydnsd *d, uint32_t i, struct hydns_resolver_config *c)
{
	static struct hydns_acl_entry entry[HYDNS_ACL_ENTRIES]; /* large; one thread */
	const struct hydnsd_resolver *r = &d->resolver[i];
	__u16 flags;
	int n = hydnsd_sources_apply(d, r->acl, r->acl_count, entry, &flags);

	c->flags = (__u16)((c->flags & ~(HYDNS_RESOLVER_ALLOWS_IPV4 | HYDNS_RESOLVER_ALLOWS_IPV6)) | flags);
	return n < 0 ? n : hydns_kern_acl_fill(d->kern, i, c->acl_half, entry, (size_t)n);
}

/* A resolver that was taken over from a former hydnsd has no list here until its plugin is back: its list in the kernel
 * stays as it is. */
bool hydnsd_access_lists_refill(struct hydnsd *d)
{
	bool failed = false;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_resolver *r = &d->resolver[i];
		struct hydns_resolver_config c = r->config;
		bool goes_on = r->state == HYDNSD_RESOLVER_STALE;
		int rc;

		if ((!r->live && !r->acl_stale && !goes_on) || !r->acl_count)
			continue;
		c.acl_half = !c.acl_half;
		rc = hydnsd_access_list_fill(d, i, &c);
		if (rc && !r->acl_stale)
			hydnsd_log(HYDNSD_LOG_ERROR, "cannot fill the access-control map of resolver %u: %s; the program "
				   "does not answer for it, and hydnsd tries again by itself", i, strerror(-rc));
		if (!rc)
			r->config = c;
		r->acl_stale = rc;
		failed |= rc != 0;
		if (rc && goes_on)
			hydnsd_resolver_release(d, i, "its access list could not follow the host's routes");
		else
			hydnsd_configuration_write(d, i, !rc && !goes_on);
	}
	return failed;
}

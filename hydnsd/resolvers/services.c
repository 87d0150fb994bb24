/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/services.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/addresses.h"
#include "hydnsd/netdev/prefixes.h"

struct service {
	struct hydns_service_key key;
	uint32_t resolver;
	uint32_t order;                /* in which they were wanted, of those that are not sorted yet */
};

struct service_list {
	struct service item[HYDNS_SERVICES];
	uint32_t count;
	bool full;                     /* some did not fit */
};

struct hydnsd_services {
	struct service_list installed;
};

static bool is_loopback(const uint8_t addr[16])
{
	struct in6_addr v6;

	memcpy(&v6, addr, sizeof(v6));
	return hydnsd_is_mapped(addr) ? addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&v6);
}

/* -- who has it? ------------------------------------------------------------------------------------------ */
static bool keeps(const struct hydnsd_resolver *r)
{
	return r->state == HYDNSD_RESOLVER_DISCONNECTED || r->state == HYDNSD_RESOLVER_CONFIGURING || r->state == HYDNSD_RESOLVER_STALE;
}

static bool same_place(const struct hydnsd_socket *a, const struct hydnsd_socket *b)
{
	return a->port == b->port && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static bool covers(const struct hydnsd_socket *s, const struct hydns_service_key *key)
{
	if (s->port != key->port)
		return false;
	if (s->any4 || s->any6)
		return hydnsd_is_mapped(key->addr) ? s->any4 : s->any6;
	return memcmp(s->addr, key->addr, sizeof(s->addr)) == 0;
}

/* A resolver that was taken over from a former hydnsd, or that is being configured again, may not have sent its sockets yet:
 * its services in the map stand for them. */
static bool holds_place(const struct hydnsd *d, uint32_t k, const struct hydnsd_socket *s)
{
	const struct hydnsd_resolver *r = &d->resolver[k];
	const struct service_list *l = &d->services->installed;

	for (uint32_t n = 0; n < r->socket_count; n++)
		if (same_place(&r->sockets[n], s))
			return true;
	if (!keeps(r) || (r->state != HYDNSD_RESOLVER_CONFIGURING && r->socket_count))
		return false;
	for (uint32_t n = 0; n < l->count; n++)
		if (l->item[n].resolver == k && covers(s, &l->item[n].key))
			return true;
	return false;
}

static bool known(const struct hydnsd_resolver *r, const struct hydnsd_socket *s)
{
	for (uint32_t n = 0; n < r->socket_count; n++)
		if (memcmp(&r->sockets[n], s, sizeof(*s)) == 0)
			return true;
	return false;
}

int hydnsd_services_holder(const struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s)
{
	if (known(&d->resolver[i], s))
		return -1;
	for (uint32_t k = 0; k < HYDNS_RESOLVERS; k++)
		if (k != i && holds_place(d, k, s))
			return (int)k;
	return -1;
}

static int add_socket(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, char *why, size_t room)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	struct hydnsd_socket *more;
	int k;

	if (known(r, s))
		return 0;
	/* By sharing the port (SO_REUSEPORT) it could answer another resolver's clients. */
	k = hydnsd_services_holder(d, i, s);
	if (k >= 0) {
		snprintf(why, room, "resolver %d has registered this address and port: let each resolver have "
			 "its own", k);
		return -EADDRINUSE;
	}
	more = r->socket_count < HYDNS_SERVICES ?
	       realloc(r->sockets, (r->socket_count + 1) * sizeof(*more)) : NULL;
	if (!more) {
		snprintf(why, room, "more than %d sockets, or out of memory", HYDNS_SERVICES);
		return -ENOMEM;
	}
	r->sockets = more;
	r->sockets[r->socket_count++] = *s;
	return 0;
}

/* -- refusals -------------------------------------------------------------------------------------------- */
static struct hydnsd_refusal *find_refusal(struct hydnsd_resolver *r, const struct hydnsd_socket *s)
{
	for (uint32_t n = 0; n < r->refusal_count; n++)
		if (memcmp(&r->refusals[n].socket, s, sizeof(*s)) == 0)
			return &r->refusals[n];
	return NULL;
}

static void forget_refusal(struct hydnsd_resolver *r, const struct hydnsd_socket *s)
{
	struct hydnsd_refusal *refusal = find_refusal(r, s);

	if (refusal)
		*refusal = r->refusals[--r->refusal_count];
}

/* False: it has been refused for the same reason before. */
static bool record_refusal(struct hydnsd_resolver *r, const struct hydnsd_socket *s, const char *why)
{
	struct hydnsd_refusal *refusal = find_refusal(r, s);

	if (refusal && strncmp(refusal->why, why, sizeof(refusal->why) - 1) == 0)
		return false;
	if (!refusal && r->refusal_count < HYDNSD_REFUSALS_MAX) {
		struct hydnsd_refusal *more = realloc(r->refusals, (r->refusal_count + 1) * sizeof(*more));

		if (more) {
			r->refusals = more;
			refusal = &more[r->refusal_count++];
		}
	}
	if (refusal) {
		refusal->socket = *s;
		snprintf(refusal->why, sizeof(refusal->why), "%s", why);
	}
	return refusal;
}

bool hydnsd_services_refused(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, const char *why)
{
	return record_refusal(&d->resolver[i], s, why);
}

int hydnsd_services_add(struct hydnsd *d, uint32_t i, const struct hydnsd_socket *s, char *why, size_t room, bool *news)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	int rc = add_socket(d, i, s, why, room);

	if (rc) {
		*news = record_refusal(r, s, why);
		return rc;
	}
	*news = find_refusal(r, s);
	forget_refusal(r, s);
	if (r->state == HYDNSD_RESOLVER_READY)
		hydnsd_services_sync(d);
	return 0;
}

/* -- what the map should hold ---------------------------------------------------------------------------- */
static int compare(const void *a, const void *b)
{
	return memcmp(&((const struct service *)a)->key, &((const struct service *)b)->key,
		      sizeof(struct hydns_service_key));
}

static int compare_wanted(const void *a, const void *b)
{
	const struct service *x = a, *y = b;
	int order = compare(x, y);

	return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static void want(struct service_list *l, const uint8_t addr[16], uint16_t port, uint32_t resolver)
{
	struct service s = { .resolver = resolver, .order = l->count };

	if (l->count == HYDNS_SERVICES) {
		l->full = true;
		return;
	}
	memcpy(s.key.addr, addr, sizeof(s.key.addr));
	s.key.port = port;
	l->item[l->count++] = s;
}

static bool answers_on_loopback(const struct hydnsd *d)
{
	for (uint32_t i = 0; i < d->options.interface.count; i++)
		if (strcmp(d->options.interface.item[i], "lo") == 0)
			return true;
	return false;
}

/* A packet to an address that the host does not have is for another host. The host discards packets to a loopback address
 * that do not arrive at lo. */
static bool answers_at(const struct hydnsd *d, const uint8_t addr[16])
{
	return (!is_loopback(addr) || answers_on_loopback(d)) && hydnsd_addresses_have(d, addr);
}

static void want_socket(const struct hydnsd *d, struct service_list *l, uint32_t i,
			const struct hydnsd_socket *s)
{
	const uint8_t *addr;

	if (!s->any4 && !s->any6) {
		if (answers_at(d, s->addr))
			want(l, s->addr, s->port, i);
		return;
	}
	for (uint32_t n = 0; (addr = hydnsd_addresses_get(d, n)); n++)
		if ((hydnsd_is_mapped(addr) ? s->any4 : s->any6) && answers_at(d, addr))
			want(l, addr, s->port, i);
}

static void want_sockets(const struct hydnsd *d, struct service_list *l, bool wildcards)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		for (uint32_t n = 0; d->resolver[i].state == HYDNSD_RESOLVER_READY &&
				     n < d->resolver[i].socket_count; n++) {
			const struct hydnsd_socket *s = &d->resolver[i].sockets[n];

			if ((s->any4 || s->any6) == wildcards)
				want_socket(d, l, i, s);
		}
}

/* Exact addresses come before wildcards, as when the kernel chooses a socket. What resolvers keep that are not ready may
 * be exact. sort_unique() then keeps the first of each key. */
static void gather(const struct hydnsd *d, struct service_list *l)
{
	const struct service_list *old = &d->services->installed;

	l->count = 0;
	l->full = false;
	want_sockets(d, l, false);
	for (uint32_t n = 0; n < old->count; n++)
		if (keeps(&d->resolver[old->item[n].resolver]) && answers_at(d, old->item[n].key.addr))
			want(l, old->item[n].key.addr, old->item[n].key.port, old->item[n].resolver);
	want_sockets(d, l, true);
}

/* Sorts by key, and keeps the first of equal keys. */
static void sort_unique(struct service_list *l)
{
	uint32_t kept = 0;

	qsort(l->item, l->count, sizeof(l->item[0]), compare_wanted);
	for (uint32_t n = 0; n < l->count; n++)
		if (!kept || compare(&l->item[kept - 1], &l->item[n]))
			l->item[kept++] = l->item[n];
	l->count = kept;
}

static bool holds(const struct service_list *l, const struct service *s, bool same_resolver)
{
	const struct service *found = bsearch(s, l->item, l->count, sizeof(*s), compare);

	return found && (!same_resolver || found->resolver == s->resolver);
}

static void install(struct hydnsd *d, const struct service_list *wanted)
{
	struct service_list *old = &d->services->installed;

	for (uint32_t n = 0; n < old->count; n++)
		if (!holds(wanted, &old->item[n], false))
			hydns_kern_service_delete(d->kern, &old->item[n].key);
	for (uint32_t n = 0; n < wanted->count; n++) {
		int rc = holds(old, &wanted->item[n], true) ? 0 :
			 hydns_kern_service_set(d->kern, &wanted->item[n].key, wanted->item[n].resolver);

		if (rc)
			hydnsd_log(HYDNSD_LOG_ERROR, "cannot register a service: %s", strerror(-rc));
	}
	*old = *wanted;
}

void hydnsd_services_sync(struct hydnsd *d)
{
	static struct service_list wanted; /* too large for the stack; one thread */

	gather(d, &wanted);
	if (wanted.full)
		hydnsd_log(HYDNSD_LOG_WARNING, "more than %d addresses and ports: the others are answered "
			   "by the resolver alone; bind to fewer addresses", HYDNS_SERVICES);
	sort_unique(&wanted);
	install(d, &wanted);
}

/* -- start and end ---------------------------------------------------------------------------------------- */
static int record_installed(const struct hydns_service_key *key, __u32 resolver, void *arg)
{
	struct hydnsd *d = arg;

	if (resolver < HYDNS_RESOLVERS)
		want(&d->services->installed, key->addr, key->port, resolver);
	return 0;
}

int hydnsd_services_start(struct hydnsd *d, char *why, size_t room)
{
	d->services = calloc(1, sizeof(*d->services));
	if (!d->services) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	hydns_kern_service_each(d->kern, record_installed, d);
	sort_unique(&d->services->installed);
	return 0;
}

void hydnsd_services_stop(struct hydnsd *d)
{
	free(d->services);
	d->services = NULL;
}

void hydnsd_services_each(struct hydnsd *d,
			  void (*fn)(const struct hydns_service_key *, uint32_t resolver, void *),
			  void *arg)
{
	const struct service_list *l = &d->services->installed;

	for (uint32_t n = 0; n < l->count; n++)
		fn(&l->item[n].key, l->item[n].resolver, arg);
}

static struct hydns_service_key key_of(const struct hydnsd_socket *s)
{
	struct hydns_service_key key = { .port = s->port };

	memcpy(key.addr, s->addr, sizeof(key.addr));
	return key;
}

void hydnsd_services_missing(struct hydnsd *d, uint32_t i,
			     void (*fn)(const struct hydns_service_key *, const char *why, void *), void *arg)
{
	const struct hydnsd_resolver *r = &d->resolver[i];

	for (uint32_t n = 0; n < r->refusal_count; n++) {
		struct hydns_service_key key = key_of(&r->refusals[n].socket);

		fn(&key, r->refusals[n].why, arg);
	}
	for (uint32_t n = 0; n < r->socket_count; n++) {
		const struct hydnsd_socket *s = &r->sockets[n];
		struct hydns_service_key key = key_of(s);

		if (!s->any4 && !s->any6 && !is_loopback(s->addr) && !answers_at(d, s->addr))
			fn(&key, "not an address of this host at present: answered as soon as it is one", arg);
	}
}

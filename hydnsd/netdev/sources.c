/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/sources.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/netlink.h"
#include "hydnsd/netdev/routes.h"
#include "hydnsd/netdev/prefixes.h"

#define FULL_MS      10000             /* until a table with too many routes is read again */
#define NOTE         200
#define NOTICES      (HYDNS_NOTICES(LINK) | HYDNS_NOTICES(IPV4_IFADDR) | HYDNS_NOTICES(IPV4_ROUTE) | HYDNS_NOTICES(IPV6_ROUTE) | \
		      HYDNS_NOTICES(IPV4_RULE) | HYDNS_NOTICES(IPV6_RULE) | HYDNS_NOTICES(IPV4_NETCONF) | \
		      HYDNS_NOTICES(NEXTHOP))

struct family {
	const char *name;
	int number;
	struct hydnsd_routes routes;
	uint64_t not_before_ms;        /* of the next reading, after too many routes; 0: any time */
	uint64_t unread_since_ms;      /* since when routes could not be read; 0: the last look could */
	bool known;                    /* they were read once */
	bool dropped;                  /* they do not fit beside an access list: all sources are refused */
	char note[NOTE];
	const char *mend;
};

struct hydnsd_sources {
	hydnsd_sources_changed *changed;
	int notices;                   /* netlink socket: the kernel notifies of changes */
	struct hydnsd_watch *watch;    /* NULL between a notice and the next look */
	uint32_t looks;                /* still to be made */
	bool acl_stale;                /* some access list in the kernel could not be changed */
	uint64_t not_before_ms;        /* of the next look */
	struct hydnsd_rpfilter rp;
	struct family family[HYDNSD_FAMILIES];
	__u64 own[HYDNS_OWN_WORDS];    /* the filter in the program */
};

/* -- looking ----------------------------------------------------------------------------------------------- */
static bool same(const struct hydnsd_routes *a, const struct hydnsd_routes *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->prefix[i].bits != b->prefix[i].bits || a->prefix[i].value != b->prefix[i].value ||
		    memcmp(a->prefix[i].addr, b->prefix[i].addr, sizeof(a->prefix[i].addr)) != 0)
			return false;
	return true;
}

static bool any_routed(const struct hydnsd_routes *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->prefix[i].value == HYDNSD_SOURCE_ROUTED)
			return true;
	return false;
}

static void say(struct family *f, const char *mend, const char *note, ...) __attribute__((format(printf, 3, 4)));
static void say(struct family *f, const char *mend, const char *note, ...)
{
	va_list ap;

	va_start(ap, note);
	vsnprintf(f->note, sizeof(f->note), note, ap);
	va_end(ap);
	f->mend = mend;
}

static void explain_error(struct family *f, int rc)
{
	if (rc == -E2BIG)
		say(f, "have the routing daemon export fewer routes to the kernel, with a default route among them",
		    "more than %d routes: all %s queries are passed", HYDNSD_ROUTES_MOST, f->name);
	else if (rc == -ENOSPC)
		say(f, "merge blackhole routes, or add a default route", "the routes divide sources into more than %d "
		    "prefixes: all %s queries are passed", HYDNSD_ROUTES_RESULT, f->name);
	else
		say(f, "none is needed, hydnsd tries again by itself", "the routes cannot be read (%s): all %s queries are "
		    "passed", strerror(-rc), f->name);
}

/* Says what is passed although the stack would accept some of it. */
static void explain_routes(const struct hydnsd_sources *s, struct family *f)
{
	const struct hydnsd_routes *r = &f->routes;

	say(f, "", "%s", "");
	if (f->dropped)
		say(f, "merge prefixes of the access list, or blackhole routes", "the routes do not fit beside a resolver's "
		    "access list, %d prefixes in all: all %s queries are passed", HYDNS_ACL_ENTRIES, f->name);
	else if (s->rp.vrf[0])
		say(f, "attach to an interface that is in no VRF", "%s is in a VRF, whose routes hydnsd does not look at: "
		    "all %s queries are passed", s->rp.vrf, f->name);
	else if (r->unclear)
		say(f, "do without goto, name at most 20 tables, and keep the rule for table main (ip rule)",
		    "the policy rules say more than hydnsd can look at: all %s queries are passed", f->name);
	else if (f->number == AF_INET && s->rp.count && s->rp.several)
		say(f, "set rp_filter to 2 (loose), or attach to one interface", "rp_filter is strict, and the tables do not "
		    "show by which of several devices a query came: only sources with routes by each strict one are "
		    "answered");
	else if (r->rules && r->routes && !any_routed(r))
		say(f, "give each of these tables, and main, a default route", "no source is good by every table that a policy "
		    "rule may lead to: all %s queries are passed", f->name);
	else if (r->rules)
		say(f, "", "there are policy rules: only sources that are good by every table that a rule may lead to are "
		    "answered");
}

static void log_note(const struct family *f)
{
	hydnsd_log(HYDNSD_LOG_WARNING, "sources, %s: %s%s%s", f->name, f->note, f->mend[0] ? ": " : "", f->mend);
}

/* rc: of a look. True: the family's routes could not be read just now, and those read before still count. */
static bool counts_still(struct family *f, int rc)
{
	bool unread = rc && rc != -E2BIG && rc != -ENOSPC, patient;

	patient = hydnsd_netlink_patient(&f->unread_since_ms, unread ? rc : 0);
	f->known |= !unread;
	return unread && patient && f->known;
}

/* Reads the routes of a family. True: they judge some source otherwise than before. */
static bool look_at(struct hydnsd_sources *s, struct family *f, int rc)
{
	static struct hydnsd_routes now;
	char before[NOTE];
	bool changed;

	if (hydnsd_now_ms() < f->not_before_ms)
		return false;
	if (!rc)
		rc = hydnsd_routes_read(f->number, &s->rp, &now);
	if (rc && !s->looks)
		s->looks = 1;          /* at the next tick */
	if (counts_still(f, rc))
		return false;
	if (rc)
		now = (struct hydnsd_routes){ .count = 0 };
	changed = !same(&now, &f->routes);
	if (changed)
		f->dropped = false;
	f->routes = now;
	f->not_before_ms = rc == -E2BIG ? hydnsd_now_ms() + FULL_MS : 0;
	memcpy(before, f->note, sizeof(before));
	if (rc)
		explain_error(f, rc);
	else
		explain_routes(s, f);
	if (f->note[0] && strcmp(before, f->note) != 0)
		log_note(f);
	return changed;
}

static void add_own(const struct family *f, __u64 filter[HYDNS_OWN_WORDS])
{
	for (uint32_t i = 0; i < f->routes.count; i++) {
		const struct hydnsd_prefix *p = &f->routes.prefix[i];
		uint64_t half[2];
		uint32_t bit;

		if (p->value != HYDNSD_SOURCE_OWN || p->bits != HYDNSD_PREFIX_BITS)
			continue;
		memcpy(half, p->addr, sizeof(half));
		bit = hydns_own_bit(half[0], half[1]);
		filter[bit / 64] |= 1ULL << bit % 64;
	}
}

/* The filter decides who is looked up in the access lists. So it holds the former addresses as well until all lists are
 * changed. True: some list could not be changed. */
static bool change_lists(struct hydnsd *d)
{
	struct hydnsd_sources *s = d->sources;
	__u64 now[HYDNS_OWN_WORDS] = { 0 };
	bool stale;

	for (int i = 0; i < HYDNSD_FAMILIES; i++)
		add_own(&s->family[i], now);
	for (uint32_t i = 0; i < HYDNS_OWN_WORDS; i++)
		s->own[i] |= now[i];
	hydns_kern_own_set(d->kern, s->own);
	stale = s->changed(d);
	if (!stale) {
		memcpy(s->own, now, sizeof(s->own));
		hydns_kern_own_set(d->kern, s->own);
	}
	return stale;
}

static void look(struct hydnsd *d)
{
	struct hydnsd_sources *s = d->sources;
	uint64_t begun = hydnsd_now_ms();
	int rc = hydnsd_rpfilter_read(&d->options.interface, d->with.vlan, &s->rp);
	bool changed = false;

	if (s->looks)
		s->looks--;
	for (int i = 0; i < HYDNSD_FAMILIES; i++)
		changed |= look_at(s, &s->family[i], rc);
	if (changed || s->acl_stale)
		s->acl_stale = change_lists(d);
	if (s->acl_stale)
		s->looks = 2;
	s->not_before_ms = hydnsd_netlink_not_before(begun);
}

/* -- notices -------------------------------------------------------------------------------------------- */
/* Looks at most once in a tick, however often routes change. Until then the socket is not watched: epoll cannot be kept from
 * reporting lost messages. The kernel may notify of a link that goes down before it removes the link's routes: hence a second
 * look. */
static void readable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;

	(void)events;
	d->sources->looks = 2;
	hydnsd_watch_end(d->sources->watch);
	d->sources->watch = NULL;
}

void hydnsd_sources_tick(struct hydnsd *d)
{
	struct hydnsd_sources *s = d->sources;
	uint64_t now = hydnsd_now_ms();

	for (int i = 0; i < HYDNSD_FAMILIES; i++)
		if (s->family[i].not_before_ms && now >= s->family[i].not_before_ms && !s->looks)
			s->looks = 1;
	if (!s->looks || now < s->not_before_ms)
		return;
	if (!s->watch) {
		hydnsd_netlink_drain(s->notices);
		s->watch = hydnsd_loop_watch(d->loop, s->notices, EPOLLIN, readable, d);
		if (!s->watch)
			s->looks = 2;  /* out of memory: without notices, look at every tick */
	}
	look(d);
}

void hydnsd_sources_update(struct hydnsd *d)
{
	look(d);
}

int hydnsd_sources_start(struct hydnsd *d, hydnsd_sources_changed *changed, char *why, size_t room)
{
	struct hydnsd_sources *s = d->sources = calloc(1, sizeof(*s));

	if (s) {
		s->changed = changed;
		s->family[HYDNSD_IPV4] = (struct family){ .name = "IPv4", .number = AF_INET, .mend = "" };
		s->family[HYDNSD_IPV6] = (struct family){ .name = "IPv6", .number = AF_INET6, .mend = "" };
		s->notices = hydns_netlink_listen(NOTICES, NULL);
		if (s->notices >= 0)
			s->watch = hydnsd_loop_watch(d->loop, s->notices, EPOLLIN, readable, d);
	}
	if (!s || !s->watch) {
		snprintf(why, room, "cannot follow the host's routes by rtnetlink: %s", strerror(s && s->notices < 0 ? -s->notices : errno));
		return -EIO;
	}
	look(d);
	return 0;
}

void hydnsd_sources_stop(struct hydnsd *d)
{
	struct hydnsd_sources *s = d->sources;

	if (!s)
		return;
	hydnsd_watch_end(s->watch);
	if (s->notices >= 0)
		close(s->notices);
	free(s);
	d->sources = NULL;
}

/* -- into an access list ----------------------------------------------------------------------------------- */
enum { ACL, SOURCES };

static uint8_t judge(const uint8_t value[HYDNSD_PREFIX_TABLES], const void *arg)
{
	(void)arg;
	return value[SOURCES] == HYDNSD_SOURCE_ROUTED ? value[ACL] : HYDNS_ACL_PASS;
}

/* Own addresses that the program passes without this table: by its filter, which holds addresses of 128 bits alone, or because
 * they are not unicast. */
static bool passed_anyway(const struct hydnsd_prefix *p)
{
	return p->value == HYDNSD_SOURCE_OWN && (p->bits == HYDNSD_PREFIX_BITS || hydnsd_sources_never(p->addr, p->bits));
}

/* own: own addresses that the program passes without this table are left out of it. */
static uint32_t add_family(const struct family *f, bool own, struct hydnsd_prefix *in, uint32_t n)
{
	static const struct hydnsd_prefix root[] = {
		[HYDNSD_IPV4] = { .addr = { [10] = 0xff, [11] = 0xff }, .bits = HYDNSD_PREFIX_BITS_V4 }, [HYDNSD_IPV6] = { .bits = 0 },
	};

	/* mapped IPv4 addresses lie within ::/0: this keeps IPv6's routes from them */
	in[n] = root[f->number == AF_INET ? HYDNSD_IPV4 : HYDNSD_IPV6];
	in[n++].table = SOURCES;
	for (uint32_t i = 0; !f->dropped && i < f->routes.count; i++) {
		in[n] = f->routes.prefix[i];
		if (own && passed_anyway(&in[n]))
			in[n].value = HYDNSD_SOURCE_ROUTED;
		in[n++].table = SOURCES;
	}
	return n;
}

static int apply(const struct hydnsd_sources *s, const struct hydns_acl_entry *acl, uint32_t n, bool own,
		 struct hydns_acl_entry *out)
{
	static struct hydnsd_prefix in[HYDNS_ACL_ENTRIES + 2 * (HYDNSD_ROUTES_RESULT + 1)], made[HYDNS_ACL_ENTRIES];
	uint32_t k;
	int count;

	for (k = 0; k < n; k++) {
		in[k] = (struct hydnsd_prefix){ .bits = acl[k].prefixlen, .table = ACL, .value = acl[k].action };
		memcpy(in[k].addr, acl[k].addr, sizeof(in[k].addr));
	}
	k = add_family(&s->family[HYDNSD_IPV6], own, in, k);
	k = add_family(&s->family[HYDNSD_IPV4], own, in, k);
	count = hydnsd_prefixes_combine(in, k, judge, NULL, made, HYDNS_ACL_ENTRIES);
	for (int i = 0; i < count; i++) {
		out[i] = (struct hydns_acl_entry){ .prefixlen = made[i].bits, .action = made[i].value };
		memcpy(out[i].addr, made[i].addr, sizeof(out[i].addr));
	}
	return count;
}

/* Drops the routes of a family, the one with more of them first; an access list alone always fits. */
static void drop_one(struct hydnsd_sources *s)
{
	struct family *f = s->family;
	bool v4 = f[HYDNSD_IPV6].dropped || (!f[HYDNSD_IPV4].dropped && f[HYDNSD_IPV4].routes.count >= f[HYDNSD_IPV6].routes.count);
	struct family *larger = &f[v4 ? HYDNSD_IPV4 : HYDNSD_IPV6];

	larger->dropped = true;
	explain_routes(s, larger);
	log_note(larger);
}

int hydnsd_sources_apply(struct hydnsd *d, const struct hydns_acl_entry *acl, uint32_t n, struct hydns_acl_entry *out,
			 __u16 *flags)
{
	int count;

	for (;;) {
		count = apply(d->sources, acl, n, true, out);
		*flags = count < 0 ? 0 : hydns_acl_flags(out, (size_t)count);
		count = apply(d->sources, acl, n, false, out);
		if (count >= 0 || (d->sources->family[HYDNSD_IPV4].dropped && d->sources->family[HYDNSD_IPV6].dropped))
			return count;
		drop_one(d->sources);
	}
}

/* -- queries ------------------------------------------------------------------------------------------------- */
static bool is_never(const uint8_t addr[16], bool v4)
{
	static const uint8_t zero[8];

	if (v4)
		return addr[12] == 0 || addr[12] == 127 || addr[12] >= 224;
	return addr[0] == 0xff || memcmp(addr, zero, sizeof(zero)) == 0;
}

bool hydnsd_sources_never(const uint8_t addr[16], unsigned bits)
{
	bool v4 = bits >= HYDNSD_PREFIX_BITS_V4 && hydnsd_is_mapped(addr);
	unsigned least = v4 ? HYDNSD_PREFIX_BITS_V4 + (addr[12] >= 224 ? 3 : 8) : addr[0] == 0xff ? 8 : 64;

	return bits >= least && is_never(addr, v4);
}

const char *hydnsd_sources_refuse(const struct hydnsd *d, const uint8_t addr[16])
{
	const struct family *f = &d->sources->family[hydnsd_is_mapped(addr) ? HYDNSD_IPV4 : HYDNSD_IPV6];

	switch (f->dropped ? HYDNSD_SOURCE_REFUSED : hydnsd_prefixes_find(f->routes.prefix, f->routes.count, addr)) {
	case HYDNSD_SOURCE_ROUTED:
		return NULL;
	case HYDNSD_SOURCE_OWN:
		return "it is an address of this host, a broadcast or an anycast address: queries from there are passed";
	}
	if (f->note[0])
		return f->note;
	return f->number == AF_INET && d->sources->rp.count ?
		"this host has no route to it by the interface, as rp_filter demands, or one that refuses it (see 'ip route "
		"get'): queries from there are passed" :
		"this host has no route to it, or one that refuses it (see 'ip route get'): queries from there are passed";
}

bool hydnsd_sources_get(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out)
{
	const struct family *f;

	if (!d->sources || n >= HYDNSD_FAMILIES)
		return false;
	f = &d->sources->family[n];
	*out = (struct hydnsd_sources_state){
		.family = f->name, .rp_filter = n == HYDNSD_IPV4 ? hydnsd_rpfilter_text(d->sources->rp.mode) : "",
		.routes = f->routes.routes, .prefixes = f->routes.count, .note = f->note,
		.mend = f->mend,
	};
	return true;
}

bool hydnsd_sources_none(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out)
{
	const struct family *f;

	if (!hydnsd_sources_get(d, n, out))
		return false;
	f = &d->sources->family[n];
	if (!f->dropped && any_routed(&f->routes))
		return false;
	if (!out->note[0]) {
		out->note = n == HYDNSD_IPV4 && d->sources->rp.count ?
			"rp_filter is strict, and no route leaves by the interface that queries come by" :
			"this host has no route to any client";
		out->mend = n == HYDNSD_IPV4 && d->sources->rp.count ? "set rp_filter to 2 (loose), or mend the routes" :
			"add a route to the clients, or a default route";
	}
	return true;
}

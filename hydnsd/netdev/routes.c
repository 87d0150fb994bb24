/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/routes.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hydnsd/netdev/netlink.h"
#include "hydnsd/netdev/prefixes.h"

/* Values of a prefix in a table; 0: none. */
enum verdict { GOOD = 1, BAD, THROWN };

/* Tables of hydnsd_prefixes_combine(). */
enum { LOCAL, MAIN, RULES, OTHERS };
#define OTHERS_MOST (HYDNSD_PREFIX_TABLES - OTHERS)

struct route {
	struct hydnsd_prefix prefix;
	uint32_t priority;
	bool dead;                     /* the kernel takes the next route of this prefix, or of a shorter one */
	bool varies;                   /* applies to some packets only */
};

struct reading {
	int family;
	const struct hydnsd_rpfilter *rp;
	struct route *route;
	uint32_t count, room;
	uint32_t before;               /* of those, from tables read before this one */
	uint32_t other[OTHERS_MOST];   /* the kernel's numbers of the tables that rules name */
	uint32_t others;
	uint8_t table;                 /* being read: LOCAL, ... */
	uint32_t table_id;             /* the kernel's number of it */
	bool main_counts, rules, unclear;
};

/* -- routes ------------------------------------------------------------------------------------------------ */
static int append(struct reading *r, const struct route *route)
{
	if (r->count == HYDNSD_ROUTES_MOST)
		return -E2BIG;
	if (r->count == r->room) {
		uint32_t room = r->room ? 2 * r->room : 64;
		struct route *more = realloc(r->route, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->route = more;
		r->room = room;
	}
	r->route[r->count] = *route;
	r->route[r->count].prefix.order = r->count;
	r->count++;
	return 0;
}

/* False: the prefix holds no client's address of this family. */
static bool put_prefix(const struct reading *r, const void *addr, uint8_t bits, struct hydnsd_prefix *p)
{
	bool v4 = r->family == AF_INET;

	memset(p, 0, sizeof(*p));
	p->bits = bits;
	if (v4) {
		p->bits += HYDNSD_PREFIX_BITS_V4;
		memset(p->addr + 10, 0xff, 2);
	}
	if (addr)
		memcpy(p->addr + (v4 ? 12 : 0), addr, v4 ? 4 : 16);
	return p->bits <= HYDNSD_PREFIX_BITS &&
	       (v4 || p->bits < HYDNSD_PREFIX_BITS_V4 || !hydnsd_is_mapped(p->addr));
}

static uint64_t device_bit(const struct hydnsd_rpfilter *rp, unsigned index)
{
	for (uint32_t i = 0; i < rp->count; i++)
		if (rp->device[i] == index)
			return 1ULL << i;
	return 0;
}

/* The sysctl ignore_routes_with_linkdown decides whether a hop without carrier is used: do not count it. */
static void take_hop(const struct reading *r, unsigned flags, unsigned index, uint64_t *devices, bool *alive, bool *used)
{
	*alive |= !(flags & RTNH_F_DEAD);
	if (flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN))
		return;
	*used = true;
	*devices |= device_bit(r->rp, index);
}

static uint8_t judge_hops(const struct reading *r, const struct rtmsg *m, int len, bool *dead)
{
	const uint64_t all = r->rp->count < 64 ? (1ULL << r->rp->count) - 1 : UINT64_MAX;
	const struct rtattr *a = RTM_RTA(m);
	const unsigned *index = hydns_netlink_attr(a, len, RTA_OIF, sizeof(*index));
	uint64_t devices = 0;
	bool alive = false, used = false, many = false;

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		const struct rtnexthop *hop = RTA_DATA(a);
		int left = (int)RTA_PAYLOAD(a);

		if (a->rta_type != RTA_MULTIPATH)
			continue;
		many = true;
		for (; RTNH_OK(hop, left); left -= (int)RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
			take_hop(r, hop->rtnh_flags, (unsigned)hop->rtnh_ifindex, &devices, &alive, &used);
	}
	if (!many)
		take_hop(r, m->rtm_flags, index ? *index : 0, &devices, &alive, &used);
	*dead = !alive;
	return used && (r->family != AF_INET || (devices == all && !r->rp->full)) ? GOOD : BAD;
}

static int take_route(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	struct reading *r = arg;
	struct route route = { .dead = false };
	const uint32_t *number;
	const struct rtattr *a;
	const void *to;
	int len;

	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->rtm_family != r->family ||
	    (m->rtm_flags & RTM_F_CLONED))
		return 0;
	a = RTM_RTA(m);
	len = (int)RTM_PAYLOAD(h);
	number = hydns_netlink_attr(a, len, RTA_TABLE, sizeof(*number));
	if ((number ? *number : m->rtm_table) != r->table_id)
		return 0;
	to = hydns_netlink_attr(a, len, RTA_DST, r->family == AF_INET ? 4 : 16);
	if (!put_prefix(r, to, m->rtm_dst_len, &route.prefix))
		return 0;
	number = hydns_netlink_attr(a, len, RTA_PRIORITY, sizeof(*number));
	route.priority = number ? *number : 0;
	route.varies = m->rtm_tos || m->rtm_src_len;
	route.prefix.table = r->table;
	if (m->rtm_type == RTN_UNICAST)
		route.prefix.value = judge_hops(r, m, len, &route.dead);
	else
		route.prefix.value = m->rtm_type == RTN_THROW ? THROWN : BAD;
	return append(r, &route);
}

static void begin_table(void *arg)
{
	struct reading *r = arg;

	r->count = r->before;
}

static int read_table(struct reading *r, uint8_t table, uint32_t id)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
		struct rtattr attr;
		uint32_t id;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETROUTE },
		.body = { .rtm_family = (unsigned char)r->family },
		.attr = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_TABLE },
		.id = id,
	};
	int rc;

	r->table = table;
	r->table_id = id;
	r->before = r->count;
	rc = hydnsd_netlink_dump(&request.head, begin_table, take_route, r);
	return rc == -ENOENT ? 0 : rc; /* a table exists from its first route on */
}

/* -- policy rules ------------------------------------------------------------------------------------------ */
struct rule {
	const struct fib_rule_hdr *head;
	const struct rtattr *attr;
	int len;
};

static const void *rule_attr(const struct rule *u, unsigned short type, size_t least)
{
	return hydns_netlink_attr(u->attr, u->len, type, least);
}

/* Any other attribute counts as a condition, also one of a later kernel. */
static bool unconditional(const struct rule *u)
{
	const uint32_t *least = rule_attr(u, FRA_SUPPRESS_PREFIXLEN, sizeof(*least));
	const struct rtattr *a = u->attr;

	for (int len = u->len; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type != FRA_TABLE && a->rta_type != FRA_PRIORITY && a->rta_type != FRA_PROTOCOL &&
		    a->rta_type != FRA_SUPPRESS_PREFIXLEN && a->rta_type != FRA_PAD)
			return false;
	return !u->head->dst_len && !u->head->src_len && !u->head->tos && !(u->head->flags & FIB_RULE_INVERT) &&
	       !(least && *least != UINT32_MAX);
}

/* The kernel looks up sources, and what this host sends, with loopback as the incoming interface. The caller handles VRFs. */
static bool never_counts(const struct rule *u)
{
	const char *in = rule_attr(u, FRA_IIFNAME, 1);
	const uint8_t *l3mdev = rule_attr(u, FRA_L3MDEV, sizeof(*l3mdev));

	return !(u->head->flags & FIB_RULE_INVERT) && ((in && strcmp(in, "lo") != 0) || (l3mdev && *l3mdev));
}

static void take_other(struct reading *r, uint32_t id)
{
	for (uint32_t i = 0; i < r->others; i++)
		if (r->other[i] == id)
			return;
	if (r->others == OTHERS_MOST)
		r->unclear = true;
	else
		r->other[r->others++] = id;
}

/* A rule that forbids counts as a route of the table RULES. */
static int take_refusal(struct reading *r, const struct rule *u)
{
	struct route route = { .dead = false };
	bool all = u->head->flags & FIB_RULE_INVERT;
	const void *to = all ? NULL : rule_attr(u, FRA_DST, r->family == AF_INET ? 4 : 16);

	if (!put_prefix(r, to, to ? u->head->dst_len : 0, &route.prefix))
		return 0;
	route.prefix.table = RULES;
	route.prefix.value = BAD;
	return append(r, &route);
}

static int take_rule(const struct nlmsghdr *h, void *arg)
{
	const struct fib_rule_hdr *head = NLMSG_DATA(h);
	const int fixed = NLMSG_ALIGN(sizeof(*head));
	struct rule u = { head, (const void *)((const char *)head + fixed), (int)NLMSG_PAYLOAD(h, fixed) };
	struct reading *r = arg;
	const uint32_t *id;
	uint32_t table;

	if (h->nlmsg_type != RTM_NEWRULE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*head)) || head->family != r->family)
		return 0;
	id = rule_attr(&u, FRA_TABLE, sizeof(*id));
	table = id ? *id : head->table;
	if (head->action == FR_ACT_TO_TBL && unconditional(&u) && (table == RT_TABLE_LOCAL || table == RT_TABLE_MAIN)) {
		r->main_counts |= table == RT_TABLE_MAIN;
		return 0;
	}
	if (never_counts(&u) || head->action == FR_ACT_NOP)
		return 0;
	r->rules |= table != RT_TABLE_DEFAULT;
	if (head->action == FR_ACT_BLACKHOLE || head->action == FR_ACT_UNREACHABLE || head->action == FR_ACT_PROHIBIT)
		return take_refusal(r, &u);
	if (head->action != FR_ACT_TO_TBL)
		r->unclear = true;     /* goto */
	else if (table != RT_TABLE_LOCAL && table != RT_TABLE_MAIN)
		take_other(r, table);
	return 0;
}

static void begin_rules(void *arg)
{
	struct reading *r = arg;

	r->count = r->others = 0;
	r->main_counts = r->rules = r->unclear = false;
}

static int read_rules(struct reading *r)
{
	struct {
		struct nlmsghdr head;
		struct fib_rule_hdr body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETRULE },
		.body = { .family = (unsigned char)r->family },
	};

	return hydnsd_netlink_dump(&request.head, begin_rules, take_rule, r);
}

/* -- all together ------------------------------------------------------------------------------------------ */
static int compare(const void *a, const void *b)
{
	const struct route *x = a, *y = b;
	int differs = memcmp(x->prefix.addr, y->prefix.addr, sizeof(x->prefix.addr));

	if (!differs)
		differs = (int)x->prefix.bits - y->prefix.bits;
	if (!differs)
		differs = (int)x->prefix.table - y->prefix.table;
	if (!differs)
		differs = x->priority < y->priority ? -1 : x->priority > y->priority;
	return differs ? differs : x->prefix.order < y->prefix.order ? -1 : x->prefix.order > y->prefix.order;
}

static bool same_place(const struct route *a, const struct route *b)
{
	return a->prefix.bits == b->prefix.bits && a->prefix.table == b->prefix.table &&
	       memcmp(a->prefix.addr, b->prefix.addr, sizeof(a->prefix.addr)) == 0;
}

/* Of several routes of a prefix takes the one that the kernel uses: alive, with the least metric. */
static uint32_t choose(struct reading *r, struct hydnsd_prefix *out)
{
	uint32_t n = 0, i = 0;

	if (r->count)
		qsort(r->route, r->count, sizeof(*r->route), compare);
	while (i < r->count) {
		const struct route *first = &r->route[i], *counts = NULL;
		bool varies = false;

		for (; i < r->count && same_place(first, &r->route[i]); i++) {
			varies |= r->route[i].varies;
			if (!counts && !r->route[i].dead)
				counts = &r->route[i];
		}
		if (!counts && !varies)
			continue;
		out[n] = counts ? counts->prefix : first->prefix;
		if (varies)
			out[n].value = BAD;
		n++;
	}
	return n;
}

static uint8_t judge(const uint8_t value[HYDNSD_PREFIX_TABLES], const void *arg)
{
	(void)arg;
	if (value[MAIN] != GOOD || value[RULES])
		return HYDNSD_SOURCE_REFUSED;
	for (int i = OTHERS; i < HYDNSD_PREFIX_TABLES; i++)
		if (value[i] == BAD)
			return HYDNSD_SOURCE_REFUSED;
	return value[LOCAL] == BAD ? HYDNSD_SOURCE_OWN : HYDNSD_SOURCE_ROUTED;
}

static int combine(struct reading *r, struct hydnsd_routes *out)
{
	struct hydnsd_prefix *in = calloc(r->count + 1, sizeof(*in));
	int n = -ENOMEM;

	if (in)
		n = hydnsd_prefixes_combine(in, choose(r, in), judge, NULL, out->prefix, HYDNSD_ROUTES_RESULT);
	free(in);
	if (n < 0)
		return n == -E2BIG ? -ENOSPC : n;
	out->count = (uint32_t)n;
	out->routes = r->count;
	out->rules = r->rules;
	return 0;
}

int hydnsd_routes_read(int family, const struct hydnsd_rpfilter *rp, struct hydnsd_routes *out)
{
	struct reading r = { .family = family, .rp = rp };
	int rc = read_rules(&r);

	if (rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP)
		rc = 0;                /* the host does not have this family: no query comes */
	else if (!rc && (!r.main_counts || r.unclear || rp->vrf[0]))
		r.unclear = true;
	else if (!rc) {
		rc = read_table(&r, LOCAL, RT_TABLE_LOCAL);
		if (!rc)
			rc = read_table(&r, MAIN, RT_TABLE_MAIN);
		for (uint32_t i = 0; !rc && i < r.others; i++)
			rc = read_table(&r, (uint8_t)(OTHERS + i), r.other[i]);
	}
	if (r.unclear)
		r.count = 0;
	if (!rc)
		rc = combine(&r, out);
	if (!rc)
		out->unclear = r.unclear;
	free(r.route);
	return rc;
}

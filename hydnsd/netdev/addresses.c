/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/addresses.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/netlink.h"

#define BITS         128
#define BITS_MAPPED  96                /* of ::ffff:0:0/96: IPv4 addresses are mapped */

struct prefix {
	uint8_t addr[16];
	uint8_t bits;
};

struct prefix_list {
	struct prefix *item;
	uint32_t count, room;
};

struct hydnsd_addresses {
	void (*changed)(struct hydnsd *d);
	int notices;                   /* netlink socket: the kernel notifies of changes */
	struct hydnsd_watch *watch;
	bool again;                    /* read again at the next tick */
	struct prefix_list whole;      /* of 128 bits, sorted */
	struct prefix_list part;       /* shorter */
};

static void forget(struct prefix_list *l)
{
	free(l->item);
	*l = (struct prefix_list){ .count = 0 };
}

static int append(struct prefix_list *l, const struct prefix *p)
{
	if (l->count == l->room) {
		uint32_t room = l->room ? 2 * l->room : 64;
		struct prefix *more = realloc(l->item, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->item = more;
		l->room = room;
	}
	l->item[l->count++] = *p;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct prefix));
}

/* Sorts, and drops duplicates: the kernel has a route for each metric and interface. */
static void sort_unique(struct prefix_list *l)
{
	uint32_t count = 0;

	if (l->count)
		qsort(l->item, l->count, sizeof(*l->item), compare);
	for (uint32_t n = 0; n < l->count; n++)
		if (!count || compare(&l->item[count - 1], &l->item[n]))
			l->item[count++] = l->item[n];
	l->count = count;
}

static bool same(const struct prefix_list *a, const struct prefix_list *b)
{
	return a->count == b->count && (!a->count || !memcmp(a->item, b->item, a->count * sizeof(*a->item)));
}

/* -- reading ------------------------------------------------------------------------------------------------ */
struct lists {
	struct prefix_list *whole, *part;
	uint32_t whole_before, part_before; /* read before, of the other family */
};

static void begin(void *arg)
{
	struct lists *lists = arg;

	lists->whole->count = lists->whole_before;
	lists->part->count = lists->part_before;
}

static int take_route(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	struct lists *lists = arg;
	bool v4;
	struct prefix p = { .bits = 0 };
	const void *addr;

	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->rtm_type != RTN_LOCAL ||
	    m->rtm_table != RT_TABLE_LOCAL || (m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return 0;
	v4 = m->rtm_family == AF_INET;
	p.bits = m->rtm_dst_len;
	if (v4) {
		p.bits += BITS_MAPPED;
		memset(p.addr + 10, 0xff, 2);
	}
	addr = hydns_netlink_attr(RTM_RTA(m), (int)RTM_PAYLOAD(h), RTA_DST, v4 ? 4 : 16);
	if (addr)
		memcpy(p.addr + (v4 ? 12 : 0), addr, v4 ? 4 : 16);
	return append(p.bits == BITS ? lists->whole : lists->part, &p);
}

static int dump(int family, struct prefix_list *whole, struct prefix_list *part)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETROUTE },
		.body = { .rtm_family = (unsigned char)family, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL },
	};
	struct lists lists = { whole, part, whole->count, part->count };
	int rc = hydnsd_netlink_dump(&request.head, begin, take_route, &lists);

	if (family == AF_INET6 && (rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP || rc == -ENOENT))
		return 0;              /* a host without IPv6 */
	return rc;
}

static int learn(struct prefix_list *whole, struct prefix_list *part)
{
	int rc = dump(AF_INET, whole, part);

	if (!rc)
		rc = dump(AF_INET6, whole, part);
	if (rc)
		return rc;
	sort_unique(whole);
	sort_unique(part);
	return 0;
}

/* On an error the former addresses stay. */
static int refresh(struct hydnsd *d)
{
	struct hydnsd_addresses *s = d->addresses;
	struct prefix_list whole = { .count = 0 }, part = { .count = 0 };
	int rc = learn(&whole, &part);

	if (rc || (same(&whole, &s->whole) && same(&part, &s->part))) {
		forget(&whole);
		forget(&part);
		return rc;
	}
	forget(&s->whole);
	forget(&s->part);
	s->whole = whole;
	s->part = part;
	s->changed(d);
	return 0;
}

static void look(struct hydnsd *d)
{
	static int before;             /* of the last error one line is logged, however long it lasts */
	int rc = refresh(d);

	if (rc && rc != before)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot learn this host's addresses: %s; hydnsd tries again by itself",
			   strerror(-rc));
	before = rc;
	d->addresses->again = rc;
}

/* -- notices -------------------------------------------------------------------------------------------- */
static void readable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;

	(void)events;
	hydnsd_netlink_drain(d->addresses->notices);
	look(d);
	/* The kernel may notify of a link that goes down before it removes the link's local routes. */
	d->addresses->again = true;
}

void hydnsd_addresses_tick(struct hydnsd *d)
{
	if (d->addresses->again)
		look(d);
}

/* Filters out notices of routes that are not local: a router's table may change thousands of times a second. */
static int open_notices(struct hydnsd *d)
{
	const unsigned type = offsetof(struct nlmsghdr, nlmsg_type);
	const unsigned route_type = NLMSG_HDRLEN + offsetof(struct rtmsg, rtm_type);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, type), /* loaded as in network order */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWROUTE), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELROUTE), 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, route_type),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RTN_LOCAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	struct hydnsd_addresses *s = d->addresses;

	s->notices = hydns_netlink_listen(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
					RTMGRP_IPV6_ROUTE, &filter);
	if (s->notices < 0)
		return s->notices;
	s->watch = hydnsd_loop_watch(d->loop, s->notices, EPOLLIN, readable, d);
	return s->watch ? 0 : -ENOMEM;
}

int hydnsd_addresses_start(struct hydnsd *d, void (*changed)(struct hydnsd *d), char *why, size_t room)
{
	int rc = -ENOMEM;

	d->addresses = calloc(1, sizeof(*d->addresses));
	if (d->addresses) {
		d->addresses->notices = -1;
		d->addresses->changed = changed;
		rc = open_notices(d);
		if (!rc)
			rc = refresh(d);
	}
	if (rc)
		snprintf(why, room, "cannot learn this host's addresses from rtnetlink: %s", strerror(-rc));
	return rc;
}

void hydnsd_addresses_stop(struct hydnsd *d)
{
	struct hydnsd_addresses *s = d->addresses;

	if (!s)
		return;
	hydnsd_watch_end(s->watch);
	if (s->notices >= 0)
		close(s->notices);
	forget(&s->whole);
	forget(&s->part);
	free(s);
	d->addresses = NULL;
}

/* -- look-up ------------------------------------------------------------------------------------------------ */
static bool within(const struct prefix *p, const uint8_t addr[16])
{
	unsigned octets = p->bits / 8, rest = p->bits % 8;

	return memcmp(p->addr, addr, octets) == 0 && (!rest || (p->addr[octets] ^ addr[octets]) >> (8 - rest) == 0);
}

bool hydnsd_addresses_have(const struct hydnsd *d, const uint8_t addr[16])
{
	const struct hydnsd_addresses *s = d->addresses;
	struct prefix wanted = { .bits = BITS };

	memcpy(wanted.addr, addr, sizeof(wanted.addr));
	if (s->whole.count && bsearch(&wanted, s->whole.item, s->whole.count, sizeof(wanted), compare))
		return true;
	for (uint32_t n = 0; n < s->part.count; n++)
		if (within(&s->part.item[n], addr))
			return true;
	return false;
}

const uint8_t *hydnsd_addresses_get(const struct hydnsd *d, uint32_t n)
{
	return n < d->addresses->whole.count ? d->addresses->whole.item[n].addr : NULL;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/addresses.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "hydnsd/log.h"
#include "hydnsd/services.h"

#define BUFFER       65536
#define TRIES        8                 /* of a dump that changes interrupt */
#define ANSWER_SECONDS 1               /* the kernel answers at once; for what nobody has thought of */
#define BITS         128
#define BITS_MAPPED  96                /* of the prefix that IPv4 addresses have here */

struct prefix {
	uint8_t addr[16];
	uint8_t bits;
};

struct prefix_list {
	struct prefix *item;
	uint32_t count, room;
};

struct hydnsd_addresses {
	int asking;                    /* netlink: our questions and the answers */
	int told;                      /* netlink: changes */
	struct hydnsd_watch *watch;
	uint32_t seq;                  /* of the last question */
	bool again;                    /* look once more at the next tick */
	struct prefix_list whole;      /* of 128 bits, in order */
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

/* The kernel may name one several times, with several metrics or interfaces. */
static void put_in_order(struct prefix_list *l)
{
	uint32_t kept = 0;

	if (l->count)
		qsort(l->item, l->count, sizeof(*l->item), compare);
	for (uint32_t n = 0; n < l->count; n++)
		if (!kept || compare(&l->item[kept - 1], &l->item[n]))
			l->item[kept++] = l->item[n];
	l->count = kept;
}

static bool same(const struct prefix_list *a, const struct prefix_list *b)
{
	return a->count == b->count && (!a->count || !memcmp(a->item, b->item, a->count * sizeof(*a->item)));
}

/* -- asking ------------------------------------------------------------------------------------------------ */
static int ask(struct hydnsd_addresses *s, int family)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = ++s->seq },
		.body = { .rtm_family = (unsigned char)family, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL },
	};

	return send(s->asking, &request, sizeof(request), 0) == (ssize_t)sizeof(request) ? 0 : -errno;
}

static int take_route(const struct nlmsghdr *h, struct prefix_list *whole, struct prefix_list *part)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	bool v4 = m->rtm_family == AF_INET;
	struct prefix p = { .bits = m->rtm_dst_len };
	int left = (int)RTM_PAYLOAD(h);

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || (!v4 && m->rtm_family != AF_INET6) ||
	    m->rtm_type != RTN_LOCAL || m->rtm_table != RT_TABLE_LOCAL)
		return 0;
	if (v4) {
		p.bits += BITS_MAPPED;
		memset(p.addr + 10, 0xff, 2);
	}
	for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_DST && RTA_PAYLOAD(a) == (v4 ? 4 : 16))
			memcpy(p.addr + (v4 ? 12 : 0), RTA_DATA(a), RTA_PAYLOAD(a));
	return append(p.bits == BITS ? whole : part, &p);
}

struct answer {
	struct prefix_list *whole, *part;
	bool interrupted;              /* a change came in between: some may be missing */
	bool ended;
	int error;
};

static void take_message(const struct hydnsd_addresses *s, const struct nlmsghdr *h, struct answer *a)
{
	if (h->nlmsg_seq != s->seq)
		return;                /* of a question that was given up */
	a->interrupted |= !!(h->nlmsg_flags & NLM_F_DUMP_INTR);
	switch (h->nlmsg_type) {
	case RTM_NEWROUTE:
		if (!a->error)
			a->error = take_route(h, a->whole, a->part);
		break;
	case NLMSG_DONE:               /* both begin with a negative errno, or 0 */
	case NLMSG_ERROR:
		a->ended = true;
		if (!a->error && h->nlmsg_len >= NLMSG_LENGTH(sizeof(int)))
			a->error = *(const int *)NLMSG_DATA(h);
		break;
	}
}

/* 0; 1: to be asked again; or a negative errno. */
static int dump(struct hydnsd_addresses *s, int family, struct prefix_list *whole, struct prefix_list *part)
{
	static char buffer[BUFFER] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct answer a = { .whole = whole, .part = part, .error = ask(s, family) };

	if (a.error)
		return a.error;
	while (!a.ended) {
		struct sockaddr_nl from = { .nl_pid = 1 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(s->asking, buffer, sizeof(buffer), 0, (struct sockaddr *)&from, &len);
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)buffer;
		     from.nl_pid == 0 && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			take_message(s, h, &a);
	}
	if (family == AF_INET6 && (a.error == -EAFNOSUPPORT || a.error == -EOPNOTSUPP || a.error == -ENOENT))
		a.error = 0;           /* a host without IPv6 */
	return a.error ? a.error : a.interrupted;
}

static int learn(struct hydnsd_addresses *s, struct prefix_list *whole, struct prefix_list *part)
{
	int rc = 1;

	for (int tries = 0; rc == 1 && tries < TRIES; tries++) {
		whole->count = part->count = 0;
		rc = dump(s, AF_INET, whole, part);
		if (!rc)
			rc = dump(s, AF_INET6, whole, part);
	}
	if (rc)
		return rc < 0 ? rc : -EAGAIN;
	put_in_order(whole);
	put_in_order(part);
	return 0;
}

/* What was known stays when the kernel can't tell. */
static int refresh(struct hydnsd *d)
{
	struct hydnsd_addresses *s = d->addresses;
	struct prefix_list whole = { .count = 0 }, part = { .count = 0 };
	int rc = learn(s, &whole, &part);

	if (rc || (same(&whole, &s->whole) && same(&part, &s->part))) {
		forget(&whole);
		forget(&part);
		return rc;
	}
	forget(&s->whole);
	forget(&s->part);
	s->whole = whole;
	s->part = part;
	hydnsd_services_sync(d);
	return 0;
}

static void look(struct hydnsd *d)
{
	static int before;             /* one line for a trouble that lasts */
	int rc = refresh(d);

	if (rc && rc != before)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot learn this host's addresses: %s; hydnsd tries again by itself",
			   strerror(-rc));
	before = rc;
	d->addresses->again = rc;
}

/* -- being told -------------------------------------------------------------------------------------------- */
static void readable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;
	char octet;

	(void)events;
	/* What has changed does not matter, nor that messages were lost (ENOBUFS): all is asked for anew. */
	while (recv(d->addresses->told, &octet, sizeof(octet), MSG_DONTWAIT | MSG_TRUNC) >= 0 || errno == ENOBUFS)
		;
	look(d);
	/* Of a link that goes down the kernel may tell first, and remove its local routes then. */
	d->addresses->again = true;
}

void hydnsd_addresses_tick(struct hydnsd *d)
{
	if (d->addresses->again)
		look(d);
}

/* A router's table may change thousands of times a second; of routes only the local ones are let through. */
static int only_local_routes(int fd)
{
	const unsigned type = offsetof(struct nlmsghdr, nlmsg_type);
	const unsigned route_type = NLMSG_HDRLEN + offsetof(struct rtmsg, rtm_type);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, type), /* as network order */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWROUTE), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELROUTE), 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, route_type),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RTN_LOCAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

static int open_told(struct hydnsd *d)
{
	const struct sockaddr_nl a = {
		.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
						      RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
	};
	struct hydnsd_addresses *s = d->addresses;

	s->told = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (s->told < 0 || only_local_routes(s->told) || bind(s->told, (const struct sockaddr *)&a, sizeof(a)))
		return -errno;
	s->watch = hydnsd_loop_watch(d->loop, s->told, EPOLLIN, readable, d);
	return s->watch ? 0 : -ENOMEM;
}

static int open_asking(struct hydnsd_addresses *s)
{
	const struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	const int yes = 1;

	s->asking = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	/* strict: else the kernel would not look at table and type, and tell all routes */
	if (s->asking < 0 || setsockopt(s->asking, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &yes, sizeof(yes)) ||
	    setsockopt(s->asking, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return -errno;
	return 0;
}

int hydnsd_addresses_start(struct hydnsd *d, char *why, size_t room)
{
	int rc = -ENOMEM;

	d->addresses = calloc(1, sizeof(*d->addresses));
	if (d->addresses) {
		d->addresses->asking = d->addresses->told = -1;
		rc = open_told(d);
		if (!rc)
			rc = open_asking(d->addresses);
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
	if (s->told >= 0)
		close(s->told);
	if (s->asking >= 0)
		close(s->asking);
	forget(&s->whole);
	forget(&s->part);
	free(s);
	d->addresses = NULL;
}

/* -- looking ------------------------------------------------------------------------------------------------ */
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

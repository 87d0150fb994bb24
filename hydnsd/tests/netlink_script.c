/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/netlink_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <cmocka.h>

#include "hydnsd/daemon/loop.h"
#include "hydnsd/parking/parking.h"
#include "hydns-kern/loader/loader.h"

#define ROOM     2048

/* -- datagrams and clock ------------------------------------------------------------------------------------- */
struct datagram {
	uint32_t sender;
	int error;                     /* not 0: what recvfrom() fails with */
	size_t len;
	char octet[ROOM] __attribute__((aligned(4)));
};
static struct datagram script[SCRIPT];
static unsigned written, taken;
static uint32_t last_seq;
unsigned requests;
bool changing;
uint64_t now_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){ .tv_sec = (time_t)(now_ms / 1000), .tv_nsec = (long)(now_ms % 1000 * 1000000) };
	return 0;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	(void)fd;
	(void)flags;
	last_seq = ((const struct nlmsghdr *)data)->nlmsg_seq;
	requests++;
	return (ssize_t)len;
}

static void fill_in_seq(char *octet, size_t left)
{
	for (struct nlmsghdr *h = (struct nlmsghdr *)octet; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		if (h->nlmsg_seq == AS_ASKED)
			h->nlmsg_seq = last_seq;
}

static ssize_t interruption(void *buffer, struct sockaddr *from, socklen_t *len)
{
	const struct {
		struct nlmsghdr head;
		int error;
	} end = {
		.head = { .nlmsg_len = sizeof(end), .nlmsg_type = NLMSG_DONE, .nlmsg_flags = NLM_F_DUMP_INTR, .nlmsg_seq = last_seq },
	};

	memcpy(buffer, &end, sizeof(end));
	memcpy(from, &(struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = KERNEL }, sizeof(struct sockaddr_nl));
	*len = sizeof(struct sockaddr_nl);
	return sizeof(end);
}

ssize_t __wrap_recvfrom(int fd, void *buffer, size_t room, int flags, struct sockaddr *from, socklen_t *len);
ssize_t __wrap_recvfrom(int fd, void *buffer, size_t room, int flags, struct sockaddr *from, socklen_t *len)
{
	struct datagram *d = &script[taken];

	(void)fd;
	if (taken == written && changing && !(flags & MSG_DONTWAIT))
		return interruption(buffer, from, len);
	if (taken == written) {
		errno = EAGAIN;        /* a dump times out; on a socket for notices nothing waits */
		return -1;
	}
	taken++;
	if (d->error) {
		errno = d->error;
		return -1;
	}
	assert_true(d->len <= room);
	fill_in_seq(d->octet, d->len);
	memcpy(buffer, d->octet, d->len);
	memcpy(from, &(struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = d->sender }, sizeof(struct sockaddr_nl));
	*len = sizeof(struct sockaddr_nl);
	return (ssize_t)d->len;
}

int begin_script(void **state)
{
	(void)state;
	memset(script, 0, sizeof(script));
	written = taken = requests = 0;
	changing = false;
	now_ms = 1000000;
	return 0;
}

void datagram_from(uint32_t sender)
{
	assert_true(written < SCRIPT);
	script[written++].sender = sender;
}

void failure(int error)
{
	datagram_from(KERNEL);
	script[written - 1].error = error;
}

struct nlmsghdr *message(uint16_t type, uint16_t flags, uint32_t seq, const void *body, size_t len)
{
	struct datagram *d = &script[written - 1];
	struct nlmsghdr *h = (struct nlmsghdr *)(d->octet + d->len);

	*h = (struct nlmsghdr){ .nlmsg_len = (uint32_t)NLMSG_LENGTH(len), .nlmsg_type = type,
				.nlmsg_flags = (uint16_t)(flags | NLM_F_MULTI), .nlmsg_seq = seq };
	memcpy(NLMSG_DATA(h), body, len);
	d->len += NLMSG_ALIGN(h->nlmsg_len);
	assert_true(d->len < ROOM);
	return h;
}

static void attribute(struct nlmsghdr *h, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	*a = (struct rtattr){ .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(len) };
	memcpy(RTA_DATA(a), data, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + RTA_ALIGN(a->rta_len);
	script[written - 1].len = (size_t)((char *)h - script[written - 1].octet) + h->nlmsg_len;
}

static void number(struct nlmsghdr *h, uint16_t type, uint32_t value)
{
	attribute(h, type, &value, sizeof(value));
}

void done_as(int error, uint32_t seq)
{
	message(NLMSG_DONE, 0, seq, &error, sizeof(error));
}

void done(void)
{
	done_as(0, AS_ASKED);
}

void nothing(void)
{
	datagram_from(KERNEL);
	done();
}

void refusal(int error)
{
	const struct nlmsgerr body = { .error = -error };

	datagram_from(KERNEL);
	message(NLMSG_ERROR, 0, AS_ASKED, &body, sizeof(body));
}

/* -- messages ------------------------------------------------------------------------------------------------ */
void route(const char *to, uint8_t bits, uint8_t type, uint32_t table, uint32_t device, uint16_t flags, uint32_t seq)
{
	int family = strchr(to, ':') ? AF_INET6 : AF_INET;
	const struct rtmsg body = { .rtm_family = (uint8_t)family, .rtm_dst_len = bits, .rtm_type = type,
				    .rtm_table = (uint8_t)table };
	struct nlmsghdr *h = message(RTM_NEWROUTE, flags, seq, &body, sizeof(body));
	uint8_t addr[16];

	assert_int_equal(inet_pton(family, to, addr), 1);
	attribute(h, RTA_DST, addr, family == AF_INET ? 4 : 16);
	if (device)
		number(h, RTA_OIF, device);
}

void local(const char *to)
{
	route(to, strchr(to, ':') ? 128 : 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, 0, AS_ASKED);
}

void rule(int family, uint32_t table, uint16_t flags)
{
	const struct fib_rule_hdr body = { .family = (uint8_t)family, .action = FR_ACT_TO_TBL };

	number(message(RTM_NEWRULE, flags, AS_ASKED, &body, sizeof(body)), FRA_TABLE, table);
}

void link_of(unsigned index, const char *name, const char *kind, unsigned master, unsigned lower)
{
	const struct ifinfomsg body = { .ifi_index = (int)index, .ifi_flags = IFF_UP };
	struct nlmsghdr *h = message(RTM_NEWLINK, 0, AS_ASKED, &body, sizeof(body));
	char info[64] __attribute__((aligned(4))) = { 0 };
	struct rtattr *a = (struct rtattr *)info;

	attribute(h, IFLA_IFNAME, name, strlen(name) + 1);
	if (master)
		number(h, IFLA_MASTER, master);
	if (lower)
		number(h, IFLA_LINK, lower);
	*a = (struct rtattr){ .rta_type = IFLA_INFO_KIND, .rta_len = (uint16_t)RTA_LENGTH(strlen(kind) + 1) };
	memcpy(RTA_DATA(a), kind, strlen(kind) + 1);
	attribute(h, IFLA_LINKINFO, info, RTA_ALIGN(a->rta_len));
}

void setting(int index, uint32_t rp_filter)
{
	const struct netconfmsg body = { .ncm_family = AF_INET };
	const uint16_t fixed = NLMSG_ALIGN(sizeof(body));
	char padded[4] = { 0 };
	struct nlmsghdr *h;

	memcpy(padded, &body, sizeof(body));
	h = message(RTM_NEWNETCONF, 0, AS_ASKED, padded, fixed);
	number(h, NETCONFA_IFINDEX, (uint32_t)index);
	number(h, NETCONFA_RP_FILTER, rp_filter);
}

void links_with(const char *kind)
{
	datagram_from(KERNEL);
	link_of(if_nametoindex("lo"), "lo", "bridge", 0, 0);
	link_of(4711, "other", kind, 0, if_nametoindex("lo"));
	done();
}

/* -- what the readers call of the daemon ----------------------------------------------------------------------- */
void (*heard)(void *arg, uint32_t events);
void *heard_arg;
unsigned attached, detached;
unsigned parks_at, parking_left;
int attach_rc;

struct hydnsd_watch *hydnsd_loop_watch(struct hydnsd_loop *l, int fd, uint32_t events,
				       void (*ready)(void *arg, uint32_t events), void *arg)
{
	(void)l;
	(void)fd;
	(void)events;
	heard = ready;
	heard_arg = arg;
	return (struct hydnsd_watch *)&heard;
}

void hydnsd_watch_end(struct hydnsd_watch *w)
{
	(void)w;
}

int hydns_kern_attach(struct hydns_kern *k, const char *ifname, enum hydns_attach_mode mode, char why[HYDNS_WHY])
{
	(void)k;
	(void)mode;
	attached++;
	if (attach_rc)
		snprintf(why, HYDNS_WHY, "%s: not now", ifname);
	return attach_rc;
}

int hydns_kern_detach(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY])
{
	(void)k;
	(void)ifname;
	(void)why;
	detached++;
	return 0;
}

int hydns_kern_attached_each(struct hydns_kern *k, void (*fn)(const char *ifname, void *arg), void *arg)
{
	(void)k;
	(void)fn;
	(void)arg;
	return 0;
}

int hydns_kern_park_at(struct hydns_kern *k, __u32 ifindex, bool may)
{
	(void)k;
	parks_at = may ? ifindex : 0;
	return 0;
}

void hydnsd_parking_leave(struct hydnsd *d)
{
	(void)d;
	parking_left++;
}

void hydns_kern_own_set(struct hydns_kern *k, const __u64 filter[HYDNS_OWN_WORDS])
{
	(void)k;
	(void)filter;
}

__u16 hydns_acl_flags(const struct hydns_acl_entry *e, size_t n)
{
	(void)e;
	(void)n;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the daemon makes of rtnetlink when it does not go well. The real readers of addresses, routes, settings and links
 * get messages made by hand here, in the place of the kernel's: send(), recvfrom() and the clock are this file's (ld's --wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <errno.h>
#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "hydnsd/netdev/addresses.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/netlink.h"
#include "hydnsd/netdev/routes.h"
#include "hydnsd/netdev/rpfilter.h"
#include "hydnsd/netdev/sources.h"

#define KERNEL   0                     /* who sends */
#define STRANGER 4711
#define AS_ASKED UINT32_MAX            /* the sequence number of the last request */
#define SCRIPT   64
#define ROOM     2048

/* -- the kernel's part --------------------------------------------------------------------------------------- */
struct datagram {
	uint32_t sender;
	int error;                     /* not 0: what recvfrom() fails with */
	size_t len;
	char octet[ROOM] __attribute__((aligned(4)));
};
static struct datagram script[SCRIPT];
static unsigned written, taken, requests;
static uint32_t last_seq;
static bool changing;                  /* the host does, all the time: every dump beyond the script is interrupted */
static uint64_t now_ms;

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
		errno = EAGAIN;        /* a dump's time is over; of a socket that is listened at, nothing waits */
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

static int begin_script(void **state)
{
	(void)state;
	memset(script, 0, sizeof(script));
	written = taken = requests = 0;
	changing = false;
	now_ms = 1000000;
	return 0;
}

static void datagram_from(uint32_t sender)
{
	assert_true(written < SCRIPT);
	script[written++].sender = sender;
}

static void failure(int error)
{
	datagram_from(KERNEL);
	script[written - 1].error = error;
}

/* Adds a message to the last datagram; the body's address, for attributes. */
static struct nlmsghdr *message(uint16_t type, uint16_t flags, uint32_t seq, const void *body, size_t len)
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

static void done_as(int error, uint32_t seq)
{
	message(NLMSG_DONE, 0, seq, &error, sizeof(error));
}

static void done(void)
{
	done_as(0, AS_ASKED);
}

/* A whole answer that tells nothing. */
static void nothing(void)
{
	datagram_from(KERNEL);
	done();
}

static void refusal(int error)
{
	const struct nlmsgerr body = { .error = -error };

	datagram_from(KERNEL);
	message(NLMSG_ERROR, 0, AS_ASKED, &body, sizeof(body));
}

/* -- messages ------------------------------------------------------------------------------------------------ */
static void route(const char *to, uint8_t bits, uint8_t type, uint32_t table, uint32_t device, uint16_t flags, uint32_t seq)
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

static void local(const char *to)
{
	route(to, strchr(to, ':') ? 128 : 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, 0, AS_ASKED);
}

static void rule(int family, uint32_t table, uint16_t flags)
{
	const struct fib_rule_hdr body = { .family = (uint8_t)family, .action = FR_ACT_TO_TBL };

	number(message(RTM_NEWRULE, flags, AS_ASKED, &body, sizeof(body)), FRA_TABLE, table);
}

static void link_of(unsigned index, const char *name, const char *kind, unsigned master, unsigned lower)
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

static void setting(int index, uint32_t rp_filter)
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

/* -- what the readers need of the daemon ----------------------------------------------------------------------- */
static void (*heard)(void *arg, uint32_t events);
static void *heard_arg;
static unsigned synced, attached, detached, relisted;
static int attach_rc;

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

static void sync_services(struct hydnsd *d)
{
	(void)d;
	synced++;
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

static bool relist(struct hydnsd *daemon)
{
	(void)daemon;
	relisted++;
	return false;
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

/* -- addresses ------------------------------------------------------------------------------------------------- */
static struct hydnsd d;

static bool has(const char *text)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };
	bool v6 = strchr(text, ':');

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text, addr + (v6 ? 0 : 12)), 1);
	return hydnsd_addresses_have(&d, addr);
}

static int learn(void)
{
	char why[256];

	return hydnsd_addresses_start(&d, sync_services, why, sizeof(why));
}

static int forget(void **state)
{
	(void)state;
	hydnsd_addresses_stop(&d);
	return 0;
}

static void addresses_are_read(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	local("192.0.2.2");
	datagram_from(KERNEL);
	local("192.0.2.3");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	done();
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1") && has("192.0.2.2") && has("192.0.2.3") && has("2001:db8::1"));
	assert_false(has("192.0.2.4"));
	assert_int_equal(requests, 2);
}

/* An address may be missing, or have gone: only what the last, whole answer says counts. What the other family's said stays. */
static void an_interrupted_answer_is_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	route("2001:db8::2", 128, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, AS_ASKED);
	done();
	datagram_from(KERNEL);
	local("2001:db8::3");
	done();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 3);
	assert_true(has("192.0.2.1") && has("2001:db8::3"));
	assert_false(has("2001:db8::1") || has("2001:db8::2"));
}

/* The end tells it too, when no message follows the change. */
static void an_end_may_say_that_it_was_interrupted(void **state)
{
	int none = 0;

	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	message(NLMSG_DONE, NLM_F_DUMP_INTR, AS_ASKED, &none, sizeof(none));
	datagram_from(KERNEL);
	local("192.0.2.2");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 3);
	assert_true(has("192.0.2.2") && !has("192.0.2.1"));
}

static void trying_has_an_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SCRIPT; i++) {
		datagram_from(KERNEL);
		route("192.0.2.1", 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, AS_ASKED);
		done();
	}
	assert_int_equal(learn(), -EAGAIN);
	assert_in_range(requests, 2, SCRIPT / 2);
}

static void an_error_is_no_end(void **state)
{
	(void)state;
	refusal(EPERM);
	assert_int_equal(learn(), -EPERM);
}

static void an_error_after_some_messages(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	refusal(ENOBUFS);
	assert_int_equal(learn(), -ENOBUFS);
}

static void an_end_may_be_an_error(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done_as(-EINVAL, AS_ASKED);
	assert_int_equal(learn(), -EINVAL);
}

static void silence_is_an_error(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	assert_int_equal(learn(), -EAGAIN);
	assert_int_equal(requests, 1);
}

/* Neither their content nor their end counts. */
static void answers_to_others(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	route("192.0.2.9", 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, 77);
	done_as(-EPERM, 77);
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 2);
	assert_true(has("192.0.2.1") && !has("192.0.2.9"));
}

static void messages_of_other_processes(void **state)
{
	(void)state;
	datagram_from(STRANGER);
	local("192.0.2.9");
	done();
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	done();
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1") && has("2001:db8::1") && !has("192.0.2.9"));
}

static void a_host_without_ipv6(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	refusal(EAFNOSUPPORT);
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1"));
}

/* What was known stays when the kernel can't tell, and is asked for at each tick until it can. */
static void a_failed_look_is_made_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	synced = 0;
	failure(ENOBUFS);
	heard(heard_arg, 0);
	refusal(ENOMEM);
	hydnsd_addresses_tick(&d);
	assert_true(has("192.0.2.1") && !synced);
	datagram_from(KERNEL);
	local("192.0.2.2");
	done();
	nothing();
	hydnsd_addresses_tick(&d);
	assert_true(has("192.0.2.2") && !has("192.0.2.1"));
	assert_int_equal(synced, 1);
}

/* -- routes ---------------------------------------------------------------------------------------------------- */
static struct hydnsd_routes routes;
static const struct hydnsd_rpfilter off;

static enum hydnsd_source source(const char *text)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	assert_int_equal(inet_pton(AF_INET, text, addr + 12), 1);
	return hydnsd_prefixes_find(routes.prefix, routes.count, addr);
}

static void usual_rules(void)
{
	datagram_from(KERNEL);
	rule(AF_INET, RT_TABLE_LOCAL, 0);
	rule(AF_INET, RT_TABLE_MAIN, 0);
	done();
}

static void local_table(void)
{
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
}

/* Each of the three answers again alone, and what the tables before have said stays. */
static void interrupted_routes_are_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	rule(AF_INET, RT_TABLE_LOCAL, 0);
	rule(AF_INET, 77, NLM_F_DUMP_INTR);
	done();
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("198.51.100.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, NLM_F_DUMP_INTR, AS_ASKED);
	done();
	datagram_from(KERNEL);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	done();
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), 0);
	assert_int_equal(requests, 5);
	assert_false(routes.rules);
	assert_int_equal(source("192.0.2.1"), HYDNSD_SOURCE_OWN);
	assert_int_equal(source("192.0.2.2"), HYDNSD_SOURCE_ROUTED);
	assert_int_equal(source("198.51.100.1"), HYDNSD_SOURCE_REFUSED);
	assert_int_equal(routes.routes, 2);
}

static void routes_that_cannot_be_read(void **state)
{
	(void)state;
	routes.count = 4711;
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("192.0.2.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	refusal(ENOMEM);
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), -ENOMEM);
	assert_int_equal(routes.count, 4711);
	refusal(EPERM);
	assert_int_equal(hydnsd_routes_read(AF_INET, &off, &routes), -EPERM);
}

/* -- rp_filter of devices that queries come by --------------------------------------------------------------------- */
static struct hydnsd_rpfilter rp;

static int read_rpfilter(const char *interface, bool vlan)
{
	const struct hydnsd_list list = { .count = 1, .item = { (char *)interface } };

	return hydnsd_rpfilter_read(&list, vlan, &rp);
}

/* A card in a VRF, one with a VLAN device, one in a bond. Strict are the VLAN device and the bond. */
static void some_devices(void)
{
	datagram_from(KERNEL);
	link_of(11, "card1", "", 20, 0);
	link_of(20, "vrf1", "vrf", 0, 0);
	link_of(12, "card2", "", 0, 0);
	link_of(22, "card2.5", "vlan", 0, 12);
	link_of(13, "card3", "", 23, 0);
	link_of(23, "bond1", "bond", 0, 0);
	done();
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	setting(22, HYDNSD_RPFILTER_STRICT);
	setting(23, HYDNSD_RPFILTER_STRICT);
	done();
}

static void a_vrf_is_named(void **state)
{
	(void)state;
	some_devices();
	assert_int_equal(read_rpfilter("card1", false), 0);
	assert_string_equal(rp.vrf, "card1");
}

static void a_vlan_device_counts_where_tags_do(void **state)
{
	(void)state;
	some_devices();
	assert_int_equal(read_rpfilter("card2", false), 0);
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_OFF);
	assert_false(rp.several);
	some_devices();
	assert_int_equal(read_rpfilter("card2", true), 0);
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_STRICT);
	assert_true(rp.several && rp.count == 1 && rp.device[0] == 22);
}

static void a_bond_counts_for_its_ports(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		some_devices();
		assert_int_equal(read_rpfilter(i ? "bond1" : "card3", false), 0);
		assert_int_equal(rp.mode, HYDNSD_RPFILTER_STRICT);
		assert_true(!rp.several && rp.count == 1 && rp.device[0] == 23);
	}
}

/* Links, then settings: what a try that was interrupted said counts no more. */
static void interrupted_settings_are_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 20, 0);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	done();
	datagram_from(KERNEL);
	setting(11, HYDNSD_RPFILTER_STRICT);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	done();
	assert_int_equal(read_rpfilter("card1", false), 0);
	assert_int_equal(requests, 4);
	assert_string_equal(rp.vrf, "");
	assert_int_equal(rp.mode, HYDNSD_RPFILTER_OFF);
}

static void links_that_cannot_be_read(void **state)
{
	struct netdev_link *all;
	size_t n;

	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	refusal(ENOMEM);
	assert_int_equal(netdev_links(&all, &n), -ENOMEM);
}

static void interrupted_links_are_asked_for_again(void **state)
{
	struct netdev_link *all;
	size_t n;

	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	link_of(12, "card2", "", 0, 0);
	done();
	assert_int_equal(netdev_links(&all, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(all[0].name, "card2");
	free(all);
}

/* -- being told of links ------------------------------------------------------------------------------------------- */
static void start_loopback(enum hydnsd_vlan_offload offload)
{
	char why[256];

	d = (struct hydnsd){ .options = { .interface = { .count = 1, .item = { "lo" } }, .attach_mode = HYDNS_ATTACH_GENERIC,
					  .vlan_offload = offload, .partial_checksum = HYDNSD_NO } };
	attached = detached = 0;
	assert_int_equal(hydnsd_interfaces_start(&d, why, sizeof(why)), 0);
}

static void watch_loopback(int first_rc)
{
	attach_rc = first_rc;
	start_loopback(HYDNSD_VLAN_OFFLOAD_TRUST);
	assert_int_equal(attached, 1);
}

/* Of the message that was lost nothing is known: it may have been that which the daemon waits for. */
static void lost_messages_make_it_look(void **state)
{
	struct hydnsd_interface_state l;

	(void)state;
	watch_loopback(-EBUSY);
	attach_rc = 0;
	failure(ENOBUFS);
	heard(heard_arg, 0);
	assert_int_equal(attached, 2);
	assert_true(hydnsd_interfaces_get(&d, 0, &l) && l.attached);
	hydnsd_interfaces_stop(&d, false);
}

/* That the interface has gone, or has another number, only the kernel says. */
static void links_told_by_other_processes(void **state)
{
	(void)state;
	watch_loopback(0);
	datagram_from(STRANGER);
	link_of(4711, "lo", "", 0, 0);
	heard(heard_arg, 0);
	assert_int_equal(attached, 1);
	datagram_from(KERNEL);
	link_of(4711, "lo", "", 0, 0);
	heard(heard_arg, 0);
	assert_int_equal(attached, 2);
	hydnsd_interfaces_stop(&d, false);
}

/* -- while links change -------------------------------------------------------------------------------------------- */
static bool is_attached(void)
{
	struct hydnsd_interface_state l;

	assert_true(hydnsd_interfaces_get(&d, 0, &l));
	return l.attached;
}

/* "": it has none. */
static bool note_says(const char *text)
{
	struct hydnsd_interface_state l;

	assert_true(hydnsd_interfaces_get(&d, 0, &l));
	return text[0] ? strstr(l.note, text) != NULL : !l.note[0];
}

/* The loopback interface, of a kind behind which tags are not seen, and what takes them or does not. */
static void links_with(const char *kind)
{
	datagram_from(KERNEL);
	link_of(if_nametoindex("lo"), "lo", "bridge", 0, 0);
	link_of(4711, "other", kind, 0, if_nametoindex("lo"));
	done();
}

/* Messages that make the tags be looked at, and then silence. */
static void told_of_vlans(unsigned messages)
{
	while (messages--) {
		datagram_from(KERNEL);
		link_of(4711, "other", "vlan", 0, 4712);
	}
	failure(EAGAIN);
	heard(heard_arg, 0);
}

static void watch_in_peace(void)
{
	attach_rc = 0;
	links_with("dummy");
	start_loopback(HYDNSD_VLAN_OFFLOAD_REFUSE);
	assert_int_equal(attached, 1);
	detached = 0;
}

/* Looks at every tick until then, none of which can read the links. */
static void tick_until(uint64_t then_ms)
{
	for (; now_ms < then_ms; now_ms += HYDNSD_HOUSEKEEPING_MS) {
		unsigned before = requests;

		hydnsd_interfaces_tick(&d);
		assert_true(requests > before);
		assert_int_equal(detached, 0);
	}
	now_ms = then_ms;
}

/* What can't be read is no trap: the program stays, and it is read again, for a while. */
static void links_that_change_all_the_time(void **state)
{
	uint64_t since;

	(void)state;
	watch_in_peace();
	changing = true;
	told_of_vlans(1);
	since = now_ms;
	tick_until(since + HYDNSD_NETLINK_PATIENCE_MS - 1);
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached() && note_says(""));
	now_ms = since + HYDNSD_NETLINK_PATIENCE_MS;
	hydnsd_interfaces_tick(&d);
	assert_false(is_attached());
	assert_true(note_says("can't tell whether VLAN devices lie on it"));
	changing = false;
	links_with("dummy");
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached());
	hydnsd_interfaces_stop(&d, false);
}

/* A burst that ends is forgotten, and what it has brought counts at once. */
static void a_burst_of_link_changes(void **state)
{
	uint64_t since;

	(void)state;
	watch_in_peace();
	for (int i = 0; i < 2; i++) {
		changing = true;
		told_of_vlans(1);
		since = now_ms;
		tick_until(since + HYDNSD_NETLINK_PATIENCE_MS - 1);
		changing = false;
		links_with("dummy");
		hydnsd_interfaces_tick(&d);
		assert_true(is_attached());
	}
	changing = true;
	told_of_vlans(1);
	changing = false;
	assert_true(is_attached());
	links_with("vlan");
	hydnsd_interfaces_tick(&d);
	assert_false(is_attached());
	assert_true(note_says("other takes VLAN tags from it"));
	hydnsd_interfaces_stop(&d, false);
}

/* What a former hydnsd left there goes on. */
static void a_start_while_links_change(void **state)
{
	(void)state;
	attach_rc = 0;
	changing = true;
	start_loopback(HYDNSD_VLAN_OFFLOAD_REFUSE);
	tick_until(now_ms + HYDNSD_NETLINK_PATIENCE_MS - 1);
	assert_int_equal(attached, 0);
	changing = false;
	links_with("dummy");
	hydnsd_interfaces_tick(&d);
	assert_true(is_attached() && note_says(""));
	hydnsd_interfaces_stop(&d, false);
}

/* Nobody waits while each message of many makes hydnsd read all links of the host. */
static void a_burst_is_looked_at_once(void **state)
{
	unsigned before;

	(void)state;
	watch_in_peace();
	before = requests;
	changing = true;
	told_of_vlans(1);
	before = requests - before;            /* the tries of one look */
	requests = 0;
	told_of_vlans(SCRIPT / 2);
	assert_int_equal(requests, before);
	hydnsd_interfaces_stop(&d, false);
}

/* -- while routes change ------------------------------------------------------------------------------------------- */
static void all_that_sources_read(void)
{
	links_with("dummy");
	datagram_from(KERNEL);
	setting(NETCONFA_IFINDEX_ALL, 0);
	done();
	usual_rules();
	local_table();
	datagram_from(KERNEL);
	route("198.51.100.0", 24, RTN_UNICAST, RT_TABLE_MAIN, 2, 0, AS_ASKED);
	done();
	refusal(EAFNOSUPPORT);
}

static bool client_is_let_in(void)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	assert_int_equal(inet_pton(AF_INET, "198.51.100.7", addr + 12), 1);
	return !hydnsd_sources_refuse(&d, addr);
}

static void routes_that_change_all_the_time(void **state)
{
	struct hydnsd_sources_state v4;
	uint64_t since;
	char why[256];

	(void)state;
	d = (struct hydnsd){ .options = { .interface = { .count = 1, .item = { "lo" } } } };
	all_that_sources_read();
	assert_int_equal(hydnsd_sources_start(&d, relist, why, sizeof(why)), 0);
	assert_true(client_is_let_in());
	relisted = 0;
	changing = true;
	heard(heard_arg, 0);
	hydnsd_sources_tick(&d);
	since = now_ms;
	for (; now_ms < since + HYDNSD_NETLINK_PATIENCE_MS; now_ms += HYDNSD_HOUSEKEEPING_MS) {
		hydnsd_sources_tick(&d);
		assert_true(client_is_let_in());
	}
	assert_int_equal(relisted, 0);
	now_ms = since + HYDNSD_NETLINK_PATIENCE_MS;
	hydnsd_sources_tick(&d);
	assert_false(client_is_let_in());
	assert_true(relisted && hydnsd_sources_get(&d, HYDNSD_IPV4, &v4) && strstr(v4.note, "the routes cannot be read"));
	changing = false;
	all_that_sources_read();
	hydnsd_sources_tick(&d);
	assert_true(client_is_let_in());
	hydnsd_sources_stop(&d);
}

#define OF_ADDRESSES(test) cmocka_unit_test_setup_teardown(test, begin_script, forget)
#define ALONE(test)        cmocka_unit_test_setup(test, begin_script)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_ADDRESSES(addresses_are_read),
		OF_ADDRESSES(an_interrupted_answer_is_asked_for_again),
		OF_ADDRESSES(an_end_may_say_that_it_was_interrupted),
		OF_ADDRESSES(trying_has_an_end),
		OF_ADDRESSES(an_error_is_no_end),
		OF_ADDRESSES(an_error_after_some_messages),
		OF_ADDRESSES(an_end_may_be_an_error),
		OF_ADDRESSES(silence_is_an_error),
		OF_ADDRESSES(answers_to_others),
		OF_ADDRESSES(messages_of_other_processes),
		OF_ADDRESSES(a_host_without_ipv6),
		OF_ADDRESSES(a_failed_look_is_made_again),
		ALONE(interrupted_routes_are_asked_for_again),
		ALONE(routes_that_cannot_be_read),
		ALONE(a_vrf_is_named),
		ALONE(a_vlan_device_counts_where_tags_do),
		ALONE(a_bond_counts_for_its_ports),
		ALONE(interrupted_settings_are_asked_for_again),
		ALONE(links_that_cannot_be_read),
		ALONE(interrupted_links_are_asked_for_again),
		ALONE(lost_messages_make_it_look),
		ALONE(links_told_by_other_processes),
		ALONE(links_that_change_all_the_time),
		ALONE(a_burst_of_link_changes),
		ALONE(a_start_while_links_change),
		ALONE(a_burst_is_looked_at_once),
		ALONE(routes_that_change_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

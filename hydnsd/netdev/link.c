/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Facts about interfaces, by netlink. Not from /sys/class/net: a sysfs shows the network namespace that it was mounted in,
 * even after the process has entered another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/netlink.h"

/* Generic netlink family "netdev" of Linux 6.3; older headers do not have it. */
#define NETDEV_FAMILY          "netdev"
#define NETDEV_DEV_GET         1
#define NETDEV_ATTR_IFINDEX    1
#define NETDEV_ATTR_FEATURES   3

struct request {
	struct nlmsghdr head;
	char body[256];
};

/* The size that the kernel's netlink documentation recommends: no dump message is larger. */
#define RECEIVE_ROOM 32768

static void put_attr(struct request *r, unsigned short type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	a->nla_type = type;
	a->nla_len = (unsigned short)(NLA_HDRLEN + len);
	memcpy((char *)a + NLA_HDRLEN, data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* Fills out[] with the attributes of one level, by type; ignores types above most. */
static void parse_attrs(const void *data, int len, const struct nlattr **out, unsigned most)
{
	const struct nlattr *a = data;

	memset(out, 0, (most + 1) * sizeof(*out));
	while (len >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= len) {
		unsigned type = a->nla_type & NLA_TYPE_MASK;

		if (type <= most)
			out[type] = a;
		len -= NLA_ALIGN(a->nla_len);
		a = (const struct nlattr *)((const char *)a + NLA_ALIGN(a->nla_len));
	}
}

static const void *attr_data(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static int attr_len(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}

static uint32_t attr_u32(const struct nlattr *a, uint32_t otherwise)
{
	uint32_t v = otherwise;

	if (a && attr_len(a) >= (int)sizeof(v))
		memcpy(&v, attr_data(a), sizeof(v));
	return v;
}

static void attr_text(const struct nlattr *a, char *out, size_t room)
{
	size_t n = a ? (size_t)attr_len(a) : 0;

	if (n >= room)
		n = room - 1;
	if (n)
		memcpy(out, attr_data(a), n);
	out[n] = 0;
}

/* Asks for one object and calls fn for it; fn returns 0 or a negative errno. */
static int talk(int protocol, struct request *r, int (*fn)(const struct nlmsghdr *, void *), void *arg)
{
	bool done = false;
	char *buf = malloc(RECEIVE_ROOM);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), err = 0;

	if (!buf || fd < 0 || send(fd, r, r->head.nlmsg_len, 0) < 0)
		err = buf ? -errno : -ENOMEM;
	while (!err && !done) {
		ssize_t got = recv(fd, buf, RECEIVE_ROOM, 0);
		int left = (int)got;

		if (got < 0) {
			err = -errno;
			break;
		}
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, left) && !err && !done;
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				err = ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			else
				err = fn(h, arg);
			done = true;
		}
	}
	if (fd >= 0)
		close(fd);
	free(buf);
	return err;
}

static bool bridge_filters(const struct nlattr *data)
{
	const struct nlattr *a[IFLA_BR_MAX + 1], *on;

	if (!data)
		return false;
	parse_attrs(attr_data(data), attr_len(data), a, IFLA_BR_MAX);
	on = a[IFLA_BR_VLAN_FILTERING];
	return on && attr_len(on) >= 1 && *(const uint8_t *)attr_data(on);
}

static void parse_vlan(const struct nlattr *data, struct netdev_link *l)
{
	const struct nlattr *a[IFLA_VLAN_MAX + 1], *id, *protocol;

	if (!data)
		return;
	parse_attrs(attr_data(data), attr_len(data), a, IFLA_VLAN_MAX);
	id = a[IFLA_VLAN_ID];
	protocol = a[IFLA_VLAN_PROTOCOL];
	if (id && attr_len(id) >= 2)
		memcpy(&l->vlan_id, attr_data(id), 2);
	l->vlan_provider = protocol && attr_len(protocol) >= 2 && *(const uint16_t *)attr_data(protocol) == htons(ETH_P_8021AD);
}

static int parse_link(const struct nlmsghdr *h, struct netdev_link *l)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);
	const struct nlattr *a[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1], *xdp[IFLA_XDP_MAX + 1];

	if (h->nlmsg_type != RTM_NEWLINK || h->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
		return -EPROTO;
	memset(l, 0, sizeof(*l));
	parse_attrs(IFLA_RTA(i), (int)IFLA_PAYLOAD(h), a, IFLA_MAX);
	l->ifindex = (unsigned)i->ifi_index;
	l->flags = i->ifi_flags;
	l->type = i->ifi_type;
	attr_text(a[IFLA_IFNAME], l->name, sizeof(l->name));
	l->mtu = attr_u32(a[IFLA_MTU], 0);
	l->rx_queues = attr_u32(a[IFLA_NUM_RX_QUEUES], 1);
	l->tx_queues = attr_u32(a[IFLA_NUM_TX_QUEUES], 1);
	l->master = attr_u32(a[IFLA_MASTER], 0);
	l->lower = attr_u32(a[IFLA_LINK], 0);
	l->lower_netnsid = (int)attr_u32(a[IFLA_LINK_NETNSID], (uint32_t)-1);
	if (a[IFLA_LINKINFO]) {
		parse_attrs(attr_data(a[IFLA_LINKINFO]), attr_len(a[IFLA_LINKINFO]), info, IFLA_INFO_MAX);
		attr_text(info[IFLA_INFO_KIND], l->kind, sizeof(l->kind));
		l->vlan_filtering = strcmp(l->kind, "bridge") == 0 && bridge_filters(info[IFLA_INFO_DATA]);
		if (strcmp(l->kind, "vlan") == 0)
			parse_vlan(info[IFLA_INFO_DATA], l);
	}
	if (a[IFLA_XDP]) {
		parse_attrs(attr_data(a[IFLA_XDP]), attr_len(a[IFLA_XDP]), xdp, IFLA_XDP_MAX);
		if (xdp[IFLA_XDP_ATTACHED] && attr_len(xdp[IFLA_XDP_ATTACHED]) >= 1)
			l->xdp_attached = *(const uint8_t *)attr_data(xdp[IFLA_XDP_ATTACHED]);
		l->xdp_prog = attr_u32(xdp[IFLA_XDP_PROG_ID], 0);
	}
	return 0;
}

struct link_list {
	struct netdev_link *link;
	size_t count;
};

static void begin_links(void *arg)
{
	struct link_list *list = arg;

	list->count = 0;
}

static int add_link(const struct nlmsghdr *h, void *arg)
{
	struct link_list *list = arg;
	struct netdev_link *more = realloc(list->link, (list->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->link = more;
	return parse_link(h, &list->link[list->count]) ? -EPROTO : (list->count++, 0);
}

static void link_request(struct request *r, int ifindex)
{
	struct ifinfomsg *i = (struct ifinfomsg *)r->body;

	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = NLMSG_LENGTH(sizeof(*i));
	r->head.nlmsg_type = RTM_GETLINK;
	r->head.nlmsg_flags = NLM_F_REQUEST;
	i->ifi_family = AF_UNSPEC;
	i->ifi_index = ifindex;
}

int netdev_links(struct netdev_link **out, size_t *count)
{
	struct link_list list = {0};
	struct request r;
	int err;

	link_request(&r, 0);
	err = hydnsd_netlink_dump(&r.head, begin_links, add_link, &list);
	if (err) {
		free(list.link);
		return err;
	}
	*out = list.link;
	*count = list.count;
	return 0;
}

static int one_link(const struct nlmsghdr *h, void *arg)
{
	return parse_link(h, arg);
}

int netdev_link(unsigned ifindex, struct netdev_link *out)
{
	struct request r;

	link_request(&r, (int)ifindex);
	return talk(NETLINK_ROUTE, &r, one_link, out);
}

int netdev_link_elsewhere(int netnsid, unsigned ifindex, struct netdev_link *out)
{
	struct request r;

	link_request(&r, (int)ifindex);
	put_attr(&r, IFLA_TARGET_NETNSID, &netnsid, sizeof(netnsid));
	return talk(NETLINK_ROUTE, &r, one_link, out);
}

/* -- generic netlink -------------------------------------------------------------------------------------- */

struct attr_wanted {
	unsigned type;
	size_t len;
	void *out;
	bool found;
};

static int take_attr(const struct nlmsghdr *h, void *arg)
{
	struct attr_wanted *w = arg;
	const struct nlattr *a[16];

	if (h->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return -EPROTO;
	parse_attrs((const char *)NLMSG_DATA(h) + GENL_HDRLEN, (int)(h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN)), a, 15);
	if (a[w->type] && attr_len(a[w->type]) >= (int)w->len) {
		memcpy(w->out, attr_data(a[w->type]), w->len);
		w->found = true;
	}
	return 0;
}

static int genl_get(unsigned short family, uint8_t cmd, unsigned short key, const void *data, size_t len,
		    struct attr_wanted *w)
{
	struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = family,
				     .nlmsg_flags = NLM_F_REQUEST}};
	struct genlmsghdr *g = (struct genlmsghdr *)r.body;
	int err;

	g->cmd = cmd;
	g->version = 1;
	put_attr(&r, key, data, len);
	err = talk(NETLINK_GENERIC, &r, take_attr, w);
	return err ? err : w->found ? 0 : -ENODATA;
}

int netdev_xdp_features(unsigned ifindex, uint64_t *features)
{
	uint16_t family;
	struct attr_wanted id = {CTRL_ATTR_FAMILY_ID, sizeof(family), &family, false};
	struct attr_wanted f = {NETDEV_ATTR_FEATURES, sizeof(*features), features, false};
	int err = genl_get(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY,
			   sizeof(NETDEV_FAMILY), &id);

	return err ? err : genl_get(family, NETDEV_DEV_GET, NETDEV_ATTR_IFINDEX, &ifindex, sizeof(ifindex), &f);
}

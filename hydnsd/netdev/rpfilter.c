/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/rpfilter.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netconf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/netlink.h"

struct setting {
	const struct netdev_link *link;
	size_t count;
	uint8_t *mode;                 /* of each link */
	uint8_t all;
};

const char *hydnsd_rpfilter_text(enum hydnsd_rpfilter_mode mode)
{
	static const char *const texts[] = { "off", "strict", "loose" };

	return texts[mode];
}

static int take_setting(const struct nlmsghdr *h, void *arg)
{
	const int fixed = NLMSG_ALIGN(sizeof(struct netconfmsg));
	const struct rtattr *first = (const void *)((const char *)NLMSG_DATA(h) + fixed);
	int len = (int)NLMSG_PAYLOAD(h, fixed);
	const int *index = hydns_netlink_attr(first, len, NETCONFA_IFINDEX, sizeof(*index));
	const uint32_t *mode = hydns_netlink_attr(first, len, NETCONFA_RP_FILTER, sizeof(*mode));
	struct setting *s = arg;

	if (!index || !mode || *mode > HYDNSD_RPFILTER_LOOSE)
		return 0;
	if (*index == NETCONFA_IFINDEX_ALL)
		s->all = (uint8_t)*mode;
	for (size_t i = 0; i < s->count; i++)
		if ((int)s->link[i].ifindex == *index)
			s->mode[i] = (uint8_t)*mode;
	return 0;
}

static void begin_settings(void *arg)
{
	struct setting *s = arg;

	memset(s->mode, 0, s->count);
	s->all = 0;
}

static int read_settings(struct setting *s)
{
	struct {
		struct nlmsghdr head;
		struct netconfmsg body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNETCONF },
		.body = { .ncm_family = AF_INET },
	};

	return hydnsd_netlink_dump(&request.head, begin_settings, take_setting, s);
}

static bool has_ipv4(const struct ifaddrs *all, const char *name)
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && strcmp(a->ifa_name, name) == 0)
			return true;
	return false;
}

static const struct netdev_link *by_index(const struct setting *s, unsigned index)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->link[i].ifindex == index)
			return &s->link[i];
	return NULL;
}

static bool listed(const struct hydnsd_rpfilter *r, unsigned index)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->device[i] == index)
			return true;
	return false;
}

/* Adds a device by which queries may reach the stack. The kernel takes the larger of `all' and the device's own setting; on a
 * device without an address, loose is as strict as strict. */
static void add_device(struct hydnsd_rpfilter *out, const struct setting *s, const struct ifaddrs *addresses,
		       const struct netdev_link *l)
{
	uint8_t mode = s->mode[l - s->link];

	if (!out->first)
		out->first = l->ifindex;
	out->several |= out->first != l->ifindex;
	if (mode < s->all)
		mode = s->all;
	if (mode == HYDNSD_RPFILTER_LOOSE && !has_ipv4(addresses, l->name))
		mode = HYDNSD_RPFILTER_STRICT;
	if (!mode)
		return;
	if (out->mode != HYDNSD_RPFILTER_STRICT)
		out->mode = mode;
	if (mode != HYDNSD_RPFILTER_STRICT || listed(out, l->ifindex))
		return;
	if (out->count == HYDNSD_RPFILTER_DEVICES)
		out->full = true;
	else
		out->device[out->count++] = l->ifindex;
}

/* The stack takes a frame of a port as that of its bond or bridge, and a tagged frame as that of its VLAN device. rp_filter
 * does not apply to loopback. */
static void add_interface(struct hydnsd_rpfilter *out, const struct setting *s, const struct ifaddrs *addresses,
			  const char *name, bool vlan)
{
	const struct netdev_link *l = NULL, *master;

	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->link[i].name, name) == 0)
			l = &s->link[i];
	if (!l || (l->flags & IFF_LOOPBACK))
		return;
	for (size_t i = 0; vlan && i < s->count; i++)
		if (s->link[i].lower == l->ifindex && s->link[i].lower_netnsid < 0 &&
		    strcmp(s->link[i].kind, "vlan") == 0)
			add_interface(out, s, addresses, s->link[i].name, vlan);
	master = l->master ? by_index(s, l->master) : NULL;
	if (!master)
		add_device(out, s, addresses, l);
	else if (strcmp(master->kind, "vrf") == 0)
		memcpy(out->vrf, l->name, sizeof(out->vrf));
	else
		add_interface(out, s, addresses, master->name, vlan);
}

int hydnsd_rpfilter_read(const struct hydnsd_list *interfaces, bool vlan, struct hydnsd_rpfilter *out)
{
	struct hydnsd_rpfilter found = { .count = 0 };
	struct setting s = { .all = 0 };
	struct ifaddrs *addresses = NULL;
	struct netdev_link *links = NULL;
	int rc = netdev_links(&links, &s.count);

	if (rc)
		return rc;
	s.link = links;
	s.mode = calloc(s.count + 1, 1);
	if (!s.mode)
		rc = -ENOMEM;
	else if (getifaddrs(&addresses))
		rc = -errno;
	if (!rc)
		rc = read_settings(&s);
	for (uint32_t i = 0; !rc && i < interfaces->count; i++)
		add_interface(&found, &s, addresses, interfaces->item[i], vlan);
	if (!rc)
		*out = found;
	freeifaddrs(addresses);
	free(s.mode);
	free(links);
	return rc;
}

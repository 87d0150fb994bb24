/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/links.h"

#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/netlink.h"

struct link {
	char name[IFNAMSIZ];
	unsigned index;                /* of the interface attached to; 0: none */
	char note[HYDNS_WHY];
};

struct hydnsd_links {
	struct link link[HYDNSD_LIST_MAX];
	uint32_t count;
	int fd;
	struct hydnsd_watch *watch;
};

/* -- drivers ---------------------------------------------------------------------------------------------- */
/* Virtual links hand frames from one stack to another without finishing the checksum. */
static bool leaves_checksums(const char *driver)
{
	static const char *const drivers[] = {
		"veth", "virtio_net", "tun", "bridge", "xen_netfront", "hv_netvsc", "netkit",
	};

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	return false;
}

bool hydnsd_links_partial_checksum(const struct hydnsd_list *interfaces)
{
	bool any = false;
	char driver[32];

	for (uint32_t i = 0; i < interfaces->count; i++)
		if (strcmp(interfaces->item[i], "lo") == 0 ||
		    (netdev_driver(interfaces->item[i], driver) == 0 && leaves_checksums(driver)))
			any = true;
	return any;
}

/* -- VLAN tags -------------------------------------------------------------------------------------------- */
static bool wants_mend(const struct hydnsd *d, const struct netdev_tags *t)
{
	/* a veth's peer, which may be anybody's, is left alone as long as it does no harm */
	return d->options.vlan_offload == HYDNSD_VLAN_OFFLOAD_OFF && t->place == NETDEV_TAGS_ASIDE &&
	       (t->vlan[0] || !t->sender);
}

/* Where the tags of the interface's frames are, once what puts them aside has been turned off where that is
 * wanted: each port of a bond in its turn. */
static int look_for_tags(struct hydnsd *d, unsigned index, struct netdev_tags *tags)
{
	struct netdev_link *all;
	const struct netdev_link *l = NULL;
	size_t n;
	int err = netdev_links(&all, &n);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		if (all[i].ifindex == index)
			l = &all[i];
	for (size_t tries = 0; l && tries < n; tries++) {
		netdev_tags(l, all, n, d->options.attach_mode == HYDNS_ATTACH_NATIVE, tags);
		if (!wants_mend(d, tags) || netdev_tags_mend(tags))
			break;
		hydnsd_log(HYDNSD_LOG_INFO, "%s: VLAN %s offload turned off", tags->at,
			   tags->sender ? "transmit" : "receive");
	}
	free(all);
	return 0;
}

/* False with the reason in note when the program would answer frames of a VLAN as untagged ones. Turns the
 * offload off where that is wanted. */
static bool tags_seen(struct hydnsd *d, const char *name, unsigned index, char note[HYDNS_WHY])
{
	char text[NETDEV_TEXT], mend[NETDEV_TEXT];
	struct netdev_tags tags = { 0 };
	int err;

	if (d->options.vlan_offload == HYDNSD_VLAN_OFFLOAD_TRUST)
		return true;
	err = look_for_tags(d, index, &tags);
	if (err) {
		snprintf(note, HYDNS_WHY, "%s: can't tell whether VLAN devices lie on it: %s: look with ip -d link, then "
			 "vlan-offload: trust", name, strerror(-err));
		return false;
	}
	if (!netdev_tags_trap(&tags))
		return true;
	netdev_tags_explain(&tags, text, mend);
	snprintf(note, HYDNS_WHY, "%s: %.120s: %.110s", name, text, mend);
	return false;
}

/* -- attaching -------------------------------------------------------------------------------------------- */
/* What a former hydnsd may have left on an interface that this one can't attach to: its maps need not be ours, so
 * nobody could pause it. */
static void leave(struct hydnsd *d, struct link *l)
{
	char why[HYDNS_WHY];

	if (hydns_kern_detach(d->kern, l->name, why))
		snprintf(l->note, sizeof(l->note), "cannot detach from %s: %.200s", l->name, why);
}

/* A veth's peer without an XDP program loses what XDP sends back, in native mode. False: it has one, or can't be seen. */
static bool peer_is_deaf(const struct hydnsd *d, struct link *l)
{
	struct netdev_link *all, peer;
	char mend[NETDEV_MEND];
	bool deaf = false;
	size_t n;

	if (d->options.attach_mode == HYDNS_ATTACH_GENERIC || netdev_links(&all, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (all[i].ifindex != l->index || strcmp(all[i].kind, "veth") != 0 ||
		    netdev_veth_peer(&all[i], all, n, &peer) || peer.xdp_attached != XDP_ATTACHED_NONE)
			continue;
		netdev_veth_mend(&all[i], peer.name, mend);
		snprintf(l->note, sizeof(l->note), "%s: its peer %s has no XDP program: kernel answers are lost: %.165s", l->name,
			 peer.name, mend);
		deaf = true;
	}
	free(all);
	return deaf;
}

/* What keeps an interface with the program on it from working well. */
static void remark(const struct hydnsd *d, struct link *l)
{
	char driver[32];

	l->note[0] = '\0';
	if (peer_is_deaf(d, l))
		return;
	if (d->options.partial_checksum == HYDNSD_AUTO && !d->partial_checksum &&
	    netdev_driver(l->name, driver) == 0 && leaves_checksums(driver))
		snprintf(l->note, sizeof(l->note), "%s was not there at the start, and its driver (%s) leaves checksums "
			 "unfinished: such queries go to the resolver: restart hydnsd, or set partial-checksum: yes",
			 l->name, driver);
}

static int attach(struct hydnsd *d, struct link *l)
{
	unsigned index = if_nametoindex(l->name);
	int rc;

	if (!index) {
		snprintf(l->note, sizeof(l->note), "interface %s does not exist: create it or correct the "
			 "option", l->name);
		rc = -ENODEV;
	} else if (!tags_seen(d, l->name, index, l->note)) {
		rc = -ENOTSUP;
	} else {
		rc = hydns_kern_attach(d->kern, l->name, (enum hydns_attach_mode)d->options.attach_mode, l->note);
	}
	if (rc) {
		leave(d, l);
		return rc;
	}
	l->index = index;
	remark(d, l);
	hydnsd_log(HYDNSD_LOG_INFO, "attached to %s", l->name);
	if (l->note[0])
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", l->note);
	return 0;
}

/* What can't be detached stays attached, for all to see. */
static void detach(struct hydnsd *d, struct link *l)
{
	char why[HYDNS_WHY] = "";

	if (hydns_kern_detach(d->kern, l->name, why) && l->index && if_nametoindex(l->name) == l->index)
		hydnsd_log(HYDNSD_LOG_WARNING, "cannot detach from %s: %s", l->name, why);
	else
		l->index = 0;
}

static void try_attach(struct hydnsd *d, struct link *l)
{
	char before[HYDNS_WHY];

	memcpy(before, l->note, sizeof(before));
	if (attach(d, l) && strcmp(before, l->note) != 0)
		hydnsd_log(HYDNSD_LOG_WARNING, "%s; hydnsd tries again by itself", l->note);
}

/* A VLAN device, or an offload, may have come after the program. */
static void check_tags(struct hydnsd *d, struct link *l)
{
	char before[HYDNS_WHY];

	if (!l->index)
		return;
	memcpy(before, l->note, sizeof(before));
	if (tags_seen(d, l->name, l->index, l->note)) {
		remark(d, l);
		if (l->note[0] && strcmp(before, l->note) != 0)
			hydnsd_log(HYDNSD_LOG_WARNING, "%s", l->note);
		return;
	}
	detach(d, l);
	if (!l->index)
		hydnsd_log(HYDNSD_LOG_WARNING, "detached: %s; hydnsd attaches again by itself", l->note);
}

static struct link *find_link(struct hydnsd_links *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (strcmp(s->link[i].name, name) == 0)
			return &s->link[i];
	return NULL;
}

static struct link *add_link(struct hydnsd_links *s, const char *name)
{
	struct link *l = &s->link[s->count++];

	memset(l, 0, sizeof(*l));
	snprintf(l->name, sizeof(l->name), "%s", name);
	return l;
}

static bool listed(const struct hydnsd_list *list, const char *name)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strcmp(list->item[i], name) == 0)
			return true;
	return false;
}

/* An interface that a former hydnsd answered on, and this one is not to. */
static void leave_other(const char *name, void *arg)
{
	struct hydnsd *d = arg;
	char why[HYDNS_WHY];

	if (listed(&d->options.interface, name))
		return;
	if (hydns_kern_detach(d->kern, name, why))
		hydnsd_log(HYDNSD_LOG_ERROR, "a former hydnsd left its program on %s, which is not configured, and it "
			   "cannot be detached: %s; stop hydnsd and run hydnsd --clean", name, why);
	else
		hydnsd_log(HYDNSD_LOG_INFO, "detached from %s, which a former hydnsd answered on and which is not "
			   "configured", name);
}

void hydnsd_links_update(struct hydnsd *d)
{
	struct hydnsd_links *s = d->links;

	for (uint32_t i = 0; i < s->count; ) {
		if (listed(&d->options.interface, s->link[i].name)) {
			i++;
			continue;
		}
		detach(d, &s->link[i]);
		hydnsd_log(HYDNSD_LOG_INFO, "detached from %s", s->link[i].name);
		s->link[i] = s->link[--s->count];
	}
	for (uint32_t i = 0; i < d->options.interface.count; i++)
		if (!find_link(s, d->options.interface.item[i]))
			add_link(s, d->options.interface.item[i]);
	hydnsd_links_tick(d);          /* what vlan-offload says may have changed, too */
}

void hydnsd_links_tick(struct hydnsd *d)
{
	for (uint32_t i = 0; i < d->links->count; i++) {
		struct link *l = &d->links->link[i];

		if (l->index)
			check_tags(d, l);
		else
			try_attach(d, l);
	}
}

/* -- rtnetlink -------------------------------------------------------------------------------------------- */
static const struct rtattr *link_attribute(const struct nlmsghdr *h, unsigned short type)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	int left = (int)IFLA_PAYLOAD(h);

	for (const struct rtattr *a = IFLA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type)
			return a;
	return NULL;
}

/* A VLAN device or a bridge: it may take tags from an interface of ours that is a port of what it lies on. */
static bool takes_tags(const struct nlmsghdr *h)
{
	const struct rtattr *info = link_attribute(h, IFLA_LINKINFO);
	int left = info ? (int)RTA_PAYLOAD(info) : 0;

	for (const struct rtattr *a = info ? RTA_DATA(info) : NULL; a && RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND)
			return strcmp(RTA_DATA(a), "vlan") == 0 || strcmp(RTA_DATA(a), "bridge") == 0;
	return false;
}

static bool is_about(const struct nlmsghdr *h, unsigned short type, unsigned index)
{
	const struct rtattr *a = link_attribute(h, type);

	return a && *(const unsigned *)RTA_DATA(a) == index;
}

/* What takes tags has come or changed, or the features of one of our interfaces, of a port of it or of a veth's
 * peer have. */
static void tags_told(struct hydnsd *d, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	bool all = h->nlmsg_type == RTM_NEWLINK && takes_tags(h);

	for (uint32_t i = 0; h->nlmsg_type == RTM_NEWLINK && i < d->links->count; i++) {
		struct link *l = &d->links->link[i];

		if (l->index && (all || l->index == (unsigned)m->ifi_index || is_about(h, IFLA_LINK, l->index) ||
				 is_about(h, IFLA_MASTER, l->index)))
			check_tags(d, l);
	}
}

static void link_told(struct hydnsd *d, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	const struct rtattr *name = link_attribute(h, IFLA_IFNAME);
	struct link *l = name ? find_link(d->links, RTA_DATA(name)) : NULL;

	tags_told(d, h);
	if (!l)
		return;
	if (h->nlmsg_type == RTM_DELLINK) {
		if (l->index != (unsigned)m->ifi_index)
			return;        /* a bridge or so tells of a port that leaves it */
		if (if_nametoindex(l->name) == l->index)
			return;
		hydnsd_log(HYDNSD_LOG_WARNING, "interface %s has gone; hydnsd attaches when it is back",
			   l->name);
		detach(d, l);
		return;
	}
	if (l->index == (unsigned)m->ifi_index)
		return;
	if (l->index)
		detach(d, l);
	try_attach(d, l);
}

static void message_told(const struct nlmsghdr *h, void *arg)
{
	if ((h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK) &&
	    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg)))
		link_told(arg, h);
}

/* Where messages were lost nobody knows which links they were about. */
static void readable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;

	(void)events;
	if (!hydnsd_netlink_hear(d->links->fd, message_told, d))
		return;
	hydnsd_log(HYDNSD_LOG_INFO, "the kernel told more of links than hydnsd could hear: all interfaces are looked at");
	hydnsd_links_tick(d);
}

static int open_netlink(struct hydnsd *d, char *why, size_t room)
{
	struct hydnsd_links *s = d->links;

	s->fd = hydnsd_netlink_listen(RTMGRP_LINK, NULL);
	if (s->fd >= 0)
		s->watch = hydnsd_loop_watch(d->loop, s->fd, EPOLLIN, readable, d);
	if (s->watch)
		return 0;
	snprintf(why, room, "cannot listen to rtnetlink: %s", strerror(s->fd < 0 ? -s->fd : errno));
	return -EIO;
}

int hydnsd_links_start(struct hydnsd *d, char *why, size_t room)
{
	int rc;

	d->links = calloc(1, sizeof(*d->links));
	if (!d->links) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	d->links->fd = -1;
	rc = open_netlink(d, why, room);
	if (rc)
		return rc;
	hydns_kern_attached_each(d->kern, leave_other, d);
	hydnsd_links_update(d);
	return 0;
}

void hydnsd_links_stop(struct hydnsd *d, bool off)
{
	struct hydnsd_links *s = d->links;

	if (!s)
		return;
	for (uint32_t i = 0; off && i < s->count; i++)
		if (s->link[i].index)
			detach(d, &s->link[i]);
	hydnsd_watch_end(s->watch);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	d->links = NULL;
}

bool hydnsd_links_get(const struct hydnsd *d, uint32_t n, struct hydnsd_link_state *out)
{
	const struct link *l;

	if (!d->links || n >= d->links->count)
		return false;
	l = &d->links->link[n];
	*out = (struct hydnsd_link_state){ .name = l->name, .attached = l->index, .note = l->note };
	return true;
}

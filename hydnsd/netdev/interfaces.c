/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/interfaces.h"

#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/netlink.h"
#include "hydnsd/parking/parking.h"

struct link {
	char name[IFNAMSIZ];
	unsigned index;                /* of the interface attached to; 0: none */
	uint64_t unread_since_ms;      /* since when its tags could not be read; 0: the last look could */
	char note[HYDNS_WHY];
};

struct hydnsd_interfaces {
	struct link link[HYDNSD_LIST_MAX];
	uint32_t count;
	void (*news)(struct hydnsd *d, unsigned leaves);
	int fd;
	struct hydnsd_watch *watch;
	bool look;                     /* look at all of them: something has changed, or could not be read */
	uint64_t not_before_ms;        /* of the next look */
};

/* All links of this network namespace, read once. */
struct host {
	struct netdev_link *all;
	size_t n;
	int rc;                        /* not 0: they could not be read */
};

/* -- VLAN tags -------------------------------------------------------------------------------------------- */
static bool wants_mend(const struct hydnsd *d, const struct netdev_tags *t)
{
	/* a veth's peer may belong to somebody else: change it only when it does harm */
	return d->options.vlan_offload == HYDNSD_VLAN_OFFLOAD_OFF && t->place == NETDEV_TAGS_ASIDE &&
	       (t->vlan[0] || !t->sender);
}

static const struct netdev_link *by_index(const struct host *h, unsigned index)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->all[i].ifindex == index)
			return &h->all[i];
	return NULL;
}

/* Finds where the tags of the interface's frames are. If vlan-offload is `off', first turns the offload off that puts them
 * aside, of each port of a bond. -ENODEV: the interface is newer than *h. */
static int look_for_tags(struct hydnsd *d, const struct host *h, unsigned index, struct netdev_tags *tags)
{
	const struct netdev_link *l = by_index(h, index);

	if (!l)
		return h->rc ? h->rc : -ENODEV;
	for (size_t tries = 0; tries < h->n; tries++) {
		netdev_tags(l, h->all, h->n, d->options.attach_mode == HYDNS_ATTACH_NATIVE, tags);
		if (!wants_mend(d, tags) || netdev_tags_mend(tags))
			break;
		hydnsd_log(HYDNSD_LOG_INFO, "%s: VLAN %s offload turned off", tags->at,
			   tags->sender ? "transmit" : "receive");
	}
	return 0;
}

enum tags {
	TAGS_SEEN,
	TAGS_ASIDE,                    /* the program would answer frames of a VLAN as untagged ones */
	TAGS_UNREAD,                   /* could not be read now: the former result counts */
	TAGS_UNKNOWN,                  /* could not be read for too long */
};

/* As look_for_tags(). note: why they are not seen. */
static enum tags find_tags(struct hydnsd *d, const struct host *h, struct link *l, unsigned index, char note[HYDNS_WHY])
{
	char text[NETDEV_TEXT], mend[NETDEV_TEXT];
	struct netdev_tags tags = { 0 };
	bool patient;
	int rc;

	if (d->options.vlan_offload == HYDNSD_VLAN_OFFLOAD_TRUST)
		return TAGS_SEEN;
	rc = look_for_tags(d, h, index, &tags);
	patient = hydnsd_netlink_patient(&l->unread_since_ms, rc);
	if (rc) {
		d->interfaces->look = true;
		snprintf(note, HYDNS_WHY, "%s: cannot see whether VLAN devices lie on it: %s: %s", l->name, strerror(-rc),
			 patient ? "the links are read again" : "look with ip -d link, then vlan-offload: trust");
		return patient ? TAGS_UNREAD : TAGS_UNKNOWN;
	}
	if (!netdev_tags_trap(&tags))
		return TAGS_SEEN;
	netdev_tags_explain(&tags, text, mend);
	snprintf(note, HYDNS_WHY, "%s: %.120s: %.110s", l->name, text, mend);
	return TAGS_ASIDE;
}

/* -- attaching -------------------------------------------------------------------------------------------- */
/* Detaches what a former hydnsd may have left on an interface that this one can't attach to: that program may have other maps,
 * and the kill switch of this one does not stop it. */
static void leave(struct hydnsd *d, struct link *l)
{
	char why[HYDNS_WHY];

	if (hydns_kern_detach(d->kern, l->name, why))
		snprintf(l->note, sizeof(l->note), "cannot detach from %s: %.200s", l->name, why);
}

/* Notes it: in native mode a veth's peer without an XDP program drops what XDP sends back. */
static void peer_drops(const struct hydnsd *d, const struct host *h, struct link *l)
{
	const struct netdev_link *own = by_index(h, l->index);
	struct netdev_link peer;
	char mend[NETDEV_MEND];

	if (d->options.attach_mode == HYDNS_ATTACH_GENERIC || !own || strcmp(own->kind, "veth") != 0 ||
	    netdev_veth_peer(own, h->all, h->n, &peer) || peer.xdp_attached != XDP_ATTACHED_NONE)
		return;
	netdev_veth_mend(own, peer.name, mend);
	snprintf(l->note, sizeof(l->note), "%s: its peer %s has no XDP program: kernel answers are lost: %.165s", l->name,
		 peer.name, mend);
}

/* Notes what keeps an interface with the program on it from working well. */
static void find_note(const struct hydnsd *d, const struct host *h, struct link *l)
{
	l->note[0] = '\0';
	peer_drops(d, h, l);
}

/* An answer to a replayed query leaves by the driver's transmit function for XDP, which generic mode does not ask for; and
 * hydnsd can replay queries to a program of its own alone, not to libxdp's dispatcher. */
static void let_park(struct hydnsd *d, const struct link *l, bool may)
{
	int rc = d->options.pending_max ? hydns_kern_park_at(d->kern, l->index, may) : 0;

	if (rc && may)
		hydnsd_log(HYDNSD_LOG_WARNING, "queries that come by %s cannot be parked: %s", l->name, strerror(-rc));
}

/* The driver has no native XDP: which interface to name instead. */
static void explain_refusal(const struct hydnsd *d, const struct host *h, struct link *l, unsigned index)
{
	const struct netdev_link *own = by_index(h, index);
	char mend[NETDEV_TEXT];

	if (d->options.attach_mode == HYDNS_ATTACH_NATIVE && own && netdev_native_mend(own, h->all, h->n, true, mend))
		snprintf(l->note, sizeof(l->note), "%s: no native XDP there: %s; or attach-mode: generic", l->name, mend);
}

static int attach(struct hydnsd *d, const struct host *h, struct link *l)
{
	unsigned index = if_nametoindex(l->name);
	enum tags tags = index ? find_tags(d, h, l, index, l->note) : TAGS_UNKNOWN;
	int rc;

	if (tags == TAGS_UNREAD)
		return -EAGAIN;        /* leave the former hydnsd's program there */
	if (!index) {
		snprintf(l->note, sizeof(l->note), "interface %s does not exist: create it or correct the "
			 "option", l->name);
		rc = -ENODEV;
	} else if (tags != TAGS_SEEN) {
		rc = -ENOTSUP;
	} else {
		rc = hydns_kern_attach(d->kern, l->name, (enum hydns_attach_mode)d->options.attach_mode, l->note);
		if (rc == -EOPNOTSUPP)
			explain_refusal(d, h, l, index);
	}
	if (rc) {
		leave(d, l);
		return rc;
	}
	l->index = index;
	let_park(d, l, d->options.attach_mode == HYDNS_ATTACH_NATIVE);
	find_note(d, h, l);
	hydnsd_log(HYDNSD_LOG_INFO, "attached to %s", l->name);
	if (l->note[0])
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", l->note);
	return 0;
}

/* If this fails, the interface stays listed as attached. */
static void detach(struct hydnsd *d, struct link *l)
{
	char why[HYDNS_WHY] = "";

	if (l->index) {
		let_park(d, l, false);
		hydnsd_parking_leave(d);
		d->interfaces->news(d, l->index);
	}
	if (hydns_kern_detach(d->kern, l->name, why) && l->index && if_nametoindex(l->name) == l->index)
		hydnsd_log(HYDNSD_LOG_WARNING, "cannot detach from %s: %s", l->name, why);
	else
		l->index = 0;
}

static void try_attach(struct hydnsd *d, const struct host *h, struct link *l)
{
	char before[HYDNS_WHY];

	memcpy(before, l->note, sizeof(before));
	if (attach(d, h, l) && strcmp(before, l->note) != 0)
		hydnsd_log(HYDNSD_LOG_WARNING, "%s; hydnsd tries again by itself", l->note);
}

/* A VLAN device may have been added, or an offload turned on, after the program was attached. */
static void check_tags(struct hydnsd *d, const struct host *h, struct link *l)
{
	char note[HYDNS_WHY];
	enum tags tags = find_tags(d, h, l, l->index, note);

	if (tags == TAGS_UNREAD)
		return;
	if (tags == TAGS_SEEN) {
		memcpy(note, l->note, sizeof(note));
		if (!h->rc)
			find_note(d, h, l);
		if (l->note[0] && strcmp(note, l->note) != 0)
			hydnsd_log(HYDNSD_LOG_WARNING, "%s", l->note);
		return;
	}
	memcpy(l->note, note, sizeof(note));
	detach(d, l);
	if (!l->index)
		hydnsd_log(HYDNSD_LOG_WARNING, "detached: %s; hydnsd attaches again by itself", l->note);
}

/* -- looking ---------------------------------------------------------------------------------------------- */
static void read_host(const struct hydnsd *d, struct host *h)
{
	*h = (struct host){ .rc = 0 };
	if (d->options.interface.count)
		h->rc = netdev_links(&h->all, &h->n);
}

/* What could not be read stays as it was. */
static void take_facts(struct hydnsd *d, const struct host *h)
{
	if (!h->rc)
		hydnsd_facts_read(&d->options.interface, d->options.attach_mode == HYDNS_ATTACH_NATIVE, h->all, h->n, &d->facts);
}

void hydnsd_interfaces_facts(struct hydnsd *d)
{
	struct host h;

	read_host(d, &h);
	take_facts(d, &h);
	free(h.all);
}

/* Looks at all interfaces, and reads the host's links once: that takes long where there are many. */
static void look(struct hydnsd *d)
{
	struct hydnsd_interfaces *s = d->interfaces;
	uint64_t begun = hydnsd_now_ms();
	struct host h;

	read_host(d, &h);
	take_facts(d, &h);
	s->look = h.rc;
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->link[i].index)
			check_tags(d, &h, &s->link[i]);
		else
			try_attach(d, &h, &s->link[i]);
	}
	free(h.all);
	s->news(d, 0);
	s->not_before_ms = hydnsd_netlink_not_before(begun);
}

void hydnsd_interfaces_retry(struct hydnsd *d)
{
	look(d);
}

void hydnsd_interfaces_tick(struct hydnsd *d)
{
	if (d->interfaces->look && hydnsd_now_ms() >= d->interfaces->not_before_ms)
		look(d);
}

/* -- which interfaces ------------------------------------------------------------------------------------- */
static struct link *find_link(struct hydnsd_interfaces *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (strcmp(s->link[i].name, name) == 0)
			return &s->link[i];
	return NULL;
}

static struct link *add_link(struct hydnsd_interfaces *s, const char *name)
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

/* Detaches from an interface that a former hydnsd answered on and that is not configured now. */
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

void hydnsd_interfaces_update(struct hydnsd *d)
{
	struct hydnsd_interfaces *s = d->interfaces;

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
	look(d);                       /* vlan-offload may have changed, too */
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

/* A VLAN device or a bridge: one of our interfaces may be a port of what it lies on. */
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

/* Whether the notice may concern tags: of a device that takes them, or of one of our interfaces, its port or its veth peer,
 * whose features may have changed. */
static bool may_concern_tags(const struct hydnsd *d, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);

	if (h->nlmsg_type != RTM_NEWLINK)
		return false;
	if (takes_tags(h))
		return true;
	for (uint32_t i = 0; i < d->interfaces->count; i++) {
		unsigned index = d->interfaces->link[i].index;

		if (index && (index == (unsigned)m->ifi_index || is_about(h, IFLA_LINK, index) ||
			      is_about(h, IFLA_MASTER, index)))
			return true;
	}
	return false;
}

/* Only requests a look, so that a burst causes one; but detaches at once when an interface of ours is another now. */
static void link_notice(struct hydnsd *d, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	const struct rtattr *name = link_attribute(h, IFLA_IFNAME);
	struct link *l = name ? find_link(d->interfaces, RTA_DATA(name)) : NULL;

	d->interfaces->look |= may_concern_tags(d, h);
	if (!l)
		return;
	if (h->nlmsg_type == RTM_DELLINK) {
		if (l->index != (unsigned)m->ifi_index)
			return;        /* a bridge or the like: a port has left it */
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
	d->interfaces->look = true;
}

static void take_notice(const struct nlmsghdr *h, void *arg)
{
	if ((h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK) &&
	    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg)))
		link_notice(arg, h);
}

/* Lost notices may have been about any link. */
static void readable(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;

	(void)events;
	if (hydnsd_netlink_hear(d->interfaces->fd, take_notice, d)) {
		hydnsd_log(HYDNSD_LOG_INFO, "notices of links were lost: hydnsd looks at all interfaces");
		d->interfaces->look = true;
	}
	hydnsd_interfaces_tick(d);
}

static int open_netlink(struct hydnsd *d, char *why, size_t room)
{
	struct hydnsd_interfaces *s = d->interfaces;

	s->fd = hydns_netlink_listen(RTMGRP_LINK, NULL);
	if (s->fd >= 0)
		s->watch = hydnsd_loop_watch(d->loop, s->fd, EPOLLIN, readable, d);
	if (s->watch)
		return 0;
	snprintf(why, room, "cannot listen to rtnetlink: %s", strerror(s->fd < 0 ? -s->fd : errno));
	return -EIO;
}

int hydnsd_interfaces_start(struct hydnsd *d, void (*news)(struct hydnsd *d, unsigned leaves), char *why, size_t room)
{
	int rc;

	d->interfaces = calloc(1, sizeof(*d->interfaces));
	if (!d->interfaces) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	d->interfaces->fd = -1;
	d->interfaces->news = news;
	rc = open_netlink(d, why, room);
	if (rc)
		return rc;
	hydns_kern_attached_each(d->kern, leave_other, d);
	hydnsd_interfaces_update(d);
	return 0;
}

void hydnsd_interfaces_stop(struct hydnsd *d, bool off)
{
	struct hydnsd_interfaces *s = d->interfaces;

	if (!s)
		return;
	for (uint32_t i = 0; off && i < s->count; i++)
		if (s->link[i].index)
			detach(d, &s->link[i]);
	hydnsd_watch_end(s->watch);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	d->interfaces = NULL;
}

unsigned hydnsd_interfaces_first_attached(const struct hydnsd *d)
{
	for (uint32_t i = 0; d->interfaces && i < d->interfaces->count; i++)
		if (d->interfaces->link[i].index)
			return d->interfaces->link[i].index;
	return 0;
}

bool hydnsd_interfaces_get(const struct hydnsd *d, uint32_t n, struct hydnsd_interface_state *out)
{
	const struct link *l;

	if (!d->interfaces || n >= d->interfaces->count)
		return false;
	l = &d->interfaces->link[n];
	*out = (struct hydnsd_interface_state){ .name = l->name, .attached = l->index, .index = l->index, .note = l->note };
	return true;
}

bool hydnsd_interfaces_attached_to(const struct hydnsd *d, uint32_t ifindex)
{
	for (uint32_t i = 0; d->interfaces && i < d->interfaces->count; i++)
		if (ifindex && d->interfaces->link[i].index == ifindex)
			return true;
	return false;
}

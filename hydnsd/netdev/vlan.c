/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * VLAN tags and XDP. A card with receive offload takes the tag out of the frame before XDP sees it. On a veth the sender's
 * transmit offload does, whatever the receiving end is set to. A bond attaches a native program to its ports, so their offloads
 * count. Before a bridge or another device above the network stack, the stack takes the tag out.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/netdev/netdev.h"

/* Features that take 802.1Q and 802.1ad tags out of frames: of a receiver, and of a veth's sender. */
static const char *const receiver[] = { "rx-vlan-hw-parse", "rx-vlan-stag-hw-parse" };
static const char *const sender[] = { "tx-vlan-hw-insert", "tx-vlan-stag-hw-insert" };
#define FEATURES 2

/* Enough for a port of a bond that is a port of a bridge, and one more. */
#define LEVELS 4

static enum netdev_tags_place place_by(const char *ifname, const char *const feature[FEATURES])
{
	enum netdev_tags_place place = NETDEV_TAGS_SEEN;

	for (int i = 0; i < FEATURES; i++) {
		int on = netdev_feature(ifname, feature[i]);

		if (on > 0)
			return NETDEV_TAGS_ASIDE;
		if (on < 0 && on != -ENOENT)
			place = NETDEV_TAGS_UNKNOWN;
	}
	return place;
}

static const struct netdev_link *by_index(const struct netdev_link *all, size_t n, unsigned ifindex)
{
	for (size_t i = 0; ifindex && i < n; i++)
		if (all[i].ifindex == ifindex)
			return &all[i];
	return NULL;
}

static bool is_one_of(const struct netdev_link *l, const char *const *kinds)
{
	while (*kinds && strcmp(l->kind, *kinds) != 0)
		kinds++;
	return *kinds;
}

/* -- who takes tags ------------------------------------------------------------------------------------------ */
static const struct netdev_link *vlan_on(const struct netdev_link *all, size_t n, unsigned ifindex)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].kind, "vlan") == 0 && all[i].lower == ifindex && all[i].lower_netnsid < 0)
			return &all[i];
	return NULL;
}

/* A VLAN device on l or on what l is a port of, or a switch that l is a port of. */
static const struct netdev_link *taker_of(const struct netdev_link *l, const struct netdev_link *all, size_t n)
{
	static const char *const switches[] = { "openvswitch", NULL };
	const struct netdev_link *vlan;

	for (int level = 0; l && level < LEVELS; level++) {
		if (l->vlan_filtering || is_one_of(l, switches))
			return l;
		vlan = vlan_on(all, n, l->ifindex);
		if (vlan)
			return vlan;
		l = by_index(all, n, l->master);
	}
	return NULL;
}

/* -- where they are ------------------------------------------------------------------------------------------ */
static void copy_name(char to[IF_NAMESIZE], const struct netdev_link *l)
{
	snprintf(to, IF_NAMESIZE, "%s", l ? l->name : "");
}

static void look_at(const struct netdev_link *l, const struct netdev_link *all, size_t n, struct netdev_tags *out)
{
	out->sender = strcmp(l->kind, "veth") == 0;
	copy_name(out->at, !out->sender ? l : l->lower_netnsid < 0 ? by_index(all, n, l->lower) : NULL);
	out->place = out->at[0] ? place_by(out->at, out->sender ? sender : receiver) : NETDEV_TAGS_UNKNOWN;
}

/* The first port whose tags are not seen counts. */
static void look_at_ports(const struct netdev_link *l, const struct netdev_link *all, size_t n, struct netdev_tags *out)
{
	for (size_t i = 0; i < n && out->place == NETDEV_TAGS_SEEN; i++)
		if (all[i].master == l->ifindex)
			look_at(&all[i], all, n, out);
}

void netdev_tags(const struct netdev_link *l, const struct netdev_link *all, size_t n, bool native,
		 struct netdev_tags *out)
{
	static const char *const bonds[] = { "bond", "team", NULL };
	static const char *const above_the_stack[] = { "bond", "team", "bridge", "macvlan", "macvtap", "openvswitch", NULL };

	memset(out, 0, sizeof(*out));
	copy_name(out->vlan, taker_of(l, all, n));
	if (native && is_one_of(l, bonds)) {
		look_at_ports(l, all, n, out);
	} else if (is_one_of(l, above_the_stack)) {
		out->stack = true;
		out->place = NETDEV_TAGS_ASIDE;
		copy_name(out->at, l);
	} else {
		look_at(l, all, n, out);
	}
}

bool netdev_tags_trap(const struct netdev_tags *t)
{
	return t->vlan[0] && t->place != NETDEV_TAGS_SEEN;
}

/* -- what to do ---------------------------------------------------------------------------------------------- */
static void explain_stack(const struct netdev_tags *t, char text[NETDEV_TEXT], char mend[NETDEV_TEXT])
{
	snprintf(text, NETDEV_TEXT, "%s takes VLAN tags from it, and the stack has put them aside before XDP sees the "
		 "frames", t->vlan);
	snprintf(mend, NETDEV_TEXT, "name the interfaces below %s, or, for a bond, attach-mode: native", t->at);
}

void netdev_tags_explain(const struct netdev_tags *t, char text[NETDEV_TEXT], char mend[NETDEV_TEXT])
{
	const char *command = t->sender ? "tx-vlan-offload off tx-vlan-stag-hw-insert off" :
					  "rx-vlan-offload off rx-vlan-stag-hw-parse off";

	if (t->stack) {
		explain_stack(t, text, mend);
		return;
	}
	if (t->sender && !t->at[0])
		snprintf(text, NETDEV_TEXT, "%s lies on it, and whether its veth peer, in another namespace, keeps "
			 "VLAN tags in frames cannot be seen", t->vlan);
	else if (t->place == NETDEV_TAGS_UNKNOWN)
		snprintf(text, NETDEV_TEXT, "%s lies on it, and whether %s leaves VLAN tags in frames cannot be seen",
			 t->vlan, t->at);
	else if (t->sender)
		snprintf(text, NETDEV_TEXT, "%s lies on it, and its veth peer %s keeps VLAN tags out of frames: XDP "
			 "takes them for untagged", t->vlan, t->at);
	else
		snprintf(text, NETDEV_TEXT, "%s lies on it, and the card takes VLAN tags out of frames before XDP sees "
			 "them", t->vlan);
	snprintf(mend, NETDEV_TEXT, "ethtool -K %s %s%s", t->at[0] ? t->at : "PEER", command,
		 t->place == NETDEV_TAGS_UNKNOWN ? ", then vlan-offload: trust" : "");
}

int netdev_tags_mend(const struct netdev_tags *t)
{
	const char *const *feature = t->sender ? sender : receiver;
	int err = t->stack ? -EOPNOTSUPP : t->at[0] ? 0 : -ENOENT;

	for (int i = 0; i < FEATURES && !err; i++)
		if (netdev_feature(t->at, feature[i]) > 0)
			err = netdev_feature_off(t->at, feature[i]);
	return err;
}

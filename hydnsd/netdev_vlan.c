/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * VLAN tags and XDP. A card with receive offload takes the tag out of the frame before XDP sees it; on a
 * veth it is the sender's transmit offload that leaves it out, whatever the receiving end is set to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/netdev.h"

/* Features by which 802.1Q and 802.1ad tags are put aside, at the receiver and at a veth's sender. */
static const char *const receiver[] = { "rx-vlan-hw-parse", "rx-vlan-stag-hw-parse" };
static const char *const sender[] = { "tx-vlan-hw-insert", "tx-vlan-stag-hw-insert" };
#define FEATURES 2

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

static const struct netdev_link *vlan_on(const struct netdev_link *all, size_t n, unsigned ifindex)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].kind, "vlan") == 0 && all[i].lower == ifindex && all[i].lower_netnsid < 0)
			return &all[i];
	return NULL;
}

static const struct netdev_link *peer_of(const struct netdev_link *l, const struct netdev_link *all, size_t n)
{
	for (size_t i = 0; l->lower_netnsid < 0 && i < n; i++)
		if (all[i].ifindex == l->lower)
			return &all[i];
	return NULL;
}

static void copy_name(char to[IF_NAMESIZE], const struct netdev_link *l)
{
	snprintf(to, IF_NAMESIZE, "%s", l ? l->name : "");
}

void netdev_tags(const struct netdev_link *l, const struct netdev_link *all, size_t n, struct netdev_tags *out)
{
	out->sender = strcmp(l->kind, "veth") == 0;
	copy_name(out->vlan, vlan_on(all, n, l->ifindex));
	copy_name(out->at, out->sender ? peer_of(l, all, n) : l);
	out->place = out->at[0] ? place_by(out->at, out->sender ? sender : receiver) : NETDEV_TAGS_UNKNOWN;
}

bool netdev_tags_trap(const struct netdev_tags *t)
{
	return t->vlan[0] && t->place != NETDEV_TAGS_SEEN;
}

void netdev_tags_explain(const struct netdev_tags *t, char text[NETDEV_TEXT], char mend[NETDEV_TEXT])
{
	const char *command = t->sender ? "tx-vlan-offload off tx-vlan-stag-hw-insert off" :
					  "rx-vlan-offload off rx-vlan-stag-hw-parse off";

	if (t->sender && !t->at[0])
		snprintf(text, NETDEV_TEXT, "%s lies on it, and whether its veth peer, in another namespace, keeps "
			 "VLAN tags in frames cannot be seen", t->vlan);
	else if (t->sender)
		snprintf(text, NETDEV_TEXT, "%s lies on it, and its veth peer %s keeps VLAN tags out of frames: XDP "
			 "takes them for untagged", t->vlan, t->at);
	else
		snprintf(text, NETDEV_TEXT, "%s lies on it, and the card takes VLAN tags out of frames before XDP sees "
			 "them", t->vlan);
	snprintf(mend, NETDEV_TEXT, "ethtool -K %s %s%s", t->at[0] ? t->at : "PEER", command,
		 t->at[0] ? "" : ", then vlan-offload: trust");
}

int netdev_tags_mend(const struct netdev_tags *t)
{
	const char *const *feature = t->sender ? sender : receiver;
	int err = t->at[0] ? 0 : -ENOENT;

	for (int i = 0; i < FEATURES && !err; i++)
		if (netdev_feature(t->at, feature[i]) > 0)
			err = netdev_feature_off(t->at, feature[i]);
	return err;
}

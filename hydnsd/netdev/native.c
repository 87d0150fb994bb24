/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Links without native XDP, and which to name instead (doc/interfaces.md). */
#include <stdio.h>
#include <string.h>

#include "hydnsd/netdev/netdev.h"

/* "eth0 eth1": the ports of a bridge or a bond, as many as have room. */
static void list_ports(const struct netdev_link *l, const struct netdev_link *all, size_t n, char out[64])
{
	size_t used = 0;

	snprintf(out, 64, "none");
	for (size_t i = 0; i < n && used < 64; i++)
		if (all[i].master == l->ifindex)
			used += (size_t)snprintf(out + used, 64 - used, "%s%s", used ? " " : "", all[i].name);
}

static const char *lower_name(const struct netdev_link *l, const struct netdev_link *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (l->lower_netnsid < 0 && all[i].ifindex == l->lower)
			return all[i].name;
	return "the interface";
}

static bool is_kind(const struct netdev_link *l, const char *kind)
{
	return strncmp(l->kind, kind, strlen(kind)) == 0;
}

bool netdev_native_mend(const struct netdev_link *l, const struct netdev_link *all, size_t n, bool refused,
			char mend[NETDEV_TEXT])
{
	char ports[64];

	list_ports(l, all, n, ports);
	if (is_kind(l, "vlan"))
		snprintf(mend, NETDEV_TEXT, "name %s, on which it lies", lower_name(l, all, n));
	else if (is_kind(l, "macv") || is_kind(l, "ipv"))          /* macvlan, macvtap, ipvlan, ipvtap */
		snprintf(mend, NETDEV_TEXT, "name %s, on which it lies", lower_name(l, all, n));
	else if (is_kind(l, "bridge"))
		snprintf(mend, NETDEV_TEXT, "name its ports: %s", ports);
	else if (is_kind(l, "dummy") || (l->flags & IFF_LOOPBACK))
		snprintf(mend, NETDEV_TEXT, "name the card by which queries come, for none comes by this");
	else if (refused && is_kind(l, "bond"))
		snprintf(mend, NETDEV_TEXT, "mode balance-rr, active-backup, balance-xor or 802.3ad, without vlan+srcmac; "
			 "or name its ports: %s", ports);
	else
		return false;
	return true;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: the interfaces that the program is, or could be, attached to. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <linux/if_link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hydns/queue.h"
#include "hydnsd/doctor/iface.h"
#include "hydnsd/netdev/routing.h"

/*
 * A frame of single-buffer XDP shares a 4,096-octet page with 256 octets of headroom and some 320 of
 * trailer; with the Ethernet header and a VLAN tag that leaves 3,498 octets. Drivers that use half pages
 * or 3 KiB buffers stop earlier.
 */
#define MTU_ALL_DRIVERS  1500
#define MTU_ONE_PAGE     3498

#define XDP_ACT_RX_SG    32    /* NETDEV_XDP_ACT_RX_SG: frames of several buffers, which the program takes */

/* The mode in which hydnsd has attached, or "". */
static const char *attached_mode(const struct doctor *d, const char *ifname)
{
	const json_t *i;
	size_t n;

	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), n, i)
		if (!strcmp(ctl_str(i, FIELD(interface, name)), ifname))
			return json_is_true(json_object_get(i, FIELD(interface, attached))) ?
			       ctl_str(i, FIELD(interface, mode)) : "";
	return "";
}

static void check_mtu(struct doctor *d, const struct netdev_link *l)
{
	bool native = l->xdp_attached == XDP_ATTACHED_DRV;
	uint64_t features = 0;
	char mend[128];

	if (native || l->mtu <= MTU_ALL_DRIVERS ||
	    (netdev_xdp_features(l->ifindex, &features) == 0 && (features & XDP_ACT_RX_SG))) {
		doctor_add(d, "mtu", l->name, DOCTOR_OK, NULL, "%u octets", l->mtu);
		return;
	}
	snprintf(mend, sizeof(mend), "ip link set dev %s mtu %u, or attach-mode: generic", l->name,
		 MTU_ALL_DRIVERS);
	if (l->mtu <= MTU_ONE_PAGE)
		doctor_add(d, "mtu", l->name, DOCTOR_WARN, mend, "%u octets: some drivers refuse native XDP above "
			   "%u", l->mtu, MTU_ALL_DRIVERS);
	else
		doctor_add(d, "mtu", l->name, l->xdp_attached == XDP_ATTACHED_SKB ? DOCTOR_WARN : DOCTOR_FAIL, mend,
			   "%u octets do not fit the single buffer of native XDP (%u at most)", l->mtu, MTU_ONE_PAGE);
}

/* Without hydnsd: the default. */
static bool is_native(const struct doctor *d, const char *ifname)
{
	const json_t *i;
	size_t n;

	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), n, i)
		if (!strcmp(ctl_str(i, FIELD(interface, name)), ifname))
			return !strcmp(ctl_str(i, FIELD(interface, mode)), "native");
	return true;
}

/* Where VLAN tags would not be seen hydnsd does not attach, except with vlan-offload: trust. */
static void check_vlan(struct doctor *d, const struct netdev_link *l, const struct netdev_link *all, size_t n,
		       const char *mode)
{
	char text[NETDEV_TEXT], mend[NETDEV_TEXT];
	struct netdev_tags tags;

	netdev_tags(l, all, n, is_native(d, l->name), &tags);
	if (netdev_tags_trap(&tags)) {
		netdev_tags_explain(&tags, text, mend);
		doctor_add(d, "vlan", l->name, mode[0] && tags.place == NETDEV_TAGS_UNKNOWN ? DOCTOR_WARN : DOCTOR_FAIL,
			   mend, "%s%s", text, mode[0] ? ": answers may go to the wrong VLAN" : ": hydnsd does not attach");
	} else if (tags.vlan[0]) {
		doctor_add(d, "vlan", l->name, DOCTOR_OK, NULL, "%s takes its VLAN tags, and they reach XDP", tags.vlan);
	} else if (!tags.sender && !tags.stack && tags.place == NETDEV_TAGS_ASIDE && netdev_feature(l->name, "rx-vlan-filter") == 0) {
		netdev_tags_explain(&tags, text, mend);
		doctor_add(d, "vlan", l->name, DOCTOR_WARN, mend, "frames of VLANs that this host has no part in are not "
			   "filtered, and the card takes their tags away: they would be answered as untagged ones");
	}
}

static void check_offloads(struct doctor *d, const struct netdev_link *l)
{
	int vlan_parse = netdev_feature(l->name, "rx-vlan-hw-parse");
	int lro = netdev_feature(l->name, "rx-lro"), gro_hw = netdev_feature(l->name, "rx-gro-hw");
	int csum = netdev_feature(l->name, "rx-checksum");
	char mend[96];

	if (vlan_parse < 0)
		doctor_add(d, "offloads", l->name, DOCTOR_SKIP, NULL, "the driver does not list its features: %s",
			   strerror(-vlan_parse));
	if (lro > 0 || gro_hw > 0) {
		snprintf(mend, sizeof(mend), "ethtool -K %s lro off rx-gro-hw off", l->name);
		doctor_add(d, "lro", l->name, DOCTOR_WARN, mend, "%s is on: many drivers refuse native XDP with it, "
			   "and merged frames are passed", lro > 0 ? "LRO" : "hardware GRO");
	} else if (lro == 0 || gro_hw == 0) {
		doctor_add(d, "lro", l->name, DOCTOR_OK, NULL, "no hardware merging of packets");
	}
	if (csum == 0) {
		snprintf(mend, sizeof(mend), "ethtool -K %s rx on", l->name);
		doctor_add(d, "rx-checksum", l->name, DOCTOR_WARN, mend, "off: what is passed to the resolver costs "
			   "more CPU (the XDP program itself checks the sum of what it answers)");
	} else if (csum > 0) {
		doctor_add(d, "rx-checksum", l->name, DOCTOR_OK, NULL, "on");
	}
}

/* How many receive queues would serve better; now: these do. threads: of a resolver with packet rings there, or 0. */
static unsigned better_queues(unsigned now, unsigned most, unsigned cpus, unsigned threads)
{
	unsigned n = now == 1 && cpus > 1 ? cpus : now;

	if (n < threads)
		n = threads;
	if (n > most)
		n = most > now ? most : now;
	return threads && n > HYDNS_QUEUE_QUEUES ? HYDNS_QUEUE_QUEUES : n;
}

static void check_queues(struct doctor *d, const struct netdev_link *l)
{
	unsigned now = 0, most = 0, cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), threads = doctor_ring_threads(d, l->name), better;
	char mend[NETDEV_MEND];
	int err = netdev_queues(l->name, &now, &most);

	if (err) {
		doctor_add(d, "queues", l->name, DOCTOR_SKIP, NULL, "the driver does not say: %s", strerror(-err));
		return;
	}
	better = better_queues(now, most, cpus, threads);
	netdev_queues_command(l->name, better, mend);
	if (better == now)
		doctor_add(d, "queues", l->name, DOCTOR_OK, NULL, "%u of %u receive queues, %u CPUs", now, most, cpus);
	else if (better < now)
		doctor_add(d, "queues", l->name, DOCTOR_WARN, mend, "%u receive queues in use, of which the first %u have packet "
			   "rings: what comes by the others takes the network stack", now, better);
	else if (now == 1 && cpus > 1)
		doctor_add(d, "queues", l->name, DOCTOR_WARN, mend, "one of %u receive queues in use: one of %u CPUs "
			   "answers everything", most, cpus);
	else
		doctor_add(d, "queues", l->name, DOCTOR_WARN, mend, "%u of %u receive queues in use: %u threads of a resolver share "
			   "their packet rings", now, most, threads);
}

static const struct netdev_link *by_index(const struct netdev_link *all, size_t n, unsigned ifindex)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].ifindex == ifindex)
			return &all[i];
	return NULL;
}

/* In generic mode the network stack sends the answers, and nothing is lost. */
static void check_veth(struct doctor *d, const struct netdev_link *l, const struct netdev_link *all, size_t n,
		       const char *mode)
{
	struct netdev_link peer;
	char mend[NETDEV_MEND];
	int err;

	if (strcmp(l->kind, "veth") || !strcmp(mode, "generic"))
		return;
	err = netdev_veth_peer(l, all, n, &peer);
	netdev_veth_mend(l, err ? "PEER" : peer.name, mend);
	if (err)
		doctor_add(d, "veth-peer", l->name, DOCTOR_SKIP, mend, "its peer is in a namespace that cannot be seen "
			   "from here (%s): without an XDP program there, answers are lost (xdp_tx_errors in ethtool -S)",
			   strerror(-err));
	else if (peer.xdp_attached == XDP_ATTACHED_NONE)
		doctor_add(d, "veth-peer", l->name, DOCTOR_FAIL, mend, "its peer %s has no XDP program: answers sent back by "
			   "XDP are lost (xdp_tx_errors in ethtool -S)", peer.name);
	else
		doctor_add(d, "veth-peer", l->name, DOCTOR_OK, NULL, "its peer %s has an XDP program", peer.name);
}

/* A command that changes the interface in the configuration. */
static void rename_command(const struct doctor *d, const char *from, const char *to, char *out, size_t room)
{
	snprintf(out, room, "sed -i 's/^interface: *%s$/interface: %s/' %s && systemctl reload hydnsd", from, to,
		 doctor_config_file(d));
}

/* Whether hydnsd's configuration names every port of that bond. */
static bool names_all_ports(const struct doctor *d, unsigned master, const struct netdev_link *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *named;
		bool found = false;
		size_t k;

		if (all[i].master != master)
			continue;
		json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), k, named)
			found = found || !strcmp(ctl_str(named, FIELD(interface, name)), all[i].name);
		if (!found)
			return false;
	}
	return true;
}

static void check_upper(struct doctor *d, const struct netdev_link *l, const struct netdev_link *all, size_t n)
{
	const struct netdev_link *m = l->master ? by_index(all, n, l->master) : NULL;
	char mend[512];

	if (!(l->flags & IFF_UP)) {
		snprintf(mend, sizeof(mend), "ip link set dev %s up", l->name);
		doctor_add(d, "link", l->name, DOCTOR_FAIL, mend, "the interface is down");
	} else if (m && !strcmp(m->kind, "bridge")) {
		doctor_add(d, "link", l->name, DOCTOR_WARN, "attach where the service address lives, if the bridge "
			   "filters (ebtables, nft bridge): XDP answers before it", "it is a port of bridge %s", m->name);
	} else if (m && !strcmp(m->kind, "bond") && names_all_ports(d, m->ifindex, all, n)) {
		doctor_add(d, "link", l->name, DOCTOR_OK, NULL, "up, and named with all other ports of bond %s", m->name);
	} else if (m && !strcmp(m->kind, "bond")) {
		rename_command(d, l->name, m->name, mend, sizeof(mend));
		doctor_add(d, "link", l->name, DOCTOR_WARN, mend, "it is a port of bond %s: a program on one port sees only part "
			   "of the queries", m->name);
	} else {
		doctor_add(d, "link", l->name, DOCTOR_OK, NULL, "up");
	}
}

static bool could_be_used(const struct netdev_link *l)
{
	return l->type == ARPHRD_ETHER && (l->flags & IFF_UP) && !l->kind[0];
}

static void check_missing(struct doctor *d, const char *name, const struct netdev_link *all, size_t n)
{
	char names[160] = "", mend[512];
	const char *candidate = "INTERFACE";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (all[i].type != ARPHRD_ETHER)
			continue;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, " %s", all[i].name);
		if (could_be_used(&all[i]) && !strcmp(candidate, "INTERFACE"))
			candidate = all[i].name;
	}
	rename_command(d, name, candidate, mend, sizeof(mend));
	doctor_add(d, "link", name, DOCTOR_FAIL, mend, "there is no such interface (there are:%s); when it comes, hydnsd "
		   "attaches by itself", names[0] ? names : " none");
}

/* For a configured interface hydnsd's note says why it is not attached. */
static void check_attached(struct doctor *d, const char *name, const char *mode)
{
	const json_t *i;
	char mend[256];
	size_t n;

	if (!d->status || mode[0])
		return;
	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), n, i)
		if (!strcmp(ctl_str(i, FIELD(interface, name)), name)) {
			doctor_check_attached(d, i);
			return;
		}
	snprintf(mend, sizeof(mend), "echo 'interface: %s' >>%s && systemctl reload hydnsd", name, doctor_config_file(d));
	doctor_add(d, "attached", name, DOCTOR_FAIL, mend, "hydnsd is not attached, for its configuration does not name it");
}

static void check_interface(struct doctor *d, const char *name, const struct netdev_link *all, size_t n)
{
	const struct netdev_link *l = NULL;
	const char *mode = attached_mode(d, name);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			l = &all[i];
	if (!l) {
		check_missing(d, name, all, n);
		return;
	}
	check_upper(d, l, all, n);
	check_attached(d, name, mode);
	doctor_check_xdp(d, l, all, n, mode);
	check_mtu(d, l);
	check_vlan(d, l, all, n, mode);
	check_offloads(d, l);
	check_queues(d, l);
	check_veth(d, l, all, n, mode);
}

/* Follows hydnsd into its network namespace, where its interfaces and firewall are. */
static void enter_namespace(struct doctor *d)
{
	struct stat here, there;
	char path[64], mend[128];
	int fd;

	if (!d->status)
		return;
	snprintf(mend, sizeof(mend), "nsenter --net=/proc/%" JSON_INTEGER_FORMAT "/ns/net hydnsctl doctor, as root",
		 ctl_int(d->status, FIELD(status, pid)));
	snprintf(path, sizeof(path), "/proc/%" JSON_INTEGER_FORMAT "/ns/net", ctl_int(d->status, FIELD(status, pid)));
	if (stat("/proc/self/ns/net", &here) || stat(path, &there) || here.st_ino == there.st_ino)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		doctor_add(d, "namespace", NULL, DOCTOR_WARN, mend,
			   "hydnsd lives in another network namespace, which cannot be entered: %s", strerror(errno));
	else
		doctor_add(d, "namespace", NULL, DOCTOR_OK, NULL, "hydnsd lives in another network namespace; "
			   "interfaces and firewall are looked at there");
	if (fd >= 0)
		close(fd);
}

static void add_name(const char *ifname, unsigned ifindex, void *arg)
{
	(void)ifindex;
	json_array_append_new(arg, json_string(ifname));
}

/* Which interfaces: those named, those of the daemon, those pinned, or every Ethernet interface. */
static void choose(struct doctor *d, int count, char **names, const struct netdev_link *all, size_t n)
{
	const json_t *i;
	size_t k;

	for (int a = 0; a < count; a++)
		add_name(names[a], 0, d->interfaces);
	if (count)
		return;
	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), k, i)
		add_name(ctl_str(i, FIELD(interface, name)), 0, d->interfaces);
	if (!d->status)
		ctl_pins_links(d->ctl, add_name, d->interfaces);
	for (k = 0; !d->status && !json_array_size(d->interfaces) && k < n; k++)
		if (could_be_used(&all[k]))
			add_name(all[k].name, 0, d->interfaces);
}

static void check_routing(struct doctor *d)
{
	const char *off;
	char mend[96];

	if (!json_is_true(json_object_get(d->status, FIELD(status, routed))))
		return;
	off = hydnsd_routing_off(json_is_true(json_object_get(d->status, FIELD(status, ipv6))));
	snprintf(mend, sizeof(mend), "sysctl -w %s=1 (and in /etc/sysctl.d); or reply-path: swap in hydnsd.conf", off ? off : "");
	if (off)
		doctor_add(d, "routing", NULL, DOCTOR_FAIL, mend, "reply-path is fib, but with %s at 0 the kernel looks "
			   "no routes up for XDP: everything is passed", off);
	else
		doctor_add(d, "routing", NULL, DOCTOR_OK, NULL, "replies go where the routing tables say");
}

void doctor_check_interfaces(struct doctor *d, int count, char **names)
{
	struct netdev_link *all;
	const json_t *i;
	size_t n, k;
	int err;

	enter_namespace(d);
	err = netdev_links(&all, &n);
	if (err) {
		doctor_add(d, "link", NULL, DOCTOR_SKIP, NULL, "interfaces cannot be listed: %s", strerror(-err));
		return;
	}
	check_routing(d);
	choose(d, count, names, all, n);
	if (!json_array_size(d->interfaces))
		doctor_check_no_interface(d);
	json_array_foreach(d->interfaces, k, i)
		check_interface(d, json_string_value(i), all, n);
	free(all);
}

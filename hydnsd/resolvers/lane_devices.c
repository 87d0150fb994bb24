/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/lane_devices.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/netdev.h"

#define HOPS 64        /* Linux's own, where the host does not say */

/* -- facts --------------------------------------------------------------------------------------------- */
/* The packets of such a device have come in by a receive queue of another one, whose sockets alone could take them. */
static bool lies_on_others(const struct netdev_link *l)
{
	static const char *const kinds[] = { "bond", "bridge", "team", "vlan" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(l->kind, kinds[i]) == 0)
			return true;
	return false;
}

static bool runs_in_driver(const struct hydnsd *d, const struct netdev_link *l)
{
	return l->xdp_attached == XDP_ATTACHED_DRV ||
	       (l->xdp_attached == XDP_ATTACHED_MULTI && d->options.attach_mode != HYDNS_ATTACH_GENERIC);
}

static uint16_t at_most_16_bits(unsigned n)
{
	return (uint16_t)(n > UINT16_MAX ? UINT16_MAX : n);
}

/* As sockets send. */
static uint8_t read_hops(const char *file)
{
	char path[64 + IFNAMSIZ];
	unsigned hops = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", file);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%u", &hops) != 1)
			hops = 0;
		fclose(f);
	}
	return hops > 0 && hops <= UINT8_MAX ? (uint8_t)hops : HOPS;
}

static uint8_t read_ipv6_hops(const char *interface)
{
	char file[32 + IFNAMSIZ];

	snprintf(file, sizeof(file), "ipv6/conf/%s/hop_limit", interface);
	return read_hops(file);
}

static void read_facts(const struct hydnsd *d, const struct netdev_link *l, struct hydns_queue_device *out)
{
	unsigned rx = l->rx_queues, tx = l->tx_queues;

	/* a driver may use fewer than it has; one that does not say uses all */
	netdev_queue_counts(l->name, &rx, &tx);
	*out = (struct hydns_queue_device){
		.ifindex = l->ifindex, .mtu = l->mtu, .rx_queues = at_most_16_bits(rx ? rx : 1),
		.tx_queues = at_most_16_bits(tx ? tx : 1),
		.flags = (uint16_t)((runs_in_driver(d, l) ? HYDNS_QUEUE_DEVICE_NATIVE : 0) |
				    (netdev_leaves_checksums(l->name) ? HYDNS_QUEUE_DEVICE_UNFINISHED : 0)),
		.hops = { read_hops("ipv4/ip_default_ttl"), read_ipv6_hops(l->name) },
	};
}

/* -- numbers ------------------------------------------------------------------------------------------- */
/* The number that the interface has or had; else one that nobody had, or whose holder has no program now. It begins to
 * look at a place of the interface's own, so that a restart finds the same number. A place is always free: 16 at most are
 * attached to when a 16th asks. */
static uint16_t number_of(const struct hydnsd *d, struct hydnsd_lane_devices *all, uint32_t ifindex)
{
	int unused = -1, left = -1;

	for (uint32_t n = 0; n < HYDNS_QUEUE_DEVICES; n++) {
		uint32_t at = (ifindex + n) % HYDNS_QUEUE_DEVICES;

		if (all->holder[at] == ifindex)
			return (uint16_t)at;
		if (!all->holder[at] && unused < 0)
			unused = (int)at;
		else if (all->holder[at] && left < 0 && !hydnsd_interfaces_attached_to(d, all->holder[at]))
			left = (int)at;
	}
	if (unused < 0)
		unused = left < 0 ? 0 : left;
	all->holder[unused] = ifindex;
	return (uint16_t)unused;
}

/* -- all of them --------------------------------------------------------------------------------------- */
/* Why the interface has no lanes; false: it may have some. */
static bool unfit(const struct hydnsd_lane_devices *all, const char *name, const struct netdev_link *l, int rc,
		  char why[HYDNS_WHY])
{
	if (rc)
		snprintf(why, HYDNS_WHY, "%s: no packet rings: cannot read the interface: %s: hydnsd tries again", name,
			 strerror(-rc));
	else if (lies_on_others(l))
		snprintf(why, HYDNS_WHY, "%s: no packet rings: it is a %s, and its packets come by receive queues of the "
			 "devices below it: name these as interfaces instead", name, l->kind);
	else if (all->count == HYDNS_QUEUE_DEVICES)
		snprintf(why, HYDNS_WHY, "%s: no packet rings: %d interfaces named before it have some, the most there may be: "
			 "name it before them", name, HYDNS_QUEUE_DEVICES);
	else
		return false;
	return true;
}

static void add(struct hydnsd *d, struct hydnsd_lane_devices *all, const struct hydnsd_interface_state *of)
{
	struct hydnsd_lane_unfit *left_out = &all->unfit[all->unfit_count];
	struct hydnsd_lane_device *next = &all->device[all->count];
	struct netdev_link l;

	if (unfit(all, of->name, &l, netdev_link(of->index, &l), left_out->why)) {
		left_out->ifindex = of->index;
		all->unfit_count++;
		return;
	}
	memset(next, 0, sizeof(*next));
	read_facts(d, &l, &next->facts);
	next->facts.device = number_of(d, all, of->index);
	memcpy(next->name, l.name, sizeof(next->name));
	all->count++;
}

static void log_news(const struct hydnsd_lane_devices *before, const struct hydnsd_lane_devices *now)
{
	for (uint32_t i = 0; i < now->unfit_count; i++) {
		bool known = false;

		for (uint32_t k = 0; k < before->unfit_count; k++)
			known = known || strcmp(before->unfit[k].why, now->unfit[i].why) == 0;
		if (!known)
			hydnsd_log(HYDNSD_LOG_WARNING, "%s", now->unfit[i].why);
	}
}

bool hydnsd_lane_devices_read(struct hydnsd *d, struct hydnsd_lane_devices *all)
{
	static struct hydnsd_lane_devices before; /* large; one thread */
	struct hydnsd_interface_state l;

	before = *all;
	all->count = all->unfit_count = 0;
	for (uint32_t i = 0; hydnsd_interfaces_get(d, i, &l); i++)
		if (l.index)
			add(d, all, &l);
	log_news(&before, all);
	return all->count != before.count || memcmp(all->device, before.device, all->count * sizeof(all->device[0])) != 0;
}

const struct hydnsd_lane_device *hydnsd_lane_devices_find(const struct hydnsd_lane_devices *all, uint32_t ifindex)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (all->device[i].facts.ifindex == ifindex)
			return &all->device[i];
	return NULL;
}

const char *hydnsd_lane_devices_unfit(const struct hydnsd_lane_devices *all, uint32_t ifindex)
{
	for (uint32_t i = 0; i < all->unfit_count; i++)
		if (all->unfit[i].ifindex == ifindex)
			return all->unfit[i].why;
	return "";
}

bool hydnsd_lane_devices_fits(const struct hydns_queue_device *facts, uint32_t threads)
{
	return threads <= 1 || facts->flags & HYDNS_QUEUE_DEVICE_NATIVE;
}

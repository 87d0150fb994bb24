/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What drivers report by SIOCETHTOOL. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/netdev/netdev.h"

/* data begins with the ethtool command. */
static int ask(const char *ifname, void *data)
{
	struct ifreq r = {.ifr_data = data};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
	err = ioctl(fd, SIOCETHTOOL, &r) ? -errno : 0;
	close(fd);
	return err;
}

int netdev_driver(const char *ifname, char driver[32])
{
	struct ethtool_drvinfo i = {.cmd = ETHTOOL_GDRVINFO};
	int err = ask(ifname, &i);

	if (!err)
		snprintf(driver, 32, "%s", i.driver);
	return err;
}

int netdev_queues(const char *ifname, unsigned *now, unsigned *most)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	int err = ask(ifname, &c);

	if (!err) {
		*now = c.rx_count + c.combined_count;
		*most = c.max_rx + c.max_combined;
	}
	return err;
}

void netdev_queues_command(const char *ifname, unsigned queues, char out[NETDEV_MEND])
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	bool known = !ask(ifname, &c);

	if (known && c.max_combined)
		snprintf(out, NETDEV_MEND, "ethtool -L %s combined %u", ifname, queues);
	else if (known && c.tx_count < c.rx_count && queues <= c.max_tx)
		snprintf(out, NETDEV_MEND, "ethtool -L %s rx %u tx %u", ifname, queues, queues);
	else
		snprintf(out, NETDEV_MEND, "ethtool -L %s rx %u", ifname, queues);
}

int netdev_queue_counts(const char *ifname, unsigned *rx, unsigned *tx)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	int err = ask(ifname, &c);

	if (!err) {
		*rx = c.rx_count + c.combined_count;
		*tx = c.tx_count + c.combined_count;
	}
	return err;
}

bool netdev_driver_leaves_checksums(const char *driver)
{
	static const char *const drivers[] = {
		"veth", "virtio_net", "tun", "bridge", "xen_netfront", "hv_netvsc", "netkit",
	};

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	return false;
}

bool netdev_leaves_checksums(const char *ifname)
{
	char driver[32];

	return strcmp(ifname, "lo") == 0 || (netdev_driver(ifname, driver) == 0 && netdev_driver_leaves_checksums(driver));
}

static int feature_count(const char *ifname, unsigned *out)
{
	struct {
		struct ethtool_sset_info head;
		__u32 count;
	} s = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES}};
	int err = ask(ifname, &s);

	if (!err && !s.head.sset_mask)
		err = -EOPNOTSUPP;
	*out = s.count;
	return err;
}

/* The bit of a feature: its place in the string set. */
static int feature_bit(const char *ifname, const char *feature, unsigned count)
{
	struct ethtool_gstrings *s = calloc(1, sizeof(*s) + (size_t)count * ETH_GSTRING_LEN);
	int bit = -ENOENT, err;

	if (!s)
		return -ENOMEM;
	s->cmd = ETHTOOL_GSTRINGS;
	s->string_set = ETH_SS_FEATURES;
	s->len = count;
	err = ask(ifname, s);
	for (unsigned i = 0; !err && bit < 0 && i < s->len && i < count; i++)
		if (!strncmp((char *)s->data + (size_t)i * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN))
			bit = (int)i;
	free(s);
	return err ? err : bit;
}

/*
 * A request with room for all features of the interface; free() it. *bit: the feature's number. NULL: *bit is a negative errno.
 * Reading and writing have the same layout: command and size, then a block of `word` octets for every 32 features.
 */
static void *feature_request(const char *ifname, const char *feature, uint32_t cmd, size_t word, int *bit)
{
	struct { uint32_t cmd, size; } *f;
	unsigned count = 0, blocks;
	int err = feature_count(ifname, &count);

	*bit = err ? err : feature_bit(ifname, feature, count);
	if (*bit < 0)
		return NULL;
	blocks = (count + 31) / 32;
	f = calloc(1, sizeof(*f) + blocks * word);
	if (!f) {
		*bit = -ENOMEM;
		return NULL;
	}
	f->cmd = cmd;
	f->size = blocks;
	return f;
}

int netdev_feature(const char *ifname, const char *feature)
{
	int bit, err;
	struct ethtool_gfeatures *f = feature_request(ifname, feature, ETHTOOL_GFEATURES, sizeof(f->features[0]), &bit);

	if (!f)
		return bit;
	err = ask(ifname, f);
	if (!err)
		err = (f->features[bit / 32].active >> (bit % 32)) & 1;
	free(f);
	return err;
}

int netdev_feature_off(const char *ifname, const char *feature)
{
	int bit;
	struct ethtool_sfeatures *f = feature_request(ifname, feature, ETHTOOL_SFEATURES, sizeof(f->features[0]), &bit);

	if (!f)
		return bit;
	f->features[bit / 32].valid = 1U << (bit % 32);
	ask(ifname, f);        /* a driver may refuse without an error: read the feature again */
	free(f);
	return netdev_feature(ifname, feature) == 0 ? 0 : -EPERM;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The pinned maps, opened directly: the program answers without hydnsd, so operators must see and stop it without hydnsd. */
#include "hydns/resolver.h"
#include "config.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hydns-kern/loader/switch.h"
#include "hydnsd/ctl/common.h"

static const char link_prefix[] = "link_";

static int pin_path(const struct ctl *c, const char *name, char *path, size_t room)
{
	int n = snprintf(path, room, "%s/%s", c->pin_dir, name);

	return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : 0;
}

/* Opens a pinned map and checks that it is of this version. A descriptor, or a negative errno. */
static int open_map(const struct ctl *c, const char *name, __u32 type, __u32 value_size, __u32 entries,
		    char why[CTL_WHY])
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	char path[256];
	int fd, err = pin_path(c, name, path, sizeof(path));

	fd = err ? err : bpf_obj_get(path);
	if (fd == -ENOENT) {
		snprintf(why, CTL_WHY, "there is no %s: the kernel path is not loaded (or pinned elsewhere: "
			 "--pin-dir)", path);
		return fd;
	}
	if (fd == -EACCES || fd == -EPERM) {
		snprintf(why, CTL_WHY, "no permission to open %s: run as root", path);
		return fd;
	}
	if (fd < 0) {
		snprintf(why, CTL_WHY, "cannot open %s: %s", path, strerror(-fd));
		return fd;
	}
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (!err && (info.type != type || info.value_size != value_size || info.max_entries != entries))
		err = -EPROTO;
	if (err) {
		snprintf(why, CTL_WHY, "%s is not the map that this version knows: use the hydnsctl that came "
			 "with the hydnsd that made it", path);
		close(fd);
		return err;
	}
	return fd;
}

int ctl_pins_open(const struct ctl *c, const char *name)
{
	char path[256];
	int err = pin_path(c, name, path, sizeof(path)), fd = err ? err : bpf_obj_get(path);

	return fd;
}

static int open_switch(const struct ctl *c, char why[CTL_WHY])
{
	return open_map(c, "hydns_switch", BPF_MAP_TYPE_ARRAY, sizeof(struct hydns_switch), 1, why);
}

bool ctl_pins_exist(const struct ctl *c)
{
	char path[256];

	/* without the right to look there may be one; opening it says which right is missing */
	return !pin_path(c, "hydns_switch", path, sizeof(path)) && (!access(path, F_OK) || errno == EACCES);
}

int ctl_pins_paused(const struct ctl *c, bool *paused, char why[CTL_WHY])
{
	int err, fd = open_switch(c, why);

	if (fd < 0)
		return fd;
	err = hydns_switch_paused(fd, paused);
	close(fd);
	if (err)
		snprintf(why, CTL_WHY, "cannot read the kill switch: %s", strerror(-err));
	return err;
}

int ctl_pins_pause(const struct ctl *c, bool on, char why[CTL_WHY])
{
	int err, fd = open_switch(c, why);

	if (fd < 0)
		return fd;
	err = hydns_switch_pause(fd, on);
	close(fd);
	if (err)
		snprintf(why, CTL_WHY, "cannot set the kill switch: %s", strerror(-err));
	return err;
}

int ctl_pins_stats(const struct ctl *c, __u64 *reasons, char why[CTL_WHY])
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	__u64 *each;
	int fd = open_map(c, "hydns_stats", BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u64), HYDNS_REASONS, why);

	if (fd < 0)
		return fd;
	each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
	if (!each)
		err = -ENOMEM;
	for (__u32 r = 0; !err && r < HYDNS_REASONS; r++) {
		err = bpf_map_lookup_elem(fd, &r, each);
		reasons[r] = 0;
		for (int i = 0; !err && i < cpus; i++)
			reasons[r] += each[i];
	}
	if (err)
		snprintf(why, CTL_WHY, "cannot read the counters: %s", strerror(-err));
	free(each);
	close(fd);
	return err;
}

int ctl_pins_geometry(const struct ctl *c, struct hydns_geometry *out, char why[CTL_WHY])
{
	__u32 zero = 0;
	int err, fd = open_map(c, "hydns_meta", BPF_MAP_TYPE_ARRAY, sizeof(*out), 1, why);

	if (fd < 0)
		return fd;
	err = bpf_map_lookup_elem(fd, &zero, out);
	if (err)
		snprintf(why, CTL_WHY, "cannot read hydns_meta: %s", strerror(-err));
	close(fd);
	return err;
}

int ctl_pins_links(const struct ctl *c, void (*fn)(const char *, unsigned, void *), void *arg)
{
	DIR *d = opendir(c->pin_dir);
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		struct bpf_link_info info = {0};
		__u32 len = sizeof(info);
		char path[512];
		int fd;

		if (strncmp(e->d_name, link_prefix, strlen(link_prefix)) ||
		    pin_path(c, e->d_name, path, sizeof(path)))
			continue;
		fd = bpf_obj_get(path);
		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len))
			memset(&info, 0, sizeof(info));
		if (fd >= 0)
			close(fd);
		fn(e->d_name + strlen(link_prefix),
		   info.type == BPF_LINK_TYPE_XDP ? info.xdp.ifindex : 0, arg);
	}
	closedir(d);
	return 0;
}

bool ctl_pins_readable(const struct ctl *c)
{
	char path[256];

	if (pin_path(c, "hydns_switch", path, sizeof(path)))
		return false;
	/* a directory that may not be entered does not show what is in it */
	return !access(path, R_OK) || errno == ENOENT;
}

__u32 ctl_pins_link_program(const struct ctl *c, const char *ifname)
{
	struct bpf_link_info info = {0};
	__u32 len = sizeof(info);
	char name[64], path[256];
	int fd;

	snprintf(name, sizeof(name), "%s%s", link_prefix, ifname);
	for (char *p = name; *p; p++)
		*p = *p == '.' ? ':' : *p;             /* a bpffs allows no dots in names */
	fd = pin_path(c, name, path, sizeof(path)) ? -1 : bpf_obj_get(path);
	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.prog_id = 0;
	close(fd);
	return info.prog_id;
}

int ctl_pins_page(const struct ctl *c, unsigned i, __u32 *epoch, __u64 *age_ns)
{
	struct hydns_resolver_page page;
	struct timespec now;
	char name[16], why[CTL_WHY];
	__u32 zero = 0;
	int err, fd;

	snprintf(name, sizeof(name), "page_%u", i);
	fd = open_map(c, name, BPF_MAP_TYPE_ARRAY, sizeof(page), 1, why);
	if (fd < 0)
		return fd;
	err = bpf_map_lookup_elem(fd, &zero, &page);
	close(fd);
	if (err)
		return err;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*epoch = page.epoch & ~HYDNS_EPOCH_FLAGS;
	*age_ns = page.heartbeat_ns == 0 ? UINT64_MAX :
		(__u64)now.tv_sec * HYDNS_NS_PER_S + (__u64)now.tv_nsec - page.heartbeat_ns;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Attachments to interfaces: pinned, so that they outlive the process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* -- the pinned XDP link ------------------------------------------------------------------------------- */
static int link_open(const char *pin_dir, const char *ifname)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, pin_dir, HYDNS_PIN_LINK, ifname), fd;

	if (err)
		return err;
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

static __u8 attach_mode_of(enum hydns_attach_mode mode)
{
	return mode == HYDNS_ATTACH_NATIVE ? XDP_ATTACHED_DRV : XDP_ATTACHED_SKB;
}

/*
 * Whether the pinned link is attached to this interface, in this mode. Its own interface may have gone, and another may have
 * the name now. In another network namespace one may even have the same number, but it doesn't run the link's
 * program.
 */
static bool link_stands(int link_fd, int ifindex, enum hydns_attach_mode mode)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, xdp);
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	return !bpf_obj_get_info_by_fd(link_fd, &info, &len) && info.type == BPF_LINK_TYPE_XDP &&
	       info.xdp.ifindex == (__u32)ifindex && !bpf_xdp_query(ifindex, 0, &xdp) &&
	       xdp.prog_id == info.prog_id && xdp.attach_mode == attach_mode_of(mode);
}

static int link_remove(int link_fd, const char *pin_dir, const char *ifname)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, pin_dir, HYDNS_PIN_LINK, ifname);

	if (err)
		return err;
	/* Unpinning alone would not end a link that another descriptor holds. One whose interface has gone is detached
	 * already. */
	if (bpf_link_detach(link_fd) && errno != ENOLINK && errno != EOPNOTSUPP && errno != ENODEV)
		return -errno;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* -- a new XDP link ------------------------------------------------------------------------------------ */
static int explain_attach(int err, const char *ifname, enum hydns_attach_mode mode, char why[HYDNS_WHY])
{
	switch (err) {
	case -EBUSY:
	case -EEXIST:
		return hydns_fail(why, err, "%s: another XDP program is attached: detach it (ip link set "
				  "dev %s xdp off), or use mode dispatcher", ifname, ifname);
	case -EOPNOTSUPP:
		if (mode == HYDNS_ATTACH_NATIVE)
			return hydns_fail(why, err, "%s: its driver has no native XDP: use mode generic",
					  ifname);
		break;
	case -ERANGE:
	case -EINVAL:
		return hydns_fail(why, err, "%s: the driver refuses native XDP in its current settings "
				  "(MTU, LRO or channels): lower the MTU, or use mode generic", ifname);
	case -EPERM:
		return hydns_fail(why, err, "%s: attaching needs CAP_BPF and CAP_NET_ADMIN", ifname);
	}
	return hydns_fail(why, err, "%s: can't attach: %s", ifname, strerror(-err));
}

static int link_make(struct hydns_kern *k, const char *ifname, int ifindex, enum hydns_attach_mode mode,
		     char why[HYDNS_WHY])
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = mode == HYDNS_ATTACH_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int err, fd = bpf_link_create(hydns_kern_prog_fd(k), ifindex, BPF_XDP, &opts);

	if (fd < 0)
		return explain_attach(-errno, ifname, mode, why);
	err = hydns_pin_replace(fd, k->pin_dir, HYDNS_PIN_LINK, ifname);
	close(fd);
	if (err)
		return hydns_fail(why, err, "%s: can't pin the attachment in %s: %s", ifname, k->pin_dir_named,
				  strerror(-err));
	return 0;
}

static int attach_link(struct hydns_kern *k, const char *ifname, int ifindex, enum hydns_attach_mode mode,
		       char why[HYDNS_WHY])
{
	int fd = link_open(k->pin_dir, ifname), err;

	if (fd < 0)
		return link_make(k, ifname, ifindex, mode, why);
	if (link_stands(fd, ifindex, mode)) {
		err = bpf_link_update(fd, hydns_kern_prog_fd(k), NULL) ? -errno : 0;
		close(fd);
		if (err)
			return hydns_fail(why, err, "%s: can't swap the program: %s", ifname,
					  strerror(-err));
		return 0;
	}
	err = link_remove(fd, k->pin_dir, ifname);
	close(fd);
	if (err)
		return hydns_fail(why, err, "%s: can't remove a former attachment: %s", ifname,
				  strerror(-err));
	return link_make(k, ifname, ifindex, mode, why);
}

static int attach(struct hydns_kern *k, const char *ifname, int ifindex, enum hydns_attach_mode mode,
		  char why[HYDNS_WHY])
{
	int err;

	if (mode == HYDNS_ATTACH_DISPATCHER) {
		int fd = link_open(k->pin_dir, ifname);

		/* The dispatcher can't be attached beside our own link. */
		err = fd < 0 ? 0 : link_remove(fd, k->pin_dir, ifname);
		if (fd >= 0)
			close(fd);
		if (err)
			return hydns_fail(why, err, "%s: can't remove a former attachment: %s", ifname,
					  strerror(-err));
		return hydns_dispatcher_attach(k, ifname, ifindex, why);
	}
	err = hydns_dispatcher_detach(k->pin_dir, ifname, why);
	return err ? err : attach_link(k, ifname, ifindex, mode, why);
}

/* In a direction without a program of ours, detaches the one of a former hydnsd. */
static int attach_tc(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	struct hydns_tc at = { .pin_dir = k->pin_dir, .ifname = ifname, .ifindex = ifindex };
	int err = 0;

	for (at.hook = HYDNS_HOOK_TC_INGRESS; at.hook <= HYDNS_HOOK_TC_EGRESS && !err; at.hook++) {
		const struct bpf_program *p = hydns_program_at(k->skel, at.hook);

		err = p ? hydns_tc_attach(&at, bpf_program__fd(p), why) : hydns_tc_detach(&at, why);
	}
	return err;
}

static int detach_tc(const char *pin_dir, const char *ifname, char why[HYDNS_WHY])
{
	struct hydns_tc at = { .pin_dir = pin_dir, .ifname = ifname, .ifindex = hydns_pinned_ifindex(ifname) };
	int err = 0;

	for (at.hook = HYDNS_HOOK_TC_INGRESS; at.hook <= HYDNS_HOOK_TC_EGRESS && !err; at.hook++)
		err = hydns_tc_detach(&at, why);
	return err;
}

/* An interface that the program is attached to is one that routed replies may leave by. */
int hydns_kern_attach(struct hydns_kern *k, const char *ifname, enum hydns_attach_mode mode,
		      char why[HYDNS_WHY])
{
	__u32 ifindex = if_nametoindex(ifname);
	int err;

	if (!ifindex)
		return hydns_fail(why, -ENODEV, "%s: no such interface", ifname);
	err = attach(k, ifname, (int)ifindex, mode, why);
	if (!err)
		err = attach_tc(k, ifname, (int)ifindex, why);
	if (!err && bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_out), &ifindex, &ifindex, BPF_ANY))
		err = hydns_fail(why, -errno, "%s: can't add it to hydns_out: %s; name at most %d interfaces",
				 ifname, strerror(errno), HYDNS_INTERFACES);
	return err;
}

static int exchange_xdp(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	int fd = link_open(k->pin_dir, ifname), err = 0;

	if (fd < 0)                    /* the dispatcher's, or none */
		return hydns_dispatcher_exchange(k, ifname, ifindex, why);
	/* A link whose interface has gone and come back runs nothing: hydnsd attaches anew. */
	if (bpf_link_update(fd, hydns_kern_prog_fd(k), NULL) && errno != ENOLINK)
		err = hydns_fail(why, -errno, "%s: can't swap the program: %s", ifname, strerror(errno));
	close(fd);
	return err;
}

int hydns_attachment_exchange(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY])
{
	int ifindex = (int)if_nametoindex(ifname), err;

	if (!ifindex)
		return 0;
	err = exchange_xdp(k, ifname, ifindex, why);
	return err ? err : attach_tc(k, ifname, ifindex, why);
}

int hydns_detach(const char *pin_dir, const char *ifname, char why[HYDNS_WHY])
{
	int err = hydns_dispatcher_detach(pin_dir, ifname, why), fd;

	if (!err)
		err = detach_tc(pin_dir, ifname, why);
	if (err)
		return err;
	fd = link_open(pin_dir, ifname);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return hydns_fail(why, fd, "%s: can't open its attachment in %s: %s", ifname, pin_dir,
				  strerror(-fd));
	err = link_remove(fd, pin_dir, ifname);
	close(fd);
	if (err)
		return hydns_fail(why, err, "%s: can't detach: %s", ifname, strerror(-err));
	return 0;
}

int hydns_kern_detach(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY])
{
	__u32 ifindex = if_nametoindex(ifname);

	/* The kernel removes an interface that goes from the map. */
	if (ifindex)
		bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_out), &ifindex);
	return hydns_detach(k->pin_dir, ifname, why);
}

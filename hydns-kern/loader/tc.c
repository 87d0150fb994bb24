/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tc programs on an interface, at most one of ours in each direction. Since Linux 6.6 a tcx link holds one; it is pinned and
 * replaced as an XDP link is. Linux 6.1 has no tcx: there a filter of the clsact qdisc holds it, and the
 * program's own pin, under the link's name, records where such a filter is. Our programs return TC_ACT_UNSPEC, which is
 * TCX_NEXT too, so that the other programs of the interface run as well.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* By number, since neither libbpf before 1.3 nor Linux's headers before 6.6 name them. */
#define TCX_INGRESS    46              /* BPF_TCX_INGRESS */
#define TCX_EGRESS     47              /* BPF_TCX_EGRESS */
#define LINK_TYPE_TCX  11              /* BPF_LINK_TYPE_TCX */
#define TCX_PROGRAMS   64              /* BPF_MPROG_MAX: most of an interface in one direction */

/* The filter that is ours, whichever hydnsd made it: "hyDN". */
#define FILTER_HANDLE   0x6879444e
#define FILTER_PRIORITY 100

static enum bpf_attach_type tcx_type(const struct hydns_tc *at)
{
	return (enum bpf_attach_type)(at->hook == HYDNS_HOOK_TC_INGRESS ? TCX_INGRESS : TCX_EGRESS);
}

static const char *pin_prefix(const struct hydns_tc *at)
{
	return at->hook == HYDNS_HOOK_TC_INGRESS ? HYDNS_PIN_TC_INGRESS : HYDNS_PIN_TC_EGRESS;
}

static int explain(const struct hydns_tc *at, int err, const char *what, char why[HYDNS_WHY])
{
	return hydns_fail(why, err, "%s: can't %s tc %s: %s", at->ifname, what,
			  at->hook == HYDNS_HOOK_TC_INGRESS ? "ingress" : "egress",
			  err == -EPERM ? "CAP_BPF and CAP_NET_ADMIN are needed" : strerror(-err));
}

/* What the pin holds, a link or the filter's program. */
static int pin_open(const struct hydns_tc *at)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, at->pin_dir, pin_prefix(at), at->ifname), fd;

	if (err)
		return err;
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

/* Whether this is a link to the interface that has the name now; in another network namespace one may have the same number,
 * but it doesn't run the link's program. */
static bool link_stands(const struct hydns_tc *at, int fd)
{
	__u32 ids[TCX_PROGRAMS], n = TCX_PROGRAMS;
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	/* info.tcx.ifindex, which older headers lack, is where info.xdp.ifindex is. */
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != LINK_TYPE_TCX ||
	    info.xdp.ifindex != (__u32)at->ifindex || bpf_prog_query(at->ifindex, tcx_type(at), 0, NULL, ids, &n))
		return false;
	while (n--)
		if (ids[n] == info.prog_id)
			return true;
	return false;
}

static struct bpf_tc_hook filter_hook(const struct hydns_tc *at)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook), .ifindex = at->ifindex,
				     .attach_point = at->hook == HYDNS_HOOK_TC_INGRESS ? BPF_TC_INGRESS : BPF_TC_EGRESS };
}

/* The clsact qdisc stays, since others may have filters there. */
static int filter_remove(const struct hydns_tc *at)
{
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);
	struct bpf_tc_hook hook = filter_hook(at);
	int err = at->ifindex ? bpf_tc_detach(&hook, &opts) : 0;

	/* No such filter, no qdisc, no interface. */
	return err == -ENOENT || err == -EINVAL || err == -ENODEV ? 0 : err;
}

/* Ends what a pin holds; the pin stays. */
static int end(const struct hydns_tc *at, int pinned)
{
	int err = bpf_link_detach(pinned) ? -errno : 0;

	return err == -EINVAL ? filter_remove(at) : err;       /* -EINVAL: it is no link */
}

/* The pin comes before the filter, so that a filter left by a crash is found. */
int hydns_tc_attach_filter(const struct hydns_tc *at, int prog_fd, char why[HYDNS_WHY])
{
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY, .prog_fd = prog_fd,
		    .flags = BPF_TC_F_REPLACE);
	struct bpf_tc_hook hook = filter_hook(at);
	int err = bpf_tc_hook_create(&hook);

	if (!err || err == -EEXIST)
		err = hydns_pin_replace(prog_fd, at->pin_dir, pin_prefix(at), at->ifname);
	if (!err)
		err = bpf_tc_attach(&hook, &opts);
	return err ? explain(at, err, "attach to", why) : 0;
}

/* pinned: what the pin has held so far, or negative. */
static int link_make(const struct hydns_tc *at, int prog_fd, int pinned, char why[HYDNS_WHY])
{
	int err, fd = bpf_link_create(prog_fd, at->ifindex, tcx_type(at), NULL);

	if (fd == -EINVAL)
		return hydns_tc_attach_filter(at, prog_fd, why);
	if (fd < 0)
		return explain(at, fd, "attach to", why);
	err = hydns_pin_replace(fd, at->pin_dir, pin_prefix(at), at->ifname);
	if (!err && pinned >= 0)
		err = end(at, pinned);
	close(fd);
	return err ? explain(at, err, "pin", why) : 0;
}

int hydns_tc_attach(const struct hydns_tc *at, int prog_fd, char why[HYDNS_WHY])
{
	int pinned = pin_open(at), err;

	if (pinned >= 0 && link_stands(at, pinned))
		err = bpf_link_update(pinned, prog_fd, NULL) ? explain(at, -errno, "replace the program of", why) : 0;
	else
		err = link_make(at, prog_fd, pinned, why);
	if (pinned >= 0)
		close(pinned);
	return err;
}

int hydns_tc_detach(const struct hydns_tc *at, char why[HYDNS_WHY])
{
	int pinned = pin_open(at), err;
	char path[PATH_MAX];

	if (pinned == -ENOENT)
		return 0;
	err = pinned < 0 ? pinned : end(at, pinned);
	if (pinned >= 0)
		close(pinned);
	if (!err)
		err = hydns_pin_path(path, at->pin_dir, pin_prefix(at), at->ifname);
	if (!err && unlink(path) && errno != ENOENT)
		err = -errno;
	return err ? explain(at, err, "detach from", why) : 0;
}

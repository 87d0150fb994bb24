/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: what XDP programs an interface has, and whether its driver can run one. */
#include "config.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hydnsd/doctor/iface.h"

#define XDP_ACT_BASIC    1     /* NETDEV_XDP_ACT_BASIC */

/* A program's name in the kernel, or "" when that can't be read. */
static void program_name(__u32 id, char out[BPF_OBJ_NAME_LEN])
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	out[0] = 0;
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(out, BPF_OBJ_NAME_LEN, "%s", info.name);
	if (fd >= 0)
		close(fd);
}

/* Id of the link that attaches the program to the interface; 0: none, it was attached by netlink. */
static __u32 find_link(const struct netdev_link *l)
{
	__u32 id = 0, found = 0;

	while (!found && !bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {0};
		__u32 len = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_LINK_TYPE_XDP &&
		    info.xdp.ifindex == l->ifindex && info.prog_id == l->xdp_prog)
			found = id;
		close(fd);
	}
	return found;
}

static const char *mode_word(const struct netdev_link *l)
{
	return l->xdp_attached == XDP_ATTACHED_SKB ? "xdpgeneric" : l->xdp_attached == XDP_ATTACHED_HW ? "xdpoffload" : "xdpdrv";
}

static void add_foreign(struct doctor *d, const struct netdev_link *l)
{
	char name[BPF_OBJ_NAME_LEN], mend[256];
	__u32 link = find_link(l);
	bool dispatcher;

	program_name(l->xdp_prog, name);
	dispatcher = !strcmp(name, "xdp_dispatcher");
	if (dispatcher)
		snprintf(mend, sizeof(mend), "attach-mode: dispatcher in hydnsd.conf; or take the others away: xdp-loader unload %s "
			 "--all", l->name);
	else if (link)
		snprintf(mend, sizeof(mend), "bpftool link detach id %u; or, when it shall stay, load it by xdp-loader, and set "
			 "attach-mode: dispatcher in hydnsd.conf", link);
	else
		snprintf(mend, sizeof(mend), "ip link set dev %s %s off; or, when it shall stay, load it by xdp-loader, and set "
			 "attach-mode: dispatcher in hydnsd.conf", l->name, mode_word(l));
	if (l->xdp_prog)
		doctor_add(d, "xdp", l->name, DOCTOR_FAIL, mend, "a foreign XDP program is attached, id %u%s%s: hydnsd cannot "
			   "attach its own", l->xdp_prog, name[0] ? ", name " : "", name);
	else
		doctor_add(d, "xdp", l->name, DOCTOR_FAIL, mend, "foreign XDP programs are attached, in more than one mode: hydnsd "
			   "cannot attach its own");
}

/* Ours is what a pin of hydnsd holds; in a dispatcher that hydnsd has joined, it is among others. */
static bool is_ours(const struct doctor *d, const struct netdev_link *l, const char *mode)
{
	return !strcmp(mode, "dispatcher") || (l->xdp_prog && ctl_pins_link_program(d->ctl, l->name) == l->xdp_prog);
}

static void check_mode(struct doctor *d, const struct netdev_link *l, const char *driver)
{
	uint64_t features = 0;
	bool native = netdev_xdp_features(l->ifindex, &features) == 0 && (features & XDP_ACT_BASIC);

	if (l->xdp_attached == XDP_ATTACHED_SKB && native)
		doctor_add(d, "xdp", l->name, DOCTOR_WARN, "set attach-mode: native in hydnsd.conf, then: systemctl restart "
			   "hydnsd", "driver %s can do native XDP, but hydnsd's program is attached in generic mode, "
			   "which is several times slower", driver);
	else
		doctor_add(d, "xdp", l->name, DOCTOR_OK, NULL, "driver %s, hydnsd's program is attached in %s mode", driver,
			   l->xdp_attached == XDP_ATTACHED_SKB ? "generic" : "native");
}

void doctor_check_xdp(struct doctor *d, const struct netdev_link *l, const struct netdev_link *all, size_t n, const char *mode)
{
	char driver[32] = "unknown driver", mend[NETDEV_TEXT];
	uint64_t features = 0;
	int err;

	netdev_driver(l->name, driver);
	err = netdev_xdp_features(l->ifindex, &features);
	if (l->xdp_attached != XDP_ATTACHED_NONE && !ctl_pins_readable(d->ctl))
		doctor_add(d, "xdp", l->name, DOCTOR_SKIP, "run doctor as root", "an XDP program is attached, id %u; whether it is "
			   "hydnsd's, only root may see", l->xdp_prog);
	else if (l->xdp_attached != XDP_ATTACHED_NONE && !is_ours(d, l, mode))
		add_foreign(d, l);
	else if (l->xdp_attached != XDP_ATTACHED_NONE)
		check_mode(d, l, driver);
	else if (netdev_native_mend(l, all, n, err == 0 && !(features & XDP_ACT_BASIC), mend))
		doctor_add(d, "xdp", l->name, DOCTOR_FAIL, mend, "driver %s has no native XDP: hydnsd attaches by attach-mode: "
			   "generic alone", driver);
	else if (err == 0 && !(features & XDP_ACT_BASIC))
		doctor_add(d, "xdp", l->name, strcmp(mode, "generic") ? DOCTOR_FAIL : DOCTOR_WARN,
			   "echo 'attach-mode: generic' >>" HYDNS_CONFIG_DIR "/hydnsd.conf; systemctl restart hydnsd "
			   "(several times slower); or attach to the physical interface below, or use a card whose driver "
			   "supports native XDP", "driver %s does not support native XDP", driver);
	else if (err == 0)
		doctor_add(d, "xdp", l->name, DOCTOR_OK, NULL, "driver %s supports native XDP", driver);
	else
		doctor_add(d, "xdp", l->name, DOCTOR_SKIP, NULL, "driver %s; this kernel does not say whether it "
			   "supports native XDP, hydnsd sees when it attaches", driver);
}

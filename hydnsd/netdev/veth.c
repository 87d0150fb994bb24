/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The peer of a veth receives what XDP sends back only while it uses NAPI, as it does with an XDP program of its own. Else
 * these frames are lost.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/netdev/netdev.h"

#define NAMESPACES "/run/netns"

/* This namespace's number for another, or a negative errno. */
static int namespace_id(int sock, int ns)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg body;
		char pad[3];
		struct rtattr attribute;
		__u32 fd;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNSID, .nlmsg_flags = NLM_F_REQUEST },
		.body = { .rtgen_family = AF_UNSPEC },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(__u32)), .rta_type = NETNSA_FD },
		.fd = (__u32)ns,
	};
	char reply[512] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *h = (const struct nlmsghdr *)reply;
	const struct rtattr *a;
	int left, id;
	ssize_t n;

	if (send(sock, &request, sizeof(request), 0) < 0)
		return -errno;
	n = recv(sock, reply, sizeof(reply), 0);
	if (n < 0 || !NLMSG_OK(h, (size_t)n) || h->nlmsg_type != RTM_NEWNSID)
		return -ENOENT;
	left = (int)(h->nlmsg_len - NLMSG_SPACE(sizeof(struct rtgenmsg)));
	for (a = (const struct rtattr *)(reply + NLMSG_SPACE(sizeof(struct rtgenmsg))); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == NETNSA_NSID) {
			memcpy(&id, RTA_DATA(a), sizeof(id));
			return id;
		}
	return -ENOENT;
}

/* Name of a namespace in `ip netns', or "". */
static void namespace_name(int netnsid, char *out, size_t room)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), ns;
	DIR *dir = opendir(NAMESPACES);
	const struct dirent *e;

	out[0] = 0;
	while (dir && sock >= 0 && !out[0] && (e = readdir(dir))) {
		ns = e->d_name[0] == '.' ? -1 : openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		if (ns >= 0 && namespace_id(sock, ns) == netnsid)
			snprintf(out, room, "%s", e->d_name);
		if (ns >= 0)
			close(ns);
	}
	if (dir)
		closedir(dir);
	if (sock >= 0)
		close(sock);
}

int netdev_veth_peer(const struct netdev_link *l, const struct netdev_link *all, size_t n, struct netdev_link *peer)
{
	if (l->lower_netnsid >= 0)
		return netdev_link_elsewhere(l->lower_netnsid, l->lower, peer);
	for (size_t i = 0; i < n; i++)
		if (all[i].ifindex == l->lower) {
			*peer = all[i];
			return 0;
		}
	return -ENODEV;
}

void netdev_veth_mend(const struct netdev_link *l, const char *peer, char out[NETDEV_MEND])
{
	char name[256] = "", enter[300] = "";

	if (l->lower_netnsid >= 0) {
		namespace_name(l->lower_netnsid, name, sizeof(name));
		if (name[0])
			snprintf(enter, sizeof(enter), "ip -n %s ", name);
		else
			snprintf(enter, sizeof(enter), "nsenter --net=/proc/PID/ns/net ip ");
	}
	snprintf(out, NETDEV_MEND, "%.90slink set dev %s xdpdrv obj %s sec xdp.frags", enter[0] ? enter : "ip ", peer,
		 HYDNS_PASS_OBJECT);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/routing.h"

#include <errno.h>
#include <stdio.h>

/* Set on the loopback interface alone, this forwards no packets. */
static const char *const switches[] = {
	"net.ipv4.conf.lo.forwarding", "net.ipv6.conf.lo.forwarding",
};
static const char *const files[] = {
	"/proc/sys/net/ipv4/conf/lo/forwarding", "/proc/sys/net/ipv6/conf/lo/forwarding",
};

static bool is_off(const char *path)
{
	FILE *f = fopen(path, "re");
	int c = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	return c == '0';       /* no file: the host does not have this family */
}

const char *hydnsd_routing_off(bool ipv6)
{
	for (int i = 0; i <= ipv6; i++)
		if (is_off(files[i]))
			return switches[i];
	return NULL;
}

int hydnsd_routing_check(bool ipv6, char *why, size_t room)
{
	const char *off = hydnsd_routing_off(ipv6);

	if (!off)
		return 0;
	snprintf(why, room, "reply-path fib: the kernel looks up routes for XDP only when %s is 1: sysctl -w %s=1 "
		 "(it forwards nothing by itself), or set reply-path: swap", off, off);
	return -ENOTSUP;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/reserved_ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MOST 65536       /* octets of the list: all ports, one by one, need more, and are no list that anybody writes */

static int read_text(char *text, size_t room)
{
	FILE *f = fopen(HYDNS_RESERVED_PORTS, "re");
	size_t n;

	if (!f)
		return -errno;
	n = fread(text, 1, room - 1, f);
	text[n] = '\0';
	fclose(f);
	return 0;
}

bool hydnsd_reserved_ports(struct hydns_port_run *run, char *why, size_t room)
{
	static char text[TEXT_MOST];
	int rc = read_text(text, sizeof(text));

	if (rc) {
		snprintf(why, room, "cannot read %s: %s", HYDNS_RESERVED_PORTS, strerror(-rc));
		return false;
	}
	if (hydns_longest_run(text, run))
		return true;
	text[strcspn(text, "\n")] = '\0';
	snprintf(why, room, "the host reserves no %u ports in a row for queries to upstream: sysctl -w "
		 "net.ipv4.ip_local_reserved_ports=%.200s%s" HYDNS_PORTS_ADVICE ", and restart the resolver", HYDNS_PORTS_LEAST,
		 text, text[0] ? "," : "");
	return false;
}

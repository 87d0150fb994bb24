/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/reserved_ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MOST    65536     /* octets of the list: all ports, one by one, need more, and are no list that anybody writes */
#define COMMAND      "sysctl -w net.ipv4.ip_local_reserved_ports="
#define LITERAL_MOST 64        /* octets of a list that a command repeats: with a longer one it would not fit into a line */

static int read_text(char *text, size_t room)
{
	FILE *f = fopen(HYDNS_RESERVED_PORTS, "re");
	size_t n;

	if (!f)
		return -errno;
	n = fread(text, 1, room - 1, f);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
	return 0;
}

void hydnsd_reserved_ports_command(const char *list, char out[HYDNSD_RESERVED_MEND])
{
	if (strlen(list) > LITERAL_MOST)
		snprintf(out, HYDNSD_RESERVED_MEND, COMMAND "\"$(cat " HYDNS_RESERVED_PORTS ")," HYDNS_PORTS_ADVICE "\"");
	else
		snprintf(out, HYDNSD_RESERVED_MEND, COMMAND "%s%s" HYDNS_PORTS_ADVICE, list, list[0] ? "," : "");
}

int hydnsd_reserved_ports_look(struct hydns_port_run *run, char mend[HYDNSD_RESERVED_MEND])
{
	static char text[TEXT_MOST];
	int rc = read_text(text, sizeof(text));

	if (rc || hydns_longest_run(text, run))
		return rc;
	hydnsd_reserved_ports_command(text, mend);
	return -ERANGE;
}

bool hydnsd_reserved_ports(struct hydns_port_run *run, char *why, size_t room)
{
	char mend[HYDNSD_RESERVED_MEND];
	int rc = hydnsd_reserved_ports_look(run, mend);

	if (rc == -ERANGE)
		snprintf(why, room, "the host reserves no %u ports in a row for queries to upstream: `%s', and restart the resolver",
			 HYDNS_PORTS_LEAST, mend);
	else if (rc)
		snprintf(why, room, "cannot read %s: %s", HYDNS_RESERVED_PORTS, strerror(-rc));
	return rc == 0;
}

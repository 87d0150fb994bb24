/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: what packet rings need of the host, and what they hide from it. Says nothing where no resolver wants any. */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/queue.h"
#include "hydnsd/doctor/doctor.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/reserved_ports.h"

#define TEXT 512

/* -- which there are ------------------------------------------------------------------------------------------ */
static const json_t *resolvers(const struct doctor *d)
{
	return json_object_get(d->status, FIELD(status, resolvers));
}

static size_t lanes_of(const json_t *resolver)
{
	return json_array_size(json_object_get(resolver, FIELD(resolver, lanes)));
}

unsigned doctor_ring_threads(const struct doctor *d, const char *interface)
{
	const json_t *r, *l;
	json_int_t most = 0;
	size_t i, j;

	json_array_foreach(resolvers(d), i, r)
		json_array_foreach(json_object_get(r, FIELD(resolver, lanes)), j, l)
			if (!strcmp(ctl_str(l, FIELD(lane, interface)), interface) && ctl_int(l, FIELD(lane, threads)) > most)
				most = ctl_int(l, FIELD(lane, threads));
	return (unsigned)most;
}

/* -- ports of queries to upstream --------------------------------------------------------------------------- */
struct bound {
	unsigned sockets, port;        /* how many are bound in the range, and the port of the first */
};

static bool is_of_a_resolver(const struct doctor *d, unsigned long inode)
{
	const json_t *r;
	size_t i;

	json_array_foreach(resolvers(d), i, r)
		if (doctor_holds_socket((pid_t)ctl_int(r, FIELD(resolver, pid)), inode))
			return true;
	return false;
}

/* Sockets of others that take datagrams from anybody; one that is connected hears from its remote alone. path: as
 * /proc/net/udp of proc_pid_net(5). */
static void find_bound(const struct doctor *d, const char *path, const struct hydns_port_run *run, struct bound *found)
{
	FILE *f = fopen(path, "re");
	unsigned port, remote;
	unsigned long inode;
	char line[512];

	/* sl local_address rem_address st tx_queue:rx_queue tr:when retrnsmt uid timeout inode */
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*u: %*[^:]:%x %*[^:]:%x %*s %*s %*s %*s %*s %*s %lu", &port, &remote, &inode) != 3 || remote ||
		    port - run->first >= run->count || is_of_a_resolver(d, inode))
			continue;
		if (!found->sockets++)
			found->port = port;
	}
	if (f)
		fclose(f);
}

static void check_bound(struct doctor *d, const struct hydns_port_run *run)
{
	const unsigned last = run->first + run->count - 1;
	struct bound found = {0};
	char mend[TEXT], more[32] = "";

	find_bound(d, "/proc/net/udp", run, &found);
	find_bound(d, "/proc/net/udp6", run, &found);
	if (!found.sockets) {
		doctor_add(d, "ports", NULL, DOCTOR_OK, NULL, "queries to upstream have ports %u to %u, which no other program uses",
			   run->first, last);
		return;
	}
	if (found.sockets > 1)
		snprintf(more, sizeof(more), " (%u sockets in all)", found.sockets);
	snprintf(mend, sizeof(mend), "ss -uanp 'sport >= :%u and sport <= :%u' says whose it is: give that program another port",
		 run->first, last);
	doctor_add(d, "ports", NULL, DOCTOR_WARN, mend, "another program uses UDP port %u%s, which is one of those that queries to "
		   "upstream leave from, %u to %u: it may lose datagrams to a resolver", found.port, more, run->first, last);
}

/* resolver: one that has no packet rings for its own queries, although it wants some. */
static void check_range(struct doctor *d, const json_t *resolver)
{
	char restart[TEXT], command[HYDNSD_RESERVED_MEND], mend[2 * TEXT];
	struct hydns_port_run run;
	int err = hydnsd_reserved_ports_look(&run, command);

	doctor_restart_of(d, ctl_int(resolver, FIELD(resolver, pid)), restart, sizeof(restart));
	if (!err)
		check_bound(d, &run);
	else if (err != -ERANGE)
		doctor_add(d, "ports", NULL, DOCTOR_SKIP, NULL, "%s cannot be read: %s", HYDNS_RESERVED_PORTS, strerror(-err));
	else if (resolver) {
		snprintf(mend, sizeof(mend), "%s (and in /etc/sysctl.d); %s", command, restart);
		doctor_add(d, "ports", NULL, DOCTOR_WARN, mend, "the host reserves no %u ports in a row: queries to upstream take "
			   "sockets instead of packet rings", HYDNS_PORTS_LEAST);
	}
	if (!err && resolver)
		doctor_add(d, "ports", ctl_str(resolver, FIELD(resolver, identity)), DOCTOR_WARN, restart, "its queries to upstream take "
			   "sockets instead of packet rings, for when it started: %s",
			   ctl_str(resolver, FIELD(resolver, no_upstream_rings)));
}

/* -- locked memory ---------------------------------------------------------------------------------------------- */
/* The octets that the process may lock, as far as the kernel asks; UINT64_MAX: no limit. */
static int locked_most(pid_t pid, uint64_t *most)
{
	char path[64], line[256];
	unsigned long long octets, capabilities = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "CapEff: %llx", &capabilities) != 1)
		;
	if (f)
		fclose(f);
	*most = UINT64_MAX;
	if (capabilities >> CAP_IPC_LOCK & 1)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Max locked memory %llu", &octets) == 1)
			*most = octets;
	fclose(f);
	return 0;
}

/* Receive queues that could have packet rings. */
static unsigned possible_lanes(const struct doctor *d)
{
	unsigned sum = 0, now, most;
	const json_t *i;
	size_t n;

	json_array_foreach(json_object_get(d->status, FIELD(status, interfaces)), n, i)
		if (json_is_true(json_object_get(i, FIELD(interface, attached))) && !ctl_str(i, FIELD(interface, no_rings))[0] &&
		    !netdev_queues(ctl_str(i, FIELD(interface, name)), &now, &most))
			sum += now < HYDNS_QUEUE_QUEUES ? now : HYDNS_QUEUE_QUEUES;
	return sum;
}

/* Of a resolver without any it is not known whether it wants some, unless its configuration says so. */
static bool wants_rings(const struct doctor *d, const json_t *r)
{
	const struct doctor_process *p = doctor_process_of(d, (pid_t)ctl_int(r, FIELD(resolver, pid)));

	if (ctl_str(r, FIELD(resolver, no_rings))[0])
		return false;                  /* it is another cause that keeps some from it */
	return lanes_of(r) || (p && p->server == DOCTOR_UNBOUND && p->conf.readable &&
			       !(p->conf.no_client_rings && p->conf.no_upstream_rings));
}

/* Each lane's memory is locked; when there is too little, the resolver has fewer lanes, and tries again. */
static void check_locked(struct doctor *d, const json_t *r)
{
	const struct doctor_process *p = doctor_process_of(d, (pid_t)ctl_int(r, FIELD(resolver, pid)));
	const unsigned have = (unsigned)lanes_of(r), could = possible_lanes(d);
	const char *who = ctl_str(r, FIELD(resolver, identity));
	char mend[TEXT], octets[CTL_TEXT];
	uint64_t most;
	int err = locked_most((pid_t)ctl_int(r, FIELD(resolver, pid)), &most);

	if (err)
		doctor_add(d, "locked-memory", who, DOCTOR_SKIP, NULL, "its limit cannot be read: %s", strerror(-err));
	else if (have >= could || most == UINT64_MAX)
		doctor_add(d, "locked-memory", who, DOCTOR_OK, NULL, "packet rings on %u receive queues have the memory that they need",
			   have);
	else {
		snprintf(mend, sizeof(mend), "prlimit --pid %d --memlock=unlimited; and LimitMEMLOCK=infinity in its unit: systemctl edit %s",
			 (int)ctl_int(r, FIELD(resolver, pid)), p && p->unit[0] ? p->unit : "UNIT");
		doctor_add(d, "locked-memory", who, DOCTOR_WARN, mend, "packet rings on %u of %u receive queues, for it may lock %s of "
			   "memory", have, could, ctl_bytes((double)most, octets));
	}
}

void doctor_check_rings(struct doctor *d)
{
	const json_t *r, *without = NULL;
	bool lanes = false;
	size_t i;

	json_array_foreach(resolvers(d), i, r) {
		lanes |= lanes_of(r) > 0;
		if (!without && ctl_str(r, FIELD(resolver, no_upstream_rings))[0])
			without = r;
		if (wants_rings(d, r))
			check_locked(d, r);
		doctor_check_drops(d, r);
	}
	if (lanes)
		doctor_add(d, "rings", NULL, DOCTOR_OK, NULL, "what packet rings carry, tcpdump, conntrack, nftables, iptables and tc "
			   "do not see: hydnsctl stats counts it; the kernel copies each frame (no zero-copy)");
	if (lanes || without)
		check_range(d, without);
}

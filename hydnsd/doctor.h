/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsctl doctor: each check adds findings, never prints, never changes anything on the host.
 */
#ifndef HYDNS_DOCTOR_H
#define HYDNS_DOCTOR_H

#include <net/if.h>
#include <stdint.h>
#include "hydnsd/ctl_common.h"

/* In order of gravity. */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_SKIP,         /* could not be looked at; the finding says why */
	DOCTOR_WARN,         /* works, but slower, less safely or less completely than it could */
	DOCTOR_FAIL,         /* nothing, or the wrong thing, is answered in the kernel until it is mended */
	DOCTOR_STATES,
};

struct doctor {
	const struct ctl *ctl;
	json_t *status;            /* the daemon's, or NULL */
	char why[CTL_WHY];         /* why there is no status */
	enum ctl_reach reach;
	json_t *checks;            /* findings so far */
	unsigned count[DOCTOR_STATES];
};

/* Adds a finding. check: a short name for scripts, subject: an interface or resolver, or NULL. mend: what
 * to do, NULL when there is nothing; texts are copied. */
void doctor_add(struct doctor *d, const char *check, const char *subject, enum doctor_state state,
		const char *mend, const char *finding, ...) __attribute__((format(printf, 6, 7)));
/* First line of a file without its newline; 0 or a negative errno. */
int doctor_read_line(const char *path, char *out, size_t room);

void doctor_check_host(struct doctor *d);
void doctor_check_daemon(struct doctor *d);
/* names: interfaces to look at; none: those that hydnsd uses, else those that could be used. */
void doctor_check_interfaces(struct doctor *d, int count, char **names);
void doctor_check_firewall(struct doctor *d);

/* -- doctor_link.c: facts about interfaces, by netlink and ioctl ---------------------------------------- */
struct doctor_link {
	unsigned ifindex;
	char name[IF_NAMESIZE];
	char kind[16];             /* "veth", "vlan", ...; empty: no software device */
	unsigned flags;            /* IFF_* */
	unsigned short type;       /* ARPHRD_* */
	unsigned mtu, master;
	unsigned lower;            /* ifindex of the device below, or of a veth's peer */
	int lower_netnsid;         /* -1: in this namespace */
	uint8_t xdp_attached;      /* XDP_ATTACHED_* */
	uint32_t xdp_prog;         /* 0: none, or several */
};
/* All links of this network namespace; free() the array. 0 or a negative errno. */
int doctor_links(struct doctor_link **out, size_t *count);
/* One link of the namespace that netnsid names from here. */
int doctor_link_elsewhere(int netnsid, unsigned ifindex, struct doctor_link *out);
/* NETDEV_XDP_ACT_* bits that the driver reports (Linux 6.3 and newer), or a negative errno. */
int doctor_xdp_features(unsigned ifindex, uint64_t *features);

/* -- doctor_ethtool.c: what drivers tell through SIOCETHTOOL ----------------------------------------------- */
int doctor_driver(const char *ifname, char driver[32]);
/* Is this feature (name as in the kernel's string set, e.g. "rx-lro") on? 1, 0, or a negative errno. */
int doctor_feature(const char *ifname, const char *feature);
/* Receive queues now and at most. */
int doctor_queues(const char *ifname, unsigned *now, unsigned *most);

#endif

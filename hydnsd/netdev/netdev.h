/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Facts about interfaces, for hydnsd and for hydnsctl's doctor. Functions return 0 or a negative errno
 * unless they say otherwise, and write what they find only on success.
 */
#ifndef HYDNSD_NETDEV_NETDEV_H
#define HYDNSD_NETDEV_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETDEV_MEND 224        /* room for a command */

/* -- link.c: facts about interfaces, by netlink and ioctl ---------------------------------------- */
struct netdev_link {
	unsigned ifindex;
	char name[IF_NAMESIZE];
	char kind[16];             /* IFLA_INFO_KIND: "veth", "vlan", ...; "": a physical device or loopback */
	unsigned flags;            /* IFF_* */
	unsigned short type;       /* ARPHRD_* */
	unsigned mtu, master;
	unsigned lower;            /* ifindex of the device below, or of a veth's peer */
	int lower_netnsid;         /* -1: in this namespace */
	bool vlan_filtering;       /* a bridge that heeds VLAN tags */
	uint16_t vlan_id;          /* of a VLAN device */
	bool vlan_provider;        /* its tags are 802.1ad, not 802.1Q */
	uint8_t xdp_attached;      /* XDP_ATTACHED_* */
	uint32_t xdp_prog;         /* 0: none, or several */
	unsigned rx_queues, tx_queues; /* as many as it may have; see netdev_queue_counts() */
};
/* All links of this network namespace; free() the array. 0 or a negative errno. */
int netdev_links(struct netdev_link **out, size_t *count);
/* One link of this network namespace. */
int netdev_link(unsigned ifindex, struct netdev_link *out);
/* One link of the namespace that netnsid names from here. */
int netdev_link_elsewhere(int netnsid, unsigned ifindex, struct netdev_link *out);
/* NETDEV_XDP_ACT_* bits that the driver reports (Linux 6.3 and newer), or a negative errno. */
int netdev_xdp_features(unsigned ifindex, uint64_t *features);

/* -- ethtool.c: what drivers report by SIOCETHTOOL -------------------------------------------------- */
int netdev_driver(const char *ifname, char driver[32]);
/* 1: this feature (name as in the kernel's string set, such as "rx-lro") is on; 0: off; or a negative errno. */
int netdev_feature(const char *ifname, const char *feature);
/* Receive queues now and at most. */
int netdev_queues(const char *ifname, unsigned *now, unsigned *most);
/* The command that makes them so many, by whichever kind of queues the driver has. The kernel refuses every other number while
 * an AF_XDP socket is bound to a receive queue that has no transmit queue (Linux net/ethtool/channels.c): then it adds these. */
void netdev_queues_command(const char *ifname, unsigned queues, char out[NETDEV_MEND]);
/* Receive and transmit queues in use now. */
int netdev_queue_counts(const char *ifname, unsigned *rx, unsigned *tx);
/* Whether a driver passes frames between stacks with an unfinished checksum, as virtual ones do. */
bool netdev_driver_leaves_checksums(const char *driver);
/* Whether this interface's driver does. */
bool netdev_leaves_checksums(const char *ifname);
/* Turns a feature off. 0 also when it was off; -EPERM: the driver keeps it on. */
int netdev_feature_off(const char *ifname, const char *feature);

/* -- veth.c: the other end of a veth ---------------------------------------------------------------- */
/* all: every link of this namespace. -ENODEV, -EINVAL and the like: the peer is in a namespace that can't be seen. */
int netdev_veth_peer(const struct netdev_link *l, const struct netdev_link *all, size_t n, struct netdev_link *peer);
/* The command that gives a veth's peer the program that passes everything, to be pasted where l is. */
void netdev_veth_mend(const struct netdev_link *l, const char *peer, char out[NETDEV_MEND]);

/* -- native.c: links without native XDP -------------------------------------------------------------- */
#define NETDEV_TEXT 160
/* Which interface to name instead of l. all: every link of this namespace. refused: l's driver has said no: for a bond, which
 * has it in some modes. False: nothing is known to be better. */
bool netdev_native_mend(const struct netdev_link *l, const struct netdev_link *all, size_t n, bool refused,
			char mend[NETDEV_TEXT]);

/* -- vlan.c: whether VLAN tags are where the program can see them ----------------------------------- */
enum netdev_tags_place {
	NETDEV_TAGS_SEEN,          /* in the frame */
	NETDEV_TAGS_ASIDE,         /* in packet metadata, not in the frame: to XDP it looks untagged */
	NETDEV_TAGS_UNKNOWN,
};
struct netdev_tags {
	enum netdev_tags_place place;
	char vlan[IF_NAMESIZE];    /* a VLAN device on the interface or on what it is a port of, or a switch that
				    * it is a port of; "": none in this network namespace */
	char at[IF_NAMESIZE];      /* interface whose offload decides; of a veth, its peer */
	bool sender;               /* `at' is a veth's peer; "": that is in another namespace */
	bool stack;                /* the network stack puts them aside, not an offload */
};
/* Where the tags of l's frames are. all: every link of this namespace. native: the program is attached in native mode, or would
 * be. */
void netdev_tags(const struct netdev_link *l, const struct netdev_link *all, size_t n, bool native,
		 struct netdev_tags *out);
/* True: VLAN devices take tags from the interface, and XDP may not see the tags: the program would send a VLAN's answers into
 * the untagged network. */
bool netdev_tags_trap(const struct netdev_tags *t);
/* Of a trap: its cause, and the command that mends it. */
void netdev_tags_explain(const struct netdev_tags *t, char text[NETDEV_TEXT], char mend[NETDEV_TEXT]);
/* Turns off what puts tags aside, at t->at. -ENOENT: it is in another namespace; -EOPNOTSUPP: it is the stack. */
int netdev_tags_mend(const struct netdev_tags *t);

#endif

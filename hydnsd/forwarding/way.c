/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/forwarding/way.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include "hydns/netlink.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/netdev/prefixes.h"

#define ANSWER_OCTETS  8192
#define PATIENCE_US    100000          /* the kernel answers at once */

static const uint8_t v4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* A request with room for its attributes, and the kernel's answer. */
struct exchange {
	union {
		struct nlmsghdr head;
		char octets[256];
	} request;
	char answer[ANSWER_OCTETS] __attribute__((aligned(NLMSG_ALIGNTO)));
};

const char *hydnsd_way_name(enum hydnsd_way w)
{
	static const char *const names[HYDNSD_WAYS] = {
		[HYDNSD_WAY_FOUND] = "usable", [HYDNSD_WAY_NO_ROUTE] = "no-route", [HYDNSD_WAY_NO_NEIGHBOUR] = "no-neighbour",
		[HYDNSD_WAY_DETACHED] = "detached", [HYDNSD_WAY_TAGGED] = "tagged", [HYDNSD_WAY_UNKNOWN] = "unknown",
	};

	return names[w];
}

const char *hydnsd_way_text(enum hydnsd_way w)
{
	static const char *const texts[HYDNSD_WAYS] = {
		[HYDNSD_WAY_FOUND] = "reached",
		[HYDNSD_WAY_NO_ROUTE] = "there is no route to it, or none by an Ethernet interface",
		[HYDNSD_WAY_NO_NEIGHBOUR] = "the Ethernet address of its next hop is not known",
		[HYDNSD_WAY_DETACHED] = "the route to it leaves by an interface that hydnsd is not attached to",
		[HYDNSD_WAY_TAGGED] = "the route to it leaves by a VLAN device, and hydnsd reads no tags: remove vlan: no, and hydnsctl reload",
		[HYDNSD_WAY_UNKNOWN] = "the kernel could not be asked for the route",
	};

	return texts[w];
}

static void set_address(uint8_t to[16], int family, const void *from)
{
	if (family == AF_INET) {
		memcpy(to, v4_mapped, sizeof(v4_mapped));
		memcpy(to + sizeof(v4_mapped), from, 4);
	} else {
		memcpy(to, from, 16);
	}
}

static void begin(struct exchange *x, uint16_t type, uint16_t flags, const void *body, size_t len)
{
	memset(&x->request, 0, sizeof(x->request));
	x->request.head = (struct nlmsghdr){ .nlmsg_len = (uint32_t)NLMSG_LENGTH(len), .nlmsg_type = type,
					     .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = 1 };
	memcpy(NLMSG_DATA(&x->request.head), body, len);
}

static void add(struct exchange *x, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)(x->request.octets + NLMSG_ALIGN(x->request.head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	x->request.head.nlmsg_len = NLMSG_ALIGN(x->request.head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void add_address(struct exchange *x, uint16_t type, const uint8_t addr[16])
{
	if (hydnsd_is_mapped(addr))
		add(x, type, addr + sizeof(v4_mapped), 4);
	else
		add(x, type, addr, 16);
}

/* The answer, or NULL: the kernel refuses (*error is its errno), or does not answer (*error 0). */
static const struct nlmsghdr *ask(struct exchange *x, int fd, int *error)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)x->answer;
	ssize_t n;

	*error = 0;
	if (send(fd, &x->request, x->request.head.nlmsg_len, 0) != (ssize_t)x->request.head.nlmsg_len)
		return NULL;
	n = hydns_netlink_receive(fd, x->answer, sizeof(x->answer), 0);
	if (n <= 0 || !NLMSG_OK(h, (size_t)n) || h->nlmsg_seq != 1)
		return NULL;
	if (h->nlmsg_type != NLMSG_ERROR)
		return h;
	if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(int)))
		*error = -*(const int *)NLMSG_DATA(h);
	return NULL;
}

/* -- route ------------------------------------------------------------------------------------------------- */
static const void *route_attr(const struct nlmsghdr *h, unsigned short type, size_t least)
{
	return hydns_netlink_attr(RTM_RTA(NLMSG_DATA(h)), (int)RTM_PAYLOAD(h), type, least);
}

static enum hydnsd_way take_route(const struct nlmsghdr *h, struct hydns_forward_way *way, uint8_t hop[16])
{
	const struct rtmsg *m = NLMSG_DATA(h);
	size_t len = m->rtm_family == AF_INET ? 4 : 16;
	const uint32_t *index = route_attr(h, RTA_OIF, sizeof(*index));
	const void *source = route_attr(h, RTA_PREFSRC, len), *gateway = route_attr(h, RTA_GATEWAY, len);
	const struct rtvia *via = route_attr(h, RTA_VIA, sizeof(*via) + 16);

	if (m->rtm_type != RTN_UNICAST || !index || !source || route_attr(h, RTA_MULTIPATH, 0) ||
	    route_attr(h, RTA_ENCAP_TYPE, 0) || (!via && route_attr(h, RTA_VIA, 0)))
		return HYDNSD_WAY_NO_ROUTE;
	memcpy(hop, way->addr, 16);
	if (via && via->rtvia_family == AF_INET6)
		memcpy(hop, via->rtvia_addr, 16);
	else if (gateway)
		set_address(hop, m->rtm_family, gateway);
	way->ifindex = *index;
	set_address(way->source, m->rtm_family, source);
	return HYDNSD_WAY_FOUND;
}

static enum hydnsd_way find_route(int fd, struct hydns_forward_way *way, uint8_t hop[16])
{
	const bool ipv4 = hydnsd_is_mapped(way->addr);
	const struct rtmsg m = { .rtm_family = ipv4 ? AF_INET : AF_INET6, .rtm_dst_len = ipv4 ? 32 : 128 };
	const uint8_t protocol = IPPROTO_UDP;
	const struct nlmsghdr *h;
	struct exchange x;
	int error;

	begin(&x, RTM_GETROUTE, 0, &m, sizeof(m));
	add_address(&x, RTA_DST, way->addr);
	add(&x, RTA_IP_PROTO, &protocol, sizeof(protocol));
	add(&x, RTA_DPORT, &way->port, sizeof(way->port));
	h = ask(&x, fd, &error);
	if (!h)
		return error ? HYDNSD_WAY_NO_ROUTE : HYDNSD_WAY_UNKNOWN;
	return h->nlmsg_type == RTM_NEWROUTE ? take_route(h, way, hop) : HYDNSD_WAY_UNKNOWN;
}

/* -- Ethernet addresses -------------------------------------------------------------------------------------- */
/* The interface's own; false: it is no Ethernet interface, or is down. */
static bool find_own(uint32_t ifindex, uint8_t mac[6])
{
	struct ifreq r = { .ifr_ifindex = (int)ifindex };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && !ioctl(fd, SIOCGIFNAME, &r) && !ioctl(fd, SIOCGIFFLAGS, &r) && (r.ifr_flags & IFF_RUNNING) &&
		     !ioctl(fd, SIOCGIFHWADDR, &r) && r.ifr_hwaddr.sa_family == ARPHRD_ETHER;

	if (found)
		memcpy(mac, r.ifr_hwaddr.sa_data, 6);
	if (fd >= 0)
		close(fd);
	return found;
}

/* The interface on which the VLAN devices lie, and their tags. */
static enum hydnsd_way find_tags(struct hydns_forward_way *way)
{
	struct netdev_link l;

	for (unsigned n = 0; ; n++) {
		int rc = netdev_link(way->ifindex, &l);

		if (rc)
			return rc == -ENODEV ? HYDNSD_WAY_NO_ROUTE : HYDNSD_WAY_UNKNOWN;
		if (strcmp(l.kind, "vlan") != 0)
			return HYDNSD_WAY_FOUND;
		if (n == HYDNS_FORWARD_TAGS || !l.lower || l.lower_netnsid >= 0)
			return HYDNSD_WAY_NO_ROUTE;
		way->tag[n] = HYDNS_FORWARD_TAG(l.vlan_id, l.vlan_provider);
		way->ifindex = l.lower;
	}
}

/* Has the kernel find out whether the neighbour is there, as for a packet to it. */
static void use_neighbour(struct exchange *x, int fd, const struct ndmsg *of, const uint8_t hop[16])
{
	struct ndmsg m = *of;
	int error;

	m.ndm_flags = NTF_USE;
	begin(x, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, &m, sizeof(m));
	add_address(x, NDA_DST, hop);
	ask(x, fd, &error);
}

static enum hydnsd_way find_neighbour(int fd, uint32_t ifindex, const uint8_t hop[16], uint8_t mac[6])
{
	const struct ndmsg m = { .ndm_family = hydnsd_is_mapped(hop) ? AF_INET : AF_INET6, .ndm_ifindex = (int)ifindex };
	const struct nlmsghdr *h;
	const struct ndmsg *n;
	struct exchange x;
	const void *found;
	bool sure = false;
	int error;

	begin(&x, RTM_GETNEIGH, 0, &m, sizeof(m));
	add_address(&x, NDA_DST, hop);
	h = ask(&x, fd, &error);
	if (!h && !error)
		return HYDNSD_WAY_UNKNOWN;
	found = NULL;
	if (h && h->nlmsg_type == RTM_NEWNEIGH && h->nlmsg_len >= NLMSG_LENGTH(sizeof(*n))) {
		n = NLMSG_DATA(h);
		if (n->ndm_state & (NUD_PERMANENT | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE))
			found = hydns_netlink_attr((const struct rtattr *)((const char *)n + NLMSG_ALIGN(sizeof(*n))),
						   (int)NLMSG_PAYLOAD(h, sizeof(*n)), NDA_LLADDR, 6);
		sure = n->ndm_state & (NUD_PERMANENT | NUD_REACHABLE);
	}
	if (found)
		memcpy(mac, found, 6);
	if (!sure)
		use_neighbour(&x, fd, &m, hop);
	return found ? HYDNSD_WAY_FOUND : HYDNSD_WAY_NO_NEIGHBOUR;
}

enum hydnsd_way hydnsd_way_find(struct hydns_forward_way *way, uint32_t *device)
{
	const struct timeval limit = { .tv_usec = PATIENCE_US };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	enum hydnsd_way found = HYDNSD_WAY_UNKNOWN;
	struct hydns_forward_way new = *way;
	uint8_t hop[16];

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		found = find_route(fd, &new, hop);
	*device = found == HYDNSD_WAY_FOUND ? new.ifindex : 0;
	if (found == HYDNSD_WAY_FOUND && !find_own(new.ifindex, new.macs + 6))
		found = HYDNSD_WAY_NO_ROUTE;
	if (found == HYDNSD_WAY_FOUND)
		found = find_neighbour(fd, new.ifindex, hop, new.macs);
	if (found == HYDNSD_WAY_FOUND)
		found = find_tags(&new);
	if (found == HYDNSD_WAY_FOUND) {
		*way = new;
		*device = new.ifindex;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

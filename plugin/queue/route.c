/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/route.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>

/* The route to an address, by this source (NULL: any) for UDP to this port. */
static int get_route(struct hydns_rtnl *r, const uint8_t to[16], const uint8_t *source, uint16_t port,
		     const struct nlmsghdr **answer)
{
	const int family = hydns_address_is_ipv4(to) ? AF_INET : AF_INET6;
	const uint8_t bits = family == AF_INET ? 32 : 128, protocol = IPPROTO_UDP;
	const struct rtmsg m = { .rtm_family = (uint8_t)family, .rtm_dst_len = bits, .rtm_src_len = source ? bits : 0 };
	const uint16_t port_be = htons(port);
	struct hydns_rtnl_request q;

	hydns_rtnl_begin(&q, RTM_GETROUTE, &m, sizeof(m));
	hydns_rtnl_add_address(&q, RTA_DST, to);
	if (source)
		hydns_rtnl_add_address(&q, RTA_SRC, source);
	hydns_rtnl_add(&q, RTA_IP_PROTO, &protocol, sizeof(protocol));
	hydns_rtnl_add(&q, RTA_DPORT, &port_be, sizeof(port_be));
	return hydns_rtnl_ask(r, &q, RTM_NEWROUTE, sizeof(m), answer);
}

static const void *attr(const struct nlmsghdr *h, unsigned short type, size_t least)
{
	return hydns_netlink_attr(RTM_RTA(NLMSG_DATA(h)), (int)RTM_PAYLOAD(h), type, least);
}

/* False: the gateway is one of a family that is not known. */
static bool set_next_hop(struct hydns_route *route, const struct nlmsghdr *h, int family, const uint8_t remote[16])
{
	const void *gateway = attr(h, RTA_GATEWAY, hydns_address_len(family));
	const struct rtvia *via = attr(h, RTA_VIA, sizeof(*via));

	memcpy(route->next_hop, remote, sizeof(route->next_hop));
	if (via) {
		via = attr(h, RTA_VIA, sizeof(*via) + sizeof(route->next_hop));
		if (!via || via->rtvia_family != AF_INET6)
			return false;
		hydns_address_set(route->next_hop, AF_INET6, via->rtvia_addr);
	} else if (gateway) {
		hydns_address_set(route->next_hop, family, gateway);
	}
	return true;
}

/* A packet that was too big for the path may have lowered it. */
static uint16_t path_mtu(const struct nlmsghdr *h)
{
	const char *metrics = attr(h, RTA_METRICS, 0);
	const struct rtattr *all = metrics ? (const struct rtattr *)(metrics - RTA_LENGTH(0)) : NULL;
	const uint32_t *mtu = all ? hydns_netlink_attr(RTA_DATA(all), (int)RTA_PAYLOAD(all), RTAX_MTU, sizeof(*mtu)) : NULL;

	return mtu && *mtu && *mtu < UINT16_MAX ? (uint16_t)*mtu : UINT16_MAX;
}

/* What the message says; false: not a way for a plain frame. */
static bool take_route(struct hydns_route *route, const struct nlmsghdr *h, const struct hydns_route_question *q)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const uint32_t *index = attr(h, RTA_OIF, sizeof(*index));
	const void *source = attr(h, RTA_PREFSRC, hydns_address_len(m->rtm_family));

	if (m->rtm_type != RTN_UNICAST || !index || attr(h, RTA_MULTIPATH, 0) || attr(h, RTA_ENCAP_TYPE, 0) ||
	    !set_next_hop(route, h, m->rtm_family, q->remote))
		return false;
	route->ifindex = *index;
	route->mtu = path_mtu(h);
	if (q->source)
		memcpy(route->source, q->source, sizeof(route->source));
	else if (source)
		hydns_address_set(route->source, m->rtm_family, source);
	else
		return false;
	return true;
}

/* Of fe80::/10 the address does not say which interface is meant; to a socket :: is the host itself (RFC 4291 section 2.5.2),
 * to the routes an address as any other. */
static bool ambiguous(const uint8_t address[16])
{
	static const uint8_t unspecified[16];

	return (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) || !memcmp(address, unspecified, sizeof(unspecified));
}

/* Whether the source is an address of the host, which the kernel asks of IPv4 alone. */
static int ask_source(struct hydns_rtnl *r, const struct hydns_route_question *q)
{
	const struct nlmsghdr *h;
	int rc;

	if (!q->source || hydns_address_is_ipv4(q->source))
		return 0;
	rc = get_route(r, q->source, NULL, q->port, &h);
	if (!rc && ((const struct rtmsg *)NLMSG_DATA(h))->rtm_type != RTN_LOCAL)
		rc = HYDNS_RTNL_REFUSED;
	return rc;
}

enum hydns_route_result hydns_route_ask(struct hydns_rtnl *r, const struct hydns_route_question *q, struct hydns_route *route)
{
	const struct nlmsghdr *h;
	int rc;

	if (ambiguous(q->remote) || (q->source && hydns_address_is_ipv4(q->source) != hydns_address_is_ipv4(q->remote)))
		return HYDNS_ROUTE_NONE;
	rc = ask_source(r, q);
	if (!rc)
		rc = get_route(r, q->remote, q->source, q->port, &h);
	if (rc)
		return rc == HYDNS_RTNL_REFUSED ? HYDNS_ROUTE_NONE : HYDNS_ROUTE_UNKNOWN;
	return take_route(route, h, q) ? HYDNS_ROUTE_FOUND : HYDNS_ROUTE_NONE;
}

void hydns_interface_read(struct hydns_interface *i, uint32_t ifindex, int fd)
{
	struct ifreq r = { .ifr_ifindex = (int)ifindex };

	*i = (struct hydns_interface){ .ifindex = ifindex };
	if (ioctl(fd, SIOCGIFNAME, &r) || ioctl(fd, SIOCGIFFLAGS, &r) || !(r.ifr_flags & IFF_RUNNING) ||
	    ioctl(fd, SIOCGIFHWADDR, &r) || r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return;
	memcpy(i->own, r.ifr_hwaddr.sa_data, sizeof(i->own));
	if (!ioctl(fd, SIOCGIFMTU, &r))
		i->mtu = r.ifr_mtu < UINT16_MAX ? (uint16_t)r.ifr_mtu : UINT16_MAX;
}

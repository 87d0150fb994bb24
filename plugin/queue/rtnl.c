/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/rtnl.h"

#include <string.h>

static const uint8_t mapped[HYDNS_MAPPED] = { [10] = 0xff, [11] = 0xff };

int hydns_rtnl_open(struct hydns_rtnl *r)
{
	r->fd = hydns_netlink_listen(0, NULL);
	return r->fd < 0 ? r->fd : 0;
}

void hydns_rtnl_close(struct hydns_rtnl *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void hydns_rtnl_begin(struct hydns_rtnl_request *q, uint16_t type, const void *body, size_t len)
{
	q->head = (struct nlmsghdr){ .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST,
				     .nlmsg_len = (uint32_t)NLMSG_LENGTH(len) };
	memcpy(NLMSG_DATA(&q->head), body, len);
}

void hydns_rtnl_add(struct hydns_rtnl_request *q, uint16_t type, const void *data, size_t len)
{
	char *const at = (char *)q + NLMSG_ALIGN(q->head.nlmsg_len);
	const struct rtattr a = { .rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = type };

	memcpy(at, &a, sizeof(a));
	memcpy(at + RTA_LENGTH(0), data, len);
	q->head.nlmsg_len = (uint32_t)(at - (char *)q + RTA_ALIGN(a.rta_len));
}

void hydns_rtnl_add_address(struct hydns_rtnl_request *q, uint16_t type, const uint8_t address[16])
{
	if (hydns_address_is_ipv4(address))
		hydns_rtnl_add(q, type, address + HYDNS_MAPPED, 4);
	else
		hydns_rtnl_add(q, type, address, 16);
}

int hydns_rtnl_ask(struct hydns_rtnl *r, struct hydns_rtnl_request *q, uint16_t want, size_t least,
		   const struct nlmsghdr **answer)
{
	const struct nlmsghdr *const h = (const struct nlmsghdr *)r->answer;
	ssize_t n;

	q->head.nlmsg_seq = ++r->seq;
	if (send(r->fd, q, q->head.nlmsg_len, 0) != (ssize_t)q->head.nlmsg_len)
		return HYDNS_RTNL_LOST;
	/* More than one: an answer to a former request, which an error had kept from being read. */
	while ((n = hydns_netlink_receive(r->fd, r->answer, sizeof(r->answer), 0)) >= 0) {
		if (!n || !NLMSG_OK(h, (size_t)n) || h->nlmsg_seq != r->seq)
			continue;
		if (h->nlmsg_type == NLMSG_ERROR)
			return HYDNS_RTNL_REFUSED;
		if (h->nlmsg_type != want || h->nlmsg_len < NLMSG_LENGTH(least))
			return HYDNS_RTNL_LOST;
		*answer = h;
		return 0;
	}
	return HYDNS_RTNL_LOST;
}

bool hydns_address_is_ipv4(const uint8_t address[16])
{
	return !memcmp(address, mapped, sizeof(mapped));
}

void hydns_address_set(uint8_t address[16], int family, const void *octets)
{
	if (family == AF_INET) {
		memcpy(address, mapped, sizeof(mapped));
		memcpy(address + HYDNS_MAPPED, octets, 4);
	} else {
		memcpy(address, octets, 16);
	}
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages of what the resolver answers by itself, made by its threads and kept in frames until the tap's thread writes them. Cheaper
 * than the resolver's own way, which packs each into memory of its own and wakes a thread for a few. One half is filled while the other
 * is written; while there are few, both are in the processor's cache. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/dnstap/dnstap.h"

#define OCTETS (1U << 19)              /* of each half; both are as many as Unbound keeps for a thread */

bool hydns_own_frames_init(struct hydns_own_frames *f)
{
	*f = (struct hydns_own_frames){ .octets = { malloc(OCTETS), malloc(OCTETS) } };
	pthread_mutex_init(&f->lock, NULL);
	return f->octets[0] && f->octets[1];
}

void hydns_own_frames_destroy(struct hydns_own_frames *f)
{
	pthread_mutex_destroy(&f->lock);
	free(f->octets[0]);
	free(f->octets[1]);
}

enum hydns_own_put hydns_own_frames_put(struct hydns_own_frames *f, const uint8_t *frame, size_t len)
{
	size_t used, *to;

	pthread_mutex_lock(&f->lock);
	to = &f->len[f->filling];
	used = *to;
	if (used + len <= OCTETS) {
		memcpy(f->octets[f->filling] + used, frame, len);
		*to += len;
	}
	pthread_mutex_unlock(&f->lock);
	if (used + len > OCTETS)
		return HYDNS_OWN_FULL;
	return used < OCTETS / 2 && used + len >= OCTETS / 2 ? HYDNS_OWN_HALF : HYDNS_OWN_PUT;
}

size_t hydns_own_frames_write(struct hydns_own_frames *f, struct hydns_stream *s, int *error)
{
	unsigned half;
	size_t len;

	pthread_mutex_lock(&f->lock);
	if (!f->len[!f->filling])            /* nothing is left of a write that failed */
		f->filling = !f->filling;
	half = !f->filling;
	len = f->len[half];
	pthread_mutex_unlock(&f->lock);
	*error = len ? hydns_stream_write(s, f->octets[half], len) : 0;
	if (*error)
		return 0;
	f->len[half] = 0;                    /* nobody else's: it is not being filled */
	return len;
}

/* Writes an address in the form of records, and its port; false: it is of another family. */
static bool address_of(const struct sockaddr *sa, bool ipv6, uint8_t addr[16], __u16 *port)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (sa->sa_family != (ipv6 ? AF_INET6 : AF_INET))
		return false;
	if (ipv6)
		memcpy(addr, &in6->sin6_addr, 16);
	else
		memcpy(addr + 12, &in->sin_addr, 4);
	*port = ipv6 ? in6->sin6_port : in->sin_port;
	return true;
}

size_t hydns_own_frame(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_tap_message *m,
		       uint8_t out[4 + HYDNS_DNSTAP_MOST])
{
	struct hydns_logged r = { .ipv6 = m->client->sa_family == AF_INET6 };
	uint32_t head;
	size_t len;

	if (m->len > (m->reply ? HYDNS_LOGGED_REPLY : HYDNS_QUERY_MAX) || m->zone_len > HYDNS_NAME_MAX ||
	    !address_of(m->client, r.ipv6, r.client, &r.client_port) || !address_of(m->service, r.ipv6, r.service, &r.service_port))
		return 0;
	len = hydns_dnstap_own_message(o, h, &r, m, out + sizeof(head));
	if (!len)
		return 0;
	head = htonl((uint32_t)len);
	memcpy(out, &head, sizeof(head));
	return sizeof(head) + len;
}

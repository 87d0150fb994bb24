/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queries to the resolver's own address, over UDP, with EDNS so that answers come whole. A query's ID holds its slot, so that a reply
 * is known by it; one that comes for a former query in the slot is discarded by the rest of the ID.
 */
#include "plugin/preload/preload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hydns/dns.h"

#define SLOT_BITS  6
#define SLOTS      (1U << SLOT_BITS)   /* queries under way */
#define SILENCE_MS 250                 /* without a reply for so long, those under way are lost */
#define QUERY_MAX  (12 + HYDNS_NAME_MAX + 4 + 11)
#define REPLY_HEAD 4                   /* octets of a reply that are looked at */

int hydns_preload_asker_open(struct hydns_preload_asker *a, const struct sockaddr *to, socklen_t len, struct sockaddr_storage *from)
{
	socklen_t room = sizeof(*from);
	int error;

	a->fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return -errno;
	if (!connect(a->fd, to, len) && !getsockname(a->fd, (struct sockaddr *)from, &room))
		return 0;
	error = -errno;
	hydns_preload_asker_close(a);
	return error;
}

void hydns_preload_asker_close(struct hydns_preload_asker *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	*at++ = (uint8_t)(value >> 8);
	*at++ = (uint8_t)value;
	return at;
}

/* RFC 1035 section 4, RFC 6891 section 6.1. */
static size_t write_query(const struct hydns_preload_asker *a, const struct hydns_preload_entry *e, unsigned variant, uint16_t id,
			  uint8_t *out)
{
	uint8_t *at = put16(out, id);

	at = put16(at, variant & HYDNS_VARIANT_NO_RD ? 0 : 0x0100);
	at = put16(at, 1);
	at = put16(at, 0);
	at = put16(at, 0);
	at = put16(at, 1);
	memcpy(at, e->name, e->name_len);
	at = put16(at + e->name_len, e->qtype);
	at = put16(at, 1);
	*at++ = 0;                     /* the root: OPT's owner */
	at = put16(at, 41);
	at = put16(at, a->edns_size);
	at = put16(at, 0);
	at = put16(at, variant & HYDNS_VARIANT_DO ? 0x8000 : 0);
	at = put16(at, 0);
	return (size_t)(at - out);
}

/* The questions that are being asked. */
struct asking {
	struct hydns_preload_asker *asker;
	const struct hydns_preload_list *list;
	size_t at, end;
	const struct hydns_preload_entry *entry; /* whose variants are being asked; NULL: the next is due */
	unsigned variant;              /* the next of them */
	uint16_t id[SLOTS];
	bool waits[SLOTS];             /* for a reply */
	unsigned under_way;
	struct hydns_preload_asked *done;
};

/* Moves to the next variant to ask. False: there is none. */
static bool next_question(struct asking *q)
{
	for (;;) {
		if (q->entry)
			for (; q->variant < HYDNS_PRELOAD_VARIANTS; q->variant++)
				if (q->entry->variants >> q->variant & 1)
					return true;
		if (q->at >= q->end)
			return false;
		q->entry = hydns_preload_list_next(q->list, &q->at);
		q->variant = 0;
	}
}

/* False: the socket takes no more now. */
static bool send_in(struct asking *q, unsigned slot)
{
	uint16_t id = (uint16_t)(slot | (unsigned)++q->asker->turn << SLOT_BITS);
	uint8_t query[QUERY_MAX];
	size_t len = write_query(q->asker, q->entry, q->variant, id, query);

	if (send(q->asker->fd, query, len, 0) < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return false;          /* of other errors the reply is missing */
	q->id[slot] = id;
	q->waits[slot] = true;
	q->under_way++;
	q->variant++;
	q->done->asked++;
	return true;
}

static void send_more(struct asking *q)
{
	const unsigned slots = q->asker->at_once && q->asker->at_once < SLOTS ? q->asker->at_once : SLOTS;

	for (unsigned slot = 0; slot < slots && next_question(q); slot++)
		if (!q->waits[slot] && !send_in(q, slot))
			return;
}

static void take_replies(struct asking *q)
{
	uint8_t head[REPLY_HEAD];
	ssize_t len;

	while ((len = recv(q->asker->fd, head, sizeof(head), MSG_TRUNC)) >= 0 || errno == ECONNREFUSED || errno == EINTR) {
		uint16_t id = (uint16_t)(head[0] << 8 | head[1]);
		unsigned slot = id & (SLOTS - 1);

		if (len < REPLY_HEAD || !q->waits[slot] || q->id[slot] != id)
			continue;
		q->waits[slot] = false;
		q->under_way--;
		q->done->replied++;
		q->done->refused += (head[3] & HYDNS_FLAGS_RCODE) == HYDNS_RCODE_REFUSED;
	}
}

static void give_up(struct asking *q)
{
	memset(q->waits, 0, sizeof(q->waits));
	q->under_way = 0;
}

bool hydns_preload_ask(struct hydns_preload_asker *a, const struct hydns_preload_list *l, size_t at, size_t end,
		       struct hydns_preload_asked *out)
{
	struct asking q = { .asker = a, .list = l, .at = at, .end = end, .done = out };
	struct pollfd f[] = { { .fd = a->fd, .events = POLLIN }, { .fd = a->stop_fd, .events = POLLIN } };

	*out = (struct hydns_preload_asked){ 0 };
	for (;;) {
		int ready;

		send_more(&q);
		if (!q.under_way && !next_question(&q))
			return true;
		ready = poll(f, 2, SILENCE_MS);
		if (ready > 0 && f[1].revents)
			return false;
		if (ready == 0)
			give_up(&q);
		else
			take_replies(&q);
	}
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/tests/running.h"

uint32_t client_hello(struct client *c, const int *ring, unsigned rings)
{
	const struct hydns_hello h = {
		.abi_version = HYDNS_ABI_VERSION, .threads = rings, .edns_size = 1232, .max_udp = 1232,
		.pid = (uint32_t)getpid(), .admission = 1, .identity = "hand-made", .version = "1",
		.stale_ttl = c->stale_ttl, .stale_longest = c->stale_longest,
	};
	const struct hydns_msg head = { .type = HYDNS_MSG_HELLO, .seq = ++c->seq, .len = sizeof(h) };
	int fd[HYDNS_THREADS_MAX + 1];
	unsigned fds = rings;

	memcpy(fd, ring, rings * sizeof(*ring));
	if (c->pages)
		fd[fds++] = hydns_pages_fd(c->pages);
	assert_int_equal(hydns_channel_send(c->sock, &head, &h, fd, fds), 0);
	return client_receive(c);
}

void client_send(struct client *c, uint32_t type, const void *payload, size_t len)
{
	const struct hydns_msg head = { .type = type, .seq = ++c->seq, .len = (uint32_t)len };

	assert_int_equal(hydns_channel_send(c->sock, &head, payload, NULL, 0), 0);
}

static bool readable(const struct client *c, int ms)
{
	struct pollfd f = { .fd = c->sock, .events = POLLIN };

	return poll(&f, 1, ms) > 0;
}

bool client_has_message(const struct client *c)
{
	return readable(c, 0);
}

uint32_t client_receive(struct client *c)
{
	return readable(c, WAIT_MS) && hydns_channel_receive(c->sock, &c->in) == 0 ? c->in.head.type : 0;
}

/* True: the page was adopted. */
static bool take_welcome(struct client *c)
{
	struct hydns_welcome w;

	memcpy(&w, c->in.payload, sizeof(w));
	c->doorbell = c->in.fd[0];
	if (w.adopted)
		return true;
	if (!c->pages)
		c->pages = hydns_pages_new();
	assert_non_null(c->pages);
	assert_int_equal(hydns_pages_switch(c->pages, c->in.fd[1], w.epoch, hydns_mono_ns()), 0);
	return false;
}

/* Sends a request and expects its acknowledgement. */
static void ask_for(struct client *c, uint32_t type, const void *payload, size_t len, const int *fd)
{
	const struct hydns_msg head = { .type = type, .seq = ++c->seq, .len = (uint32_t)len };

	assert_int_equal(hydns_channel_send(c->sock, &head, payload, fd, fd ? 1 : 0), 0);
	assert_int_equal(client_receive(c), HYDNS_MSG_ACK);
}

/* From HELLO to READY. */
static bool introduce(struct client *c, int service)
{
	const struct { struct hydns_acl_list list; struct hydns_acl_entry everyone; } acl = {
		.list.count = 1, .everyone.action = HYDNS_ACL_ALLOW,
	};
	int fd[CLIENT_RINGS];
	bool adopted;

	c->sock = hydns_channel_connect(plugin_path);
	assert_true(c->sock >= 0);
	for (unsigned i = 0; i < c->rings; i++)
		fd[i] = c->ring[i].fd;
	assert_int_equal(client_hello(c, fd, c->rings), HYDNS_MSG_WELCOME);
	adopted = take_welcome(c);
	if (service >= 0)
		ask_for(c, HYDNS_MSG_SERVICE, NULL, 0, &service);
	ask_for(c, HYDNS_MSG_ACL, &acl, sizeof(acl), NULL);
	ask_for(c, HYDNS_MSG_READY, NULL, 0, NULL);
	return adopted;
}

void client_open_as(struct client *c, unsigned rings, int service)
{
	*c = (struct client){ .rings = rings };
	for (unsigned i = 0; i < rings; i++)
		assert_int_equal(hydns_producer_open(&c->ring[i]), 0);
	assert_false(introduce(c, service));
}

void client_open_stale(struct client *c, int service, uint32_t ttl, uint32_t longest)
{
	*c = (struct client){ .rings = 1, .stale_ttl = ttl, .stale_longest = longest };
	assert_int_equal(hydns_producer_open(&c->ring[0]), 0);
	assert_false(introduce(c, service));
}

void client_open(struct client *c)
{
	client_open_as(c, CLIENT_RINGS, -1);
}

bool client_reopen(struct client *c, int service)
{
	close(c->sock);
	close(c->doorbell);
	return introduce(c, service);
}

/* In the order in which a process ends. */
void client_crash(struct client *c)
{
	hydns_pages_free(c->pages);
	for (unsigned i = 0; i < c->rings; i++)
		hydns_producer_close(&c->ring[i]);
	close(c->doorbell);
	close(c->sock);
}

void client_close(struct client *c)
{
	client_send(c, HYDNS_MSG_BYE, NULL, 0);
	assert_int_equal(client_receive(c), HYDNS_MSG_ACK);
	client_crash(c);
	WAIT_FOR(resolver_is("none"));
}

void client_withdraw(struct client *c, uint32_t scope, const uint8_t *name, size_t len, uint64_t generation)
{
	struct hydns_withdraw w = { .generation = generation, .scope = scope, .name_len = (uint32_t)len };

	memcpy(w.name, name, len);
	client_send(c, HYDNS_MSG_WITHDRAW, &w, sizeof(w));
}

void client_put(struct client *c, unsigned ring, const void *frame, uint32_t len)
{
	void *at = NULL;

	for (int left = WAIT_MS; left && !(at = hydns_producer_reserve(&c->ring[ring], len, 0)); left--)
		usleep(1000);
	assert_non_null(at);
	memcpy(at, frame, len);
	if (hydns_producer_commit(&c->ring[ring], len))
		assert_int_equal(eventfd_write(c->doorbell, 1), 0);
}

void client_offer_spec(struct client *c, unsigned ring, const struct build_spec *spec)
{
	static union build_offer o;
	size_t len = build_offer(&o, spec, hydnsd_now_ns());

	o.offer.epoch = hydns_pages_epoch(c->pages);
	client_put(c, ring, &o, (uint32_t)len);
}

static void offer(struct client *c, unsigned ring, const char *name, uint64_t generation, uint8_t flags)
{
	struct build_spec spec = { .name = name, .type = 1, .generation = generation, .flags = flags };
	char record[128];

	snprintf(record, sizeof(record), "%s 300 IN A 192.0.2.1", name);
	spec.answer[0] = record;
	client_offer_spec(c, ring, &spec);
}

void client_offer(struct client *c, unsigned ring, const char *name, uint64_t generation)
{
	offer(c, ring, name, generation, 0);
}

void client_preload(struct client *c, unsigned ring, const char *name, uint64_t generation)
{
	offer(c, ring, name, generation, HYDNS_RULE_STATIC_TTL | HYDNS_RULE_KEPT);
}

void client_changed(struct client *c, unsigned ring, const uint8_t *name, uint8_t len, uint64_t generation)
{
	union { struct hydns_changed changed; uint8_t octet[512]; } f = { .octet = { 0 } };

	f.changed.frame.len = (offsetof(struct hydns_changed, data) + len + 7U) & ~7U;
	f.changed.frame.type = HYDNS_FRAME_CHANGED;
	f.changed.generation = generation;
	f.changed.name_len = len;
	memcpy(f.octet + offsetof(struct hydns_changed, data), name, len);
	client_put(c, ring, &f, f.changed.frame.len);
}

bool client_taken(const struct client *c)
{
	for (unsigned i = 0; i < c->rings; i++)
		if (__atomic_load_n(&c->ring[i].ring->tail, __ATOMIC_ACQUIRE) != c->ring[i].head)
			return false;
	return true;
}

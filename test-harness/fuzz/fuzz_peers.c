/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile peers of hydnsd, which runs inside this program: a plugin that says any message in any state, with any descriptors, fills its
 * ring with any frames, and writes any octets into its page, its buckets and its ring's header; and a control client with any
 * requests. Beside them another resolver has a service and a rule. hydnsd must answer each message by one reply or by the end of that
 * connection, and each request by one object; and the other resolver must keep its session, its service and its rule.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hydnsd/resolvers/porter.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"
#include "test-harness/fuzz/peer_messages.h"
#include "test-harness/fuzz/target.h"

#define COUNT_DEFAULT 60               /* a turn takes milliseconds: hydnsd waits for grace periods */
#define ACTIONS_MOST  24
#define SERVICE_PORT  5300
#define OTHER_PORT    5301

int daemon_main(int argc, char **argv);

static pthread_t daemon_thread;
static char state[80];
static struct client bystander;
static bool flushed;                   /* the bystander's rule may have gone with a request */
static struct {
	uint64_t messages, refused, ended, frames, requests, faults;
} count;

/* The hostile plugin. */
static struct {
	int sock;                      /* -1: not connected */
	bool welcome;
	uint32_t seq, last;            /* last: type of the last message */
	struct hydns_producer ring;
	struct hydns_pages *pages;
	int doorbell, udp[2];          /* udp: at the bystander's address and port, and at another one */
	struct hydns_channel_message in;
} plugin = { .sock = -1, .doorbell = -1 };

static int control = -1;

/* -- the plugin's session ------------------------------------------------------------------------------------------------- */
static void leave(void)
{
	close(plugin.sock);
	if (plugin.doorbell >= 0)
		close(plugin.doorbell);
	if (plugin.ring.ring)
		hydns_producer_close(&plugin.ring);
	if (plugin.pages)
		hydns_pages_free(plugin.pages);
	plugin.ring.ring = NULL;
	plugin.pages = NULL;
	plugin.sock = plugin.doorbell = -1;
	plugin.welcome = false;
}

static void take_welcome(void)
{
	struct hydns_welcome w;

	memcpy(&w, plugin.in.payload, sizeof(w));
	plugin.welcome = true;
	if (plugin.doorbell >= 0)
		close(plugin.doorbell);
	plugin.doorbell = plugin.in.fd[0];
	plugin.in.fd[0] = -1;
	if (w.adopted || plugin.in.fds < 2)
		return;
	if (!plugin.pages)
		plugin.pages = hydns_pages_new();
	hydns_pages_switch(plugin.pages, plugin.in.fd[1], w.epoch, hydns_mono_ns());
	plugin.in.fd[1] = -1;
}

static const char *wrong_of_type(const char *what)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s %u", what, plugin.last);
	return text;
}

/* The reply to the last message, or the end of the connection. NULL, or what is wrong. */
static const char *await_reply(void)
{
	struct pollfd f = { .fd = plugin.sock, .events = POLLIN };

	while (poll(&f, 1, WAIT_MS) > 0) {
		if (hydns_channel_receive(plugin.sock, &plugin.in)) {
			count.ended++;
			leave();
			return NULL;
		}
		if (plugin.in.head.type == HYDNS_MSG_WELCOME)
			take_welcome();
		hydns_channel_close_fds(&plugin.in);
		if (plugin.in.head.seq != plugin.seq)
			continue;
		count.refused += plugin.in.head.type == HYDNS_MSG_REFUSED;
		if (plugin.in.head.type == HYDNS_MSG_ACK && plugin.welcome && plugin.in.head.abi)
			return "a reply with a version";
		return NULL;
	}
	return wrong_of_type("a message without a reply: type");
}

static const char *say(uint32_t type, const void *payload, size_t len, const int *fd, unsigned fds)
{
	const struct hydns_msg head = { .type = type, .seq = ++plugin.seq, .len = (uint32_t)len };

	count.messages++;
	plugin.last = type;
	if (hydns_channel_send(plugin.sock, &head, payload, fd, fds)) {
		leave();
		return NULL;
	}
	if (type == HYDNS_MSG_BYE)
		plugin.welcome = false;
	return await_reply();
}

/* Connects if need be, and says HELLO as a good plugin does. */
static const char *introduce(void)
{
	const struct hydns_hello h = peer_hello();
	int fd[2];

	if (plugin.sock < 0) {
		plugin.sock = hydns_channel_connect(plugin_path);
		if (plugin.sock < 0 || hydns_producer_open(&plugin.ring))
			return "no connection";
	}
	fd[0] = plugin.ring.fd;
	fd[1] = plugin.pages ? hydns_pages_fd(plugin.pages) : -1;
	return say(HYDNS_MSG_HELLO, &h, sizeof(h), fd, fd[1] >= 0 ? 2 : 1);
}

static const char *message(void)
{
	static uint8_t payload[PEER_PAYLOAD];
	int fd[3] = { plugin.udp[fuzz_below(2)], plugin.ring.fd, bystander.doorbell };
	unsigned fds = fuzz_below(4) ? 0 : 1 + fuzz_below(3);
	size_t len;
	uint32_t type = peer_message(payload, &len);

	if (type == HYDNS_MSG_SERVICE && fuzz_below(4))
		fds = 1;
	return say(type, payload, len, fds ? fd : NULL, fds);
}

/* A message whose header lies, which ends the session. */
static const char *broken_message(void)
{
	struct { struct hydns_msg head; uint8_t octet[24]; } m;

	fuzz_fill((uint8_t *)&m, sizeof(m));
	plugin.seq = m.head.seq;
	if (m.head.len == sizeof(m.octet) || send(plugin.sock, &m, 1 + fuzz_below(sizeof(m) - 1), MSG_NOSIGNAL) < 0)
		return NULL;
	return await_reply();
}

/* -- shared memory ----------------------------------------------------------------------------------------------------------- */
static const char *frame(void)
{
	static uint8_t octets[PEER_FRAME] __attribute__((aligned(8)));
	const uint32_t len = peer_frame(octets, plugin.pages ? hydns_pages_epoch(plugin.pages) : 0, hydns_mono_ns());
	void *at = hydns_producer_reserve(&plugin.ring, len, 0);

	count.frames++;
	if (!at)
		return NULL;
	memcpy(at, octets, len);
	if (hydns_producer_commit(&plugin.ring, len) && plugin.doorbell >= 0 && eventfd_write(plugin.doorbell, 1))
		return "the doorbell can't be rung";
	return NULL;
}

static void scribble(void *memory, size_t octets, size_t liked)
{
	uint64_t *word = memory;

	for (unsigned n = 1 + fuzz_below(8); n; n--) {
		const size_t words = (fuzz_below(4) ? liked : octets) / sizeof(*word);
		const uint64_t value = fuzz_below(2) ? fuzz_next() : fuzz_below(4) ? fuzz_below(3) : UINT64_MAX;

		__atomic_store_n(&word[fuzz_below((uint32_t)words)], value, __ATOMIC_RELAXED);
	}
}

static const char *scribble_page(void)
{
	struct hydns_resolver_page *page = plugin.pages ? hydns_pages_shared(plugin.pages) : NULL;

	if (page)
		scribble(page, HYDNS_PAGE_OCTETS, 64);
	return NULL;
}

/* What lies behind the frames as well. Its doorbell says that there is something to read. */
static const char *scribble_ring(void)
{
	uint8_t *ring = (uint8_t *)plugin.ring.ring;

	if (fuzz_below(2))
		scribble(ring, HYDNS_RING_DATA, sizeof(struct hydns_ring));
	else
		scribble(ring + HYDNS_RING_DATA + HYDNS_RING_BYTES, HYDNS_RING_SIZE - HYDNS_RING_DATA - HYDNS_RING_BYTES, 4096);
	if (plugin.doorbell >= 0 && fuzz_below(2))
		eventfd_write(plugin.doorbell, 1);
	return NULL;
}

/* -- the control client -------------------------------------------------------------------------------------------------------- */
static const char *read_reply(void)
{
	static char line[1 << 21];
	struct pollfd f = { .fd = control, .events = POLLIN };
	json_t *reply;
	size_t len = 0;
	bool good;

	while (!len || line[len - 1] != '\n') {
		ssize_t n = poll(&f, 1, WAIT_MS) > 0 ? recv(control, line + len, sizeof(line) - len, 0) : -1;

		if (n < 0)
			return "a request without a reply";
		if (!n)
			return "a request that ends its connection";
		len += (size_t)n;
	}
	reply = json_loadb(line, len, 0, NULL);
	good = json_is_boolean(json_object_get(reply, "ok")) &&
	       (json_is_true(json_object_get(reply, "ok")) || json_object_get(reply, "error"));
	count.faults += json_is_false(json_object_get(reply, "ok"));
	json_decref(reply);
	return good ? NULL : "a reply that is none";
}

static const char *request(void)
{
	static char line[PEER_REQUEST + 1];
	const char *wrong;
	size_t len;

	if (control < 0)
		control = connect_to(control_path, SOCK_STREAM);
	len = peer_request(line);
	line[len] = 0;
	flushed |= strstr(line, "flush") != NULL;
	line[len] = '\n';
	count.requests++;
	if (send(control, line, len + 1, MSG_NOSIGNAL) < 0)
		return "a request is not taken";
	wrong = read_reply();
	if (len == PEER_REQUEST) {             /* hydnsd ends such a connection */
		close(control);
		control = -1;
		if (wrong && !strcmp(wrong, "a request that ends its connection"))
			wrong = NULL;
	}
	return wrong;
}

/* -- the other resolver ----------------------------------------------------------------------------------------------------------- */
static void offer_again(void)
{
	static const struct build_spec spec = { .name = "www.example.", .type = 1, .generation = 1, .ttl = 80000,
						.answer = { "www.example. 80000 IN A 192.0.2.1" } };

	client_offer_spec(&bystander, 0, &spec);
	WAIT_FOR(client_taken(&bystander));
	flushed = false;
}

/* Of the reply to status; the bystander has registered first, so it is resolver 0. */
static const char *judge_bystander(const json_t *status)
{
	const json_t *r = json_array_get(json_object_get(status, "resolvers"), 0);
	const char *who = json_string_value(json_object_get(r, "identity"));

	if (!who || strcmp(who, "hand-made") || strcmp(json_string_value(json_object_get(r, "state")), "ready"))
		return "another resolver has lost its session";
	if (json_array_size(json_object_get(r, "services")) != 1)
		return "another resolver has lost its address, or got one";
	return json_integer_value(json_object_get(r, "rules")) == 1 ? NULL : "another resolver has lost its rule, or got one";
}

static const char *look_at_bystander(void)
{
	json_t *status;
	const char *wrong;

	if (flushed)
		offer_again();
	status = ask("{\"cmd\":\"status\"}");
	wrong = status ? judge_bystander(status) : "hydnsd does not say its status";
	json_decref(status);
	return wrong;
}

/* -- turns ------------------------------------------------------------------------------------------------------------------------- */
static const char *act(void)
{
	if (plugin.sock < 0 || (!plugin.welcome && fuzz_below(8)))
		return introduce();
	switch (fuzz_below(12)) {
	case 0: case 1: return frame();
	case 2: return scribble_page();
	case 3: return fuzz_below(4) ? scribble_ring() : NULL;
	case 4: case 5: return request();
	case 6: return fuzz_below(8) ? NULL : broken_message();
	case 7:
		if (!fuzz_below(8))
			leave();
		return NULL;
	default: return message();
	}
}

static const char *turn(void)
{
	const char *wrong = NULL;

	for (unsigned n = 1 + fuzz_below(ACTIONS_MOST); n && !wrong; n--)
		wrong = act();
	if (plugin.sock >= 0)                  /* the next turn is the same whatever this one was */
		leave();
	return wrong ? wrong : look_at_bystander();
}

/* -- begin and end ------------------------------------------------------------------------------------------------------------------ */
static void *run_daemon(void *arg)
{
	char *argv[] = {
		"hydnsd", "--interface", "lo", "--attach-mode", "generic", "--pin-dir", pins, "--state-dir", state, "--plugin-socket", plugin_path,
		"--control-socket", control_path, "--min-hits", "0", "--log-level", "error", "--capacity", "1000", "--plugin-rate", "1000",
		"--plugin-burst", "10000", "--guard", "count", "--config", "/dev/null", NULL,
	};

	(void)arg;
	return (void *)(intptr_t)daemon_main((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv);
}

static int udp_at(uint16_t port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void clean_up(void)
{
	char paused[96];

	snprintf(paused, sizeof(paused), "%s/paused", state);
	unlink(paused);
	tidy(NULL);
}

static int begin(int argc, char **argv)
{
	sigset_t ends;
	char *slash;

	if (argc > 0 && !strcmp(argv[0], HYDNSD_PORTER))
		exit(hydnsd_porter_main());
	setenv("HYDNSD", argv[0], 0);
	if (!surroundings())
		return SKIPPED;
	atexit(clean_up);
	snprintf(state, sizeof(state), "%s", plugin_path);
	slash = strrchr(state, '/');
	snprintf(slash, sizeof(state) - (size_t)(slash - state), "/state");
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGALRM);             /* libFuzzer's clock would interrupt each wait */
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	if (pthread_create(&daemon_thread, NULL, run_daemon, NULL))
		return 1;
	WAIT_FOR(rules() >= 0 && access(plugin_path, F_OK) == 0);
	plugin.udp[0] = udp_at(SERVICE_PORT);
	plugin.udp[1] = udp_at(OTHER_PORT);
	client_open_as(&bystander, 1, plugin.udp[0]);
	hydns_pages_beat(bystander.pages, hydns_mono_ns() + 86400 * HYDNS_NS_PER_S);
	offer_again();
	return 0;
}

static int end(void)
{
	void *status = NULL;

	kill(getpid(), SIGTERM);
	pthread_join(daemon_thread, &status);
	printf("%" PRIu64 " messages, %" PRIu64 " refused, %" PRIu64 " sessions ended, %" PRIu64 " frames, %" PRIu64 " requests, %" PRIu64
	       " of them faults\n", count.messages, count.refused, count.ended, count.frames, count.requests, count.faults);
	return status || !count.refused || !count.frames || !count.faults;
}

const struct fuzz_target fuzz_target = {
	.name = "peers", .one = "turn", .count = COUNT_DEFAULT, .begin = begin, .turn = turn, .end = end,
};

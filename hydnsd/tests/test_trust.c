/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What hydnsd takes from no peer: hand-made frames, messages and requests that our plugins and hydnsctl never send. Each is
 * refused with its cause, or ends its own session alone. The rules of others stay.
 */
#include <errno.h>
#include <grp.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydns/names.h"
#include "hydns/parking.h"
#include "hydnsd/tests/client.h"
#include "hydnsd/tests/running.h"

static const uint8_t www[] = "\3www\7example", other[] = "\5other\7example";

/* Another resolver with a rule, which faults of others must not concern. */
static struct client bystander;

static int set_up(void **state)
{
	(void)state;
	start_daemon();
	client_open(&bystander);
	client_offer(&bystander, 0, "www.example.", 1);
	WAIT_FOR(client_taken(&bystander));
	return rules() == 1 ? 0 : -1;
}

static int tear_down(void **state)
{
	int left = (int)rules();

	close(bystander.sock);
	clear(state);
	return left == 1 ? 0 : -1;
}

/* Expects the next message to be a refusal with this text. */
static void expect_refusal(struct client *c, const char *what, const char *text)
{
	uint32_t type = client_receive(c);

	if (type != HYDNS_MSG_REFUSED)
		fail_msg("%s: answered by type %u", what, type);
	if (!strstr((const char *)c->in.payload, text))
		fail_msg("%s: refused for %s", what, (const char *)c->in.payload);
}

/* -- frames ----------------------------------------------------------------------------------------------------- */
/* Puts these octets at the beginning of a new ring, and moves its head by `written`. */
static void write_raw(struct client *c, const void *octets, size_t len, uint32_t written)
{
	struct hydns_ring *ring = c->ring[0].ring;

	memcpy((uint8_t *)ring + HYDNS_RING_DATA, octets, len);
	__atomic_store_n(&ring->head, written, __ATOMIC_RELEASE);
	assert_int_equal(eventfd_write(c->doorbell, 1), 0);
}

static void expect_broken(const char *what, const void *octets, size_t len, uint32_t written)
{
	struct client c;

	client_open(&c);
	write_raw(&c, octets, len, written);
	expect_refusal(&c, what, "a ring holds a broken frame");
	close(c.sock);
	assert_int_equal(rules(), 1);
}

#define CHANGED_HEAD offsetof(struct hydns_changed, data)
union changed {
	struct hydns_changed changed;
	uint8_t octet[512];
};

static union changed changed(uint32_t len, uint8_t name_len, const void *name, size_t octets)
{
	union changed f = { .octet = { 0 } };

	f.changed.frame = (struct hydns_frame){ .len = len, .type = HYDNS_FRAME_CHANGED };
	f.changed.generation = 1;
	f.changed.name_len = name_len;
	memcpy(f.octet + CHANGED_HEAD, name, octets);
	return f;
}

static void broken_frames_end_their_session(void **state)
{
	static const struct {
		const char *what;
		struct hydns_frame head;
		uint32_t written;
	} c[] = {
		{ "a frame without a length", { 0, HYDNS_FRAME_OFFER }, 64 },
		{ "a frame shorter than its head", { 4, HYDNS_FRAME_OFFER }, 64 },
		{ "a frame of 12 octets", { 12, HYDNS_FRAME_PAD }, 64 },
		{ "a frame larger than any offer", { HYDNSD_OFFER_MAX + 8, HYDNS_FRAME_OFFER }, HYDNSD_OFFER_MAX + 8 },
		{ "a frame of unknown type", { 64, 77 }, 64 },
		{ "more than the ring holds", { 64, HYDNS_FRAME_PAD }, HYDNS_RING_BYTES + 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		expect_broken(c[i].what, &c[i].head, sizeof(c[i].head), c[i].written);
}

/* hydnsd does not read what was not written, however complete it looks. */
static void half_a_frame_is_no_offer(void **state)
{
	static union build_offer o;
	const struct build_spec spec = { .name = "half.example.", .type = 1, .generation = 1,
					 .answer = { "half.example. 300 IN A 192.0.2.1" } };
	struct client c;
	size_t len;

	(void)state;
	client_open(&c);
	len = build_offer(&o, &spec, hydns_mono_ns());
	o.offer.epoch = hydns_pages_epoch(c.pages);
	write_raw(&c, &o, len, 8);
	expect_refusal(&c, "half a frame", "a ring holds a broken frame");
	close(c.sock);
	assert_int_equal(rules(), 1);
}

static void broken_changes_end_their_session(void **state)
{
	uint8_t name[201];
	union changed f = changed(CHANGED_HEAD, 0, "", 0);
	uint32_t whole = (CHANGED_HEAD + sizeof(name) + 7) & ~7U;
	struct client c;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[0] = name[64] = name[128] = 63;
	name[192] = 7;
	name[200] = 0;
	f.changed.frame.len = 8;
	expect_broken("a change that is a head alone", &f, sizeof(f), 8);
	f = changed(64, sizeof(www), "\3WWW\7example", sizeof(www));
	expect_broken("a name in capitals", &f, sizeof(f), 64);
	f = changed(64, sizeof(www), www, sizeof(www));
	f.changed.ttl_of = 0x0100;
	f.changed.section = HYDNS_SECTION_AUTHORITY + 1;
	expect_broken("a section that there is not", &f, sizeof(f), 64);
	/* Behind the end of the second frame are octets of the first, which hydnsd has just read. */
	client_open(&c);
	f = changed(whole, sizeof(name), name, sizeof(name));
	write_raw(&c, &f, sizeof(f), whole);
	WAIT_FOR(__atomic_load_n(&c.ring[0].ring->tail, __ATOMIC_ACQUIRE) == whole);
	f = changed(64, sizeof(name), name, sizeof(name));
	memcpy((uint8_t *)c.ring[0].ring + HYDNS_RING_DATA + whole, &f, sizeof(f));
	__atomic_store_n(&c.ring[0].ring->head, whole + 64, __ATOMIC_RELEASE);
	assert_int_equal(eventfd_write(c.doorbell, 1), 0);
	expect_refusal(&c, "a name beyond its frame", "a ring holds a broken frame");
	close(c.sock);
}

/* Frames of 16 octets fill the ring to its end. */
static void put_over(struct hydns_ring *ring, uint32_t head, const struct hydns_over *over)
{
	memcpy((uint8_t *)ring + HYDNS_RING_DATA + head % HYDNS_RING_BYTES, over, sizeof(*over));
	__atomic_store_n(&ring->head, head + (uint32_t)sizeof(*over), __ATOMIC_RELEASE);
}

/* An OVER without a key; and thousands for questions that nobody has asked, as fast as the ring takes them. */
static void ends_of_resolutions_are_harmless(void **state)
{
	struct hydns_over over = { .frame = { .len = sizeof(over), .type = HYDNS_FRAME_OVER } };
	const struct hydns_frame cut = { .len = sizeof(cut), .type = HYDNS_FRAME_OVER };
	struct client c;

	(void)state;
	expect_broken("an OVER that is a head alone", &cut, sizeof(cut), sizeof(cut));
	client_open(&c);
	for (unsigned ms = 0, put = 0; put < 50000 && ms < WAIT_MS; ) {
		struct hydns_ring *ring = c.ring[0].ring;
		uint32_t head = put * sizeof(over);

		if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > HYDNS_RING_BYTES - sizeof(over)) {
			assert_int_equal(eventfd_write(c.doorbell, 1), 0);
			assert_true(number("{\"cmd\": \"pending\"}", "waiting") == 0); /* hydnsd has time for others */
			ms += 1;
			continue;
		}
		over.key = put++ * 0x9e3779b97f4a7c15ULL;
		put_over(ring, head, &over);
	}
	assert_int_equal(eventfd_write(c.doorbell, 1), 0);
	WAIT_FOR(__atomic_load_n(&c.ring[0].ring->tail, __ATOMIC_ACQUIRE) == 50000 * sizeof(over));
	close(c.sock);
	assert_int_equal(rules(), 1);
}

/* -- messages ---------------------------------------------------------------------------------------------------- */
static struct hydns_hello good_hello(void)
{
	return (struct hydns_hello){
		.abi_version = HYDNS_ABI_VERSION, .threads = 1, .edns_size = 1232, .max_udp = 1232, .pid = (uint32_t)getpid(),
		.admission = 1, .identity = "hand-made", .version = "1",
	};
}

static void expect_hello_refused(const char *what, const struct hydns_hello *h, size_t len, const char *text)
{
	struct client c = { .sock = hydns_channel_connect(plugin_path) };
	const struct hydns_msg head = { .type = HYDNS_MSG_HELLO, .seq = 5, .len = (uint32_t)len };
	struct hydns_producer ring;

	assert_true(c.sock >= 0);
	assert_int_equal(hydns_producer_open(&ring), 0);
	assert_int_equal(hydns_channel_send(c.sock, &head, h, &ring.fd, 1), 0);
	expect_refusal(&c, what, text);
	assert_int_equal(c.in.head.seq, 5);
	close(c.sock);
	hydns_producer_close(&ring);
}

static void a_wrong_hello_is_refused(void **state)
{
	struct hydns_hello h = good_hello();

	(void)state;
	expect_hello_refused("a short HELLO", &h, sizeof(h) - 4, "a HELLO of another length");
	h.threads = 0;
	expect_hello_refused("no thread", &h, sizeof(h), "the number of threads is out of range");
	h.threads = HYDNS_THREADS_MAX + 1;
	expect_hello_refused("too many threads", &h, sizeof(h), "the number of threads is out of range");
	h.threads = 3;
	expect_hello_refused("threads without rings", &h, sizeof(h), "descriptors came with");
	h = good_hello();
	h.flags = HYDNS_RESOLVER_READY;
	expect_hello_refused("a flag of hydnsd's own", &h, sizeof(h), "unknown flags");
	h = good_hello();
	h.edns_size = 511;
	expect_hello_refused("a small EDNS size", &h, sizeof(h), "below 512");
	h = good_hello();
	h.refresh_percent = 101;
	expect_hello_refused("more than all", &h, sizeof(h), "more than 100 percent");
	h = good_hello();
	h.min_ttl = 10;
	h.max_ttl = 9;
	expect_hello_refused("TTLs that exclude all", &h, sizeof(h), "max-ttl is below min-ttl");
	h = good_hello();
	h.stale_ttl = HYDNS_TTL_MAX + 1;
	expect_hello_refused("a stale TTL that is none", &h, sizeof(h), "a stale TTL above");
	h = good_hello();
	memset(h.stale_text, 's', sizeof(h.stale_text));
	expect_hello_refused("an extended error without end", &h, sizeof(h), "text of the extended error");
	h = good_hello();
	memset(h.version, 'v', sizeof(h.version));
	expect_hello_refused("a text without end", &h, sizeof(h), "not printable text");
}

static void expect_message_refused(uint32_t type, const void *payload, size_t len, const char *text)
{
	client_send(&bystander, type, payload, len);
	expect_refusal(&bystander, text, text);
	assert_int_equal(bystander.in.head.seq, bystander.seq);
}

static void wrong_messages_are_refused(void **state)
{
	static const uint32_t early[] = { HYDNS_MSG_STATS, HYDNS_MSG_READY, HYDNS_MSG_WITHDRAW, HYDNS_MSG_ACL, HYDNS_MSG_BYE };
	struct client c = { .sock = hydns_channel_connect(plugin_path) };
	const struct hydns_hello h = good_hello();
	const struct hydns_note note = { .kind = HYDNS_NOTES };
	struct hydns_names_request names = { .buckets = HYDNS_NAMES_BUCKETS_LEAST - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
		client_send(&c, early[i], NULL, 0);
		expect_refusal(&c, "before HELLO", "the first message must be HELLO");
	}
	close(c.sock);
	expect_message_refused(99, NULL, 0, "a message of unknown type");
	expect_message_refused(HYDNS_MSG_HELLO, &h, sizeof(h), "a second HELLO");
	expect_message_refused(HYDNS_MSG_RESET, &h, sizeof(h), "another number of threads");
	expect_message_refused(HYDNS_MSG_NOTE, &note, sizeof(note), "a note of unknown kind");
	expect_message_refused(HYDNS_MSG_READY, NULL, 0, "READY without a configuration");
	expect_message_refused(HYDNS_MSG_NAMES, &names, sizeof(names) - 1, "a NAMES of another length");
	expect_message_refused(HYDNS_MSG_NAMES, &names, sizeof(names), "it must be a power of 2");
	names = (struct hydns_names_request){ .buckets = HYDNS_NAMES_BUCKETS_LEAST, .leaves = HYDNS_LEAVES_MOST(HYDNS_NAMES_BUCKETS_LEAST) + 1 };
	expect_message_refused(HYDNS_MSG_NAMES, &names, sizeof(names), "a table of");
	names = (struct hydns_names_request){ .buckets = HYDNS_NAMES_BUCKETS_LEAST, .zones = HYDNS_NAMES_ZONES_MOST + 1 };
	expect_message_refused(HYDNS_MSG_NAMES, &names, sizeof(names), "zones: more than");
	names.buckets = HYDNS_NAMES_BUCKETS_MOST;
	expect_message_refused(HYDNS_MSG_NAMES, &names, sizeof(names), "NAMES for more names than hydnsd may have rules");
	expect_message_refused(HYDNS_MSG_LIMITS, NULL, 0, "LIMITS with a payload, after READY");
	expect_message_refused(HYDNS_MSG_SERVICE, NULL, 0, "a SERVICE without exactly one socket");
}

static void wrong_lists_are_refused(void **state)
{
	struct { struct hydns_acl_list list; struct hydns_acl_entry entry[2]; } acl = { .list.count = 3 };
	struct hydns_cookies secrets = { .set = 0, .count = 1 };

	(void)state;
	expect_message_refused(HYDNS_MSG_ACL, &acl, sizeof(acl), "an ACL whose count does not fit its length");
	acl.list.count = UINT32_MAX;
	expect_message_refused(HYDNS_MSG_ACL, &acl, sizeof(acl), "an ACL whose count does not fit its length");
	acl.list.count = 2;
	expect_message_refused(HYDNS_MSG_ACL, &acl, sizeof(acl.list) - 1, "an ACL whose count does not fit its length");
	acl.entry[1].prefixlen = 129;
	expect_message_refused(HYDNS_MSG_ACL, &acl, sizeof(acl), "an access-control entry has prefix length 129");
	acl.entry[1] = (struct hydns_acl_entry){ .action = HYDNS_ACL_ALLOW_EXEMPT + 1 };
	expect_message_refused(HYDNS_MSG_ACL, &acl, sizeof(acl), "an access-control entry");
	expect_message_refused(HYDNS_MSG_COOKIES, &secrets, sizeof(secrets), "COOKIES without a number");
	secrets = (struct hydns_cookies){ .set = 1, .count = HYDNS_COOKIE_SECRETS + 1 };
	expect_message_refused(HYDNS_MSG_COOKIES, &secrets, sizeof(secrets), "or with too many secrets");
	expect_message_refused(HYDNS_MSG_COOKIES, &secrets, sizeof(secrets) - 8, "COOKIES of another length");
}

static void wrong_withdrawals_are_refused(void **state)
{
	struct hydns_withdraw w = { .generation = 9, .scope = HYDNS_SCOPE_ALL + 1, .name_len = sizeof(www) };

	(void)state;
	memcpy(w.name, www, sizeof(www));
	expect_message_refused(HYDNS_MSG_WITHDRAW, &w, sizeof(w) - 1, "a WITHDRAW of another length");
	expect_message_refused(HYDNS_MSG_WITHDRAW, &w, sizeof(w), "a WITHDRAW of unknown scope");
	w.scope = HYDNS_SCOPE_NAME;
	w.name_len = 0;
	expect_message_refused(HYDNS_MSG_WITHDRAW, &w, sizeof(w), "whose name is malformed");
	w.name_len = 4000;
	expect_message_refused(HYDNS_MSG_WITHDRAW, &w, sizeof(w), "whose name is malformed");
	w.name_len = sizeof(www);
	w.name[1] = 'W';
	expect_message_refused(HYDNS_MSG_WITHDRAW, &w, sizeof(w), "whose name is malformed");
}

static void wrong_withdrawals_of_names_are_refused(void **state)
{
	static const uint8_t root[] = { HYDNS_SCOPE_NAME, 0 }, scope[] = { HYDNS_SCOPE_ALL, 0 }, capital[] = { HYDNS_SCOPE_NAME, 1, 'W', 0 },
			     cut[] = { HYDNS_SCOPE_SUBTREE, 3, 'w', 'w' }, open[] = { HYDNS_SCOPE_SUBTREE, 1, 'w' },
			     more[] = { HYDNS_SCOPE_NAME, 0, 0 }, big[] = { HYDNS_SCOPE_NAME, 64, 0 };
	struct { struct hydns_withdraw_names head; uint8_t entry[2 * HYDNS_WITHDRAW_NAMES_MOST + 2]; } m = { .head = { .generation = 9, .count = 1 } };
	const struct { const uint8_t *entry; size_t len; uint32_t count; } wrong[] = {
		{ root, 1, 1 }, { root, 0, 1 }, { root, 2, 0 }, { root, 2, 2 }, { root, 2, HYDNS_WITHDRAW_NAMES_MOST + 1 },
		{ root, 2, UINT32_MAX }, { scope, sizeof(scope), 1 }, { capital, sizeof(capital), 1 }, { cut, sizeof(cut), 1 },
		{ open, sizeof(open), 1 }, { more, sizeof(more), 1 }, { big, sizeof(m.entry), 1 },
	};

	(void)state;
	expect_message_refused(HYDNS_MSG_WITHDRAW_NAMES, &m, sizeof(m.head) - 1, "a WITHDRAW_NAMES that is malformed");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(m.entry, 0, sizeof(m.entry));
		memcpy(m.entry, wrong[i].entry, wrong[i].len < sizeof(m.entry) ? wrong[i].len : 3);
		m.head.count = wrong[i].count;
		expect_message_refused(HYDNS_MSG_WITHDRAW_NAMES, &m, sizeof(m.head) + wrong[i].len, "a WITHDRAW_NAMES that is malformed");
	}
	for (m.head.count = 0; m.head.count <= HYDNS_WITHDRAW_NAMES_MOST; m.head.count++)
		memcpy(m.entry + 2 * m.head.count, root, sizeof(root));
	expect_message_refused(HYDNS_MSG_WITHDRAW_NAMES, &m, sizeof(m.head) + sizeof(m.entry), "a WITHDRAW_NAMES that is malformed");
}

static void a_length_that_is_not_the_message_s_ends_the_session(void **state)
{
	static const uint32_t said[] = { 1, 400 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct { struct hydns_msg head; uint8_t octet[4]; } m = { .head = { .type = HYDNS_MSG_STATS, .len = said[i] } };
		struct client c;

		client_open(&c);
		assert_int_equal(send(c.sock, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
		expect_refusal(&c, "a length that is wrong", "a message whose length is wrong");
		assert_int_equal(client_receive(&c), 0);
		close(c.sock);
	}
}

/* -- states --------------------------------------------------------------------------------------------------------- */
static const struct { struct hydns_acl_list list; struct hydns_acl_entry everyone; } allow = {
	.list.count = 1, .everyone.action = HYDNS_ACL_ALLOW,
};

static void say(struct client *c, uint32_t type, const void *payload, size_t len)
{
	client_send(c, type, payload, len);
	assert_int_equal(client_receive(c), HYDNS_MSG_ACK);
}

static struct hydns_resolver_config config_of(uint32_t resolver)
{
	struct hydns_resolver_config c;

	read_pin("hydns_resolver", resolver, &c);
	return c;
}

/* One map of budgets for each configuration: kernel memory that a plugin can't ask for again and again. */
static void budgets_are_given_once(void **state)
{
	struct hydns_hello h = good_hello();

	(void)state;
	h.threads = CLIENT_RINGS;
	say(&bystander, HYDNS_MSG_RESET, &h, sizeof(h));
	client_send(&bystander, HYDNS_MSG_LIMITS, NULL, 0);
	assert_int_equal(client_receive(&bystander), HYDNS_MSG_BUDGETS);
	assert_int_equal(bystander.in.fds, 1);
	hydns_channel_close_fds(&bystander.in);
	expect_message_refused(HYDNS_MSG_LIMITS, NULL, 0, "or a second one");
	say(&bystander, HYDNS_MSG_ACL, &allow, sizeof(allow));
	say(&bystander, HYDNS_MSG_READY, NULL, 0);
}

/* During a configuration the program does not answer, hydnsd rejects offers, and it does not fill the list in use. */
static void nothing_counts_while_it_is_configured(void **state)
{
	struct hydns_resolver_config before = config_of(0);
	struct hydns_hello h = good_hello();

	(void)state;
	h.threads = CLIENT_RINGS;
	assert_true(before.flags & HYDNS_RESOLVER_READY);
	say(&bystander, HYDNS_MSG_RESET, &h, sizeof(h));
	assert_false(config_of(0).flags & HYDNS_RESOLVER_READY);
	client_offer(&bystander, 0, "early.example.", 1);
	WAIT_FOR(rejected("NOT_READY") == 1);
	assert_int_equal(config_of(0).acl_half, before.acl_half);
	say(&bystander, HYDNS_MSG_ACL, &allow, sizeof(allow));
	assert_int_equal(config_of(0).acl_half, before.acl_half);
	say(&bystander, HYDNS_MSG_READY, NULL, 0);
	assert_true(config_of(0).flags & HYDNS_RESOLVER_READY);
	assert_int_equal(config_of(0).acl_half, !before.acl_half);
}

static json_int_t most_parked(void)
{
	return number_of_resolver("{\"cmd\": \"status\"}", "parking", "most");
}

/* Nor is anything parked meanwhile; and never more than the option allows. */
static void nothing_is_parked_while_it_is_configured(void **state)
{
	struct hydns_hello h = good_hello();

	(void)state;
	h.threads = CLIENT_RINGS;
	h.park_ms = h.pending_max = h.pending_per_question = UINT32_MAX;
	assert_int_equal(most_parked(), 0);
	say(&bystander, HYDNS_MSG_RESET, &h, sizeof(h));
	say(&bystander, HYDNS_MSG_ACL, &allow, sizeof(allow));
	assert_int_equal(most_parked(), 0);
	say(&bystander, HYDNS_MSG_READY, NULL, 0);
	assert_int_equal(most_parked(), HYDNS_PENDING_MOST);
	h.pending_max = 10;
	say(&bystander, HYDNS_MSG_RESET, &h, sizeof(h));
	assert_int_equal(most_parked(), 0);
	say(&bystander, HYDNS_MSG_ACL, &allow, sizeof(allow));
	say(&bystander, HYDNS_MSG_READY, NULL, 0);
	assert_int_equal(most_parked(), 10);
	hydns_pages_beat(bystander.pages, hydns_mono_ns() + WAIT_MS * HYDNS_NS_PER_MS);
	shutdown(bystander.sock, SHUT_RDWR);
	WAIT_FOR(resolver_is("disconnected"));
	assert_int_equal(most_parked(), 0);
}

/* An offer that was made before everything was withdrawn, and read after that. */
static void offers_of_another_epoch_are_refused(void **state)
{
	(void)state;
	kill(daemon_pid, SIGSTOP);
	client_offer(&bystander, 0, "other.example.", 1);
	hydns_pages_advance_epoch(bystander.pages);
	kill(daemon_pid, SIGCONT);
	WAIT_FOR(rejected("EPOCH") == 1);
	WAIT_FOR(rules() == 0);                    /* of the former epoch */
	client_offer(&bystander, 0, "www.example.", 1);
	WAIT_FOR(rules() == 1);
}

/* A plugin that comes back hands over its page. Offers in its rings must not be older than the page's generation. */
static void offers_older_than_the_page_are_refused(void **state)
{
	const int fd[] = { bystander.ring[0].fd, bystander.ring[1].fd, hydns_pages_fd(bystander.pages) };
	struct hydns_hello h = good_hello();
	const struct hydns_msg head = { .type = HYDNS_MSG_HELLO, .seq = 1, .len = sizeof(h) };
	struct hydns_welcome w;

	(void)state;
	h.threads = CLIENT_RINGS;
	end_daemon(SIGKILL);
	close(bystander.sock);
	close(bystander.doorbell);
	while (hydns_pages_advance_generation(bystander.pages) < 6)
		;
	hydns_pages_beat(bystander.pages, hydns_mono_ns() + 600 * HYDNS_NS_PER_S); /* however long the start takes */
	start_daemon();
	bystander.sock = hydns_channel_connect(plugin_path);
	assert_int_equal(hydns_channel_send(bystander.sock, &head, &h, fd, 3), 0);
	assert_int_equal(client_receive(&bystander), HYDNS_MSG_WELCOME);
	memcpy(&w, bystander.in.payload, sizeof(w));
	assert_int_equal(w.adopted, 1);
	bystander.doorbell = bystander.in.fd[0];
	say(&bystander, HYDNS_MSG_ACL, &allow, sizeof(allow));
	say(&bystander, HYDNS_MSG_READY, NULL, 0);
	client_offer(&bystander, 0, "other.example.", 5);
	WAIT_FOR(rejected("GENERATION") == 1);
	assert_int_equal(rules(), 1);
	client_offer(&bystander, 0, "other.example.", 6);
	WAIT_FOR(rules() == 2);
	client_withdraw(&bystander, HYDNS_SCOPE_NAME, other, sizeof(other), 7);
	assert_int_equal(client_receive(&bystander), HYDNS_MSG_ACK);
}

static void open_with_a_rule(struct client *c)
{
	client_open(c);
	client_offer(c, 0, "other.example.", 1);
	WAIT_FOR(rules() == 2);
}

static void who_leaves_takes_its_rules_along(void **state)
{
	struct client c;

	(void)state;
	open_with_a_rule(&c);
	client_send(&c, HYDNS_MSG_BYE, NULL, 0);
	assert_int_equal(client_receive(&c), HYDNS_MSG_ACK);
	WAIT_FOR(rules() == 1);
	/* disconnected: the page is still held, but there is no heartbeat */
	open_with_a_rule(&c);
	close(c.sock);
	WAIT_FOR(rules() == 1);
	/* dead: no process holds the page, whatever heartbeat it shows */
	open_with_a_rule(&c);
	hydns_pages_beat(c.pages, hydns_mono_ns() + 3600 * HYDNS_NS_PER_S);
	close(c.sock);
	hydns_pages_free(c.pages);
	WAIT_FOR(rules() == 1);
}

static uint32_t register_socket(struct client *c, int udp)
{
	const struct hydns_msg head = { .type = HYDNS_MSG_SERVICE, .seq = ++c->seq };

	assert_int_equal(hydns_channel_send(c->sock, &head, NULL, &udp, 1), 0);
	return client_receive(c);
}

static int bound_to(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
	socklen_t len = sizeof(*a);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)a, &len), 0);
	return fd;
}

/* Another process may hold the connection of one that has ended. */
static void who_has_ended_holds_no_place(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int first = bound_to(&a), second = bound_to(&a);
	struct client c;
	char octet;

	(void)state;
	open_with_a_rule(&c);
	assert_int_equal(register_socket(&c, first), HYDNS_MSG_ACK);
	assert_int_equal(register_socket(&bystander, second), HYDNS_MSG_REFUSED);
	assert_non_null(strstr((const char *)bystander.in.payload, "has registered this address and port"));
	hydns_pages_free(c.pages);
	assert_int_equal(register_socket(&bystander, second), HYDNS_MSG_ACK);
	WAIT_FOR(recv(c.sock, &octet, 1, MSG_DONTWAIT) == 0);
	WAIT_FOR(rules() == 1);
	close(c.sock);
	close(first);
	close(second);
}

/* -- what is shared --------------------------------------------------------------------------------------------------- */
/* Heartbeat, epoch, limits, marks, buckets and backlogs of any value: the plugin's own rules may go, and nothing else changes. */
static void a_page_of_any_octets_is_its_resolver_s_alone(void **state)
{
	static const uint8_t fill[] = { 0xff, 0x80, 0x55, 0 };
	struct client c;

	(void)state;
	open_with_a_rule(&c);
	for (size_t i = 0; i < sizeof(fill); i++) {
		memset(hydns_pages_shared(c.pages), fill[i], HYDNS_PAGE_OCTETS);
		eventfd_write(c.doorbell, 1);
		say(&bystander, HYDNS_MSG_CATCH_UP, NULL, 0);
		assert_true(number("{\"cmd\": \"pending\"}", "waiting") == 0);
		assert_true(number_of_resolver("{\"cmd\": \"status\"}", "parking", "waiting") == 0);
		assert_true(rules() >= 1);
	}
	WAIT_FOR(rules() == 1);                /* with a heartbeat of 0 it has gone */
	close(c.sock);
}

static int in_child(bool (*fault)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(setgroups(0, NULL) || setgid(65534) || setuid(65534) ? 2 : fault());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static uint32_t some_map;              /* the id of one that is there */

static void path_of_pin(char path[96])
{
	snprintf(path, 96, "%s/hydns_resolver", pins);
}

/* With all descriptors of a plugin in hand, as whoever has taken its process over. */
static bool reaches_more_than_its_own(void)
{
	union bpf_attr next = { .start_id = 0 }, by_id = { .map_id = some_map }, pin = { .pathname = 0 };
	char path[96];

	path_of_pin(path);
	pin.pathname = (uintptr_t)path;
	return !bpf(BPF_MAP_GET_NEXT_ID, &next) || !bpf(BPF_PROG_GET_NEXT_ID, &next) || bpf(BPF_MAP_GET_FD_BY_ID, &by_id) >= 0 || bpf(BPF_OBJ_GET, &pin) >= 0 ||
	       connect_to(control_path, SOCK_STREAM) >= 0 || connect_to(plugin_path, SOCK_SEQPACKET) >= 0 ||
	       ptrace(PTRACE_ATTACH, daemon_pid, NULL, NULL) == 0 || kill(daemon_pid, 0) == 0;
}

static void a_process_without_rights_reaches_no_map(void **state)
{
	union bpf_attr next = { .start_id = 0 };
	struct client c;
	char path[96];

	(void)state;
	open_with_a_rule(&c);
	assert_int_equal(bpf(BPF_MAP_GET_NEXT_ID, &next), 0);
	some_map = next.next_id;
	path_of_pin(path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(in_child(reaches_more_than_its_own), 0);
	close(c.sock);
	WAIT_FOR(rules() == 1);
}

/* -- the control socket ---------------------------------------------------------------------------------------------- */
static void expect_error(const char *request, const char *text)
{
	json_t *o = ask(request);
	const char *error = json_string_value(json_object_get(o, "error"));

	if (!error || !strstr(error, text))
		fail_msg("%s: %s", request, error ? error : "done");
	json_decref(o);
}

static void a_flush_of_two_things_is_none(void **state)
{
	(void)state;
	expect_error("{\"cmd\":\"flush\",\"name\":\"www.example\",\"zone\":\"other.example\"}", "give exactly one");
	expect_error("{\"cmd\":\"flush\",\"all\":true,\"name\":\"www.example\"}", "give exactly one");
	expect_error("{\"cmd\":\"flush\"}", "give exactly one");
	expect_error("{\"cmd\":\"flush\",\"name\":\"www..example\"}", "give exactly one");
}

/* A flush withdraws rules of every resolver. */
static void a_flush_is_everybody_s(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_offer(&c, 0, "www.example.", 1);
	WAIT_FOR(rules() == 2);
	assert_int_equal(number("{\"cmd\":\"flush\",\"name\":\"www.example\"}", "withdrawn"), 2);
	client_offer(&c, 0, "www.example.", 1);
	client_offer(&bystander, 0, "www.example.", 1);
	WAIT_FOR(rules() == 2);
	assert_int_equal(number("{\"cmd\":\"flush\",\"all\":true}", "withdrawn"), 2);
	client_offer(&bystander, 0, "www.example.", 1);
	WAIT_FOR(rules() == 1);
	close(c.sock);
}

/* hydnsd does not read an endless line for ever. */
static void an_endless_request_ends(void **state)
{
	int fd = connect_to(control_path, SOCK_STREAM);
	struct pollfd f = { .fd = fd, .events = POLLIN };
	char line[4096], reply[256];
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	memset(line, ' ', sizeof(line));
	assert_int_equal(send(fd, line, sizeof(line), MSG_NOSIGNAL), sizeof(line));
	assert_int_equal(poll(&f, 1, WAIT_MS), 1);
	n = recv(fd, reply, sizeof(reply) - 1, 0);
	assert_true(n > 0);
	reply[n] = '\0';
	assert_non_null(strstr(reply, "longer than 4096 octets"));
	assert_int_equal(poll(&f, 1, WAIT_MS), 1);
	assert_true(recv(fd, reply, sizeof(reply), 0) <= 0);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(broken_frames_end_their_session), TEST(half_a_frame_is_no_offer), TEST(broken_changes_end_their_session),
		TEST(ends_of_resolutions_are_harmless), TEST(a_wrong_hello_is_refused), TEST(wrong_messages_are_refused), TEST(budgets_are_given_once),
		TEST(wrong_lists_are_refused),
		TEST(wrong_withdrawals_are_refused), TEST(wrong_withdrawals_of_names_are_refused), TEST(a_length_that_is_not_the_message_s_ends_the_session),
		TEST(nothing_counts_while_it_is_configured), TEST(nothing_is_parked_while_it_is_configured),
		TEST(offers_of_another_epoch_are_refused),
		TEST(offers_older_than_the_page_are_refused), TEST(who_leaves_takes_its_rules_along),
		TEST(who_has_ended_holds_no_place), TEST(a_page_of_any_octets_is_its_resolver_s_alone), TEST(a_process_without_rights_reaches_no_map),
		TEST(a_flush_of_two_things_is_none), TEST(a_flush_is_everybody_s),
		TEST(an_endless_request_ends),
	};

	if (!surroundings())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, tidy);
}

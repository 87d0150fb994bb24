/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/peer_messages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hydns/names.h"
#include "hydnsd/tests/build.h"
#include "test-harness/fuzz/numbers.h"

#define CHANGES_MOST 4
/* Kernel memory that the fuzzer may ask for: a log ring may have a gibibyte. */
#define LOG_MOST     (1U << 20)

#define ONE_OF(list) (list)[fuzz_below(sizeof(list) / sizeof((list)[0]))]

static const uint8_t names[][16] = { "\3www\5other", "\1a\3www\5other", "\5other", "\0", "\3WWW\5other", "\77x", "\3www", "\1*\5other" };

static size_t name_length(const uint8_t *name)
{
	size_t len = 0;

	while (len < sizeof(names[0]) && name[len])
		len += name[len] + 1U;
	return len < sizeof(names[0]) ? len + 1 : sizeof(names[0]);
}

static uint32_t liked(void)
{
	static const uint32_t numbers[] = { 0, 1, 2, 7, 64, 127, 128, 255, 256, 1000, 65535, 65536, 0x7fffffff, 0x80000000, UINT32_MAX };

	return fuzz_below(4) ? ONE_OF(numbers) : (uint32_t)fuzz_next();
}

static void change(uint8_t *octets, size_t len)
{
	for (unsigned n = fuzz_below(3) ? 0 : 1 + fuzz_below(CHANGES_MOST); n && len; n--)
		octets[fuzz_below((uint32_t)len)] = fuzz_below(2) ? (uint8_t)liked() : fuzz_octet();
}

struct hydns_hello peer_hello(void)
{
	return (struct hydns_hello){
		.abi_version = HYDNS_ABI_VERSION, .threads = 1, .edns_size = 1232, .max_udp = 1232, .pid = (uint32_t)getpid(),
		.admission = 1, .identity = "hostile", .version = "1",
	};
}

/* -- messages, by type: each returns the payload's length ------------------------------------------------------------- */
static size_t hello(uint8_t *p)
{
	struct hydns_hello h = peer_hello();

	h.flags = fuzz_below(4) ? 0 : (uint16_t)fuzz_next() & HYDNS_RESOLVER_HELLO_FLAGS;
	h.park_ms = fuzz_below(2) ? 0 : liked();
	h.pending_max = h.pending_per_question = liked();
	h.stale_longest = fuzz_below(2) ? 0 : liked();
	h.capacity = fuzz_below(2) ? 0 : liked();
	memcpy(p, &h, sizeof(h));
	return sizeof(h);
}

static size_t acl(uint8_t *p)
{
	struct hydns_acl_list *l = (void *)p;
	const uint32_t n = fuzz_below(4);

	l->count = fuzz_below(8) ? n : liked();
	for (uint32_t i = 0; i < n; i++) {
		fuzz_fill(l->entry[i].addr, sizeof(l->entry[i].addr));
		l->entry[i] = (struct hydns_acl_entry){ .prefixlen = (uint8_t)fuzz_below(130), .action = (uint8_t)fuzz_below(5),
							.why = fuzz_octet() };
	}
	return sizeof(*l) + n * sizeof(l->entry[0]);
}

static size_t withdraw(uint8_t *p)
{
	const uint8_t *name = ONE_OF(names);
	struct hydns_withdraw w = { .generation = fuzz_below(4), .scope = fuzz_below(5), .name_len = (uint32_t)name_length(name) };

	memcpy(w.name, name, w.name_len);
	if (!fuzz_below(8))
		w.name_len = liked();
	memcpy(p, &w, sizeof(w));
	return sizeof(w);
}

static size_t withdraw_names(uint8_t *p)
{
	struct hydns_withdraw_names w = { .generation = fuzz_below(4), .count = fuzz_below(4) };
	size_t len = sizeof(w);

	for (uint32_t i = 0; i < w.count; i++) {
		const uint8_t *name = ONE_OF(names);

		p[len++] = (uint8_t)fuzz_below(4);
		memcpy(p + len, name, name_length(name));
		len += name_length(name);
	}
	if (!fuzz_below(8))
		w.count = liked();
	memcpy(p, &w, sizeof(w));
	return len;
}

static size_t note(uint8_t *p)
{
	struct hydns_note n = { .kind = fuzz_below(HYDNS_NOTES + 1), .anew = fuzz_below(2) };
	const size_t text = fuzz_below(64);

	memcpy(p, &n, sizeof(n));
	fuzz_fill(p + sizeof(n), text);
	return sizeof(n) + text;
}

static size_t cookies(uint8_t *p)
{
	struct hydns_cookies c = { .set = liked(), .count = fuzz_below(4) };

	memcpy(p, &c, sizeof(c));
	return sizeof(c);
}

static size_t names_request(uint8_t *p)
{
	struct hydns_names_request q = { .buckets = fuzz_below(4) ? HYDNS_NAMES_BUCKETS_LEAST : liked(), .leaves = fuzz_below(4) ? 512 : liked() };

	memcpy(p, &q, sizeof(q));
	return sizeof(q);
}

static size_t log_request(uint8_t *p)
{
	struct hydns_log_request q = { .octets = fuzz_below(2) ? 1U << fuzz_below(21) : fuzz_below(LOG_MOST) };

	memcpy(p, &q, sizeof(q));
	return sizeof(q);
}

static size_t guard(uint8_t *p)
{
	const uint8_t *name = ONE_OF(names);
	struct hydns_guard_report g = { .failures = liked(), .waiting = liked(), .len = (uint32_t)name_length(name) };

	memcpy(g.suffix, name, g.len);
	if (!fuzz_below(8))
		g.len = liked();
	memcpy(p, &g, sizeof(g));
	return sizeof(g);
}

/* Words that a lane, a plan or a list of zones is asked for by. */
static size_t words(uint8_t *p)
{
	const size_t n = fuzz_below(16);

	for (size_t i = 0; i < n; i++) {
		const uint32_t word = liked();

		memcpy(p + 4 * i, &word, sizeof(word));
	}
	return 4 * n;
}

static size_t forwards(uint8_t *p)
{
	struct hydns_forwards *f = (void *)p;
	struct hydns_forward_server *server = (void *)(f + 1);
	struct hydns_forward_name *zone = (void *)(server + 1);
	const uint8_t *name = ONE_OF(names);

	memset(p, 0, sizeof(*f) + sizeof(*server) + sizeof(*zone));
	*f = (struct hydns_forwards){ .number = liked(), .upstreams = 1, .zones = 1, .max_ttl = liked() };
	server->port = (uint16_t)liked();
	zone->upstreams = 1;
	zone->name_len = (uint8_t)name_length(name);
	memcpy(zone->name, name, zone->name_len);
	return sizeof(*f) + sizeof(*server) + sizeof(*zone);
}

static size_t nothing(uint8_t *p)
{
	(void)p;
	return 0;
}

uint32_t peer_message(uint8_t payload[PEER_PAYLOAD], size_t *len)
{
	static const struct {
		uint32_t type;
		size_t (*make)(uint8_t *p);
	} made[] = {
		{ HYDNS_MSG_RESET, hello }, { HYDNS_MSG_RESET, hello }, { HYDNS_MSG_ACL, acl }, { HYDNS_MSG_ACL, acl },
		{ HYDNS_MSG_READY, nothing }, { HYDNS_MSG_READY, nothing }, { HYDNS_MSG_READY, nothing },
		{ HYDNS_MSG_WITHDRAW, withdraw }, { HYDNS_MSG_WITHDRAW_NAMES, withdraw_names }, { HYDNS_MSG_STATS, nothing },
		{ HYDNS_MSG_NOTE, note }, { HYDNS_MSG_COOKIES, cookies }, { HYDNS_MSG_CATCH_UP, nothing }, { HYDNS_MSG_PRELOAD, nothing },
		{ HYDNS_MSG_QUEUE, words }, { HYDNS_MSG_LANE, words }, { HYDNS_MSG_OPEN, words }, { HYDNS_MSG_CLOSE, words },
		{ HYDNS_MSG_STRAYS, nothing }, { HYDNS_MSG_FORWARDS, forwards }, { HYDNS_MSG_LOG, log_request }, { HYDNS_MSG_LIMITS, nothing },
		{ HYDNS_MSG_GUARD, guard }, { HYDNS_MSG_NAMES, names_request }, { HYDNS_MSG_HELLO, hello }, { HYDNS_MSG_SERVICE, nothing },
		{ HYDNS_MSG_WELCOME, words }, { 99, words }, { HYDNS_MSG_BYE, nothing },
	};
	const unsigned which = fuzz_below(sizeof(made) / sizeof(made[0]));

	memset(payload, 0, PEER_PAYLOAD);
	*len = made[which].make(payload);
	if (made[which].type != HYDNS_MSG_LOG) /* see LOG_MOST */
		change(payload, *len);
	if (!fuzz_below(16))
		*len = fuzz_below(PEER_PAYLOAD + 1);
	return made[which].type;
}

/* -- frames ------------------------------------------------------------------------------------------------------------ */
static uint32_t offer(uint8_t *out, uint32_t epoch, uint64_t now_ns)
{
	static const struct build_spec specs[] = {
		{ .name = "www.other.", .type = 1, .answer = { "www.other. 300 IN A 192.0.2.1" } },
		{ .name = "www.other.", .type = 28, .rcode = 3, .authority_section = { "other. 900 IN SOA ns.other. h.other. 1 7200 3600 12 900" } },
		{ .name = "txt.other.", .type = 16, .answer = { "txt.other. 20 IN TXT \"a\" \"bcd\"" } },
		{ .name = "www.example.", .type = 1, .answer = { "www.example. 300 IN A 192.0.2.66" } },
	};
	static union build_offer o;
	const size_t len = build_offer(&o, &ONE_OF(specs), now_ns);

	o.offer.epoch = epoch;
	memcpy(out, &o, len);
	return (uint32_t)len;
}

static uint32_t changed(uint8_t *out)
{
	const uint8_t *name = ONE_OF(names);
	struct hydns_changed *c = (void *)out;

	*c = (struct hydns_changed){ .frame.type = HYDNS_FRAME_CHANGED, .generation = fuzz_below(4), .end_ns = fuzz_next(),
				     .ttl_of = (uint16_t)(fuzz_below(2) ? 0 : liked()), .shared = (uint8_t)fuzz_below(2),
				     .section = (uint8_t)fuzz_below(4), .name_len = (uint8_t)name_length(name) };
	memcpy(out + offsetof(struct hydns_changed, data), name, c->name_len);
	c->frame.len = (uint32_t)((offsetof(struct hydns_changed, data) + c->name_len + 7) & ~7UL);
	return c->frame.len;
}

static uint32_t over(uint8_t *out)
{
	struct hydns_over o = { .frame = { .len = sizeof(o), .type = HYDNS_FRAME_OVER }, .key = fuzz_next() };

	memcpy(out, &o, sizeof(o));
	return sizeof(o);
}

uint32_t peer_frame(uint8_t out[PEER_FRAME], uint32_t epoch, uint64_t now_ns)
{
	uint32_t len;

	memset(out, 0, PEER_FRAME);
	switch (fuzz_below(4)) {
	case 0: len = changed(out); break;
	case 1: len = over(out); break;
	default: len = offer(out, epoch, now_ns); break;
	}
	/* The head mostly stays, for a broken one ends the session. */
	if (fuzz_below(8))
		change(out + sizeof(struct hydns_frame), len - sizeof(struct hydns_frame));
	else
		change(out, len);
	return len;
}

/* -- requests ----------------------------------------------------------------------------------------------------------- */
enum kind { ANY, NAME, TYPE, ADDRESS, COOKIE, ACTION, KINDS };

#define KIND_VALUES 6
static const char *const values[KINDS][KIND_VALUES] = {
	[ANY] = { "0", "1", "true", "15", "\"\"", "1232" },
	[NAME] = { "\"www.other\"", "\"other\"", "\".\"", "\"www.example\"", "\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s\"", "\"www..other\"" },
	[TYPE] = { "\"A\"", "\"AAAA\"", "\"TYPE65535\"", "\"TYPE65536\"", "\"ANY\"", "28" },
	[ADDRESS] = { "\"192.0.2.1\"", "\"2001:db8::1\"", "\"127.0.0.1\"", "\"::\"", "\"192.0.2.1/24\"", "\"zz\"" },
	[COOKIE] = { "true", "\"0123456789abcdef\"", "\"0123456789abcdef0100000000000000aaaaaaaaaaaaaaaa\"", "\"01\"", "\"0\"", "\"zz\"" },
	[ACTION] = { "\"drop\"", "\"truncate\"", "\"fail\"", "\"pass\"", "\"\"", "0" },
};

/* What protocol.def has, and some that it has not. */
static const struct {
	const char *name;
	struct {
		const char *name;
		enum kind kind;
	} argument[7];
} commands[] = {
	{ "stats", { { "swept", ANY } } }, { "rules", { { "limit", ANY }, { "resolver", ANY } } }, { "top", { { "limit", ANY } } },
	{ "pending", { { "limit", ANY } } }, { "flush", { { "name", NAME }, { "zone", NAME }, { "all", ANY } } },
	{ "explain", { { "name", NAME }, { "name", NAME }, { "type", TYPE }, { "do", ANY }, { "edns", ANY }, { "cookie", COOKIE }, { "client", ADDRESS } } },
	{ "explain", { { "name", NAME }, { "type", TYPE }, { "type", TYPE }, { "norec", ANY }, { "client", ADDRESS }, { "cookie", COOKIE } } },
	{ "guard", { { "set", NAME }, { "lift", NAME }, { "all", ANY }, { "resolver", ANY }, { "queries", ANY }, { "action", ACTION }, { "seconds", ANY } } },
	{ "pause", { { "limit", ANY } } }, { "resume", { { "other", ANY } } }, { "watch", { { "limit", ANY } } }, { "", { { "cmd", NAME } } },
};

static const char *some_value(enum kind kind)
{
	static const char *const hostile[] = {
		"-1", "16", "4294967296", "1e300", "9223372036854775807", "false", "null", "[]", "{}", "\"a\\u0000b\"", "\"\\u00e9\"", "70000",
	};

	return fuzz_below(4) ? values[kind][fuzz_below(KIND_VALUES)] : ONE_OF(hostile);
}

size_t peer_request(char out[PEER_REQUEST])
{
	const unsigned which = fuzz_below(sizeof(commands) / sizeof(commands[0]));
	size_t len = (size_t)sprintf(out, "{\"cmd\":\"%s\"", fuzz_below(64) ? commands[which].name : "reload");

	for (unsigned n = fuzz_below(5); n; n--) {
		const unsigned i = fuzz_below(7);

		if (commands[which].argument[i].name)
			len += (size_t)sprintf(out + len, ",\"%s\":%s", commands[which].argument[i].name,
					       some_value(commands[which].argument[i].kind));
	}
	out[len++] = '}';
	if (!fuzz_below(8))
		change((uint8_t *)out, len);
	if (!fuzz_below(64)) {
		memset(out + len, ' ', PEER_REQUEST - len);
		len = PEER_REQUEST;
	}
	for (size_t i = 0; i < len; i++)       /* one request, one reply */
		if (out[i] == '\n')
			out[i] = ' ';
	return len;
}

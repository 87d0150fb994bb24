/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/frames.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "hydns-kern/tests/frame.h"

#define CHANGES_MOST   6
#define RANDOM_ONE_IN  8               /* one frame in so many is all random octets */
#define PAYLOAD_SMALL  64              /* half of the payloads have fewer octets */

static uint64_t state;

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016). */
static uint64_t next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

uint32_t frames_below(uint32_t n)
{
	return (uint32_t)((next() >> 32) * n >> 32);
}

static void fill(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(next() >> 56);
}

/* Ethernet with up to two tags, IPv4 or IPv6, UDP, any payload; all lengths and checksums right. */
static void right_frame(struct frame *f)
{
	static const uint8_t tag[4] = { 0x81, 0x00, 0x00, 0x64 }, provider[4] = { 0x88, 0xa8, 0x60, 0x07 };
	const unsigned tags = frames_below(8) ? 0 : 1 + frames_below(2);
	uint8_t *ip;

	fill(f->data, 12);
	f->data[0] &= 0xfe;
	f->data[6] &= 0xfe;
	f->ipv6 = frames_below(2);
	f->l3 = 14 + 4 * tags;
	for (unsigned i = 0; i < tags; i++)
		memcpy(f->data + 12 + 4 * i, i == 0 && tags == 2 ? provider : tag, sizeof(tag));
	memcpy(f->data + f->l3 - 2, f->ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	f->udp = f->l3 + (f->ipv6 ? 40 : 20);
	f->dns = f->udp + 8;
	f->len = f->dns + frames_below(frames_below(2) ? PAYLOAD_SMALL : (uint32_t)(FRAMES_MOST - f->dns + 1));
	ip = f->data + f->l3;
	fill(ip, f->len - f->l3);
	ip[0] = f->ipv6 ? 0x60 | (ip[0] & 15) : 0x45;
	ip[f->ipv6 ? 6 : 9] = 17;
	if (!f->ipv6)
		ip[6] = ip[7] = 0;
	frame_seal(f);
}

static void change(struct frame *f)
{
	const size_t headers = f->dns < f->len ? f->dns : f->len;
	const size_t at = frames_below((uint32_t)(frames_below(4) ? headers : f->len));
	const bool shorter = frames_below(2);

	switch (frames_below(4)) {
	case 0: f->data[at] = (uint8_t)next(); break;
	case 1: f->data[at] ^= (uint8_t)(1U << frames_below(8)); break;
	case 2: f->data[at] = frames_below(2) ? 0 : 0xff; break;
	default: f->len = shorter ? 1 + frames_below((uint32_t)f->len) : f->len + frames_below((uint32_t)(FRAMES_MOST - f->len + 1));
	}
}

size_t frames_next(uint8_t *frame, size_t least)
{
	static struct frame f;

	if (frames_below(RANDOM_ONE_IN) == 0) {
		f.len = frames_below(FRAMES_MOST + 1);
		fill(f.data, f.len);
	} else {
		right_frame(&f);
		for (unsigned n = frames_below(CHANGES_MOST + 1); n; n--)
			change(&f);
		/* A change hardly ever keeps a checksum right. */
		if (f.len >= f.dns && frames_below(2))
			frame_checksums(&f);
	}
	if (f.len < least) {
		fill(f.data + f.len, least - f.len);
		f.len = least;
	}
	memcpy(frame, f.data, f.len);
	return f.len;
}

/* --- the command line --------------------------------------------------------------------------------------- */
static uint64_t argument(int argc, char **argv, const char *name, uint64_t unless)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return strtoull(argv[i + 1], NULL, 0);
	return unless;
}

struct frames_run frames_begin(int argc, char **argv, uint64_t count)
{
	struct frames_run r = {
		.count = argument(argc, argv, "--count", count), .seed = argument(argc, argv, "--seed", (uint64_t)time(NULL)),
	};

	state = r.seed * 2 + 1;
	return r;
}

_Noreturn void frames_wrong(const struct frames_run *r, uint64_t number, const char *what, const uint8_t *frame, size_t len)
{
	fprintf(stderr, "frame %" PRIu64 ": %s\n", number, what);
	for (size_t i = 0; i < len; i++)
		fprintf(stderr, "%02x%s", frame[i], i + 1 < len ? "" : "\n");
	fprintf(stderr, "again with: --count %" PRIu64 " --seed %" PRIu64 "\n", number + 1, r->seed);
	exit(1);
}

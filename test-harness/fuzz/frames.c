/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/frames.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "hydns-kern/tests/frame.h"

#define CHANGES_MOST   6
#define RANDOM_ONE_IN  8               /* one frame in so many is all random octets */
#define PAYLOAD_SMALL  64              /* half of the payloads have fewer octets */

/* Ethernet with up to two tags, IPv4 or IPv6, UDP, any payload; all lengths and checksums right. */
static void right_frame(struct frame *f)
{
	static const uint8_t tag[4] = { 0x81, 0x00, 0x00, 0x64 }, provider[4] = { 0x88, 0xa8, 0x60, 0x07 };
	const unsigned tags = fuzz_below(8) ? 0 : 1 + fuzz_below(2);
	uint8_t *ip;

	fuzz_fill(f->data, 12);
	f->data[0] &= 0xfe;
	f->data[6] &= 0xfe;
	f->ipv6 = fuzz_below(2);
	f->l3 = 14 + 4 * tags;
	for (unsigned i = 0; i < tags; i++)
		memcpy(f->data + 12 + 4 * i, i == 0 && tags == 2 ? provider : tag, sizeof(tag));
	memcpy(f->data + f->l3 - 2, f->ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	f->udp = f->l3 + (f->ipv6 ? 40 : 20);
	f->dns = f->udp + 8;
	f->len = f->dns + fuzz_below(fuzz_below(2) ? PAYLOAD_SMALL : (uint32_t)(FRAMES_MOST - f->dns + 1));
	ip = f->data + f->l3;
	fuzz_fill(ip, f->len - f->l3);
	ip[0] = f->ipv6 ? 0x60 | (ip[0] & 15) : 0x45;
	ip[f->ipv6 ? 6 : 9] = 17;
	if (!f->ipv6)
		ip[6] = ip[7] = 0;
	frame_seal(f);
}

static void change(struct frame *f)
{
	const size_t headers = f->dns < f->len ? f->dns : f->len;
	const size_t at = fuzz_below((uint32_t)(fuzz_below(4) ? headers : f->len));
	const bool shorter = fuzz_below(2);

	switch (fuzz_below(4)) {
	case 0: f->data[at] = (uint8_t)fuzz_next(); break;
	case 1: f->data[at] ^= (uint8_t)(1U << fuzz_below(8)); break;
	case 2: f->data[at] = fuzz_below(2) ? 0 : 0xff; break;
	default: f->len = shorter ? 1 + fuzz_below((uint32_t)f->len) : f->len + fuzz_below((uint32_t)(FRAMES_MOST - f->len + 1));
	}
}

size_t frames_next(uint8_t *frame, size_t least)
{
	static struct frame f;

	if (fuzz_below(RANDOM_ONE_IN) == 0) {
		f.len = fuzz_below(FRAMES_MOST + 1);
		fuzz_fill(f.data, f.len);
	} else {
		right_frame(&f);
		for (unsigned n = fuzz_below(CHANGES_MOST + 1); n; n--)
			change(&f);
		/* A change hardly ever keeps a checksum right. */
		if (f.len >= f.dns && fuzz_below(2))
			frame_checksums(&f);
	}
	if (f.len < least) {
		fuzz_fill(f.data + f.len, least - f.len);
		f.len = least;
	}
	memcpy(frame, f.data, f.len);
	return f.len;
}

void frames_show(const uint8_t *frame, size_t len)
{
	for (size_t i = 0; i < len; i++)
		fprintf(stderr, "%02x%s", frame[i], i + 1 < len ? "" : "\n");
}

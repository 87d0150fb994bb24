/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target for whole frames. The input is one octet of settings and a frame. A mutation hardly ever makes a right
 * checksum, so the settings can ask this target to correct checksums, and lengths.
 */
#include <string.h>
#include "hydns-kern/tests/frame.h"
#include "oracle.h"

enum {
	NO_VLAN = 0x01, NO_IPV6 = 0x02, PARTIAL = 0x04, COOKIE_MATTERS = 0x08,
	CORRECT_CHECKSUMS = 0x10, CORRECT_LENGTHS = 0x20,
};

/* Guesses the offsets of the headers as if the frame had UDP; false: it is too short for that. */
static bool find_headers(struct frame *f)
{
	f->l3 = 14;
	while (f->l3 < 22 && f->l3 <= f->len && (f->data[f->l3 - 2] == 0x81 || f->data[f->l3 - 2] == 0x88))
		f->l3 += 4;
	if (f->len <= f->l3)
		return false;
	f->ipv6 = f->data[f->l3] >> 4 == 6;
	f->udp = f->l3 + (f->ipv6 ? 40 : 20);
	f->dns = f->udp + 8;
	return f->len >= f->dns;
}

static void correct(struct frame *f, bool lengths)
{
	if (!find_headers(f))
		return;
	if (lengths)
		frame_seal(f);
	else
		frame_checksums(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct frame f;
	struct stages_settings s;

	if (!size || size > FRAME_MAX)
		return 0;
	s = (struct stages_settings){
		.vlan = !(*input & NO_VLAN), .ipv6 = !(*input & NO_IPV6), .partial_checksum = *input & PARTIAL,
		.resolver_flags = *input & COOKIE_MATTERS ? 0 : HYDNS_RESOLVER_IGNORES_COOKIE,
	};
	f.len = size - 1;
	memcpy(f.data, input + 1, f.len);
	if (*input & CORRECT_CHECKSUMS)
		correct(&f, *input & CORRECT_LENGTHS);
	oracle_examine(f.data, f.len, &s);
	return 0;
}

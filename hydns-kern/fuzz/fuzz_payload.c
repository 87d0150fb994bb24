/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target for DNS messages. The input is one octet of settings and a message, which this target puts into a frame
 * with correct headers.
 */
#include <string.h>
#include "hydns-kern/tests/frame.h"
#include "oracle.h"

#define MESSAGE_MAX 1400

enum { IPV6 = 0x01, TAGGED = 0x02, TAGGED_TWICE = 0x04, UNSUMMED = 0x08, PARTIAL = 0x10, COOKIE_MATTERS = 0x20 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct frame f;
	struct query q = { .name = ".", .qtype = 1 };
	struct stages_settings s = { .vlan = true, .ipv6 = true };

	if (!size || size > MESSAGE_MAX)
		return 0;
	q.ipv6 = *input & IPV6;
	q.vlan_tags = !!(*input & TAGGED) + !!(*input & TAGGED_TWICE);
	s.partial_checksum = *input & PARTIAL;
	s.resolver_flags = *input & COOKIE_MATTERS ? 0 : HYDNS_RESOLVER_IGNORES_COOKIE;
	frame_query(&f, &q);
	memcpy(f.data + f.dns, input + 1, size - 1);
	f.len = f.dns + size - 1;
	frame_seal(&f);
	if (*input & PARTIAL)
		frame_partial(&f);
	if (*input & UNSUMMED)
		memset(f.data + f.udp + 6, 0, 2);
	oracle_examine(f.data, f.len, &s);
	return 0;
}

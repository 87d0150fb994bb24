/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The XDP program compiled for userspace: the same source as in the kernel, from its entry point on. Its store has no rules,
 * so it passes every packet, and counts one whose question it has looked up as a MISS.
 */
#ifndef HYDNS_FUZZ_STAGES_H
#define HYDNS_FUZZ_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/resolver.h"
#include "hydns/reasons.h"

#define STAGES_RESOLVER 3

extern const uint64_t stages_seed[2];    /* of the key hash */

struct stages_settings {
	bool vlan, ipv6, partial_checksum;   /* load-time switches */
	uint16_t resolver_flags;                 /* HYDNS_RESOLVER_* of the resolver, besides READY */
};

/* What the program has read of a frame. The members after action are set only with a MISS. Host order. */
struct stages_outcome {
	int reason;                          /* enum hydns_reason; -1: the program did not count exactly one */
	int action;
	bool ipv6, edns, ad;
	uint8_t client[16], service[16];
	uint16_t client_port, service_port;
	size_t message_off, message_len;
	uint16_t qtype, edns_size;
	uint8_t variant;
	size_t name_len;
	uint8_t name[HYDNS_NAME_MAX + 1];    /* lower case; zeros up to the next word */
	uint64_t hash;
	uint16_t name_sum, addr_sum;         /* folded; memory order */
};

/* Runs the program over a frame of len octets, which it must not change. fill: the octet that fills scratch memory before;
 * the outcome must not depend on it. */
void stages_run(uint8_t *frame, size_t len, const struct stages_settings *s, uint8_t fill,
		struct stages_outcome *out);

#endif

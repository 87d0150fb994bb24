/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the simulator reads of a DNS message. */
#ifndef HYDNS_SIM_DNS_H
#define HYDNS_SIM_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_QUESTION_MAX 260           /* name in lower case, type, and one octet: DO */

struct dns_message {
	bool response;
	bool cacheable;                /* a response whose TTL is known: NOERROR or NXDOMAIN, not truncated */
	uint32_t ttl;                  /* least of all its records */
	uint8_t question[DNS_QUESTION_MAX];
	uint32_t question_len;
};
/* False when it is no whole message with one question of class IN. */
bool dns_read(const uint8_t *wire, size_t len, struct dns_message *out);

#endif

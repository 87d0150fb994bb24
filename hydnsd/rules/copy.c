/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A rule as the answer that it was made of, for its replacement by one that differs a little. */
#include "hydnsd/rules/rules_internal.h"

#include <string.h>

bool hydnsd_rule_copy(const struct hydns_rule *rule, struct hydnsd_answer *out)
{
	const struct hydns_errors *errors = hydns_rule_errors(rule);
	const uint8_t *left_out = hydns_rule_left_out(rule);
	struct hydnsd_message m = hydnsd_rule_message(rule);
	uint32_t start = hydnsd_answer_start(&m), pos = start, count = 0;
	struct hydnsd_rr rr;

	memcpy(out->data, rule->data, m.end - HYDNSD_HEADER);
	while (pos < m.end) {
		if (!hydnsd_rr_read(&m, &pos, &rr, NULL) || count == rule->ttl_count)
			return false;
		out->ttl[count++] = (uint16_t)(rr.ttl_at - start);
	}
	out->parts = (struct hydns_rule_parts){
		.head = *rule, .name = out->data, .answer = out->data + rule->name_len + 4U, .ttl = out->ttl,
		.account = hydns_rule_account(rule), .errors = errors ? errors->options : NULL, .errors_len = errors ? errors->len : 0,
		.left_out = left_out, .left_out_len = left_out ? (uint16_t)hydns_left_out_length(left_out, HYDNS_SLOT_MOST) : 0,
	};
	for (unsigned i = 0; i < rule->rotation_count; i++)
		out->parts.rotation[i] = hydns_rule_rotation(rule, i);
	for (unsigned i = 0; i < rule->place_count; i++)
		out->parts.place[i] = hydns_rule_place(rule, i);
	return count == rule->ttl_count;
}

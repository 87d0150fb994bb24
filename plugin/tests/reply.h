/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Replies in wire format, made by ldns: an implementation of DNS that is not ours. */
#ifndef PLUGIN_TESTS_REPLY_H
#define PLUGIN_TESTS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "plugin/plugin.h"

#define REPLY_RRS_MAX 70

struct reply_spec {
	const char *name;            /* of the question */
	uint16_t type;
	unsigned rcode;
	const char *answer[REPLY_RRS_MAX + 1];    /* master-file lines, NULL at the end */
	const char *authority[4], *additional[4];
	bool edns, dnssec_ok;
	uint16_t edns_size;          /* 0: 1232 */
};

struct reply {
	uint8_t name[HYDNS_NAME_MAX];
	struct hydns_question question;
	uint8_t *wire;               /* free it with reply_free() */
	size_t len;
};

void reply_make(struct reply *r, const struct reply_spec *spec);
void reply_free(struct reply *r);

#endif

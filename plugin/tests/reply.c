/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/reply.h"

#include <ldns/ldns.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define EDNS_SIZE 1232

static void push(ldns_pkt *p, ldns_pkt_section section, const char *const *line)
{
	for (; *line; line++) {
		ldns_rr *rr;

		assert_int_equal(ldns_rr_new_frm_str(&rr, *line, 0, NULL, NULL), LDNS_STATUS_OK);
		assert_true(ldns_pkt_push_rr(p, section, rr));
	}
}

void reply_make(struct reply *r, const struct reply_spec *spec)
{
	ldns_rdf *name = ldns_dname_new_frm_str(spec->name);
	ldns_pkt *p = ldns_pkt_query_new(ldns_rdf_clone(name), spec->type, LDNS_RR_CLASS_IN,
					 LDNS_QR | LDNS_RD | LDNS_RA);

	ldns_pkt_set_id(p, 4711);
	ldns_pkt_set_rcode(p, (uint8_t)spec->rcode);
	push(p, LDNS_SECTION_ANSWER, spec->answer);
	push(p, LDNS_SECTION_AUTHORITY, spec->authority);
	push(p, LDNS_SECTION_ADDITIONAL, spec->additional);
	if (spec->edns)
		ldns_pkt_set_edns_udp_size(p, spec->edns_size ? spec->edns_size : EDNS_SIZE);
	ldns_pkt_set_edns_do(p, spec->dnssec_ok);
	assert_int_equal(ldns_pkt2wire(&r->wire, p, &r->len), LDNS_STATUS_OK);
	memcpy(r->name, ldns_rdf_data(name), ldns_rdf_size(name));
	r->question = (struct hydns_question){ .name = r->name, .name_len = (uint16_t)ldns_rdf_size(name),
		.qtype = spec->type, .variant = spec->dnssec_ok ? HYDNS_VARIANT_DO : 0 };
	ldns_rdf_deep_free(name);
	ldns_pkt_free(p);
}

void reply_free(struct reply *r)
{
	free(r->wire);
}

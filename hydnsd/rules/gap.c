/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/gap.h"

#include <string.h>

#include "hydns/dns.h"
#include "hydns/soa.h"

/* What was found so far. */
struct found {
	struct hydnsd_rr soa, signature;
	unsigned soas, signatures;
};

static bool covers_soa(const struct hydnsd_message *m, const struct hydnsd_rr *rr)
{
	return rr->type == HYDNS_TYPE_RRSIG && rr->rdlen >= HYDNS_RRSIG_FIXED && hydnsd_u16(hydnsd_at(m, rr->rdata)) == HYDNS_TYPE_SOA;
}

static bool find(const struct hydnsd_message *m, unsigned records, struct found *f)
{
	uint32_t pos = hydnsd_answer_start(m);
	struct hydnsd_rr rr;

	for (*f = (struct found){ 0 }; records; records--) {
		if (!hydnsd_rr_read(m, &pos, &rr, NULL))
			return false;
		if (rr.type == HYDNS_TYPE_SOA) {
			f->soa = rr;
			f->soas++;
		} else if (covers_soa(m, &rr)) {
			f->signature = rr;
			f->signatures++;
		}
	}
	return f->soas == 1 && f->signatures <= 1;
}

static bool place_signature(const struct hydnsd_message *m, const struct found *f, struct hydns_gap *out)
{
	const struct hydnsd_rr *rr = &f->signature;
	uint32_t at = rr->rdata + HYDNS_RRSIG_FIXED;
	struct hydnsd_name signer;

	if (rr->start < f->soa.end || rr->owner.len != f->soa.owner.len ||
	    memcmp(rr->owner.octet, f->soa.owner.octet, rr->owner.len) != 0 ||
	    !hydnsd_name_read(m, &at, rr->end, false, &signer, NULL) || rr->end == at || rr->end - at > HYDNS_SIGNATURE_MOST)
		return false;
	out->fixed = (uint16_t)(rr->rdata - hydnsd_answer_start(m));
	out->signature = (uint16_t)(at - hydnsd_answer_start(m));
	out->signature_len = (uint16_t)(rr->end - at);
	return true;
}

bool hydnsd_gap_find(const struct hydnsd_message *m, unsigned records, struct hydns_gap *out)
{
	struct found f;

	*out = (struct hydns_gap){ 0 };
	if (!find(m, records, &f))
		return false;
	out->numbers = (uint16_t)(f.soa.end - HYDNS_SOA_NUMBERS - hydnsd_answer_start(m));
	return !f.signatures || place_signature(m, &f, out);
}

bool hydnsd_gap_each(const struct hydns_gap *g, bool (*fn)(void *arg, uint32_t at, uint32_t len), void *arg)
{
	return fn(arg, g->numbers, HYDNS_SOA_NUMBERS) &&
	       (!g->signature_len || (fn(arg, g->fixed, HYDNS_RRSIG_FIXED) && fn(arg, g->signature, g->signature_len)));
}

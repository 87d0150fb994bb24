/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Why a question is, or is not, answered in the kernel: the program's own checks, in its own order. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "hydns/reasons.h"
#include "hydnsd/activity.h"
#include "hydnsd/clock.h"
#include "hydnsd/links.h"
#include "hydnsd/report.h"

#define TEXT 400

struct question {
	const struct hydnsd_name *name;
	uint16_t qtype;                /* network order */
	uint8_t variant;
};

static const char *reason_name(enum hydns_reason r)
{
	static const char *const names[] = {
#define HYDNS_REASON(name, text) #name,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	};

	return names[r];
}

static bool attached_anywhere(struct hydnsd *d)
{
	struct hydnsd_link_state l;

	for (uint32_t i = 0; hydnsd_links_get(d, i, &l); i++)
		if (l.attached)
			return true;
	return false;
}

/* What keeps a rule that is there from answering; ANSWERED: nothing. */
static enum hydns_reason obstacle(struct hydnsd *d, const struct hydns_rule *rule, char text[TEXT])
{
	const struct hydnsd_authority *a = &d->authority[rule->authority];
	uint64_t now = hydnsd_now_ns();

	if (!a->live || hydnsd_authority_age(d, rule->authority) >= HYDNS_HEARTBEAT_STALE_NS) {
		snprintf(text, TEXT, "a rule is there, but its resolver (%s) gives no sign of life or has not "
			 "finished registering", a->hello.identity);
		return HYDNS_R_RESOLVER_GONE;
	}
	if (hydnsd_authority_suspended(d, rule->authority)) {
		snprintf(text, TEXT, "a rule is there, but waits until hydnsd has withdrawn what its resolver changed while "
			 "hydnsd was away");
		return HYDNS_R_EPOCH;
	}
	if (rule->epoch != hydnsd_authority_epoch(d, rule->authority)) {
		snprintf(text, TEXT, "a rule is there, but its resolver has withdrawn everything since");
		return HYDNS_R_EPOCH;
	}
	if (now >= rule->base_ns + rule->expire_ms * HYDNSD_NS_PER_MS) {
		snprintf(text, TEXT, "a rule is there, but its TTL is over");
		return HYDNS_R_EXPIRED;
	}
	snprintf(text, TEXT, "a rule answers clients that the resolver's access-control allows");
	return HYDNS_R_ANSWERED;
}

static void explain_absence(struct hydnsd *d, const struct question *q, char text[TEXT])
{
	bool any = false;

	for (uint32_t i = 0; i < HYDNS_AUTHORITIES; i++) {
		uint64_t age_ms = 0;
		enum hydnsd_rejection why = hydnsd_activity_last_refusal(d, i, q->name->octet, q->name->len,
			q->qtype, q->variant, &age_ms);

		any |= d->authority[i].state == HYDNSD_AUTHORITY_READY;
		if (why) {
			snprintf(text, TEXT, "no rule; the resolver's last offer, %llu.%llu s ago, was not "
				 "taken: %s", (unsigned long long)age_ms / 1000,
				 (unsigned long long)age_ms / 100 % 10, hydnsd_rejection_text(why));
			return;
		}
	}
	if (any)
		snprintf(text, TEXT, "no rule: the resolver has not offered an answer lately, because it was "
			 "asked too rarely or the answer may not leave the resolver");
	else
		snprintf(text, TEXT, "no rule: no resolver is connected and ready; look at its log");
}

static json_t *reply(const char *where, enum hydns_reason reason, const char *text, json_t *rule)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "where", where, "reason", reason_name(reason),
			 "text", text, "rule", rule ? rule : json_null());
}

static uint32_t find_rule(struct hydnsd *d, const struct question *q)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < HYDNS_AUTHORITIES && !found; i++)
		found = hydns_store_find(hydnsd_rules_store(d->rules), q->name->octet, q->name->len,
					 q->qtype, q->variant, (uint8_t)i);
	return found;
}

json_t *hydnsd_report_explain(struct hydnsd *d, const struct hydnsd_name *name, uint16_t qtype,
			      uint8_t variant)
{
	const struct question q = { name, htons(qtype), variant };
	uint32_t handle = find_rule(d, &q);
	char text[TEXT];
	bool paused = false;
	enum hydns_reason reason;

	hydns_kern_paused(d->kern, &paused);
	if (paused)
		return reply("resolver", HYDNS_R_PAUSED, "the kernel path is paused: `hydnsctl resume' "
			     "ends this", handle ? hydnsd_report_rule(d, handle) : NULL);
	if (!handle) {
		explain_absence(d, &q, text);
		return reply("resolver", HYDNS_R_MISS, text, NULL);
	}
	if (!attached_anywhere(d))
		return reply("resolver", HYDNS_R_MISS, "a rule is there, but the program is attached to no "
			     "interface: see `hydnsctl status'", hydnsd_report_rule(d, handle));
	reason = obstacle(d, hydns_store_rule(hydnsd_rules_store(d->rules), handle), text);
	return reply(reason == HYDNS_R_ANSWERED ? "kernel" : "resolver", reason, text,
		     hydnsd_report_rule(d, handle));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate-limit, counted together with the kernel: named and the program debit the same balances (rates.h). The program drops what is
 * above a limit; what named logs, or answers with TC, comes to it. named keeps its own table as well: for what was logged, and for
 * clients that have no balance in the kernel.
 */
#include <stdlib.h>
#include <string.h>
#include <isc/log.h>
#include <dns/rrl.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/server.h>
#include "plugin.h"

/* What named has of an instance: from malloc(). */
struct hydns_rate_sharing {
	dns_rrl_ledger_t ledger;
};

_Static_assert((int)DNS_RRL_RTYPE_QUERY == HYDNS_RATE_ANSWER && (int)DNS_RRL_RTYPE_REFERRAL == HYDNS_RATE_REFERRAL &&
	       (int)DNS_RRL_RTYPE_NODATA == HYDNS_RATE_NODATA && (int)DNS_RRL_RTYPE_NXDOMAIN == HYDNS_RATE_NXDOMAIN &&
	       (int)DNS_RRL_RTYPE_ERROR == HYDNS_RATE_ERROR && (int)DNS_RRL_RTYPE_ALL == HYDNS_RATE_ALL, "kinds as named's");
_Static_assert((int)DNS_RRL_RESULT_DROP == HYDNS_RATE_DROP && (int)DNS_RRL_RESULT_SLIP == HYDNS_RATE_SLIP, "verdicts as named's");
_Static_assert(DNS_RRL_MAX_RATE == HYDNS_RATE_MOST && DNS_RRL_MAX_WINDOW == HYDNS_RATE_WINDOW_MOST &&
	       DNS_RRL_MAX_SLIP == HYDNS_RATE_SLIP_MOST && DNS_RRL_MAX_TIME_TRAVEL == HYDNS_RATE_TIME_TRAVEL &&
	       DNS_RRL_FOREVER == HYDNS_RATE_FOREVER && DNS_RRL_MAX_LOG_SECS == HYDNS_RATE_LOG_AGAIN &&
	       DNS_RRL_STOP_LOG_SECS == HYDNS_RATE_LOG_STOPS, "bounds as named's");

bool hydns_rates_are_shared(const struct hydns_instance *inst, const dns_view_t *view)
{
	return hydns_rrl_limits(view) && !inst->o.allow_unlimited && view->rrl->qps_scale == 0;
}

/* --- keys ---------------------------------------------------------------------------------------------------- */
static uint64_t account_of(const dns_rrl_key_t *key)
{
	return HYDNS_RATE_ACCOUNT(key->s.rtype, key->s.qclass, key->s.qtype, key->s.qname_hash);
}

static struct hydns_rate_key key_of(const dns_rrl_key_t *key)
{
	return (struct hydns_rate_key){ .prefix = key->s.ip[0] | (uint64_t)key->s.ip[1] << 32,
		.account = account_of(key) | (key->s.ipv6 ? HYDNS_RATE_IPV6 : 0) };
}

uint64_t hydns_account_of(const ns_client_t *client)
{
	return client->query.rrl_key.s.rtype == DNS_RRL_RTYPE_FREE ? 0 : account_of(&client->query.rrl_key);
}

uint64_t hydns_failure_account(const struct hydns_instance *inst, const ns_client_t *client)
{
	return hydns_rates_are_shared(inst, client->view) ? HYDNS_RATE_ACCOUNT(HYDNS_RATE_ERROR, 0, 0, 0) : 0;
}

/* --- named's side of a balance ---------------------------------------------------------------------------------- */
static struct hydns_rate_own own_of(const dns_rrl_key_t *key, isc_stdtime_t now, const dns_rrl_state_t *s)
{
	return (struct hydns_rate_own){
		.state = s->age == DNS_RRL_FOREVER ? 0 :
			HYDNS_RATE_STATE(now - (uint32_t)s->age, key->s.rtype, s->responses, s->slip_cnt),
		.logged = s->log_secs >= 0 ? now - (uint32_t)s->log_secs : 0,
	};
}

static void to_state(const struct hydns_rate_own *own, isc_stdtime_t now, dns_rrl_state_t *s)
{
	s->responses = HYDNS_RATE_STATE_BALANCE(own->state);
	s->slip_cnt = HYDNS_RATE_STATE_SLIPPED(own->state);
	s->age = hydns_rate_age(own->state, now);
	if (own->logged != 0)
		s->log_secs = now > own->logged ? (int)(now - own->logged) : 0;
}

static bool debit(void *arg, const dns_rrl_key_t *key, isc_stdtime_t now, dns_rrl_state_t *state, dns_rrl_result_t *result)
{
	struct hydns_rate_key k = key_of(key);
	struct hydns_rate_own own = own_of(key, now, state);
	enum hydns_rate_verdict verdict;

	if (!hydns_plugin_rate_debit(arg, &k, now, &own, &verdict))
		return false;
	to_state(&own, now, state);
	*result = (dns_rrl_result_t)verdict;
	return true;
}

static bool look(void *arg, const dns_rrl_key_t *key, isc_stdtime_t now, dns_rrl_state_t *state)
{
	struct hydns_rate_key k = key_of(key);
	struct hydns_rate_own own;

	if (!hydns_plugin_rate_look(arg, &k, &own))
		return false;
	to_state(&own, now, state);
	return true;
}

static void logged(void *arg, const dns_rrl_key_t *key, isc_stdtime_t now, int log_secs)
{
	struct hydns_rate_key k = key_of(key);

	hydns_plugin_rate_logged(arg, &k, now - (uint32_t)log_secs, true);
}

static void ended(void *arg, const dns_rrl_key_t *key, int others)
{
	struct hydns_rate_key k = key_of(key);

	hydns_plugin_rate_logged(arg, &k, 0, others > 0);
}

/* --- an instance ---------------------------------------------------------------------------------------------- */
void hydns_rates_give(const struct hydns_instance *inst, const dns_view_t *view, struct hydns_plugin *p)
{
	const dns_rrl_t *rrl = view->rrl;
	struct hydns_rates r = { 0 };

	if (hydns_rates_are_shared(inst, view))
		r = (struct hydns_rates){
			.most = {
				[HYDNS_RATE_ANSWER] = (__u16)rrl->responses_per_second.r,
				[HYDNS_RATE_REFERRAL] = (__u16)rrl->referrals_per_second.r,
				[HYDNS_RATE_NODATA] = (__u16)rrl->nodata_per_second.r,
				[HYDNS_RATE_NXDOMAIN] = (__u16)rrl->nxdomains_per_second.r,
				[HYDNS_RATE_ERROR] = (__u16)rrl->errors_per_second.r,
				[HYDNS_RATE_ALL] = (__u16)rrl->all_per_second.r,
			},
			.window = (__u16)rrl->window, .slip = (__u8)rrl->slip.r,
			.flags = (rrl->log_only ? HYDNS_RATES_LOG_ONLY : 0) |
				 (inst->logs_drops && !inst->o.allow_unlogged ? HYDNS_RATES_LOG_DROPS : 0),
			.ipv4_prefix = (__u8)rrl->ipv4_prefixlen, .ipv6_prefix = (__u8)rrl->ipv6_prefixlen,
		};
	hydns_plugin_rates(p, &r);
}

void hydns_rates_share(struct hydns_instance *inst, struct hydns_plugin *p)
{
	struct hydns_rate_sharing *s;

	if (!hydns_rates_are_shared(inst, inst->view))
		return;
	s = malloc(sizeof(*s));
	if (s == NULL)
		return;
	*s = (struct hydns_rate_sharing){ .ledger = { debit, look, logged, ended, p } };
	inst->sharing = s;
	dns_rrl_share(inst->view->rrl, &s->ledger);
}

void hydns_rates_unshare(struct hydns_instance *inst)
{
	if (inst->sharing == NULL)
		return;
	if (inst->view->rrl != NULL)         /* else named has ended it with the view */
		dns_rrl_share(inst->view->rrl, NULL);
	free(inst->sharing);
	inst->sharing = NULL;
}

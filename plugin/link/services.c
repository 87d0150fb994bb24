/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The addresses and ports that the resolver answers at. One that hydnsd refuses is left to the resolver and tried again:
 * it may be free a moment later, when the process that had it is gone.
 */
#include <errno.h>
#include <string.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

#define RETRY_MIN_MS 50U
#define RETRY_MAX_MS 1000U

static int send_service(struct hydns_link *l, size_t i)
{
	int error = hydns_link_call(l, HYDNS_MSG_SERVICE, NULL, 0, &l->p->service[i], 1, HYDNS_MSG_ACK,
				    HYDNS_REPLY_TIMEOUT_MS);
	bool refused = error == -HYDNS_EREFUSED;

	if (error && !refused)
		return error;
	if (l->refused && l->refused[i] != refused) {
		l->refused[i] = refused;
		l->refusals += refused ? 1 : (size_t)-1;
	}
	return error;
}

static void forget_refusals(struct hydns_link *l)
{
	if (l->refused)
		memset(l->refused, 0, l->p->services * sizeof(*l->refused));
	l->refusals = l->next_service = 0;
	l->retry_ms = RETRY_MIN_MS;
}

static void plan_retry(struct hydns_link *l)
{
	l->retry_ns = hydns_mono_ns() + l->retry_ms * HYDNS_NS_PER_MS;
	l->retry_ms = l->retry_ms * 2 < RETRY_MAX_MS ? l->retry_ms * 2 : RETRY_MAX_MS;
}

int hydns_link_send_services(struct hydns_link *l)
{
	int error = 0;

	forget_refusals(l);
	for (size_t i = 0; i < l->p->services && (!error || error == -HYDNS_EREFUSED); i++) {
		error = send_service(l, i);
		if (error == -HYDNS_EREFUSED)
			hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a listening address: %s; it is tried again",
				  hydns_link_refusal(l));
	}
	plan_retry(l);
	return error == -HYDNS_EREFUSED ? 0 : error;
}

/* One after the other, until one is refused again: mostly they have a common cause, which then costs one message. */
int hydns_link_retry_services(struct hydns_link *l)
{
	const size_t n = l->p->services;       /* read now: hydns_link_call() may leave, which closes them */
	size_t left = l->refusals ? n : 0;
	int error = 0;

	if (!left || hydns_mono_ns() < l->retry_ns)
		return 0;
	for (; left-- && !error; l->next_service = (l->next_service + 1) % n) {
		if (!l->refused[l->next_service])
			continue;
		error = send_service(l, l->next_service);
		if (!error)
			hydns_log(l->p, HYDNS_LOG_INFO, "hydnsd has taken a listening address that it had refused");
	}
	plan_retry(l);
	return error == -HYDNS_EREFUSED ? 0 : error;
}

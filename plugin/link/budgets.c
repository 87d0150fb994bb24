/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The map of budgets that hydnsd makes for a resolver that limits its clients or their responses. */
#include <string.h>
#include <time.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

int hydns_link_get_budgets(struct hydns_link *l)
{
	const bool rates = l->p->o.flags & HYDNS_RESOLVER_RATES, first = !atomic_load(&l->p->budgets.bucket);
	int error, fd;

	if (!rates && !(l->p->o.flags & HYDNS_RESOLVER_LIMITS))
		return 0;
	error = hydns_link_fetch(l, HYDNS_MSG_LIMITS, NULL, 0, HYDNS_MSG_BUDGETS, &fd);
	if (error == -HYDNS_EREFUSED) {
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a map of budgets, so the resolver answers all queries: %s",
			  hydns_link_refusal(l));
		return 0;
	}
	if (error)
		return error;
	error = hydns_budgets_use(&l->p->budgets, fd, rates);
	if (!error && rates && first)
		hydns_rates_begin(&l->p->budgets, &hydns_pages_shared(l->p->pages)->rates, (uint32_t)time(NULL));
	if (error)
		hydns_log(l->p, HYDNS_LOG_WARNING, "cannot map the budgets of clients (%s): they count at the resolver and in the kernel apart",
			  strerror(-error));
	return 0;
}

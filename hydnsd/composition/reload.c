/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/composition/reload.h"

#include <stdio.h>
#include <string.h>

#include "hydnsd/composition/exchange.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/monitor/monitor.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/routing.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/resolvers/services.h"

void hydnsd_options_log(const struct hydnsd_options *o)
{
	hydnsd_log_open(o->log_target, o->log_level);
	hydnsd_log_limit(o->plugin_log_burst, o->plugin_log_rate);
}

/* What hydnsd would not start with. */
static int check(const struct hydnsd *d, const struct hydnsd_options *fresh, char error[HYDNSD_OPTION_ERROR])
{
	if (fresh->reply_path == HYDNSD_REPLY_FIB && d->options.reply_path != HYDNSD_REPLY_FIB &&
	    hydnsd_routing_check(fresh->ipv6 != HYDNSD_NO, error, HYDNSD_OPTION_ERROR))
		return -1;
	return hydnsd_monitor_check(fresh, error);
}

/* The monitor begins anew with other options; whether there is one is of the composition. */
static void restart_monitor(struct hydnsd *d)
{
	char why[HYDNSD_OPTION_ERROR];

	if (!d->monitor || !d->options.monitor)
		return;
	hydnsd_monitor_stop(d);
	if (hydnsd_monitor_start(d, why, sizeof(why)))
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", why);
}

static void take(struct hydnsd *d, struct hydnsd_options *fresh, struct hydnsd_reloaded *out)
{
	hydnsd_options_apply(&d->options, fresh, out->changed, out->restart, HYDNSD_OPTION_ERROR);
	hydnsd_options_log(&d->options);
	hydnsd_rules_set_min_hits(d->rules, d->options.min_hits);
	if (strstr(out->changed, "monitor-"))
		restart_monitor(d);
	hydnsd_interfaces_update(d);
	hydnsd_sources_update(d);
	hydnsd_services_sync(d);       /* loopback addresses are services only while lo is an interface */
	hydnsd_composition_follow(d);
}

void hydnsd_reload(struct hydnsd *d, struct hydnsd_reloaded *out)
{
	struct hydnsd_options fresh;

	memset(out, 0, sizeof(*out));
	if (hydnsd_options_read(d->argc, d->argv, &fresh, out->error)) {
		hydnsd_log(HYDNSD_LOG_ERROR, "%s; the former configuration stays", out->error);
		return;
	}
	if (check(d, &fresh, out->error))
		hydnsd_log(HYDNSD_LOG_ERROR, "%s; the former configuration stays", out->error);
	else
		take(d, &fresh, out);
	hydnsd_options_free(&fresh);
	if (out->error[0])
		return;
	if (out->restart[0])
		hydnsd_log(HYDNSD_LOG_WARNING, "changed, but in force only after a restart: %s", out->restart);
	hydnsd_log(HYDNSD_LOG_INFO, "configuration read again");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_reload: another thread has replaced the configuration, its zones and access lists, and the workers go on. */
#include "config.h"
#include <stddef.h>
#include <string.h>
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "util/config_file.h"

/* The module's own options, which are read at the start. */
static const struct {
	const char* name;
	size_t offset;
} options[] = {
#define OPTION(name, member) { name, offsetof(struct config_file, member) }
	OPTION("hydns-enable", hydns_enable), OPTION("hydns-capacity", hydns_capacity), OPTION("hydns-admission", hydns_admission),
	OPTION("hydns-window", hydns_window), OPTION("hydns-min-ttl", hydns_min_ttl), OPTION("hydns-max-ttl", hydns_max_ttl),
	OPTION("hydns-refresh", hydns_refresh), OPTION("hydns-flush-timeout", hydns_flush_timeout),
	OPTION("hydns-allow-unlogged", hydns_allow_unlogged), OPTION("hydns-allow-unlimited", hydns_allow_unlimited),
	OPTION("hydns-queue", hydns_queue), OPTION("hydns-queue-upstream", hydns_queue_upstream),
	OPTION("hydns-queue-frames", hydns_queue_frames), OPTION("hydns-pending-max", hydns_pending_max),
	OPTION("hydns-pending-per-question", hydns_pending_per_question), OPTION("hydns-dnstap", hydns_dnstap),
	OPTION("hydns-dnstap-one-in", hydns_dnstap_one_in), OPTION("hydns-log-buffer", hydns_log_buffer),
	OPTION("hydns-query-log", hydns_query_log), OPTION("hydns-stale-after-crash", hydns_stale_after_crash),
#undef OPTION
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int differs(const struct config_file* was, const struct config_file* is, size_t offset)
{
	return memcmp((const char*)was + offset, (const char*)is + offset, sizeof(int)) != 0;
}

const char* hydns_reload_forbids(const struct config_file* was, const struct config_file* is, size_t* at)
{
	size_t i;

	while((i = (*at)++) < OPTIONS)
		if(differs(was, is, options[i].offset))
			return options[i].name;
	if(i == OPTIONS && strcmp(was->hydns_socket, is->hydns_socket) != 0)
		return "hydns-socket";
	/* Packet rings for queries to upstream come and go with it. */
	if(i <= OPTIONS + 1 && was->hydns_queue_upstream == is->hydns_queue_upstream &&
		hydns_daemon_queue_parts(was) != hydns_daemon_queue_parts(is)) {
		*at = OPTIONS + 2;
		return "edns-buffer-size";
	}
	if(i <= OPTIONS + 2 && hydns_preload_differs(was, is)) {
		*at = OPTIONS + 3;
		return "hydns-preload";
	}
	return NULL;
}

/*
 * First nothing is offered or forwarded any more. Then the former answers go and hydnsd gets the new access list: an answer that a
 * worker looked up before that has an older stamp. Last, offers begin again if the new configuration allows them.
 */
void hydns_daemon_reloaded(struct hydns_daemon* d)
{
	int was;

	if(!d || d->closing)
		return;
	if(hydns_unchanged_reloaded(d)) {
		hydns_config_cookies(d->daemon, d->plugin);
		return;
	}
	was = atomic_exchange(&d->open, 0);
	hydns_forward_refresh(d);
	hydns_config_export_again(d);
	hydns_plugin_names_change_hands(d->plugin, NULL, 0, 0);
	hydns_config_recheck(d, was);
	hydns_forward_refresh(d);
}

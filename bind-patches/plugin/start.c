/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of an instance's plugin object, with its obstacles and options. */
#include <stdio.h>
#include <string.h>
#include <dns/view.h>
#include <isc/sockaddr.h>
#include <ns/client.h>
#include <ns/server.h>
#include "compat.h"
#include "plugin.h"

static void log_obstacles(const char *const *reasons, size_t n)
{
	char text[512];

	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "no answer is offered to the kernel: %s", reasons[i]);
		hydns_named_log(HYDNS_LOG_WARNING, text);
	}
}

void hydns_reconsider(struct hydns_instance *inst, struct hydns_plugin *p)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	size_t n = hydns_obstacles(inst, reasons);
	bool was = atomic_load(&inst->open);

	if (!inst->exported && n == 0)
		reasons[n++] = "the settings that forbade offers at the start are gone: rndc reconfig to offer answers";
	log_obstacles(reasons, n);
	if (n == 0 && !was)
		hydns_named_log(HYDNS_LOG_INFO, "answers are offered to the kernel again");
	atomic_store(&inst->open, n == 0);
	if (n > 0)
		hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	if (n > 0 || !was)
		hydns_plugin_set_notes(p, HYDNS_NOTE_OBSTACLE, reasons, n);
}

/* Logs the obstacles and adds them as notes. True: there is none. */
static bool note_obstacles(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	size_t n = hydns_obstacles(inst, reasons);

	log_obstacles(reasons, n);
	for (size_t i = 0; i < n; i++)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_OBSTACLE, reasons[i]);
	return n == 0;
}

/* Responses to clients without a valid cookie have a second limit, nocookie-udp-size. Less than 512 is an obstacle, but
 * hydnsd can show obstacles only of resolvers that it has accepted. */
static uint16_t max_udp(const dns_view_t *view)
{
	uint16_t most = view->nocookieudp < view->maxudp ? view->nocookieudp : view->maxudp;

	return most < HYDNS_PLAIN_UDP_SIZE ? HYDNS_PLAIN_UDP_SIZE : most;
}

/*
 * What named itself would give when resolution fails, or at once where it does not try first. Without the patches a rule may have
 * outlived a flush when named crashes, so none goes on.
 */
struct hydns_stale hydns_stale_wanted(const struct hydns_instance *inst, const dns_view_t *view)
{
	dns_ttl_t longest = 0;

	/* named's function only looks */
	if (HYDNS_STOCK || !inst->o.stale_after_crash || !dns_view_staleanswerenabled((dns_view_t *)(uintptr_t)view) ||
	    dns_db_getservestalettl(view->cachedb, &longest) != ISC_R_SUCCESS)
		return (struct hydns_stale){ .longest = 0 };
	return (struct hydns_stale){
		.ttl = view->staleanswerttl, .longest = longest,
		.error = view->staleanswerclienttimeout == 0 ? "stale data prioritized over lookup" : "resolver failure",
	};
}

/* How kernel answers are logged. */
static void logging(struct hydns_instance *inst, const dns_view_t *view, struct hydns_dnstap_options *o, char path[PATH_MAX])
{
	hydns_dnstap_options(inst, view, o, path);
	inst->lines = hydns_lines_wanted(inst);
	o->lines = inst->lines;
	o->line = inst->lines != 0 ? hydns_lines_write : NULL;
	o->view = view->name;
}

static struct hydns_plugin *new_plugin(struct hydns_instance *inst, dns_view_t *view)
{
	const uint32_t queue = hydns_queue_parts(inst);
	struct hydns_plugin *former = hydns_take_former(inst, queue != 0), *p;
	char identity[HYDNS_IDENTITY_LEN] = "named", path[PATH_MAX];
	struct hydns_dnstap_options dnstap;

	logging(inst, view, &dnstap, path);
	inst->stale = hydns_stale_wanted(inst, view);
	if (strcmp(view->name, "_default") != 0)
		snprintf(identity, sizeof(identity), "named, view %s", view->name);
	const struct hydns_plugin_options o = {
		.socket = inst->o.socket, .identity = identity, .version = PACKAGE_VERSION,
		.threads = hydns_tid_count(), .capacity = inst->o.capacity, .admission = inst->o.admission,
		.window_ms = inst->o.window * 1000, .min_ttl = inst->o.min_ttl, .max_ttl = inst->o.max_ttl,
		.refresh_percent = inst->o.refresh, .flush_timeout_ms = inst->o.flush_timeout,
		.flags = HYDNS_RESOLVER_ROTATES | HYDNS_RESOLVER_SHUFFLES | HYDNS_RESOLVER_KEEPS_CASE |
			 HYDNS_RESOLVER_STRICT_EDNS | HYDNS_RESOLVER_OWN_PROOFS |
			 (hydns_rates_are_shared(inst, view) ? HYDNS_RESOLVER_RATES : 0),
		.edns_size = hydns_edns_size(view),
		.max_udp = max_udp(view), .zones = true, .log = hydns_named_log,
		.park_ms = hydns_park_ms(view), .pending_max = hydns_pending(inst, view, inst->o.pending_max),
		.pending_per_question = hydns_pending(inst, view, inst->o.pending_per_question),
		.queue = queue, .queue_frames = inst->o.queue_frames, .rings_end = hydns_queue_end,
		.first_port = (uint16_t)hydns_own_queries_ports(inst->own).first,
		.ports = (uint16_t)hydns_own_queries_ports(inst->own).count,
		.dnstap = dnstap.to != HYDNS_DNSTAP_NOWHERE || dnstap.line != NULL ? &dnstap : NULL,
		.log_all = inst->o.dnstap != HYDNS_SAMPLE, .log_one_in = inst->o.dnstap_one_in,
		.log_octets = inst->o.log_buffer << 20, .stale = inst->stale,
		.thread_begins = hydns_thread_begins, .thread_ends = hydns_thread_ends,
	};

	hydns_queue_pause(former);        /* its rings may change hands; what they hold is read otherwise, too */
	p = hydns_plugin_take_over(&o, former);
	hydns_queue_use(former);
	if (p == NULL) {
		hydns_plugin_stop(former);
		return NULL;
	}
	hydns_rates_give(inst, view, p);
	if ((queue & HYDNS_QUEUE_UPSTREAM) != 0) {
		hydns_plugin_avoid_ports(p, hydns_own_queries_avoid, inst->own);
		hydns_queue_leave_ports(inst);
	}
	hydns_queue_use(p);
	return p;
}

/* Other classes share the addresses of class IN, whose view must have them: the kernel answers for one view at an address. */
static bool has_answers(const dns_view_t *view)
{
	char text[256];

	if (view->rdclass == dns_rdataclass_in)
		return true;
	snprintf(text, sizeof(text), "view %.64s is not of class IN: the plugin does nothing there", view->name);
	hydns_named_log(HYDNS_LOG_WARNING, text);
	return false;
}

/* The link goes up even with obstacles, so that hydnsd can show them. Packet rings need the services and the access list in
 * any case. */
void hydns_start(struct hydns_instance *inst, const struct hydns_start *by)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	struct hydns_plugin *p;
	bool possible, exports;

	pthread_mutex_lock(&inst->starting);
	if (!atomic_load(&inst->started)) {
		inst->view = by->view;
		inst->port = by->port;
		if (inst->server == NULL) {
			ns_server_attach(by->server, &inst->server);
			dns_aclenv_attach(by->env, &inst->env);
		}
		p = has_answers(by->view) ? new_plugin(inst, by->view) : hydns_start_without(inst);
		if (p != NULL)
			hydns_queue_note(inst, p);
		exports = p != NULL && (hydns_obstacles(inst, reasons) == 0 || hydns_queue_has_rings(p));
		inst->exported = exports && hydns_export(inst, p);
		possible = p != NULL && note_obstacles(inst, p);       /* the export may have found one */
		if (inst->exported)
			hydns_forward_refresh(inst, p);
		if (p != NULL && (exports != inst->exported || hydns_plugin_start(p) != 0)) {
			hydns_plugin_stop(p);
			p = NULL;
			inst->exported = false;
		}
		if (p != NULL)
			hydns_rates_share(inst, p);
		if (p != NULL && possible)
			hydns_preload_begin(inst, p);
		atomic_store(&inst->open, p != NULL && possible);
		atomic_store(&inst->plugin, p);
		atomic_store(&inst->started, true);
	}
	pthread_mutex_unlock(&inst->starting);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the module in the daemon: start, reload and end. */
#include "config.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "plugin/queue/upstream.h"
#include "services/modstack.h"
#include "util/config_file.h"
#include "util/log.h"

#ifdef THREADS_DISABLED
#error "hydns needs threads: a flush in one process can't reach the offers of another"
#endif

#define DEMANDED_MS 10000 /* for rings that are demanded: hydnsd may be starting */
#define PARK_MS     5000  /* with discard-timeout: 0, which lets a query wait without end */

static void log_text(enum hydns_log_level level, const char* text)
{
	switch(level) {
	case HYDNS_LOG_ERROR:
		log_err("hydns: %s", text);
		break;
	case HYDNS_LOG_WARNING:
		log_warn("hydns: %s", text);
		break;
	case HYDNS_LOG_INFO:
		log_info("hydns: %s", text);
		break;
	case HYDNS_LOG_DEBUG:
		verbose(VERB_ALGO, "hydns: %s", text);
		break;
	}
}

/*
 * What packet rings are wanted for. Answers to queries to upstream must come in one packet, since the ports of fragments
 * cannot be seen.
 */
uint32_t hydns_daemon_queue_parts(const struct config_file* cfg)
{
	uint32_t parts = cfg->hydns_queue == HYDNS_NO ? 0 : HYDNS_QUEUE_CLIENTS;

	if(cfg->hydns_queue_upstream != HYDNS_NO && cfg->edns_buffer_size <= HYDNS_UPSTREAM_EDNS_MAX)
		parts |= HYDNS_QUEUE_UPSTREAM;
	return parts;
}

/* Unbound drops its answer to a query that has waited longer. */
static uint32_t park_ms(const struct config_file* cfg)
{
	if(hydns_config_gives_stale(cfg))
		return 0;
	return cfg->discard_timeout > 0 ? (uint32_t)cfg->discard_timeout : PARK_MS;
}

/* How many queries may be parked. */
static uint32_t pending(const struct daemon* daemon, int wanted)
{
	if(wanted != HYDNS_PENDING_AUTO)
		return (uint32_t)wanted;
	return hydns_plugin_pending_auto(daemon->cfg->num_queries_per_thread * (uint64_t)daemon->num);
}

struct hydns_plugin_options hydns_daemon_options(struct daemon* daemon, struct hydns_dnstap_options* log)
{
	const struct hydns_reply_options options = hydns_config_reply_options(daemon);
	struct config_file* cfg = daemon->cfg;
	struct hydns_plugin_options o;

	memset(&o, 0, sizeof(o));
	o.socket = cfg->hydns_socket;
	o.identity = PACKAGE_NAME;
	o.version = PACKAGE_VERSION;
	o.threads = (uint32_t)daemon->num;
	o.capacity = (uint32_t)cfg->hydns_capacity;
	o.admission = (uint32_t)cfg->hydns_admission;
	o.window_ms = (uint32_t)cfg->hydns_window * 1000;
	o.min_ttl = (uint32_t)cfg->hydns_min_ttl;
	o.max_ttl = (uint32_t)cfg->hydns_max_ttl;
	if(o.max_ttl != 0 && o.min_ttl > o.max_ttl)
		o.min_ttl = o.max_ttl; /* an obstacle: hydnsd refuses such options, and then could not show it */
	o.refresh_percent = (uint32_t)cfg->hydns_refresh;
	o.flush_timeout_ms = (uint32_t)cfg->hydns_flush_timeout;
	o.flags = options.flags | (cfg->discard_timeout > 0 ? HYDNS_RESOLVER_DISCARDS : 0) |
		(hydns_limits_are_counted(cfg) ? HYDNS_RESOLVER_LIMITS : 0);
	o.edns_size = options.edns_size;
	o.max_udp = options.max_udp;
	o.queue = hydns_daemon_queue_parts(cfg);
	o.queue_frames = (uint32_t)cfg->hydns_queue_frames;
	o.first_port = (uint16_t)hydns_config_reserved_ports().first;
	o.ports = (uint16_t)hydns_config_reserved_ports().count;
	o.park_ms = park_ms(cfg);
	o.pending_max = hydns_limits_waiting(cfg) ? 0 : pending(daemon, cfg->hydns_pending_max);
	o.pending_per_question = pending(daemon, cfg->hydns_pending_per_question);
	if(hydns_dnstap_options(daemon, log))
		o.dnstap = log;
	o.log_all = cfg->hydns_dnstap != HYDNS_DNSTAP_SAMPLE;
	o.log_one_in = (uint32_t)(cfg->hydns_dnstap_one_in ? cfg->hydns_dnstap_one_in : cfg->dnstap_sample_rate);
	o.log_octets = (uint32_t)cfg->hydns_log_buffer << 20;
	o.stale = hydns_config_stale(cfg);
	o.zones = hydns_zones_exist(daemon);
	o.log = log_text;
	return o;
}

static struct hydns_plugin* new_plugin(struct daemon* daemon, struct hydns_plugin* former)
{
	struct hydns_dnstap_options log;
	const struct hydns_plugin_options o = hydns_daemon_options(daemon, &log);

	return hydns_plugin_take_over(&o, former);
}

static int make_contexts(struct hydns_daemon* d)
{
	int i;

	d->contexts = (struct hydns_context*)calloc((size_t)d->threads, sizeof(*d->contexts));
	if(!d->contexts)
		return 0;
	for(i = 0; i < d->threads; i++) {
		d->contexts[i].hooks = &hydns_offer_hooks;
		d->contexts[i].daemon = d;
		d->contexts[i].thread = hydns_plugin_thread(d->plugin, (uint32_t)i);
		d->contexts[i].module = modstack_find(&d->daemon->mods, "hydns");
		d->contexts[i].unlogged = d->daemon->cfg->hydns_allow_unlogged;
	}
	return 1;
}

/* With obstacles the link goes up all the same, so that hydnsd can show them, but nothing is offered. Packet rings need the
 * services and the access list in any case. */
static int open_for_offers(struct hydns_daemon* d)
{
	const char* reasons[HYDNS_OBSTACLES_MAX];
	size_t i, n = hydns_config_obstacles(d->daemon, reasons);

	for(i = 0; i < n; i++) {
		log_warn("hydns: no answer is offered to the kernel: %s", reasons[i]);
		(void)hydns_plugin_add_note(d->plugin, HYDNS_NOTE_OBSTACLE, reasons[i]);
	}
	if(n > 0 && hydns_daemon_queue_parts(d->daemon->cfg) == 0)
		return 1;
	if(!hydns_config_export(d->daemon, d->plugin))
		return 0;
	d->exported = 1;
	if(n == 0)
		atomic_store(&d->open, 1);
	hydns_forward_refresh(d);
	return 1;
}

/* Ends and frees d and its plugin. */
static void stop(struct hydns_daemon* d)
{
	if(!d)
		return;
	hydns_plugin_stop(d->plugin);
	free(d->preloaded);
	free(d->contexts);
	free(d);
}

/* Takes over the former's plugin, which is then no longer the former's. */
static struct hydns_daemon* prepare(struct daemon* daemon, struct hydns_daemon* former)
{
	struct hydns_daemon* d;

	if(modstack_find(&daemon->mods, "hydns") < 0) {
		if(daemon->cfg->has_hydns && daemon->cfg->hydns_enable)
			log_warn("hydns: there is a hydns: clause, but module-config: \"%s\" has no hydns: no answer is "
				"offered to the kernel; begin it with hydns", daemon->cfg->module_conf);
		return NULL;
	}
	if(!daemon->cfg->hydns_enable) {
		log_info("hydns: hydns-enable is no: no answer is offered to the kernel");
		return NULL;
	}
	if(daemon->num > HYDNS_THREADS_MAX) {
		log_warn("hydns: no answer is offered to the kernel: num-threads is %d, at most %d are served",
			daemon->num, HYDNS_THREADS_MAX);
		return NULL;
	}
	d = (struct hydns_daemon*)calloc(1, sizeof(*d));
	if(!d) {
		log_err("hydns: out of memory: no answer is offered to the kernel");
		return NULL;
	}
	d->daemon = daemon;
	d->threads = daemon->num;
	d->reply_options = hydns_config_reply_options(daemon);
	d->stale = hydns_config_stale(daemon->cfg);
	d->log_wants = hydns_dnstap_wants(daemon->cfg);
	atomic_store(&d->limits, hydns_limits_are_counted(daemon->cfg));
	d->plugin = new_plugin(daemon, former ? former->plugin : NULL);
	if(d->plugin && former)
		former->plugin = NULL;
	if(d->plugin)
		hydns_config_avoid_ports(daemon, d->plugin);
	if(!d->plugin || !make_contexts(d) || !open_for_offers(d)) {
		log_err("hydns: could not start: no answer is offered to the kernel");
		stop(d);
		return NULL;
	}
	return d;
}

/* The grace period comes last, since everything else can go on during it. The new plugin's link thread sends hydnsd what the
 * former has still to send. */
struct hydns_daemon* hydns_daemon_start(struct daemon* daemon, struct hydns_daemon* former)
{
	struct hydns_daemon* d;

	if(hydns_unchanged_goes_on(former))
		return former;
	d = prepare(daemon, former);
	if(d)
		hydns_unchanged_begin(d);
	stop(former);
	if(d)
		hydns_plugin_wait_former(d->plugin);
	return d;
}

/* Waits a bounded time for packet rings that the configuration demands. True: they are in use, or none are demanded. */
static int has_demanded_rings(struct hydns_daemon* d)
{
	const struct config_file* cfg = d->daemon->cfg;
	uint32_t parts = (cfg->hydns_queue == HYDNS_YES ? HYDNS_QUEUE_CLIENTS : 0) |
		(cfg->hydns_queue_upstream == HYDNS_YES ? HYDNS_QUEUE_UPSTREAM : 0);
	int ms;

	for(ms = 0; ms < DEMANDED_MS && (hydns_plugin_rings(d->plugin) & parts) != parts; ms += 10)
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000000L }, NULL);
	return (hydns_plugin_rings(d->plugin) & parts) == parts;
}

void hydns_daemon_run(struct hydns_daemon* d)
{
	static int running; /* since an earlier configuration: a reload ends no service */

	if(!d)
		return;
	if(d->suspended) {
		hydns_unchanged_resume(d);
		return;
	}
	(void)hydns_plugin_start(d->plugin); /* logs what is wrong; then nothing is offered */
	if(!has_demanded_rings(d)) {
		if(!running)
			fatal_exit("hydns: hydns-queue or hydns-queue-upstream is yes, and there are no packet rings: the lines "
				"above and hydnsctl status say why; mend that, or set auto");
		log_err("hydns: hydns-queue or hydns-queue-upstream is yes, and there are no packet rings: the lines above and "
			"hydnsctl status say why");
	}
	running = 1;
	if(atomic_load(&d->open)) /* else the obstacles say why */
		hydns_preload_begin(d);
}

void hydns_daemon_leave(struct hydns_daemon* d, void (*gone)(void* arg), void* arg)
{
	d->closing = 1;
	d->suspended = 0;
	atomic_store(&d->open, 0);
	hydns_plugin_leave(d->plugin, gone, arg);
}

struct hydns_daemon* hydns_daemon_cleanup(struct hydns_daemon* d, int ends)
{
	int i;

	if(!d)
		return NULL;
	for(i = 0; i < d->threads; i++)
		hydns_queue_stop(&d->contexts[i]);
	hydns_thread_context(NULL);
	if(!ends && hydns_unchanged_stopped(d))
		return d;
	hydns_daemon_leave(d, NULL, NULL);     /* after a signal, nobody else has done so */
	if(!ends)
		return d;
	stop(d);
	return NULL;
}

/* Once a process has two threads, and the plugin has one of its own, glibc turns asynchronous cancellation on before each system
 * call that may wait, and off afterwards, by an atomic operation each: 1 % of a recursion. It leaves a thread alone that has it
 * on. That is safe where cancellation is disabled, and nobody cancels Unbound's threads. */
static void spare_cancellation(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

struct hydns_context* hydns_daemon_context(struct hydns_daemon* d, int thread)
{
	struct hydns_context* h = d && thread < d->threads ? &d->contexts[thread] : NULL;

	if(h)
		spare_cancellation();
	hydns_thread_context(h);
	return h;
}

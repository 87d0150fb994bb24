/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the place of notices.c, for a named without this project's patches. It does not show responses as they are sent, so
 * the plugin renders them once more. It does not notify of flushes, commands and interfaces, so rules live for seconds
 * only (hydns-max-ttl), and the plugin looks for other changes once a second.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <isc/buffer.h>
#include <isc/util.h>
#include <dns/compress.h>
#include <dns/message.h>
#include <ns/client.h>
#include <ns/query.h>
#include "compat.h"
#include "plugin.h"
#include "plugin/clock.h"

#define LOOK_EVERY_MS 1000
#define ROOM          4096     /* of a response; more than the kernel path takes */
#define OPT_LEN       11       /* RFC 6891 section 6.1.2 */

const char *const hydns_warning = "this named does not notify of a flush: a kernel answer may outlive one by "
	"hydns-max-ttl seconds (default 5)";

/* --- hooks, and waiting for them ------------------------------------------------------------------------------- */
/* Nothing here can pause the threads that answer: so each marks when it is inside, in a cache line of its own. */
static struct {
	atomic_bool busy;
	char pad[63];
} inside[HYDNS_THREADS_MAX];

static ns_hookresult_t guarded(ns_hook_action_t action, void *arg, struct hydns_instance *inst, isc_result_t *result)
{
	uint32_t tid = hydns_tid();

	if (tid >= HYDNS_THREADS_MAX)
		return NS_HOOK_CONTINUE;
	atomic_store(&inside[tid].busy, true);
	if (!atomic_load(&inst->quiet))
		(void)action(arg, inst, result);
	atomic_store_explicit(&inside[tid].busy, false, memory_order_release);
	return NS_HOOK_CONTINUE;
}

bool hydns_listen(struct hydns_instance *inst)
{
	atomic_store(&inst->quiet, false);
	return true;
}

void hydns_unlisten(struct hydns_instance *inst)
{
	atomic_store(&inst->quiet, true);
	for (uint32_t i = 0; i < HYDNS_THREADS_MAX; i++)
		while (atomic_load(&inside[i].busy))
			sched_yield();
}

/* --- what may have changed ----------------------------------------------------------------------------------- */
/* The thread that restarts all instances: it waits for hydnsd and for the threads that answer. */
static pthread_mutex_t restarter_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t restarter;
static bool has_restarter;              /* to be joined */
static atomic_bool restarting;

static void *restart_all(void *arg)
{
	UNUSED(arg);
	hydns_thread_begins();
	hydns_restart_all();
	hydns_thread_ends();
	atomic_store(&restarting, false);
	return NULL;
}

static void start_restarter(void)
{
	if (atomic_exchange(&restarting, true))
		return;
	pthread_mutex_lock(&restarter_lock);
	if (has_restarter)
		pthread_join(restarter, NULL);
	has_restarter = pthread_create(&restarter, NULL, restart_all, NULL) == 0;
	if (!has_restarter)
		atomic_store(&restarting, false);
	pthread_mutex_unlock(&restarter_lock);
}

void hydns_unload(void)
{
	pthread_mutex_lock(&restarter_lock);
	if (has_restarter)
		pthread_join(restarter, NULL);
	has_restarter = false;
	pthread_mutex_unlock(&restarter_lock);
}

/* Looks at the interfaces, the sockets, and the settings that commands change. A query calls it: only then the view surely
 * exists. Hot names have at least one query in each rule's life. */
static void look_for_changes(struct hydns_instance *inst)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	uint64_t now = hydns_mono_coarse_ms(), last = atomic_load(&inst->looked_ms);

	if (now - last < LOOK_EVERY_MS || atomic_load(&inst->plugin) == NULL ||
	    !atomic_compare_exchange_strong(&inst->looked_ms, &last, now))
		return;
	if (hydns_export_is_old(inst, inst) || hydns_lines_wanted(inst) != inst->lines ||
	    (hydns_obstacles(inst, reasons) == 0) != atomic_load(&inst->open))
		start_restarter();
}

/* --- the response ---------------------------------------------------------------------------------------------- */
static isc_result_t begin(const ns_client_t *client, dns_compress_t *cctx, isc_buffer_t *to)
{
	bool compresses = client->view->msgcompression;
	isc_result_t result = ISC_R_SUCCESS;

#if NS_PLUGIN_VERSION >= 2
	dns_compress_init(cctx, client->manager->mctx, compresses ? DNS_COMPRESS_CASE : DNS_COMPRESS_DISABLED);
#else
	result = dns_compress_init(cctx, -1, client->mctx);
	if (result != ISC_R_SUCCESS)
		return result;
	dns_compress_setsensitive(cctx, true);
	if (!compresses)
		dns_compress_disable(cctx);
#endif
	result = dns_message_renderbegin(client->message, cctx, to);
	if (result != ISC_R_SUCCESS)
		dns_compress_invalidate(cctx);
	return result;
}

/* As ns_client_send(), but whatever the client's UDP size. */
static isc_result_t render(const ns_client_t *client, isc_buffer_t *to)
{
	static const dns_section_t sections[] = { DNS_SECTION_QUESTION, DNS_SECTION_ANSWER, DNS_SECTION_AUTHORITY,
		DNS_SECTION_ADDITIONAL };
	unsigned int options = (client->attributes & NS_CLIENTATTR_WANTDNSSEC) != 0 ? 0 : DNS_MESSAGERENDER_OMITDNSSEC;
	unsigned int glue = client->view->preferred_glue == dns_rdatatype_a ? DNS_MESSAGERENDER_PREFER_A :
		client->view->preferred_glue == dns_rdatatype_aaaa ? DNS_MESSAGERENDER_PREFER_AAAA : 0;
	dns_message_t *m = client->message;
	dns_compress_t cctx;
	isc_result_t result = begin(client, &cctx, to);

	if (result != ISC_R_SUCCESS)
		return result;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && result == ISC_R_SUCCESS; i++)
		result = dns_message_rendersection(m, sections[i], sections[i] == DNS_SECTION_QUESTION ? 0 :
						   sections[i] == DNS_SECTION_ADDITIONAL ? options | glue : options);
	if (result == ISC_R_SUCCESS)
		result = dns_message_renderend(m);
	dns_compress_invalidate(&cctx);
	return result;
}

/* Adds the OPT record that the client gets, without its cookie: RFC 6891 section 6.1.2. */
static size_t add_opt(const ns_client_t *client, uint8_t *wire, size_t len)
{
	uint16_t size = hydns_edns_size(client->view), records = (uint16_t)((wire[10] << 8 | wire[11]) + 1);
	const uint8_t opt[OPT_LEN] = { 0, 0, 41, (uint8_t)(size >> 8), (uint8_t)size, 0, 0,
		(client->extflags & DNS_MESSAGEEXTFLAG_DO) != 0 ? 0x80 : 0 };

	memcpy(wire + len, opt, sizeof(opt));
	wire[10] = (uint8_t)(records >> 8);
	wire[11] = (uint8_t)records;
	return len + sizeof(opt);
}

/* Renders the message and resets it, so that named can render it. */
static void offer(struct hydns_instance *inst, const ns_client_t *client)
{
	uint8_t wire[ROOM + OPT_LEN];
	dns_message_t *m = client->message;
	unsigned int flags = m->flags;
	isc_buffer_t to;
	isc_result_t result;
	size_t len;

	isc_buffer_init(&to, wire, ROOM);
	if ((client->attributes & NS_CLIENTATTR_RA) != 0)
		m->flags |= DNS_MESSAGEFLAG_RA;
	result = render(client, &to);
	m->flags = flags;
	len = isc_buffer_usedlength(&to);
	if (result == ISC_R_SUCCESS) {
		if ((client->attributes & NS_CLIENTATTR_WANTOPT) != 0)
			len = add_opt(client, wire, len);
		hydns_rendered(inst, client, wire, len);
	}
	dns_message_renderreset(m);
}

static ns_hookresult_t answer(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;

	(void)hydns_on_send(arg, data, result);
	if (hydns_is_wanted(qctx->client))
		offer(data, qctx->client);
	return NS_HOOK_CONTINUE;
}

/* --- the table ------------------------------------------------------------------------------------------------- */
static ns_hookresult_t on_setup(void *arg, void *data, isc_result_t *result)
{
	ns_hookresult_t next = guarded(hydns_on_setup, arg, data, result);

	look_for_changes(data);
	return next;
}

static ns_hookresult_t on_resume(void *arg, void *data, isc_result_t *result)
{
	return guarded(hydns_on_resume, arg, data, result);
}

static ns_hookresult_t on_lookup(void *arg, void *data, isc_result_t *result)
{
	return guarded(hydns_on_lookup, arg, data, result);
}

static ns_hookresult_t on_answer(void *arg, void *data, isc_result_t *result)
{
	return guarded(hydns_on_answer, arg, data, result);
}

static ns_hookresult_t on_done(void *arg, void *data, isc_result_t *result)
{
	return guarded(hydns_on_done, arg, data, result);
}

static ns_hookresult_t on_send(void *arg, void *data, isc_result_t *result)
{
	return guarded(answer, arg, data, result);
}

const struct hydns_hook hydns_hooks[] = {
	{ NS_QUERY_SETUP, on_setup },
	{ NS_QUERY_RESUME_BEGIN, on_resume },
	{ NS_QUERY_LOOKUP_BEGIN, on_lookup },
	{ NS_QUERY_GOT_ANSWER_BEGIN, on_answer },
	{ NS_QUERY_DONE_BEGIN, on_done },
	{ NS_QUERY_DONE_SEND, on_send },
	{ NS_HOOKPOINTS_COUNT, NULL },
};

/* BIND's structures differ by release. The names of its libraries have the release. */
bool hydns_named_is_known(void)
{
	const char *name;
	char text[256];
	Dl_info info;

	if (dladdr((void *)dns_message_renderbegin, &info) == 0 || info.dli_fname == NULL)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	if (strcmp(name, HYDNS_STOCK_LIBDNS) == 0)
		return true;
	snprintf(text, sizeof(text), "this plugin was built for %s, and this named has %s: build it again",
		 HYDNS_STOCK_LIBDNS, name);
	hydns_named_log(HYDNS_LOG_ERROR, text);
	return false;
}

/* --- packet rings: an unpatched named has none ------------------------------------------------------------------ */
isc_result_t hydns_demand_check(const struct hydns_options *o, const struct hydns_statement *s)
{
	UNUSED(o);
	UNUSED(s);
	return ISC_R_SUCCESS;
}

/* --- forwarding: it would need a notice of each change ------------------------------------------------------------ */
const char *hydns_names_read(const cfg_obj_t *list, struct hydns_names *out, const cfg_obj_t **at)
{
	UNUSED(list);
	UNUSED(out);
	UNUSED(at);
	return "an unpatched named forwards nothing in the kernel: remove it";
}

isc_result_t hydns_forward_check(const struct hydns_options *o, const struct hydns_statement *s)
{
	UNUSED(o);
	UNUSED(s);
	return ISC_R_SUCCESS;
}

struct hydns_forward_config *hydns_forward_configured(const struct hydns_statement *s)
{
	UNUSED(s);
	return NULL;
}

void hydns_forward_config_free(struct hydns_forward_config *c)
{
	UNUSED(c);
}

bool hydns_preload_is_wanted(const struct hydns_instance *inst, dns_view_t *view)
{
	UNUSED(inst);
	UNUSED(view);
	return false;
}

void hydns_preload_begin(struct hydns_instance *inst, struct hydns_plugin *p)
{
	UNUSED(inst);
	UNUSED(p);
}

void hydns_preload_end(struct hydns_instance *inst)
{
	UNUSED(inst);
}

void hydns_keep_read(const cfg_obj_t *config, struct hydns_written *out)
{
	UNUSED(config);
	*out = (struct hydns_written){ .known = false };
}

const char *hydns_keep_obstacle(const struct hydns_instance *former, const struct hydns_instance *inst)
{
	UNUSED(former);
	UNUSED(inst);
	return "named is not patched";
}

const char *hydns_keep(struct hydns_instance *former, struct hydns_instance *inst, const struct hydns_start *by)
{
	UNUSED(by);
	return hydns_keep_obstacle(former, inst);
}

void hydns_failure_depends(struct hydns_thread *t)
{
	UNUSED(t);
}

void hydns_forward_refresh(struct hydns_instance *inst, struct hydns_plugin *p)
{
	UNUSED(inst);
	UNUSED(p);
}

uint32_t hydns_queue_parts(const struct hydns_instance *inst)
{
	UNUSED(inst);
	return 0;
}

struct hydns_own_queries *hydns_own_queries_read(const cfg_obj_t *config)
{
	UNUSED(config);
	return NULL;
}

struct hydns_port_run hydns_own_queries_ports(const struct hydns_own_queries *q)
{
	UNUSED(q);
	return (struct hydns_port_run){ 0 };
}

bool hydns_own_queries_avoid(void *own, uint16_t port)
{
	UNUSED(own);
	UNUSED(port);
	return false;
}

const char *hydns_own_queries_obstacle(const struct hydns_own_queries *q)
{
	UNUSED(q);
	return NULL;
}

void hydns_queue_leave_ports(const struct hydns_instance *inst)
{
	UNUSED(inst);
}

void hydns_queue_note(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	UNUSED(inst);
	UNUSED(p);
}

bool hydns_queue_has_rings(struct hydns_plugin *p)
{
	UNUSED(p);
	return false;
}

void hydns_queue_use(struct hydns_plugin *p)
{
	UNUSED(p);
}

void hydns_queue_pause(struct hydns_plugin *p)
{
	UNUSED(p);
}

void hydns_queue_forget(struct hydns_plugin *p)
{
	UNUSED(p);
}

void hydns_queue_end(const struct hydns_lane_thread *first)
{
	UNUSED(first);
}

bool hydns_failure_is_remembered(const query_ctx_t *qctx, time_t *end)
{
	UNUSED(qctx);
	UNUSED(end);
	return false;
}

uint32_t hydns_parked_for(const query_ctx_t *qctx, uint64_t *key)
{
	UNUSED(qctx);
	UNUSED(key);
	return 0;
}

bool hydns_cache_gives(const query_ctx_t *qctx)
{
	UNUSED(qctx);
	return false;
}

uint32_t hydns_park_ms(const dns_view_t *view)
{
	UNUSED(view);
	return 0;
}

bool hydns_waiting_is_limited(const dns_view_t *view)
{
	UNUSED(view);
	return false;
}

uint32_t hydns_pending(const struct hydns_instance *inst, const dns_view_t *view, uint32_t wanted)
{
	UNUSED(inst);
	UNUSED(view);
	UNUSED(wanted);
	return 0;
}

bool hydns_rates_are_shared(const struct hydns_instance *inst, const dns_view_t *view)
{
	UNUSED(inst);
	UNUSED(view);
	return false;
}

void hydns_rates_give(const struct hydns_instance *inst, const dns_view_t *view, struct hydns_plugin *p)
{
	UNUSED(inst);
	UNUSED(view);
	UNUSED(p);
}

void hydns_rates_share(struct hydns_instance *inst, struct hydns_plugin *p)
{
	UNUSED(inst);
	UNUSED(p);
}

void hydns_rates_unshare(struct hydns_instance *inst)
{
	UNUSED(inst);
}

uint64_t hydns_account_of(const ns_client_t *client)
{
	UNUSED(client);
	return 0;
}

uint64_t hydns_failure_account(const struct hydns_instance *inst, const ns_client_t *client)
{
	UNUSED(inst);
	UNUSED(client);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How kernel answers are logged: dnstap messages of clients, to where Unbound writes its own, and lines of its query log. */
#include "config.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hydns_compat.h"
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/data/msgreply.h"
#include "util/log.h"
#include "util/net_help.h"
#include "util/netevent.h"

#define HOSTNAME_MOST 255

int hydns_dnstap_sees_clients(const struct config_file* cfg)
{
	return cfg->dnstap && (cfg->dnstap_log_client_query_messages || cfg->dnstap_log_client_response_messages);
}

int hydns_dnstap_wants(const struct config_file* cfg)
{
	int wants = 0;

	if(hydns_dnstap_sees_clients(cfg) && cfg->hydns_dnstap != HYDNS_DNSTAP_NO)
		wants |= HYDNS_WANTS_DNSTAP;
	if(cfg->hydns_query_log && cfg->log_queries)
		wants |= HYDNS_WANTS_QUERIES;
	if(cfg->hydns_query_log && cfg->log_replies)
		wants |= HYDNS_WANTS_REPLIES | (cfg->log_destaddr ? HYDNS_WANTS_DESTINATION : 0);
	return wants;
}

/* --- lines ------------------------------------------------------------------------------------------- */
static socklen_t address_of(const uint8_t addr[16], uint16_t port, int ipv6, struct sockaddr_storage* out)
{
	struct sockaddr_in6* in6 = (struct sockaddr_in6*)out;
	struct sockaddr_in* in = (struct sockaddr_in*)out;

	memset(out, 0, sizeof(*out));
	if(ipv6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		memcpy(&in6->sin6_addr, addr, 16);
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = port;
	memcpy(&in->sin_addr, addr + 12, 4);
	return sizeof(*in);
}

static void question_of(const struct hydns_logged* r, const uint8_t* query, struct query_info* q)
{
	memset(q, 0, sizeof(*q));
	q->qname = (uint8_t*)query + LDNS_HEADER_SIZE;
	q->qname_len = hydns_logged_name(r);
	q->qtype = sldns_read_uint16(q->qname + q->qname_len);
	q->qclass = sldns_read_uint16(q->qname + q->qname_len + 2);
}

/* As worker_handle_request() writes them. */
static void write_line(const struct hydns_dnstap_options* o, const struct hydns_logged* r, const uint8_t* query, const uint8_t* reply)
{
	unsigned wants = o->lines;
	struct sockaddr_storage client, service;
	socklen_t len = address_of(r->client, r->client_port, r->ipv6, &client);
	struct timeval none = { 0, 0 };
	struct query_info q;
	sldns_buffer b;
	char ip[128];

	question_of(r, query, &q);
	if(wants & HYDNS_WANTS_QUERIES) {
		addr_to_str(&client, len, ip, sizeof(ip));
		log_query_in(ip, q.qname, q.qtype, q.qclass);
	}
	if(!(wants & HYDNS_WANTS_REPLIES))
		return;
	(void)address_of(r->service, r->service_port, r->ipv6, &service);
	sldns_buffer_init_frm_data(&b, (void*)reply, r->reply_len);
	HYDNS_LOG_REPLY(&q, &client, len, none, 1, &b, wants & HYDNS_WANTS_DESTINATION ? &service : NULL);
}

/* --- dnstap ------------------------------------------------------------------------------------------ */
/* The path as Unbound sees it after its chroot. */
static const char* path_of(const struct config_file* cfg)
{
	const char* path = cfg->dnstap_socket_path ? cfg->dnstap_socket_path : "";
	size_t root = cfg->chrootdir ? strlen(cfg->chrootdir) : 0;

	return root > 0 && strncmp(path, cfg->chrootdir, root) == 0 ? path + root : path;
}

static int destination(struct daemon* daemon, struct hydns_dnstap_options* o)
{
	const struct config_file* cfg = daemon->cfg;

	if(!cfg->dnstap_ip || !cfg->dnstap_ip[0]) {
		o->to = HYDNS_DNSTAP_UNIX;
		o->path = path_of(cfg);
		return 1;
	}
	o->to = HYDNS_DNSTAP_TCP;
	if(cfg->dnstap_tls)
		hydns_tls_options(daemon, o);
	return extstrtoaddr(cfg->dnstap_ip, &o->address, &o->address_len, UNBOUND_DNS_PORT);
}

static const char* identity_of(const struct config_file* cfg, char name[HOSTNAME_MOST + 1])
{
	if(!cfg->dnstap_send_identity)
		return NULL;
	if(cfg->dnstap_identity && cfg->dnstap_identity[0])
		return cfg->dnstap_identity;
	name[HOSTNAME_MOST] = 0;
	return gethostname(name, HOSTNAME_MOST) == 0 ? name : "";
}

int hydns_dnstap_options(struct daemon* daemon, struct hydns_dnstap_options* o)
{
	const struct config_file* cfg = daemon->cfg;
	static char name[HOSTNAME_MOST + 1]; /* the main thread's; the plugin copies it */
	int wants = hydns_dnstap_wants(cfg);

	memset(o, 0, sizeof(*o));
	if(wants & (HYDNS_WANTS_QUERIES | HYDNS_WANTS_REPLIES))
		o->line = write_line;
	o->lines = (unsigned)wants;
	if(!(wants & HYDNS_WANTS_DNSTAP))
		return wants != 0;
	if(!destination(daemon, o))
		return 0;
	o->one_way = !cfg->dnstap_bidirectional;
	o->queries = cfg->dnstap_log_client_query_messages;
	o->responses = cfg->dnstap_log_client_response_messages;
	o->identity = identity_of(cfg, name);
	o->version = !cfg->dnstap_send_version ? NULL : cfg->dnstap_version && cfg->dnstap_version[0] ? cfg->dnstap_version :
		PACKAGE_STRING;
	return 1;
}

int hydns_dnstap_takes(struct hydns_context* h, int reply, struct sockaddr_storage* client, struct sockaddr_storage* service,
	struct sldns_buffer* msg, const struct timeval* at)
{
	const struct hydns_tap_message m = {
		.reply = reply != 0, .real_ns = (int64_t)at->tv_sec * HYDNS_NS_PER_S + (int64_t)at->tv_usec * 1000,
		.client = (const struct sockaddr*)client, .service = (const struct sockaddr*)service,
		.wire = sldns_buffer_begin(msg), .len = sldns_buffer_limit(msg),
	};

	return hydns_plugin_logs_own(h->daemon->plugin, &m);
}

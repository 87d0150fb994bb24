/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* rules, explain and flush. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl/common.h"

#define RULES_DEFAULT 20

static const char *rcode_text(const json_t *rule, char buf[16])
{
	const json_t *v = json_object_get(rule, FIELD(rule, rcode));

	if (json_is_string(v))
		return json_string_value(v);
	switch (json_integer_value(v)) {
	case 0:  return "NOERROR";
	case 3:  return "NXDOMAIN";
	default: snprintf(buf, 16, "RCODE%d", (int)json_integer_value(v)); return buf;
	}
}

static void rule_cells(struct ctl_table *t, const json_t *r)
{
	char a[CTL_TEXT], type[16];

	ctl_cell(t, ctl_str(r, FIELD(question, name)));
	ctl_cell(t, ctl_type_text(json_object_get(r, FIELD(question, type)), type));
	ctl_cell(t, ctl_variant_text(r));
	ctl_cell(t, rcode_text(r, type));
	ctl_cell(t, ctl_rate(ctl_real(r, FIELD(question, rate)), a));
	ctl_cell(t, ctl_count(ctl_int(r, FIELD(rule, hits)), a));
	ctl_cell(t, ctl_duration(ctl_int(r, FIELD(rule, ttl)) * 1000, a));
	ctl_cell(t, ctl_duration(ctl_int(r, FIELD(rule, expires_in_ms)), a));
	ctl_cell(t, ctl_count(ctl_int(r, FIELD(rule, size)), a));
	ctl_cell(t, json_is_true(json_object_get(r, FIELD(rule, secure))) ? "secure" : "");
}

static void print_rules(const json_t *reply)
{
	static const char *const head[] = {"NAME", "TYPE", "FOR", "RCODE", "RATE", "HITS", "TTL",
					   "EXPIRES IN", "OCTETS", ""};
	const json_t *r, *rules = json_object_get(reply, FIELD(rules, rules));
	struct ctl_table *t = ctl_table_new("llllrrrrrl");
	size_t n;

	if (json_array_size(rules))
		ctl_titles(t, head);
	json_array_foreach(rules, n, r)
		rule_cells(t, r);
	if (!json_array_size(rules))
		puts("no rules: nothing is answered in the kernel now");
	ctl_table_print(t, 0);
}

int ctl_cmd_rules(const struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show_reply(c, json_pack("{s:s, s:i}", "cmd", "rules", ARGUMENT(rules, limit),
					   c->limit ? (int)c->limit : RULES_DEFAULT), print_rules);
}

/* -- explain ------------------------------------------------------------------------------------------------ */

static void print_explained_rule(const json_t *r)
{
	char a[CTL_TEXT], b[CTL_TEXT], rate[CTL_TEXT], buf[16];

	printf("  rule: %s, %s octets%s, TTL %s, expires in %s\n", rcode_text(r, buf),
	       ctl_count(ctl_int(r, FIELD(rule, size)), rate),
	       json_is_true(json_object_get(r, FIELD(rule, secure))) ? ", validated" : "",
	       ctl_duration(ctl_int(r, FIELD(rule, ttl)) * 1000, a), ctl_duration(ctl_int(r, FIELD(rule, expires_in_ms)), b));
	printf("        %s hits since it was published, %s\n", ctl_count(ctl_int(r, FIELD(rule, hits)), a),
	       ctl_rate(ctl_real(r, FIELD(question, rate)), rate));
}

/* About the question, the client, or both. */
static json_t *explain_request(const struct ctl *c, const char *name, const char *type)
{
	json_t *request = json_pack("{s:s, s:b, s:b}", "cmd", "explain", ARGUMENT(explain, do), c->dnssec_ok,
				    ARGUMENT(explain, norec), c->norec);

	if (name) {
		json_object_set_new(request, ARGUMENT(explain, name), json_string(name));
		json_object_set_new(request, ARGUMENT(explain, type), json_string(type));
	}
	if (c->client)
		json_object_set_new(request, ARGUMENT(explain, client), json_string(c->client));
	if (c->edns)
		json_object_set_new(request, ARGUMENT(explain, edns),
				    c->edns_size < 0 ? json_true() : json_integer(c->edns_size));
	if (c->with_cookie)
		json_object_set_new(request, ARGUMENT(explain, cookie), c->cookie ? json_string(c->cookie) : json_true());
	return request;
}

static void print_explained(const struct ctl *c, const char *name, const char *type, const json_t *reply)
{
	bool kernel = !strcmp(ctl_str(reply, FIELD(explain, where)), "kernel");
	const json_t *rule = json_object_get(reply, FIELD(explain, rule));

	if (name)
		printf("%s %s%s%s%s%s: ", name, type, c->dnssec_ok ? " (with DO)" : "", c->norec ? " (without RD)" : "",
		       c->client ? " asked by " : "", c->client ? c->client : "");
	else
		printf("client %s: ", c->client);
	puts(kernel ? "answered in kernel" : "answered by the resolver");
	if (ctl_str(reply, FIELD(explain, service))[0])
		printf("  asked by %s at %s\n", ctl_str(reply, FIELD(explain, client)),
		       ctl_str(reply, FIELD(explain, service)));
	if (ctl_str(reply, FIELD(explain, text))[0])
		printf("  %s\n", ctl_str(reply, FIELD(explain, text)));
	if (json_is_object(rule))
		print_explained_rule(rule);
}

/* Writes the mnemonic. False: it is no type, and the error is printed. */
static bool read_type(const char *text, char type[16])
{
	char why[CTL_WHY], buf[16];
	int number = ctl_type(text, why);
	json_t *json;

	if (number < 0) {
		ctl_error("%s", why);
		return false;
	}
	json = json_integer(number);
	snprintf(type, 16, "%s", ctl_type_text(json, buf));
	json_decref(json);
	return true;
}

int ctl_cmd_explain(const struct ctl *c, int argc, char **argv)
{
	char why[CTL_WHY], type[16], *name = NULL;
	json_t *reply;

	if (argc == 1 || (!argc && (!c->client || c->dnssec_ok || c->norec || c->edns || c->with_cookie))) {
		ctl_error("explain takes NAME TYPE, --client ADDRESS, or both");
		return CTL_USAGE;
	}
	if (argc && !(name = ctl_name(argv[0], why))) {
		ctl_error("%s", why);
		return CTL_USAGE;
	}
	if (argc && !read_type(argv[1], type)) {
		free(name);
		return CTL_USAGE;
	}
	reply = ctl_ask(c, explain_request(c, name, type));
	if (reply && c->json) {
		ctl_json(reply);
	} else if (reply) {
		print_explained(c, name, type, reply);
		json_decref(reply);
	}
	free(name);
	return reply ? CTL_OK : CTL_ERROR;
}

/* -- flush --------------------------------------------------------------------------------------------------- */

int ctl_cmd_flush(const struct ctl *c, int argc, char **argv)
{
	char why[CTL_WHY], a[CTL_TEXT], *name = NULL;
	const char *text = argc ? argv[0] : c->zone;
	json_t *request, *reply;

	if (argc + (c->zone != NULL) + c->all != 1) {
		ctl_error("flush takes exactly one of NAME, --zone ZONE and --all");
		return CTL_USAGE;
	}
	if (text && !(name = ctl_name(text, why))) {
		ctl_error("%s", why);
		return CTL_USAGE;
	}
	request = c->all ? json_pack("{s:s, s:b}", "cmd", "flush", ARGUMENT(flush, all), 1) :
		json_pack("{s:s, s:s}", "cmd", "flush", argc ? ARGUMENT(flush, name) : ARGUMENT(flush, zone), name);
	free(name);
	reply = ctl_ask(c, request);
	if (!reply)
		return CTL_ERROR;
	printf("%s rules withdrawn; the resolver's own cache is as it was\n",
	       ctl_count(ctl_int(reply, FIELD(flush, withdrawn)), a));
	json_decref(reply);
	return CTL_OK;
}

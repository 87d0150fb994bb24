/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* nftables rules, as "nft -j list ruleset" prints them (libnftables-json(5)). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl/common.h"
#include "hydnsd/doctor/firewall.h"

struct context {
	const struct firewall *f;
	const struct firewall_chain *c;
	const struct firewall_query *q;
};

/* What a match looks at. */
enum field {
	FIELD_OTHER,                   /* may differ from query to query */
	FIELD_NONE,                    /* no UDP query has it */
	FIELD_PROTOCOL, FIELD_FAMILY, FIELD_ETHERTYPE, FIELD_PORT, FIELD_SOURCE, FIELD_DESTINATION, FIELD_INTERFACE,
	FIELD_STATE, FIELD_PACKET_TYPE, FIELD_ADDRESS_TYPE,
};

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list && strcmp(*list, word))
		list++;
	return *list;
}

/* -- what is looked at --------------------------------------------------------------------------------------- */
static enum field field_of_payload(const struct context *x, const json_t *payload)
{
	static const char *const others[] = {
		"tcp", "icmp", "icmpv6", "igmp", "sctp", "dccp", "esp", "ah", "comp", "udplite", "arp", NULL,
	};
	const char *protocol = ctl_str(payload, "protocol"), *name = ctl_str(payload, "field");
	bool v4 = !strcmp(protocol, "ip"), v6 = !strcmp(protocol, "ip6");

	if (is_one_of(protocol, others) || (v4 && x->q->family != 4) || (v6 && x->q->family != 6))
		return FIELD_NONE;
	if ((v4 || v6) && !strcmp(name, "saddr"))
		return FIELD_SOURCE;
	if ((v4 || v6) && !strcmp(name, "daddr"))
		return FIELD_DESTINATION;
	if ((v4 && !strcmp(name, "protocol")) || (v6 && !strcmp(name, "nexthdr")))
		return FIELD_PROTOCOL;
	if ((!strcmp(protocol, "udp") || !strcmp(protocol, "th")) && !strcmp(name, "dport"))
		return FIELD_PORT;
	return !strcmp(protocol, "ether") && !strcmp(name, "type") ? FIELD_ETHERTYPE : FIELD_OTHER;
}

static enum field field_of_meta(const char *key)
{
	static const struct { const char *key; enum field field; } fields[] = {
		{"l4proto", FIELD_PROTOCOL}, {"nfproto", FIELD_FAMILY}, {"protocol", FIELD_ETHERTYPE},
		{"iif", FIELD_INTERFACE}, {"iifname", FIELD_INTERFACE}, {"pkttype", FIELD_PACKET_TYPE},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(key, fields[i].key))
			return fields[i].field;
	return FIELD_OTHER;
}

static enum field field_of(const struct context *x, const json_t *left)
{
	static const char *const operations[] = {"&", "|", "^", "<<", ">>", NULL};
	const json_t *payload = json_object_get(left, "payload"), *meta = json_object_get(left, "meta");
	const json_t *fib = json_object_get(left, "fib"), *flags = json_object_get(fib, "flags"), *operands;
	size_t n;

	if (payload)
		return field_of_payload(x, payload);
	if (meta)
		return field_of_meta(ctl_str(meta, "key"));
	if (fib && !strcmp(ctl_str(fib, "result"), "type") && json_array_size(flags) == 1 &&
	    !strcmp(json_string_value(json_array_get(flags, 0)), "daddr"))
		return FIELD_ADDRESS_TYPE;
	if (!strcmp(ctl_str(json_object_get(left, "ct"), "key"), "state"))
		return FIELD_STATE;
	json_array_foreach(json_object_get(left, "concat"), n, operands)
		if (field_of(x, operands) == FIELD_NONE)
			return FIELD_NONE;
	for (size_t i = 0; operations[i]; i++) {
		operands = json_object_get(left, operations[i]);
		if (operands && field_of(x, json_array_get(operands, 0)) == FIELD_NONE)
			return FIELD_NONE;
	}
	return FIELD_OTHER;
}

/* -- values ----------------------------------------------------------------------------------------------------- */
/* A number, a string, a prefix or a range as text; false when it is something else. */
static bool value_text(const json_t *v, char *out, size_t room)
{
	const json_t *prefix = json_object_get(v, "prefix"), *range = json_object_get(v, "range");
	char low[64], high[64];

	if (json_is_integer(v))
		snprintf(out, room, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_string(v))
		snprintf(out, room, "%s", json_string_value(v));
	else if (prefix)
		snprintf(out, room, "%s/%" JSON_INTEGER_FORMAT, ctl_str(prefix, "addr"), ctl_int(prefix, "len"));
	else if (range && value_text(json_array_get(range, 0), low, sizeof(low)) &&
		 value_text(json_array_get(range, 1), high, sizeof(high)))
		snprintf(out, room, "%s-%s", low, high);
	else
		return false;
	return true;
}

static enum firewall_match family_is(const struct context *x, const char *text)
{
	bool v4 = !strcmp(text, "ipv4") || !strcmp(text, "ip") || !strcmp(text, "2") || !strcmp(text, "2048");
	bool v6 = !strcmp(text, "ipv6") || !strcmp(text, "ip6") || !strcmp(text, "10") || !strcmp(text, "34525");

	return (v4 && x->q->family == 4) || (v6 && x->q->family == 6) ? FIREWALL_ALL : FIREWALL_NEVER;
}

static enum firewall_match port_is(const struct context *x, const char *text)
{
	char *end;
	long low = strtol(text, &end, 10), high = *end == '-' ? strtol(end + 1, &end, 10) : low;

	return *end ? FIREWALL_SOME : firewall_port(x->q, low, high);
}

static enum firewall_match scalar_is(const struct context *x, enum field field, const json_t *v)
{
	char text[160];

	if (!value_text(v, text, sizeof(text)))
		return FIREWALL_SOME;
	switch (field) {
	case FIELD_PROTOCOL:
		return firewall_protocol(text);
	case FIELD_FAMILY:
	case FIELD_ETHERTYPE:
		return family_is(x, text);
	case FIELD_PORT:
		return port_is(x, text);
	case FIELD_SOURCE:
		return firewall_source(x->q, text);
	case FIELD_DESTINATION:
		return firewall_destination(x->q, text);
	case FIELD_INTERFACE:
		return json_is_integer(v) ? FIREWALL_SOME : firewall_interface(x->q, text, '*');
	case FIELD_STATE:
		return firewall_state(x->q, text);
	case FIELD_PACKET_TYPE:
		return firewall_packet_type(text);
	case FIELD_ADDRESS_TYPE:
		return !strcmp(text, "local") ? FIREWALL_ALL : FIREWALL_NEVER;
	default:
		return FIREWALL_SOME;
	}
}

static enum firewall_match value_is(const struct context *x, const json_t *left, const json_t *v);

static enum firewall_match any_of(const struct context *x, const json_t *left, const json_t *list)
{
	enum firewall_match m, most = FIREWALL_NEVER;
	const json_t *v;
	size_t i;

	/* elements of a map are [key, value] */
	json_array_foreach(list, i, v) {
		m = value_is(x, left, json_is_array(v) ? json_array_get(v, 0) : v);
		most = m > most ? m : most;
	}
	return most;
}

/* Elements of the set "@name". An empty set, or one that rules fill, may soon have others. */
static enum firewall_match in_named_set(const struct context *x, const json_t *left, const char *name)
{
	const json_t *o, *s, *elements;
	enum firewall_match m;
	size_t i;

	json_array_foreach(x->f->ruleset, i, o) {
		s = json_object_get(o, "set") ? json_object_get(o, "set") : json_object_get(o, "map");
		if (!s || strcmp(ctl_str(s, "name"), name) || strcmp(ctl_str(s, "table"), x->c->table) ||
		    strcmp(ctl_str(s, "family"), x->c->family))
			continue;
		elements = json_object_get(s, "elem");
		m = any_of(x, left, elements);
		return m == FIREWALL_ALL || json_array_size(elements) ? m : FIREWALL_SOME;
	}
	return FIREWALL_SOME;
}

/* A concatenation: all parts must match. */
static enum firewall_match all_of(const struct context *x, const json_t *parts, const json_t *values)
{
	enum firewall_match m, least = FIREWALL_ALL;
	const json_t *part;
	size_t i;

	json_array_foreach(parts, i, part) {
		m = value_is(x, part, json_array_get(values, i));
		least = m < least ? m : least;
	}
	return least;
}

static enum firewall_match value_is(const struct context *x, const json_t *left, const json_t *v)
{
	const json_t *elem = json_object_get(v, "elem"), *parts = json_object_get(left, "concat");

	if (elem)
		return value_is(x, left, json_object_get(elem, "val"));
	if (json_is_string(v) && json_string_value(v)[0] == '@')
		return in_named_set(x, left, json_string_value(v) + 1);
	if (json_object_get(v, "set"))
		return any_of(x, left, json_object_get(v, "set"));
	if (parts)
		return all_of(x, parts, json_object_get(v, "concat"));
	return json_is_array(v) ? any_of(x, left, v) : scalar_is(x, field_of(x, left), v);
}

/* -- rules ------------------------------------------------------------------------------------------------------ */
static enum firewall_match compare_port(const struct context *x, const char *op, long than)
{
	long port = (long)x->q->port;
	bool is = op[0] == '<' ? port < than || (op[1] && port == than) : port > than || (op[1] && port == than);

	return is ? FIREWALL_ALL : FIREWALL_NEVER;
}

static enum firewall_match match_is(const struct context *x, const json_t *m)
{
	const json_t *left = json_object_get(m, "left"), *right = json_object_get(m, "right");
	const char *op = ctl_str(m, "op");
	enum field field = field_of(x, left);

	if (field == FIELD_NONE)
		return FIREWALL_NEVER;
	if (op[0] == '<' || op[0] == '>')
		return field == FIELD_PORT && json_is_integer(right) ?
			compare_port(x, op, (long)json_integer_value(right)) : FIREWALL_SOME;
	return op[0] == '!' ? firewall_not(value_is(x, left, right)) : value_is(x, left, right);
}

static bool is_rate(const json_t *e)
{
	static const char *const keys[] = {"limit", "quota", "ct count", "meter", NULL};

	for (size_t i = 0; keys[i]; i++)
		if (json_object_get(e, keys[i]))
			return true;
	return json_object_get(json_object_get(e, "set"), "stmt");
}

static enum firewall_match expression_is(const struct context *x, const json_t *e)
{
	const json_t *m = json_object_get(e, "match"), *xt = json_object_get(e, "xt");

	if (m)
		return match_is(x, m);
	return is_rate(e) || (xt && strcmp(ctl_str(xt, "type"), "target")) ? FIREWALL_SOME : FIREWALL_ALL;
}

static enum firewall_match rule_is(const struct firewall *f, const struct firewall_chain *c,
				   const struct firewall_rule *r, const struct firewall_query *q)
{
	const struct context x = {f, c, q};
	enum firewall_match m, least = FIREWALL_ALL;
	const json_t *e;
	size_t i;

	json_array_foreach(r->expressions, i, e) {
		m = expression_is(&x, e);
		least = m < least ? m : least;
	}
	if (r->key) {
		m = field_of(&x, r->key) == FIELD_NONE ? FIREWALL_NEVER : value_is(&x, r->key, r->value);
		least = m < least ? m : least;
	}
	return least;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */
static const struct {
	const char *key;
	enum firewall_verdict verdict;
	const char *does;
} verdicts[] = {
	{"accept", FIREWALL_ACCEPT, NULL},          {"drop", FIREWALL_REFUSE, "drops"},
	{"reject", FIREWALL_REFUSE, "rejects"},     {"queue", FIREWALL_REFUSE, "queues"},
	{"dnat", FIREWALL_REFUSE, FIREWALL_REDIRECTS},     {"redirect", FIREWALL_REFUSE, FIREWALL_REDIRECTS},
	{"tproxy", FIREWALL_REFUSE, FIREWALL_REDIRECTS},   {"fwd", FIREWALL_REFUSE, FIREWALL_REDIRECTS},
	{"jump", FIREWALL_JUMP, NULL},              {"goto", FIREWALL_GOTO, NULL},
	{"return", FIREWALL_RETURN, NULL},          {"notrack", FIREWALL_UNTRACK, NULL},
	{"xt", FIREWALL_GO_ON, NULL},               /* take_xt() looks at its name */
};

/* Rules that iptables has made, when iptables-save is not there to print them. */
static void take_xt(struct firewall_rule *r, const char *target)
{
	static const char *const refusing[] = {"REJECT", "REDIRECT", "DNAT", "TPROXY", "NFQUEUE", "QUEUE", "NETMAP", NULL};

	if (is_one_of(target, refusing))
		firewall_take_refusal(r, "rejects or redirects");
}

static void take_verdict(struct firewall_rule *r, const json_t *e)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		const json_t *v = json_object_get(e, verdicts[i].key);

		if (!v)
			continue;
		if (!strcmp(verdicts[i].key, "xt")) {
			take_xt(r, ctl_str(v, "name"));
			continue;
		}
		r->verdict = verdicts[i].verdict;
		if (verdicts[i].does)
			firewall_take_refusal(r, verdicts[i].does);
		snprintf(r->target, sizeof(r->target), "%s", ctl_str(v, "target"));
	}
}

static void take_aim(struct firewall_rule *r, const json_t *e)
{
	const json_t *m = json_object_get(e, "match"), *left = json_object_get(m, "left");
	const char *field = ctl_str(json_object_get(left, "payload"), "field");

	if (r->aim == FIREWALL_AIM_ADDRESS)
		return;
	if (is_rate(e))
		r->aim = FIREWALL_AIM_RATE;
	else if (r->aim != FIREWALL_AIM_RATE && !strcmp(field, "saddr")) {
		r->aim = FIREWALL_AIM_SOURCE;
		if (strcmp(ctl_str(m, "op"), "==") || json_object_get(json_object_get(m, "right"), "set") ||
		    !value_text(json_object_get(m, "right"), r->source, sizeof(r->source)) || r->source[0] == '@')
			r->source[0] = 0;
	} else if (r->aim == FIREWALL_AIM_OTHER && !strncmp(ctl_str(json_object_get(left, "meta"), "key"), "iif", 3))
		r->aim = FIREWALL_AIM_INTERFACE;
}

static void describe(const struct firewall_chain *c, struct firewall_rule *r, json_int_t handle)
{
	snprintf(r->text, sizeof(r->text), "nftables table %s %s, chain %s, handle %" JSON_INTEGER_FORMAT, c->family,
		 c->table, c->name, handle);
	snprintf(r->removal, sizeof(r->removal), "nft delete rule %s %s %s handle %" JSON_INTEGER_FORMAT, c->family,
		 c->table, c->name, handle);
}

/* Each element of a verdict map is a rule of its own. */
static bool add_verdict_map(const struct firewall *f, struct firewall_chain *c, const struct firewall_rule *like,
			    const json_t *vmap)
{
	const json_t *data = json_object_get(vmap, "data"), *list = json_object_get(data, "set"), *o, *pair;
	struct firewall_rule *r;
	size_t i;

	json_array_foreach(f->ruleset, i, o) {
		const json_t *m = json_object_get(o, "map");

		if (json_is_string(data) && m && !strcmp(ctl_str(m, "name"), json_string_value(data) + 1) &&
		    !strcmp(ctl_str(m, "table"), c->table) && !strcmp(ctl_str(m, "family"), c->family))
			list = json_object_get(m, "elem");
	}
	json_array_foreach(list, i, pair) {
		r = firewall_rule_add(c);
		if (!r)
			return false;
		*r = *like;
		r->key = json_object_get(vmap, "key");
		r->value = json_array_get(pair, 0);
		take_verdict(r, json_array_get(pair, 1));
	}
	return true;
}

static bool add_rule(struct firewall *f, struct firewall_chain *c, const json_t *rule)
{
	struct firewall_rule like = { .expressions = json_object_get(rule, "expr") }, *r;
	const json_t *e, *vmap = NULL;
	size_t i;

	describe(c, &like, ctl_int(rule, "handle"));
	json_array_foreach(like.expressions, i, e) {
		take_verdict(&like, e);
		take_aim(&like, e);
		if (json_object_get(e, "vmap"))
			vmap = json_object_get(e, "vmap");
	}
	if (vmap)
		return add_verdict_map(f, c, &like, vmap);
	r = firewall_rule_add(c);
	if (r)
		*r = like;
	return r;
}

static bool add_chain(struct firewall *f, const json_t *o)
{
	static const char *const hooks[] = {
		[FIREWALL_INGRESS] = "ingress", [FIREWALL_PREROUTING] = "prerouting", [FIREWALL_INPUT] = "input",
	};
	struct firewall_chain *c = firewall_chain_add(f, ctl_str(o, "family"), ctl_str(o, "table"), ctl_str(o, "name"));

	if (!c)
		return false;
	for (unsigned h = FIREWALL_INGRESS; h <= FIREWALL_INPUT; h++)
		if (!strcmp(ctl_str(o, "hook"), hooks[h]) && strcmp(c->family, "arp"))
			c->hook = (enum firewall_hook)h;
	c->priority = (int)ctl_int(o, "prio");
	c->drops = !strcmp(ctl_str(o, "policy"), "drop");
	snprintf(c->device, sizeof(c->device), "%s", ctl_str(o, "dev"));
	c->policy.does = "drops";
	snprintf(c->policy.text, sizeof(c->policy.text), "nftables table %s %s, chain %s, policy drop", c->family, c->table,
		 c->name);
	return true;
}

bool firewall_read_nft(struct firewall *f, const json_t *ruleset,
		       bool (*skip)(const char *family, const char *table, void *arg), void *arg)
{
	const json_t *o, *chain, *rule;
	struct firewall_chain *c;
	size_t i;

	f->ruleset = ruleset;
	f->match = rule_is;
	json_array_foreach(ruleset, i, o) {
		chain = json_object_get(o, "chain");
		if (chain && !skip(ctl_str(chain, "family"), ctl_str(chain, "table"), arg) && !add_chain(f, chain))
			return false;
	}
	json_array_foreach(ruleset, i, o) {
		rule = json_object_get(o, "rule");
		c = rule ? firewall_chain_find(f, ctl_str(rule, "family"), ctl_str(rule, "table"), ctl_str(rule, "chain")) : NULL;
		if (c && !add_rule(f, c, rule))
			return false;
	}
	return true;
}

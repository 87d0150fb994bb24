/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * doctor: packet filter rules on the resolvers' ports. XDP answers before netfilter sees a packet, so a
 * block, a rate limit or a redirection there does not hold for what the kernel path answers.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydnsd/doctor.h"

#define DNS_PORT   53
#define PORTS_MAX  16
#define MEND "repeat what the rule is for where the resolver decides (access-control, ip-ratelimit), or leave "  \
	"those clients to the resolver; hydnsctl pause shows what changes"

struct ports {
	unsigned count;
	unsigned port[PORTS_MAX];
};

extern char **environ;

/* Ports of registered services: "192.0.2.1:53", "[2001:db8::1]:53". */
static void service_ports(const struct doctor *d, struct ports *p)
{
	const json_t *r, *s;
	size_t i, j;

	p->port[p->count++] = DNS_PORT;
	json_array_foreach(json_object_get(d->status, "resolvers"), i, r) {
		json_array_foreach(json_object_get(r, "services"), j, s) {
			const char *sep = json_is_string(s) ? strrchr(json_string_value(s), ':') : NULL;
			unsigned port = sep ? (unsigned)atoi(sep + 1) : 0, k = 0;

			while (k < p->count && p->port[k] != port)
				k++;
			if (port && k == p->count && p->count < PORTS_MAX)
				p->port[p->count++] = port;
		}
	}
}

static bool covers(const struct ports *p, json_int_t low, json_int_t high)
{
	for (unsigned i = 0; i < p->count; i++)
		if (low <= p->port[i] && p->port[i] <= high)
			return true;
	return false;
}

/* Output of a program, at most 64 MiB, NUL-terminated; the caller frees. 0, or -ENOENT when it is not
 * installed, or another negative errno. */
static int run(const char *const argv[], char **out)
{
	posix_spawn_file_actions_t fa;
	size_t have = 0, room = 0;
	int pipefd[2], status = 0, err;
	char *text = NULL;
	ssize_t r = 0;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, pipefd[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = -posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(pipefd[1]);
	do {
		if (!err && have + 1 >= room) {
			char *more = room >= 1U << 26 ? NULL : realloc(text, room = room ? room * 2 : 65536);

			if (!more)
				err = -ENOMEM;
			else
				text = more;
		}
		r = err ? 0 : read(pipefd[0], text + have, room - have - 1);
		if (r > 0)
			have += (size_t)r;
	} while (r > 0);
	close(pipefd[0]);
	if (text)
		text[have] = 0;
	if ((!err || err == -ENOMEM) && waitpid(pid, &status, 0) == pid && status)
		err = err ? err : -EIO;
	if (err)
		free(text);
	else
		*out = text;
	return err;
}

/* -- nftables ------------------------------------------------------------------------------------------------ */

static bool nft_value_covers(const struct ports *p, const json_t *v, const json_t *ruleset);

/* Elements of the set "@name"; of a map the first of each pair. */
static bool nft_named_set_covers(const struct ports *p, const char *name, const json_t *ruleset)
{
	static const char *const kinds[] = {"set", "map"};
	const json_t *o;
	size_t i;

	json_array_foreach(ruleset, i, o)
		for (unsigned k = 0; k < 2; k++) {
			const json_t *s = json_object_get(o, kinds[k]);

			if (s && !strcmp(ctl_str(s, "name"), name) &&
			    nft_value_covers(p, json_object_get(s, "elem"), ruleset))
				return true;
		}
	return false;
}

static bool nft_list_covers(const struct ports *p, const json_t *list, const json_t *ruleset)
{
	const json_t *v;
	size_t i;

	/* Elements of a map are [key, value]; a value never is a bare port of a rule that matters here. */
	json_array_foreach(list, i, v)
		if (nft_value_covers(p, json_is_array(v) ? json_array_get(v, 0) : v, ruleset))
			return true;
	return false;
}

static bool nft_value_covers(const struct ports *p, const json_t *v, const json_t *ruleset)
{
	const json_t *range = json_object_get(v, "range"), *elem = json_object_get(v, "elem");

	if (json_is_integer(v))
		return covers(p, json_integer_value(v), json_integer_value(v));
	if (json_is_string(v) && json_string_value(v)[0] == '@')
		return nft_named_set_covers(p, json_string_value(v) + 1, ruleset);
	if (range)
		return covers(p, json_integer_value(json_array_get(range, 0)),
			      json_integer_value(json_array_get(range, 1)));
	if (json_is_array(v))
		return nft_list_covers(p, v, ruleset);
	if (json_object_get(v, "set"))
		return nft_value_covers(p, json_object_get(v, "set"), ruleset);
	if (json_is_object(elem))
		return nft_value_covers(p, json_object_get(elem, "val"), ruleset);
	return false;
}

/* "udp dport" or, which may be UDP, "th dport"; alone or as part of a concatenation. */
static bool nft_is_udp_dport(const json_t *left)
{
	const json_t *payload = json_object_get(left, "payload"), *part;
	const char *protocol = ctl_str(payload, "protocol");
	size_t i;

	json_array_foreach(json_object_get(left, "concat"), i, part)
		if (nft_is_udp_dport(part))
			return true;
	return !strcmp(ctl_str(payload, "field"), "dport") &&
		(!strcmp(protocol, "udp") || !strcmp(protocol, "th"));
}

/* A concatenation's elements are lists of several values: any part that names the port is enough here. */
static bool nft_concat_covers(const struct ports *p, const json_t *v, const json_t *ruleset)
{
	const json_t *part;
	const char *key;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, part)
			if (nft_concat_covers(p, part, ruleset))
				return true;
	} else if (json_is_object(v)) {
		json_object_foreach((json_t *)v, key, part)
			if (nft_concat_covers(p, part, ruleset))
				return true;
	}
	return nft_value_covers(p, v, ruleset);
}

static bool nft_expression_hits(const struct ports *p, const json_t *e, const json_t *ruleset)
{
	const json_t *m = json_object_get(e, "match"), *vmap = json_object_get(e, "vmap");
	const json_t *left = json_object_get(m ? m : vmap, m ? "left" : "key");
	const json_t *right = json_object_get(m ? m : vmap, m ? "right" : "data");
	bool hit;

	if (!nft_is_udp_dport(left))
		return false;
	hit = json_object_get(left, "concat") ? nft_concat_covers(p, right, ruleset) :
		nft_value_covers(p, right, ruleset);
	return m && !strcmp(ctl_str(m, "op"), "!=") ? !hit : hit;
}

static unsigned check_nft_rules(struct doctor *d, const struct ports *p, const json_t *ruleset)
{
	const json_t *o, *rule, *e;
	unsigned hits = 0;
	size_t i, j;

	json_array_foreach(ruleset, i, o) {
		rule = json_object_get(o, "rule");
		json_array_foreach(json_object_get(rule, "expr"), j, e) {
			if (!nft_expression_hits(p, e, ruleset))
				continue;
			hits++;
			doctor_add(d, "firewall", NULL, DOCTOR_WARN, MEND, "nftables table %s %s, chain %s, handle %"
				   JSON_INTEGER_FORMAT " looks at a UDP port of a resolver: kernel answers go past it",
				   ctl_str(rule, "family"), ctl_str(rule, "table"), ctl_str(rule, "chain"),
				   ctl_int(rule, "handle"));
			break;
		}
	}
	return hits;
}

static void check_nft(struct doctor *d, const struct ports *p)
{
	static const char *const argv[] = {"nft", "-j", "list", "ruleset", NULL};
	char *text = NULL;
	int err = run(argv, &text);
	json_t *all = err ? NULL : json_loads(text, 0, NULL);

	free(text);
	if (err == -ENOENT)
		doctor_add(d, "firewall", NULL, DOCTOR_SKIP, NULL, "nft is not installed: nftables rules, if there are "
			   "any, cannot be listed");
	else if (!all)
		doctor_add(d, "firewall", NULL, DOCTOR_SKIP, NULL, "nft could not list its rules: run doctor as root");
	else if (!check_nft_rules(d, p, json_object_get(all, "nftables")))
		doctor_add(d, "firewall", NULL, DOCTOR_OK, NULL, "no nftables rule looks at a UDP port of a resolver");
	json_decref(all);
}

/* -- iptables --------------------------------------------------------------------------------------------------- */

/* "53", "50:60", "53,5353" */
static bool port_list_covers(const struct ports *p, const char *s)
{
	while (*s >= '0' && *s <= '9') {
		char *end;
		long low = strtol(s, &end, 10), high = low;

		if (*end == ':')
			high = strtol(end + 1, &end, 10);
		if (covers(p, low, high))
			return true;
		s = *end == ',' ? end + 1 : "";
	}
	return false;
}

static bool iptables_rule_hits(const struct ports *p, const char *line)
{
	static const char *const words[] = {" --dport ", " --dports ", " --ports "};

	if (strncmp(line, "-A ", 3) || strstr(line, " -p tcp "))
		return false;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = strstr(line, words[i]);

		if (at && port_list_covers(p, at + strlen(words[i])))
			return true;
	}
	return false;
}

static void check_iptables(struct doctor *d, const struct ports *p, const char *program)
{
	const char *const argv[] = {program, NULL};
	char *text = NULL, *rest = NULL, *line;
	unsigned hits = 0;
	int err = run(argv, &text);

	if (err) {
		doctor_add(d, "firewall", program, DOCTOR_SKIP, NULL, "%s", err == -ENOENT ? "not installed" :
			   "could not list its rules: run doctor as root");
		return;
	}
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!iptables_rule_hits(p, line))
			continue;
		hits++;
		doctor_add(d, "firewall", program, DOCTOR_WARN, MEND, "'%s' looks at a UDP port of a resolver: kernel "
			   "answers go past it", line);
	}
	if (!hits)
		doctor_add(d, "firewall", program, DOCTOR_OK, NULL, "no rule looks at a UDP port of a resolver");
	free(text);
}

void doctor_check_firewall(struct doctor *d)
{
	struct ports p = {0};

	service_ports(d, &p);
	check_nft(d, &p);
	check_iptables(d, &p, "iptables-save");
	check_iptables(d, &p, "ip6tables-save");
}

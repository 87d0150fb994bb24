/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * doctor: what unbound.conf or named.conf says of hyDNS. This is no parser of these languages: it knows words, strings,
 * comments, braces and includes, enough to find the few settings that matter.
 */
#include "config.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/doctor/doctor.h"

#define PLUGIN_SOCKET "/run/hydns/plugin.sock"
#define DEPTH_MAX     8        /* of nested includes */

struct reader {
	enum doctor_server server;
	const char *root;      /* paths of includes are relative to it */
	struct doctor_conf *out;
	char key[256];         /* Unbound: the attribute before; BIND: the word before */
	bool in_plugin;        /* BIND: between the braces of our plugin statement */
	unsigned depth;
};

static void read_file(struct reader *r, const char *path);

static void include(struct reader *r, const char *pattern)
{
	char path[512];
	glob_t found;

	snprintf(path, sizeof(path), "%s%s", r->root, pattern);
	if (r->depth >= DEPTH_MAX || glob(path, 0, NULL, &found))
		return;
	r->depth++;
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_file(r, found.gl_pathv[i]);
	r->depth--;
	globfree(&found);
}

static bool says_no(const char *value)
{
	return !strcmp(value, "no") || !strcmp(value, "false") || !strcmp(value, "0");
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* "attribute:" and then its value; "hydns:" begins a clause. */
static void take_unbound(struct reader *r, const char *word, bool quoted)
{
	struct doctor_conf *c = r->out;
	size_t n = strlen(word);

	if (!quoted && n && word[n - 1] == ':') {
		snprintf(r->key, sizeof(r->key), "%s", word);
		c->clause |= !strcmp(word, "hydns:");
		return;
	}
	if (!strcmp(r->key, "include:") || !strcmp(r->key, "include-toplevel:"))
		include(r, word);
	else if (!strcmp(r->key, "module-config:")) {
		snprintf(c->modules, sizeof(c->modules), "%s", word);
		c->named = has_word(word, "hydns");
	} else if (!strcmp(r->key, "hydns-socket:"))
		snprintf(c->socket, sizeof(c->socket), "%s", word);
	else if (!strcmp(r->key, "hydns-enable:"))
		c->off = says_no(word);
	else if (!strcmp(r->key, "hydns-queue:"))
		c->no_client_rings = says_no(word);
	else if (!strcmp(r->key, "hydns-queue-upstream:"))
		c->no_upstream_rings = says_no(word);
	r->key[0] = 0;
}

/* "include "FILE";", "plugin query "/usr/lib/bind/hydns.so" { hydns-socket "PATH"; };" */
static void take_bind(struct reader *r, const char *word, bool quoted)
{
	const char *slash = strrchr(word, '/'), *file = slash ? slash + 1 : word;
	struct doctor_conf *c = r->out;

	if (quoted && !strcmp(r->key, "include"))
		include(r, word);
	else if (quoted && !strcmp(r->key, "query") && !strncmp(file, "hydns", 5))
		c->named = r->in_plugin = true;
	else if (r->in_plugin && !strcmp(r->key, "hydns-socket"))
		snprintf(c->socket, sizeof(c->socket), "%s", word);
	else if (r->in_plugin && !strcmp(r->key, "hydns-enable"))
		c->off = says_no(word);
	else if (!strcmp(word, "}"))
		r->in_plugin = false;
	snprintf(r->key, sizeof(r->key), "%s", word);
}

/* The end of the comment at s; s: there is none. */
static const char *skip_comment(const struct reader *r, const char *s)
{
	const char *end;

	if (*s == '#' || (r->server == DOCTOR_BIND && s[0] == '/' && s[1] == '/'))
		return s + strcspn(s, "\n");
	if (r->server != DOCTOR_BIND || s[0] != '/' || s[1] != '*')
		return s;
	end = strstr(s + 2, "*/");
	return end ? end + 2 : s + strlen(s);
}

static void take_text(struct reader *r, const char *s)
{
	const char *separators = r->server == DOCTOR_BIND ? " \t\r\n{};\"" : " \t\r\n\"";
	char word[256];

	while (*s) {
		const char *next = skip_comment(r, s);
		bool quoted = *s == '"';
		size_t n;

		if (next != s || isspace((unsigned char)*s)) {
			s = next + (next == s);
			continue;
		}
		s += quoted;
		n = strcspn(s, quoted ? "\"\n" : separators);
		n = n || quoted ? n : 1;                       /* a brace or a semicolon */
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		s += n + (quoted && s[n] == '"');
		if (r->server == DOCTOR_UNBOUND)
			take_unbound(r, word, quoted);
		else if (strcmp(word, ";") != 0 && strcmp(word, "{") != 0)
			take_bind(r, word, quoted);
	}
}

static void read_file(struct reader *r, const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!f)
		return;
	if (getdelim(&text, &room, '\0', f) > 0)
		take_text(r, text);
	if (!r->depth)
		r->out->readable = true;
	free(text);
	fclose(f);
}

void doctor_conf_read(enum doctor_server server, const char *path, const char *root, struct doctor_conf *out)
{
	struct reader r = { .server = server, .root = root, .out = out };

	memset(out, 0, sizeof(*out));
	snprintf(out->socket, sizeof(out->socket), PLUGIN_SOCKET);
	read_file(&r, path);
}

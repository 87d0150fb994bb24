/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote control: what each command withdraws from the kernel, and the module's lines in the statistics. A command that
 * is not listed here withdraws everything: better one withdrawal too many than one old answer.
 */
#include "config.h"
#include <ctype.h>
#include <string.h>
#include "hydns_daemon.h"
#include "daemon/remote.h"
#include "sldns/str2wire.h"
#include "util/data/dname.h"
#include "util/data/msgparse.h"

enum action {
	WITHDRAW_NOTHING = 0,
	WITHDRAW_NAME,
	WITHDRAW_SUBTREE,
	CHANGE_LOCAL,           /* local zones at and below a name: that subtree is withdrawn */
	REMOVE_LOCAL,           /* one goes */
	WITHDRAW_ALL,
	CHECK_AND_WITHDRAW_ALL, /* options may have changed */
	CLOSE,                  /* no offers from here on */
	SUSPEND,                /* the same, or the rules wait until it is known whether they stay */
	UPDATE_COOKIES,         /* the cookie secrets may have changed; answers have not */
	CHANGE_ZONE,            /* an auth-zone changes: withdrawn before the command, and nothing is offered until it ends */
};

struct effect {
	const char* command;
	enum action action;
	int argument;           /* which one is the name, from 0; options (+c) are not counted */
	int late;               /* see struct hydns_control */
	int alters;             /* what the configuration says, up to the next reload */
};

static const struct effect effects[] = {
	/* read only, or without effect on answers */
	{ "stats", WITHDRAW_NOTHING, 0, 0 },
	{ "stats_noreset", WITHDRAW_NOTHING, 0, 0 },
	{ "status", WITHDRAW_NOTHING, 0, 0 },
	{ "verbosity", WITHDRAW_NOTHING, 0, 0 },
	{ "log_reopen", WITHDRAW_NOTHING, 0, 0 },
	{ "dump_cache", WITHDRAW_NOTHING, 0, 0 },
	{ "dump_requestlist", WITHDRAW_NOTHING, 0, 0 },
	{ "dump_infra", WITHDRAW_NOTHING, 0, 0 },
	{ "lookup", WITHDRAW_NOTHING, 0, 0 },
	{ "get_option", WITHDRAW_NOTHING, 0, 0 },
	{ "list_forwards", WITHDRAW_NOTHING, 0, 0 },
	{ "list_stubs", WITHDRAW_NOTHING, 0, 0 },
	{ "list_insecure", WITHDRAW_NOTHING, 0, 0 },
	{ "list_auth_zones", WITHDRAW_NOTHING, 0, 0 },
	{ "list_local_zones", WITHDRAW_NOTHING, 0, 0 },
	{ "list_local_data", WITHDRAW_NOTHING, 0, 0 },
	{ "view_list_local_zones", WITHDRAW_NOTHING, 0, 0 },
	{ "view_list_local_data", WITHDRAW_NOTHING, 0, 0 },
	{ "ratelimit_list", WITHDRAW_NOTHING, 0, 0 },
	{ "ip_ratelimit_list", WITHDRAW_NOTHING, 0, 0 },
	{ "print_cookie_secrets", WITHDRAW_NOTHING, 0, 0 },
	{ "flush_stats", WITHDRAW_NOTHING, 0, 0 },
	{ "flush_infra", WITHDRAW_NOTHING, 0, 0 },
	{ "flush_requestlist", WITHDRAW_NOTHING, 0, 0 },
	{ "cache_lookup", WITHDRAW_NOTHING, 0, 0 },
	/* only starts a transfer; what that brings withdraws (hydns_zone_changing) */
	{ "auth_zone_transfer", WITHDRAW_NOTHING, 0, 0 },
	/* only starts a thread; when that has replaced the configuration, hydns_daemon_reloaded() withdraws */
	{ "fast_reload", WITHDRAW_NOTHING, 0, 0 },

	{ "flush", WITHDRAW_NAME, 0, 0 },
	{ "flush_type", WITHDRAW_NAME, 0, 0 },
	{ "flush_zone", WITHDRAW_SUBTREE, 0, 0 },
	{ "local_zone", CHANGE_LOCAL, 0, 0, 1 },
	{ "local_zone_remove", REMOVE_LOCAL, 0, 0, 1 },
	{ "local_data", CHANGE_LOCAL, 0, 0, 1 },
	{ "local_data_remove", CHANGE_LOCAL, 0, 0, 1 },
	{ "auth_zone_reload", CHANGE_ZONE, 0, 1 },
	{ "forward_add", WITHDRAW_SUBTREE, 0, 0, 1 },
	{ "forward_remove", WITHDRAW_SUBTREE, 0, 0, 1 },
	{ "stub_add", WITHDRAW_SUBTREE, 0, 0, 1 },
	{ "stub_remove", WITHDRAW_SUBTREE, 0, 0, 1 },
	{ "insecure_add", WITHDRAW_SUBTREE, 0, 0, 1 },
	{ "insecure_remove", WITHDRAW_SUBTREE, 0, 0, 1 },
	/* these say ok with the view's lock held: the view's clients, which the kernel never answers, should not
	 * wait for hydnsd */
	{ "view_local_zone", WITHDRAW_SUBTREE, 1, 1, 1 },
	{ "view_local_zone_remove", WITHDRAW_SUBTREE, 1, 1, 1 },
	{ "view_local_data", WITHDRAW_SUBTREE, 1, 1, 1 },
	{ "view_local_data_remove", WITHDRAW_SUBTREE, 1, 1, 1 },

	{ "flush_bogus", WITHDRAW_ALL, 0, 0 },
	{ "flush_negative", WITHDRAW_ALL, 0, 0 },
	{ "load_cache", WITHDRAW_ALL, 0, 0 },
	{ "forward", WITHDRAW_ALL, 0, 0, 1 },
	{ "rpz_enable", WITHDRAW_ALL, 0, 0, 1 },
	{ "rpz_disable", WITHDRAW_ALL, 0, 0, 1 },
	/* lists of names on stdin: one withdrawal instead of one per name */
	{ "local_zones", WITHDRAW_ALL, 0, 0, 1 },
	{ "local_zones_remove", WITHDRAW_ALL, 0, 0, 1 },
	{ "local_datas", WITHDRAW_ALL, 0, 0, 1 },
	{ "local_datas_remove", WITHDRAW_ALL, 0, 0, 1 },
	{ "view_local_datas", WITHDRAW_ALL, 0, 0, 1 },
	{ "view_local_datas_remove", WITHDRAW_ALL, 0, 0, 1 },

	{ "add_cookie_secret", UPDATE_COOKIES, 0, 0 },
	{ "drop_cookie_secret", UPDATE_COOKIES, 0, 0 },
	{ "activate_cookie_secret", UPDATE_COOKIES, 0, 0 },
	{ "set_option", CHECK_AND_WITHDRAW_ALL, 0, 0, 1 },
	{ "reload", CLOSE, 0, 0 },
	{ "reload_keep_cache", SUSPEND, 0, 0 },
	{ "stop", CLOSE, 0, 0 },
};
static const struct effect everything = { "", WITHDRAW_ALL, 0, 0, 1 };

/* Next word of a command line. Returns its start; *len is its length, 0 at the end. */
static const char* next_word(const char* line, size_t* len)
{
	while(isspace((unsigned char)*line))
		line++;
	for(*len = 0; line[*len] && !isspace((unsigned char)line[*len]);)
		(*len)++;
	return line;
}

static const struct effect* effect_of(const char* word, size_t len)
{
	size_t i;

	for(i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
		if(strlen(effects[i].command) == len && memcmp(effects[i].command, word, len) == 0)
			return &effects[i];
	return &everything;
}

/* Reads the name in the command's argument as Unbound does. False: it is no name. */
static int name_argument(struct hydns_control* c, const char* line, int argument)
{
	char text[LDNS_MAX_DOMAINLEN * 4 + 1];
	size_t len;

	for(;;) {
		line = next_word(line, &len);
		if(len == 0 || len >= sizeof(text))
			return 0;
		if(*line != '+' && argument-- == 0)
			break;
		line += len;
	}
	memcpy(text, line, len);
	text[len] = 0;
	c->name_len = sizeof(c->name);
	if(sldns_str2wire_dname_buf(text, c->name, &c->name_len) != 0)
		return 0;
	query_dname_tolower(c->name);
	return 1;
}

void hydns_control_begin(struct hydns_control* c, struct hydns_daemon* d, const char* command)
{
	const struct effect* effect;
	size_t len;

	memset(c, 0, sizeof(*c));
	c->daemon = d;
	if(!d)
		return;
	command = next_word(command, &len);
	effect = effect_of(command, len);
	c->action = effect->action;
	c->late = effect->late;
	d->altered |= effect->alters;
	if((effect->action == WITHDRAW_NAME || effect->action == WITHDRAW_SUBTREE || effect->action == CHANGE_LOCAL ||
		effect->action == REMOVE_LOCAL || effect->action == CHANGE_ZONE) && !name_argument(c, command + len, effect->argument))
		c->action = WITHDRAW_ALL;
	if(c->action == CHANGE_ZONE)
		hydns_zones_changing(d, c->name, c->name_len);
}

static void act(struct hydns_control* c)
{
	struct hydns_plugin* p = c->daemon->plugin;

	if(c->action == CHECK_AND_WITHDRAW_ALL)
		hydns_config_recheck(c->daemon, atomic_load(&c->daemon->open));
	if(c->action != WITHDRAW_NOTHING && c->action != CLOSE && c->action != SUSPEND && c->action != UPDATE_COOKIES)
		hydns_forward_refresh(c->daemon);
	switch((enum action)c->action) {
	case WITHDRAW_NOTHING:
		break;
	case WITHDRAW_NAME:
		hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, c->name, c->name_len);
		break;
	case WITHDRAW_SUBTREE:
		hydns_plugin_withdraw(p, HYDNS_SCOPE_SUBTREE, c->name, c->name_len);
		break;
	case CHANGE_LOCAL:
	case REMOVE_LOCAL:
		hydns_plugin_names_change_hands(p, c->name, c->name_len, c->action == REMOVE_LOCAL);
		break;
	case CHECK_AND_WITHDRAW_ALL:
		hydns_config_cookies(c->daemon->daemon, p);
		hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
		break;
	case WITHDRAW_ALL:
		hydns_plugin_names_change_hands(p, NULL, 0, 0);
		break;
	case CLOSE:
	case SUSPEND:
		hydns_daemon_leave(c->daemon, NULL, NULL);
		hydns_plugin_gone(p);
		break;
	case UPDATE_COOKIES:
		hydns_config_cookies(c->daemon->daemon, p);
		break;
	case CHANGE_ZONE:
		hydns_zones_changed(c->daemon, c->name, c->name_len);
		break;
	}
	c->action = WITHDRAW_NOTHING;
}

void hydns_control_finish(struct hydns_control* c)
{
	if(c && c->daemon && !c->late)
		act(c);
}

int hydns_control_leaves(const struct hydns_control* c)
{
	return c && c->daemon && (c->action == CLOSE || c->action == SUSPEND);
}

void hydns_control_leave(struct hydns_control* c, void (*say_ok)(void* arg), void* arg)
{
	const int action = c->action;

	c->action = WITHDRAW_NOTHING;
	if(action == SUSPEND)
		hydns_unchanged_suspend(c->daemon, say_ok, arg);
	else
		hydns_daemon_leave(c->daemon, say_ok, arg);
}

void hydns_control_end(struct hydns_control* c)
{
	if(c->daemon)
		act(c);
}

int hydns_stats_print(struct hydns_daemon* d, struct remote_stream* stream)
{
	if(!d)
		return 1;
	return ssl_printf(stream, "hydns.offering=%d\n", atomic_load(&d->open)) &&
		ssl_printf(stream, "hydns.answered=%lld\n", d->shown) &&
		ssl_printf(stream, "hydns.rules=%lld\n", (long long)d->last.rules);
}

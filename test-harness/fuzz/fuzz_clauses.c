/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile configurations of the plugins: the clause hydns: of Unbound and the parameters of named's plugin statement, of known and unknown
 * options with values that fit, almost fit, or are any octets. The patched unbound-checkconf and named-checkconf, which reads them by the
 * plugin itself, take each, or refuse it with a line that says why, and do the same when asked again; neither dies or goes on for ever.
 *
 * $UNBOUND_ROOT and $BIND_ROOT: where these are staged.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test-harness/fuzz/target.h"

#define UNBOUND      "usr/lib/hydns/unbound/sbin/unbound-checkconf"
#define BIND         "usr/lib/hydns/bind"
#define LINES_MOST   4
#define FILE_MOST    2048
#define OUTPUT_MOST  8192
#define LIMIT_MS     60000             /* of a program that needs some milliseconds */

static const struct {
	const char *name, *fitting;    /* a value that is taken */
} options[] = {
	{ "hydns-enable", "no" }, { "hydns-socket", "\"/run/x.sock\"" }, { "hydns-capacity", "1000" }, { "hydns-admission", "2" },
	{ "hydns-window", "10" }, { "hydns-min-ttl", "1" }, { "hydns-max-ttl", "3600" }, { "hydns-refresh", "10" },
	{ "hydns-flush-timeout", "100" }, { "hydns-pending-max", "100" }, { "hydns-pending-per-question", "10" },
	{ "hydns-queue", "auto" }, { "hydns-queue-upstream", "no" }, { "hydns-queue-frames", "1024" }, { "hydns-dnstap", "sample" },
	{ "hydns-dnstap-one-in", "7" }, { "hydns-log-buffer", "1" }, { "hydns-query-log", "yes" }, { "hydns-allow-unlogged", "yes" },
	{ "hydns-stale-after-crash", "no" }, { "hydns-allow-unlimited", "yes" }, { "hydns-forward", "{ \"example.net\"; }" },
	{ "hydns-preload", "{ \"example.net\"; }" }, { "hydns-capacit", "1" }, { "hydns", "" }, { "interface", "192.0.2.1" }, { "", "" },
};
static const char *const values[] = {
	"0", "1", "64", "100", "16777216", "16777217", "4294967295", "4294967296", "18446744073709551616", "-1", "1e3", "0x10",
	"yes", "no", "auto", "complete", "sample", "\"/run/x.sock\"", "\"\"", "{ \"example.net\"; }", "{ \"example.net\"; \"sub.example.net\"; }",
	"{ }", "{ \"..\"; }", "{", "}", ";", "\"", "# seven", "/* ", "%s%n", "10m", "\\", "",
};

/* A server whose plugin has such a clause. */
struct server {
	const char *program, *library_path;
	const char *head, *tail;       /* of its file, around the options */
	const char *between, *after;   /* name and value; value and the next line */
};
static char unbound[1024], bind[1024], bind_library[1024], bind_head[2048], folder[] = "/tmp/fuzz_clauses_XXXXXX", path[64];
static struct server servers[] = {
	{ .program = unbound, .head = "server:\n    username: \"\"\n    chroot: \"\"\n    directory: \"/\"\n"
				      "    module-config: \"hydns iterator\"\nhydns:\n", .tail = "", .between = ": ", .after = "\n" },
	{ .program = bind, .library_path = bind_library, .head = bind_head, .tail = "};\n", .between = " ", .after = ";\n" },
};
static uint64_t taken, refused;

/* -- a file -------------------------------------------------------------------------------------------------------------- */
struct text {
	char octet[FILE_MOST];
	size_t len;
};

static void add(struct text *t, const char *more, size_t len)
{
	len = len < sizeof(t->octet) - t->len ? len : sizeof(t->octet) - t->len;
	memcpy(t->octet + t->len, more, len);
	t->len += len;
}

static void add_words(struct text *t, const char *words)
{
	add(t, words, strlen(words));
}

static void add_any(struct text *t)
{
	uint8_t any[24];
	const size_t len = fuzz_below(sizeof(any));

	fuzz_fill(any, len);
	add(t, (const char *)any, len);
}

static void add_line(struct text *t, const struct server *s)
{
	const uint32_t option = fuzz_below(sizeof(options) / sizeof(options[0])), how = fuzz_below(32);

	if (how)
		add_words(t, options[option].name);
	else
		add_any(t);
	add_words(t, fuzz_below(32) ? s->between : "");
	if (how < 4)
		add_any(t);
	else if (how < 12)
		add_words(t, values[fuzz_below(sizeof(values) / sizeof(values[0]))]);
	else
		add_words(t, options[option].fitting);
	add_words(t, fuzz_below(32) ? s->after : "");
}

static void draw(struct text *t, const struct server *s)
{
	add_words(t, s->head);
	for (uint32_t n = 1 + fuzz_below(LINES_MOST); n; n--)
		add_line(t, s);
	add_words(t, s->tail);
}

static bool write_file(const struct text *t)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fwrite(t->octet, 1, t->len, f) == t->len;

	return f && !fclose(f) && ok;
}

/* -- a program ------------------------------------------------------------------------------------------------------------ */
static void exec_checker(const struct server *s, int out)
{
	if (s->library_path)
		setenv("LD_LIBRARY_PATH", s->library_path, 1);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(s->program, s->program, path, NULL);
	_exit(126);
}

/* Reads until the end, of which the last part is dropped that there is no room for. False: it does not come in time. */
static bool read_all(int in, char output[OUTPUT_MOST])
{
	struct pollfd p = { .fd = in, .events = POLLIN };
	char dropped[512];
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 || (n < 0 && errno == EINTR)) {
		const bool room = len < OUTPUT_MOST - 1;

		if (poll(&p, 1, LIMIT_MS) == 0)
			return false;
		n = read(in, room ? output + len : dropped, room ? OUTPUT_MOST - 1 - len : sizeof(dropped));
		len += n > 0 && room ? (size_t)n : 0;
	}
	output[len] = '\0';
	return true;
}

/* *status: of its end. NULL, or what is wrong. */
static const char *check(const struct server *s, int *status, char output[OUTPUT_MOST])
{
	bool ended;
	int out[2];
	pid_t pid;

	if (pipe(out) || (pid = fork()) < 0)
		return "there is no process for it";
	if (!pid)
		exec_checker(s, out[1]);
	close(out[1]);
	ended = read_all(out[0], output);
	close(out[0]);
	if (!ended)
		kill(pid, SIGKILL);
	if (waitpid(pid, status, 0) != pid)
		return "it has no end";
	return !ended ? "it goes on for ever" : WIFSIGNALED(*status) ? "it dies" : NULL;
}

/* Unbound's checks of several options name none of them by its line. */
static bool says_why(const char *output)
{
	return strstr(output, path) || strstr(output, "hydns");
}

static const char *turn(void)
{
	const struct server *s = &servers[fuzz_below(2)];
	char output[OUTPUT_MOST];
	int status, second;
	struct text t = { .len = 0 };
	const char *wrong;

	draw(&t, s);
	if (!write_file(&t))
		return "it can't be written";
	wrong = check(s, &status, output);
	if (wrong)
		return wrong;
	if (WEXITSTATUS(status) > 1)
		return "the status is none of those that there are";
	if (WEXITSTATUS(status) && !says_why(output))
		return "it is refused, and nothing says why";
	wrong = check(s, &second, output);     /* which may have the time and the process */
	if (wrong || second != status)
		return wrong ? wrong : "it is judged otherwise the second time";
	taken += !status;
	refused += status != 0;
	return NULL;
}

static void clear(void)
{
	unlink(path);
	rmdir(folder);
}

/* False: it is not staged. */
static bool find(const char *variable, const char *file, char *out, size_t room)
{
	const char *root = getenv(variable);

	return root && snprintf(out, room, "%s/%s", root, file) < (int)room && !access(out, X_OK);
}

static int begin(int argc, char **argv)
{
	const char *root = getenv("BIND_ROOT");

	(void)argc;
	(void)argv;
	if (!find("UNBOUND_ROOT", UNBOUND, unbound, sizeof(unbound)) || !find("BIND_ROOT", BIND "/bin/named-checkconf", bind, sizeof(bind))) {
		fprintf(stderr, "no patched resolvers in $UNBOUND_ROOT and $BIND_ROOT\n");
		return 77;
	}
	snprintf(bind_library, sizeof(bind_library), "%s/%s/lib", root, BIND);
	snprintf(bind_head, sizeof(bind_head), "options { directory \"/\"; };\nplugin query \"%s/bind/hydns.so\" {\n", bind_library);
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/clause.conf", folder);
	atexit(clear);
	return 0;
}

static int end(void)
{
	printf("%" PRIu64 " taken, %" PRIu64 " refused\n", taken, refused);
	return !taken || !refused;
}

const struct fuzz_target fuzz_target = { .name = "clauses", .one = "configuration", .count = 40, .begin = begin, .turn = turn, .end = end };

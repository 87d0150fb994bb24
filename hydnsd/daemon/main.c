/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd: start, periodic work, signals, end. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hydnsd/composition/exchange.h"
#include "hydnsd/composition/reload.h"
#include "hydnsd/control/activity.h"
#include "hydnsd/control/control.h"
#include "hydnsd/daemon/check.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/former.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/pause.h"
#include "hydnsd/daemon/privileges.h"
#include "hydnsd/daemon/sockets.h"
#include "hydnsd/netdev/addresses.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/netdev/routing.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/guard/guard.h"
#include "hydnsd/monitor/monitor.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/access_list.h"
#include "hydnsd/resolvers/configuration.h"
#include "hydnsd/resolvers/connections.h"
#include "hydnsd/resolvers/lanes.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/resolvers/porter.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/strays.h"

#define EXIT_USAGE        2
#define SECOND_MS         1000
#define RETRY_MS          5000

/* -- the service manager ------------------------------------------------------------------------------------- */
/* flags: MSG_DONTWAIT for a text that may be lost. */
static void notify_service_manager(const char *text, int flags)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (!path || strlen(path) >= sizeof(a.sun_path))
		return;
	strcpy(a.sun_path, path);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (a.sun_path[0] == '@')
		a.sun_path[0] = '\0'; /* the abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL | flags, (struct sockaddr *)&a, len);
	close(fd);
}

static void notify(const char *text)
{
	notify_service_manager(text, 0);
}

/* Shows that the loop runs. */
static void feed_watchdog(void)
{
	if (getenv("WATCHDOG_USEC"))
		notify_service_manager("WATCHDOG=1", MSG_DONTWAIT);
}

/* -- periodic work ------------------------------------------------------------------------------------------ */
static uint32_t housekeeping(void *arg)
{
	struct hydnsd *d = arg;

	hydnsd_parking_beat(d);
	hydnsd_rules_expire(d->rules, hydnsd_now_ns(), HYDNSD_EXPIRE_RULES);
	hydnsd_resolver_tick(d);
	hydnsd_addresses_tick(d);
	hydnsd_interfaces_tick(d);
	hydnsd_lanes_tick(d);
	hydnsd_forwarding_tick(d);
	hydnsd_sources_tick(d);
	hydnsd_composition_tick(d);
	hydnsd_grace_reclaim(d->grace);
	return 0;
}

/* Between two sweeps it does not wake. */
static uint32_t sweep(void *arg)
{
	static uint64_t begun_ms;
	static bool under_way;
	struct hydnsd *d = arg;
	uint64_t now = hydnsd_now_ms(), next;

	if (!under_way)
		begun_ms = now;
	under_way = !hydnsd_rules_sweep(d->rules, hydnsd_now_ns(), HYDNSD_SWEEP_SLOTS);
	next = begun_ms + hydnsd_rules_sweep_pause_ms(d->rules);
	return under_way || next <= now ? 0 : (uint32_t)(next - now);
}

static uint32_t each_second(void *arg)
{
	hydnsd_composition_follow(arg);
	hydnsd_activity_tick(arg);
	hydnsd_monitor_tick(arg);
	hydnsd_guard_tick(arg);
	hydnsd_control_tick(arg);
	hydnsd_strays_tick(arg);
	feed_watchdog();
	return 0;
}

static uint32_t retry(void *arg)
{
	hydnsd_interfaces_retry(arg);
	return 0;
}

static int work(void *arg)
{
	struct hydnsd *d = arg;
	int wait = hydnsd_sessions_work(d);

	wait = hydnsd_sooner(wait, hydnsd_forwarding_work(d));
	wait = hydnsd_sooner(wait, hydnsd_parking_work(d)); /* what the rings said is over */
	return hydnsd_sooner(wait, hydnsd_withdrawals_work(d));
}

/* -- signals -------------------------------------------------------------------------------------------------- */
static void ready(struct hydnsd *d)
{
	(void)d;
	notify("READY=1");
}

static void signalled(void *arg, uint32_t events)
{
	struct hydnsd *d = arg;
	struct hydnsd_reloaded reloaded;
	struct signalfd_siginfo s;

	(void)events;
	while (read(d->signal_fd, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGHUP) {
			notify("RELOADING=1");
			hydnsd_reload(d, &reloaded);
			hydnsd_composition_when_settled(d, ready);
			continue;
		}
		d->keep = s.ssi_signo == SIGUSR2 || d->options.keep_on_exit;
		hydnsd_loop_stop(d->loop);
	}
}

static int watch_signals(struct hydnsd *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);              /* a log or state that may not grow is an error like a full disk */
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signal_fd >= 0)
		d->signal_watch = hydnsd_loop_watch(d->loop, d->signal_fd, EPOLLIN, signalled, d);
	return d->signal_watch ? 0 : -ENOMEM;
}

/* -- start ---------------------------------------------------------------------------------------------------- */
static int open_kern(struct hydnsd *d, char *why)
{
	const struct hydnsd_options *o = &d->options;
	struct hydns_loader_options l = {
		.pin_dir = o->pin_dir, .uid = hydnsd_privileges_user(o), .capacity = o->capacity,
		.with = hydnsd_composition_begin(d),
	};

	if (o->reply_path == HYDNSD_REPLY_FIB) {
		int rc = hydnsd_routing_check(l.with.ipv6, why, HYDNS_WHY);

		if (rc)
			return rc;
	}
	return hydns_kern_open(&l, &d->kern, &d->adopted, why);
}

/* Call it before anything is attached. Does not end a pause: maps that are taken over may be paused without a record. */
static int keep_pause(struct hydnsd *d, char *why, size_t room)
{
	int rc;

	hydns_pause_prepare(d->options.state_dir);
	if (!hydns_pause_is_recorded(d->options.state_dir))
		return 0;
	rc = hydns_kern_pause(d->kern, true);
	if (rc)
		snprintf(why, room, "cannot pause, as was ordered before: %s", strerror(-rc));
	else
		hydnsd_log(HYDNSD_LOG_WARNING, "paused, as was ordered before: nothing is answered in the kernel until "
			   "hydnsctl resume");
	return rc;
}

static int open_rules(struct hydnsd *d, char *why, size_t room)
{
	const struct hydns_policy_options policy = HYDNSD_POLICY(d->options.capacity, d->options.min_hits);
	struct hydns_store_memory memory = {
		.geometry = hydns_kern_geometry(d->kern), .index = hydns_kern_index(d->kern),
		.hits = hydns_kern_hits(d->kern), .claims = hydns_kern_claims(d->kern), .slots = hydns_kern_slots(d->kern),
		.empty = hydns_kern_empty(d->kern), .seen = hydns_kern_seen(d->kern), .tallies = hydns_kern_tallies(d->kern),
	};
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		d->rules = hydnsd_rules_open(&memory, &policy, seed, hydnsd_now_ns());
	if (d->rules) {
		hydnsd_rules_set_missing(d->rules, d->missing);
		return 0;
	}
	snprintf(why, room, "out of memory: lower capacity");
	return -ENOMEM;
}

static int start_parts(struct hydnsd *d, char *why, size_t room)
{
	int rc = hydnsd_composition_start(d, why, room);

	if (!rc)
		rc = hydnsd_services_start(d, why, room);
	if (!rc)
		rc = hydnsd_parking_start(d, why, room);
	if (!rc)
		rc = hydnsd_forwarding_start(d, why, room);
	if (!rc)
		rc = hydnsd_monitor_start(d, why, room);
	if (!rc)
		rc = hydnsd_guard_start(d, why, room);
	if (rc)
		return rc;
	hydnsd_resolver_adopt(d);
	rc = hydnsd_addresses_start(d, hydnsd_services_sync, why, room);
	if (!rc)
		rc = hydnsd_sources_start(d, hydnsd_access_lists_refill, why, room);
	if (rc)
		return rc;
	hydnsd_services_sync(d);
	rc = hydnsd_interfaces_start(d, hydnsd_lanes_interface_news, why, room);
	if (!rc)
		rc = hydns_kern_publish(d->kern, why);
	if (!rc)
		rc = hydnsd_lanes_start(d, why, room);
	if (!rc)
		hydnsd_former_read(d);
	if (!rc)
		rc = hydnsd_sessions_start(d, why, room);
	if (!rc)
		rc = hydnsd_privileges_drop(&d->options, why, room);
	if (!rc)
		rc = hydnsd_grace_start(d->loop, d->rules, &d->grace, why, room);
	return rc;
}

static int start_ticks(struct hydnsd *d)
{
	hydnsd_loop_each_round(d->loop, work, d);
	if (hydnsd_loop_every(d->loop, HYDNSD_HOUSEKEEPING_MS, housekeeping, d) ||
	    hydnsd_loop_every(d->loop, HYDNSD_SWEEP_MS, sweep, d) ||
	    hydnsd_loop_every(d->loop, SECOND_MS, each_second, d))
		return -ENOSPC;
	return hydnsd_loop_every(d->loop, RETRY_MS, retry, d);
}

/* The control socket comes first: it shows whether another hydnsd runs, before this one touches the maps. */
static int start(struct hydnsd *d, char *why, size_t room)
{
	int rc = hydnsd_privileges_check(&d->options, why, room);

	if (rc)
		return rc;
	snprintf(why, room, "out of memory");
	d->loop = hydnsd_loop_new();
	d->withdrawals = hydnsd_withdrawals_new();
	d->activity = hydnsd_activity_new();
	d->missing = hydnsd_missing_new();
	if (!d->loop || !d->withdrawals || !d->activity || !d->missing || watch_signals(d))
		return -ENOMEM;
	rc = hydnsd_control_start(d, why, room);
	if (!rc)
		rc = open_kern(d, why);
	if (!rc)
		rc = keep_pause(d, why, room);
	if (!rc)
		rc = open_rules(d, why, room);
	if (!rc)
		rc = start_parts(d, why, room);
	if (!rc)
		rc = start_ticks(d);
	return rc;
}

static int write_pid(struct hydnsd *d, char *why, size_t room)
{
	const char *path = d->options.pid_file;
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!path)
		return 0;
	if (f && fprintf(f, "%d\n", (int)getpid()) > 0 && fclose(f) == 0) {
		d->pid_written = true;
		return 0;
	}
	snprintf(why, room, "cannot write pid-file %s: %s", path, strerror(errno));
	return -EIO;
}

/* -- end ------------------------------------------------------------------------------------------------------- */
static void stop(struct hydnsd *d, bool leave)
{
	char why[HYDNS_WHY] = "";

	hydnsd_composition_stop(d);
	hydnsd_forwarding_stop(d);
	hydnsd_monitor_stop(d);
	hydnsd_guard_stop(d);
	hydnsd_parking_stop(d);
	if (!leave)
		hydnsd_lanes_leave(d);
	/* so that counters do not change any more */
	hydnsd_interfaces_stop(d, d->kern && !leave);
	if (d->kern && !leave)
		hydnsd_grace_wait();
	if (d->sessions)
		hydnsd_sessions_stop(d);
	hydnsd_addresses_stop(d);
	hydnsd_sources_stop(d);
	hydnsd_grace_stop(d->grace);
	hydnsd_control_stop(d);
	hydnsd_services_stop(d);
	hydnsd_lanes_stop(d);
	hydnsd_withdrawals_free(d->withdrawals);
	hydnsd_rules_close(d->rules);
	if (d->kern && !leave && hydns_kern_remove(d->kern, why))
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", why);
	if (d->kern)
		hydns_kern_close(d->kern);
	hydnsd_former_free(d);
	hydnsd_activity_free(d->activity);
	hydnsd_missing_free(d->missing);
	hydnsd_watch_end(d->signal_watch);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		hydnsd_configuration_forget(&d->resolver[i]);
	hydnsd_loop_free(d->loop);
	if (d->pid_written)            /* not that of another hydnsd */
		unlink(d->options.pid_file);
}

static int run(struct hydnsd *d)
{
	char why[HYDNSD_OPTION_ERROR];
	int rc = start(d, why, sizeof(why));

	if (!rc)
		rc = write_pid(d, why, sizeof(why));
	if (rc) {
		hydnsd_log(HYDNSD_LOG_ERROR, "%s", why);
		/* a start that failed must not stop what a former hydnsd left answering */
		stop(d, d->adopted || !d->kern);
		return EXIT_FAILURE;
	}
	hydnsd_check_start(&d->options);
	hydnsd_log(HYDNSD_LOG_INFO, "hydnsd %s is ready%s%s: %u rules, capacity %u", PACKAGE_VERSION,
		   d->options.interface.count ? "" : ", without an interface", d->adopted ? ", with what a former one left" : "",
		   hydns_store_count(hydnsd_rules_store(d->rules)), d->options.capacity);
	notify("READY=1");
	hydnsd_loop_run(d->loop);
	notify("STOPPING=1");
	hydnsd_log(HYDNSD_LOG_INFO, "%s", d->keep ? "stopped; the program goes on answering" :
		   "stopped; nothing is left attached or pinned");
	stop(d, d->keep);
	return EXIT_SUCCESS;
}

static int clean(const struct hydnsd_options *o)
{
	char why[HYDNS_WHY];

	if (hydnsd_socket_busy(o->control_socket, SOCK_STREAM)) {
		hydnsd_log(HYDNSD_LOG_ERROR, "a hydnsd is running at %s: stop it first", o->control_socket);
		return EXIT_FAILURE;
	}
	if (hydns_kern_clean(o->pin_dir, why) == 0)
		return EXIT_SUCCESS;
	hydnsd_log(HYDNSD_LOG_ERROR, "%s", why);
	return EXIT_FAILURE;
}

/* Logs to stderr, whatever the configuration says. */
static int check(const struct hydnsd_options *o)
{
	hydnsd_log_open(HYDNSD_LOG_STDERR, HYDNSD_LOG_INFO);
	return hydnsd_check(o);
}

/* If one of these is closed at the start, the log must not go to a socket or map that gets its number. */
static void open_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	struct hydnsd d = { .argc = argc, .argv = argv, .started_ns = hydnsd_now_ns(), .signal_fd = -1 };
	char error[HYDNSD_OPTION_ERROR];
	int rc = EXIT_SUCCESS;

	if (argc > 0 && strcmp(argv[0], HYDNSD_PORTER) == 0)
		return hydnsd_porter_main();
	open_standard_descriptors();
	if (hydnsd_options_read(argc, argv, &d.options, error)) {
		hydnsd_log(HYDNSD_LOG_ERROR, "%s", error);
		return EXIT_USAGE;
	}
	hydnsd_options_log(&d.options);
	if (d.options.help)
		hydnsd_options_help(stdout);
	else if (d.options.version)
		printf("hydnsd %s\n", PACKAGE_VERSION);
	else if (d.options.print_options)
		hydnsd_options_print(stdout);
	else if (d.options.check)
		rc = check(&d.options);
	else if (d.options.clean)
		rc = clean(&d.options);
	else
		rc = run(&d);
	hydnsd_options_free(&d.options);
	return rc;
}

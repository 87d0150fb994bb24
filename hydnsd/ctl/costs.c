/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* status --costs: what each part of the program adds to a query, by copies that hydnsctl loads (hydns-kern/cost/cost.h). */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "hydns-kern/cost/cost.h"
#include "hydnsd/control/probe.h"
#include "hydnsd/ctl/common.h"

#define SECONDS_MOST   60              /* then no other copy is loaded */
#define PROGRESS_AFTER 2               /* seconds */
#define TYPE_A         1
#define PROGRAM        "hydns_xdp"

static const char *const part_names[HYDNS_PARTS] = {
#define HYDNS_PART(name, constant, text) #name,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
};

static void progress(unsigned loaded, unsigned of, void *begun)
{
	if (time(NULL) - *(const time_t *)begun >= PROGRESS_AFTER)
		ctl_error("measuring: %u of %u copies of the program are loaded", loaded, of);
}

/* -- the queries -------------------------------------------------------------------------------------------- */
/* Documentation's addresses: no frame leaves. */
static const uint8_t service[16] = { [10] = 0xff, 0xff, 198, 51, 100, 53 }, any_client[16] = { [10] = 0xff, 0xff, 192, 0, 2, 7 };
static const uint8_t names[HYDNS_COST_QUERIES][12] = { "\5hydns\4cost", "\4none\5hydns" };

/* A neighbour on an interface of the program, to whom a reply would be routed; else any address, and 0. */
static unsigned client_of(const json_t *interfaces, uint8_t client[16])
{
	FILE *f = fopen("/proc/net/arp", "re");
	char line[256], address[16], device[IF_NAMESIZE];
	unsigned flags, found = 0;
	const json_t *i;
	size_t n;

	memcpy(client, any_client, sizeof(any_client));
	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %*s 0x%x %*s %*s %15s", address, &flags, device) != 3 || !(flags & 2))
			continue;
		json_array_foreach(interfaces, n, i)
			if (!strcmp(ctl_str(i, FIELD(interface, name)), device) && inet_pton(AF_INET, address, client + 12) == 1)
				found = if_nametoindex(device);
	}
	if (f)
		fclose(f);
	return found;
}

static void fill_in(struct hydns_cost_setup *s, const json_t *interfaces)
{
	uint8_t client[16];

	s->egress = client_of(interfaces, client);
	memcpy(s->service.addr, service, sizeof(service));
	s->service.port = htons(53);
	s->name = names[HYDNS_COST_ANSWERED];
	s->name_len = sizeof(names[0]);
	for (unsigned q = 0; q < HYDNS_COST_QUERIES; q++) {
		struct hydnsd_query query = { .name = { .len = sizeof(names[q]) }, .qtype = htons(TYPE_A) };

		memcpy(query.name.octet, names[q], sizeof(names[q]));
		s->query[q].len = (__u32)hydnsd_probe_frame(&query, client, &s->service, s->query[q].octets);
	}
}

/* -- the reply ---------------------------------------------------------------------------------------------- */
static void add(json_t *to, const char *answered, const char *no_rule, const double ns[HYDNS_COST_QUERIES])
{
	json_object_set_new(to, answered, json_real(ns[HYDNS_COST_ANSWERED]));
	json_object_set_new(to, no_rule, json_real(ns[HYDNS_COST_NO_RULE]));
}

static void add_costs(json_t *composition, const struct hydns_costs *costs)
{
	json_t *p;
	size_t n;

	add(composition, FIELD(composition, answered_ns), FIELD(composition, no_rule_ns), costs->whole.ns);
	add(composition, FIELD(composition, answered_noise_ns), FIELD(composition, no_rule_noise_ns), costs->noise);
	json_array_foreach(json_object_get(composition, FIELD(composition, parts)), n, p)
		for (unsigned part = 0; part < HYDNS_PARTS; part++)
			if (costs->part[part].measured && !strcmp(ctl_str(p, FIELD(part, part)), part_names[part])) {
				add(p, FIELD(part, answered_ns), FIELD(part, no_rule_ns), costs->part[part].ns);
				json_object_set_new(p, FIELD(part, instructions), json_integer(costs->part[part].instructions));
			}
}

static __u32 program_id(const json_t *composition)
{
	const json_t *p;
	size_t n;

	json_array_foreach(json_object_get(composition, FIELD(composition, programs)), n, p)
		if (!strcmp(ctl_str(p, FIELD(program, program)), PROGRAM))
			return (__u32)ctl_int(p, FIELD(program, id));
	return 0;
}

int ctl_costs(json_t *status, char why[CTL_WHY])
{
	json_t *composition = json_object_get(status, FIELD(status, composition));
	time_t begun = time(NULL);
	struct hydns_cost_setup s = { .seconds = SECONDS_MOST, .progress = progress, .arg = &begun };
	struct hydns_costs costs;
	int err;

	s.prog_fd = bpf_prog_get_fd_by_id(program_id(composition));
	if (s.prog_fd < 0) {
		snprintf(why, CTL_WHY, "cannot measure costs: %s", s.prog_fd == -EPERM ? "run it as root" : "the program has just been exchanged: "
			 "try again");
		return s.prog_fd;
	}
	fill_in(&s, json_object_get(status, FIELD(status, interfaces)));
	err = hydns_costs_measure(&s, &costs, why);
	close(s.prog_fd);
	if (!err)
		add_costs(composition, &costs);
	return err;
}

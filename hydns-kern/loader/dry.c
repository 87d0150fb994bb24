/* SPDX-License-Identifier: GPL-2.0-only */
/* Dry runs: the reason that a packet would end with. hydns_dry runs over the same maps, but with its own scratch. */
#include <errno.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/program/dry.h"

int hydns_dry_open(const struct hydns_bpf *of, const struct hydns_geometry *g, struct hydns_bpf **out)
{
	struct hydns_bpf *dry = hydns_copy_open(of, HYDNS_HOOK_DRY_RUN, true);
	int err;

	if (!dry)
		return -ENOMEM;
	dry->rodata->hydns_dry_names = of->rodata->hydns_names_stage;
	err = hydns_bpf__load(dry);
	if (!err)
		err = hydns_scratch_prepare(bpf_map__fd(dry->maps.hydns_scratch), g);
	if (err)
		hydns_bpf__destroy(dry);
	else
		*out = dry;
	return err;
}

/* ifindex 0: the frame comes from the loopback interface. */
static int run(const struct hydns_bpf *dry, const void *frame, size_t len, unsigned ifindex, __u32 *result)
{
	struct xdp_md from = { .data_end = len, .ingress_ifindex = ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .ctx_in = ifindex ? &from : NULL,
		    .ctx_size_in = ifindex ? sizeof(from) : 0, .repeat = 1);
	int err = bpf_prog_test_run_opts(bpf_program__fd(hydns_program_at(dry, HYDNS_HOOK_DRY_RUN)), &o);

	if (!err)
		*result = o.retval;
	return err;
}

int hydns_dry_run(const struct hydns_bpf *dry, const void *frame, size_t len, unsigned ifindex, struct hydns_outcome *out)
{
	__u32 result = 0;
	int err = run(dry, frame, len, ifindex, &result);

	if (ifindex && (err == -EINVAL || err == -ENODEV))
		err = run(dry, frame, len, 0, &result);
	if (err)
		return err;
	if (HYDNS_DRY_REASON(result) >= HYDNS_REASONS || HYDNS_DRY_BENEATH(result) >= HYDNS_REASONS)
		return -EPROTO;
	out->reason = (enum hydns_reason)HYDNS_DRY_REASON(result);
	out->beneath = (enum hydns_reason)HYDNS_DRY_BENEATH(result);
	return 0;
}

int hydns_kern_dry_run(struct hydns_kern *k, const void *frame, size_t len, unsigned ifindex, struct hydns_outcome *out)
{
	return hydns_dry_run(k->dry, frame, len, ifindex, out);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Determines a file's format and calls its reader. */
#include "config.h"

#include "hydns-sim/read_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const formats[] = { "auto", "pcap", "dnstap", "dnsperf" };

bool sim_format_from_name(const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(name, formats[i]) == 0) {
			*out = i;
			return true;
		}
	return false;
}

static enum sim_format format_of(const uint8_t *head, size_t len)
{
	static const uint8_t fstrm[4] = { 0 };     /* a control frame's escape */
	static const uint32_t pcap[] = { 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a };
	uint32_t magic;

	if (len < sizeof(magic))
		return SIM_FORMAT_DNSPERF;
	memcpy(&magic, head, sizeof(magic));
	for (size_t i = 0; i < sizeof(pcap) / sizeof(pcap[0]); i++)
		if (magic == pcap[i])
			return SIM_FORMAT_PCAP;
	return memcmp(head, fstrm, sizeof(fstrm)) == 0 ? SIM_FORMAT_DNSTAP : SIM_FORMAT_DNSPERF;
}

static int detect(struct reader *r, enum sim_format *out)
{
	FILE *f = fopen(r->path, "re");
	uint8_t head[8];
	size_t len;

	if (!f)
		return read_fail(r, "cannot open it: %s", strerror(errno));
	len = fread(head, 1, sizeof(head), f);
	fclose(f);
	*out = r->options->format == SIM_FORMAT_AUTO ? format_of(head, len) : r->options->format;
	return 0;
}

static int read_format(struct reader *r, enum sim_format format)
{
	switch (format) {
	case SIM_FORMAT_PCAP:
#ifdef HAVE_PCAP
		return read_pcap(r);
#else
		return read_fail(r, "this hydns-sim was built without libpcap: install libpcap-dev and build again");
#endif
	case SIM_FORMAT_DNSTAP:
#ifdef HAVE_DNSTAP
		return read_dnstap(r);
#else
		return read_fail(r, "this hydns-sim was built without dnstap: install libfstrm-dev, libprotobuf-c-dev "
				 "and protobuf-c-compiler and build again");
#endif
	default:
		return read_dnsperf(r);
	}
}

int sim_read(const char *path, const struct sim_read_options *o, struct sim_trace *out,
	     struct sim_read_counts *counts, char error[SIM_READ_ERROR])
{
	struct names names = { 0 };
	struct reader r = { .path = path, .options = o, .out = out, .counts = counts, .error = error, .names = &names };
	enum sim_format format = o->format;
	int rc;

	memset(counts, 0, sizeof(*counts));
	sim_trace_init(out);
	rc = detect(&r, &format);
	if (!rc)
		rc = read_names_init(&names) ? read_format(&r, format) : read_fail(&r, "out of memory");
	if (!rc && !out->count)
		rc = read_fail(&r, "no DNS query in it (%ju frames): give a capture of the resolver's clients, "
			       "or say --format", (uintmax_t)counts->frames);
	read_names_free(&names);
	if (rc)
		sim_trace_free(out);
	return rc;
}

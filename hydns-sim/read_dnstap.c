/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* dnstap files: frame streams of protocol buffers. Reads only clients' queries and the responses to clients. */
#include "config.h"

#include <fstrm.h>

#include "hydns-sim/dnstap.pb-c.h"
#include "hydns-sim/read_internal.h"

#define CLIENT_QUERY    5
#define CLIENT_RESPONSE 6

static uint64_t in_us(uint64_t s, uint32_t ns)
{
	return s * 1000000 + ns / 1000;
}

static int take(struct reader *r, const uint8_t *data, size_t len)
{
	HydnsTap *tap = hydns_tap__unpack(NULL, len, data);
	const HydnsTapMessage *m = tap ? tap->message : NULL;
	int rc = 0;

	r->counts->frames++;
	if (m && m->type == CLIENT_QUERY && m->has_query_message)
		rc = read_message(r, m->query_message.data, m->query_message.len,
				  in_us(m->query_time_sec, m->query_time_nsec));
	else if (m && m->type == CLIENT_RESPONSE && m->has_response_message)
		rc = read_message(r, m->response_message.data, m->response_message.len,
				  in_us(m->response_time_sec, m->response_time_nsec));
	else
		r->counts->ignored++;
	if (tap)
		hydns_tap__free_unpacked(tap, NULL);
	return rc;
}

static int read_frames(struct reader *r, struct fstrm_reader *in)
{
	const uint8_t *data;
	fstrm_res got;
	size_t len;
	int rc = 0;

	while (!rc && (got = fstrm_reader_read(in, &data, &len)) == fstrm_res_success)
		rc = take(r, data, len);
	if (!rc && got != fstrm_res_stop)
		rc = read_fail(r, "the frame stream is broken after %ju frames: it seems truncated; take another",
			       (uintmax_t)r->counts->frames);
	return rc;
}

int read_dnstap(struct reader *r)
{
	struct fstrm_file_options *o = fstrm_file_options_init();
	struct fstrm_reader *in;
	int rc;

	fstrm_file_options_set_file_path(o, r->path);
	in = fstrm_file_reader_init(o, NULL);
	fstrm_file_options_destroy(&o);
	if (!in || fstrm_reader_open(in) != fstrm_res_success)
		rc = read_fail(r, "not a frame stream: give a dnstap file, or say --format");
	else
		rc = read_frames(r, in);
	fstrm_reader_destroy(&in);
	return rc;
}

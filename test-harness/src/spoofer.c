/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * spoofer: sees every query that comes to a name server by a link, as no attacker off the path does, and sends forged answers
 * by another link: each is right in all but one thing. Each has an address for the name that was asked for, 203.0.113.N: the
 * Nth kind.
 *
 * spoofer -l LINK -s SERVER -o OTHER -n NETNS -i LINK [-k KINDS] [-c COPIES] [-m MOST]
 *   -l, -s  where it sees queries (IPv4), and to which server; its namespace is that of the process
 *   -o      another address of the resolver's host
 *   -n, -i  namespace and link that forged answers leave by
 *   -k      letters of what is wrong, from the table below    [all but "c" and "q"]
 *   -c      forged answers of each kind to a query            [1]
 *   -m      ends forging after so many
 * At SIGTERM it prints a line "KIND NUMBER" for each kind, then "queries NUMBER", then "at-port NUMBER TIMES" and "with-id
 * NUMBER TIMES" for the queries seen.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common.h"

#define IP_AT       14
#define UDP_AT      34
#define DNS_AT      42
#define HEADER      12
#define QUERY_MAX   300             /* octets of a frame; longer ones are left alone */
#define ANSWER      16
#define FRAME_MAX   (QUERY_MAX + ANSWER)
#define BATCH       64
#define MARK        0x6666          /* identification of forged packets, by which it knows its own: no query is one of them */
#define LATE_NS     (20 * NS / 1000)
#define RECENT      256
#define LATER       4096            /* that wait for their time to be late */
#define EVIL        "\xc0\x0c\x00\x01\x00\x01\x00\x01\x51\x80\x00\x04\xcb\x00\x71\x00"

static const struct kind {
	char letter;
	const char *name;
} kinds[] = {
	{ 'p', "port" },            /* to another port, half of them to one that another query waits at */
	{ 'i', "id" },
	{ 's', "source" },          /* from another address */
	{ 'f', "source-port" },
	{ 'd', "destination" },     /* to another address of the host */
	{ 'x', "checksum" },
	{ 'l', "late" },            /* right in all, after the answer */
	{ 'b', "doubled" },         /* the answer itself, once more */
	{ 'o', "former" },          /* right in all, for the query that left from the port before this one */
	{ 'c', "case" },            /* of a letter of the name; only if the query has capitals (draft-vixie-dnsext-dns0x20) */
	{ 'q', "question" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct query {
	uint16_t len;               /* 0: none */
	uint8_t frame[QUERY_MAX];
};

static struct query *former;            /* by port: the last one */
static bool answered[65536];
static uint16_t recent[RECENT];         /* ports of the last queries */
static struct {
	int64_t at;
	struct query q;
} later[LATER];
static unsigned later_first, later_last;
static uint64_t sent[KINDS], queries, ports[65536], ids[65536], most = UINT64_MAX, forged;
static bool wanted[KINDS];
static in_addr_t server, other;
static unsigned copies = 1;
static volatile sig_atomic_t over;

static void end(int number)
{
	(void)number;
	over = 1;
}

/* xorshift64*: random enough for what must be wrong. */
static uint64_t next(void)
{
	static uint64_t state;

	if (!state && getrandom(&state, sizeof(state), 0) != sizeof(state))
		die("getrandom", strerror(errno));
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL >> 16;
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* --- sending ----------------------------------------------------------------------------------------------- */
static struct {
	int fd;
	unsigned n;
	uint8_t frame[BATCH][1600];
	struct iovec part[BATCH];
	struct mmsghdr message[BATCH];
} out;

static void flush(void)
{
	unsigned done = 0;

	while (done < out.n) {
		int n = sendmmsg(out.fd, out.message + done, out.n - done, 0);

		if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			die("sendmmsg", strerror(errno));
		done += n > 0 ? (unsigned)n : 0;
	}
	out.n = 0;
}

static uint8_t *begin(size_t len)
{
	if (out.n == BATCH)
		flush();
	out.part[out.n] = (struct iovec){ .iov_base = out.frame[out.n], .iov_len = len };
	out.message[out.n].msg_hdr = (struct msghdr){ .msg_iov = &out.part[out.n], .msg_iovlen = 1 };
	return out.frame[out.n++];
}

/* --- forging ----------------------------------------------------------------------------------------------- */
/* Length of the question, 0 when there is none. */
static size_t question_len(const uint8_t *dns, size_t len)
{
	size_t at = HEADER;

	while (at < len && dns[at])
		at += dns[at] + 1U;
	return at + 5 <= len ? at + 5 - HEADER : 0;
}

/* The answer that the server could have sent to this query, with the forged address. */
static size_t right_answer(uint8_t *f, const struct query *q)
{
	const uint8_t *dns = q->frame + DNS_AT;
	size_t question = question_len(dns, q->len - DNS_AT), len = DNS_AT + HEADER + question + ANSWER;

	memcpy(f, q->frame, DNS_AT + HEADER + question);
	memcpy(f, q->frame + ETH_ALEN, ETH_ALEN);
	memcpy(f + ETH_ALEN, q->frame, ETH_ALEN);
	put16(f + IP_AT + 2, (unsigned)(len - IP_AT));
	put16(f + IP_AT + 4, MARK);
	memcpy(f + IP_AT + 12, q->frame + IP_AT + 16, 4);
	memcpy(f + IP_AT + 16, q->frame + IP_AT + 12, 4);
	memcpy(f + UDP_AT, q->frame + UDP_AT + 2, 2);
	memcpy(f + UDP_AT + 2, q->frame + UDP_AT, 2);
	put16(f + UDP_AT + 4, (unsigned)(len - UDP_AT));
	put16(f + DNS_AT + 2, 0x8400);                 /* QR, AA */
	memcpy(f + DNS_AT + 4, "\0\1\0\1\0\0\0\0", 8);
	memcpy(f + len - ANSWER, EVIL, ANSWER);
	return len;
}

/* RFC 1071, folded. */
static uint16_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
	for (; len > 1; p += 2, len -= 2)
		sum += get16(p);
	if (len)
		sum += (uint32_t)*p << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void seal(uint8_t *f, size_t len)
{
	uint32_t pseudo = 17 + (uint32_t)(len - UDP_AT);
	uint16_t sum;

	put16(f + IP_AT + 10, 0);
	put16(f + IP_AT + 10, (uint16_t)~sum16(f + IP_AT, 20, 0));
	put16(f + UDP_AT + 6, 0);
	sum = (uint16_t)~sum16(f + UDP_AT, len - UDP_AT, pseudo + sum16(f + IP_AT + 12, 8, 0));
	put16(f + UDP_AT + 6, sum ? sum : 0xffff);
}

static void other_than(uint8_t *at, unsigned n)
{
	at[n - 1] ^= (uint8_t)(1 + next() % 255);
	for (unsigned i = 0; i + 1 < n; i++)
		at[i] ^= (uint8_t)(next() % 2 ? next() : 0);
}

static void another_port(uint8_t *f)
{
	const unsigned port = next() % 2 ? recent[next() % RECENT] : 0;

	if (port && port != get16(f + UDP_AT + 2))
		put16(f + UDP_AT + 2, port);
	else
		put16(f + UDP_AT + 2, 16384 + (get16(f + UDP_AT + 2) + 1 + next() % 16383) % 16384);
}

/* Turns the case of a letter; false: the name has no capitals. */
static bool another_case(uint8_t *dns)
{
	uint8_t *last = NULL;
	bool capital = false;

	for (uint8_t *label = dns + HEADER; *label; label += *label + 1)
		for (uint8_t *p = label + 1; p <= label + *label; p++)
			if (isalpha(*p)) {
				capital |= isupper(*p) != 0;
				last = !last || next() % 4 == 0 ? p : last;
			}
	if (capital)
		*last ^= 0x20;
	return capital;
}

/* Makes one thing wrong; false: it can't be. */
static bool make_wrong(uint8_t *f, char letter)
{
	switch (letter) {
	case 'p': another_port(f); break;
	case 'i': other_than(f + DNS_AT, 2); break;
	case 's': other_than(f + IP_AT + 12, 4); f[IP_AT + 12] = 10; break;
	case 'f': put16(f + UDP_AT, 1 + (52 + 1 + next() % 65534) % 65535); break;
	case 'd': memcpy(f + IP_AT + 16, &other, 4); break;
	case 'c': return another_case(f + DNS_AT);
	case 'q': f[DNS_AT + HEADER + 1] = f[DNS_AT + HEADER + 1] == 'z' ? 'y' : 'z'; break;
	}
	return true;
}

/* But none that means something: 0, or the pseudo-header's sum, which virtual interfaces hand over. */
static void another_checksum(uint8_t *f, size_t len)
{
	const unsigned right = get16(f + UDP_AT + 6), partial = sum16(f + IP_AT + 12, 8, 17 + (uint32_t)(len - UDP_AT));
	unsigned wrong;

	do
		wrong = next() & 0xffff;
	while (wrong == right || wrong == 0 || wrong == partial);
	put16(f + UDP_AT + 6, wrong);
}

static void forge(unsigned k, const struct query *q, unsigned times)
{
	uint8_t f[FRAME_MAX];

	for (unsigned i = 0; i < times && wanted[k] && forged < most; i++) {
		size_t len = right_answer(f, q);

		if (!make_wrong(f, kinds[k].letter))
			return;
		f[len - 1] = (uint8_t)(k + 1);
		seal(f, len);
		if (kinds[k].letter == 'x')
			another_checksum(f, len);
		memcpy(begin(len), f, len);
		sent[k]++;
		forged++;
	}
}

static unsigned kind(char letter)
{
	unsigned k = 0;

	while (kinds[k].letter != letter)
		k++;
	return k;
}

/* --- what it sees ------------------------------------------------------------------------------------------ */
static void saw_query(const struct query *q)
{
	const unsigned port = get16(q->frame + UDP_AT);

	ports[port]++;
	ids[get16(q->frame + DNS_AT)]++;
	recent[queries++ % RECENT] = (uint16_t)port;
	if (former[port].len && answered[port] && memcmp(former[port].frame + DNS_AT, q->frame + DNS_AT, 2) != 0)
		forge(kind('o'), &former[port], copies);
	for (unsigned k = 0; k < KINDS; k++)
		if (!strchr("lbo", kinds[k].letter))
			forge(k, q, copies);
	former[port] = *q;
	answered[port] = false;
	flush();
}

static void saw_answer(const uint8_t *frame, size_t len)
{
	const unsigned port = get16(frame + UDP_AT + 2);

	if (!former[port].len || answered[port] || memcmp(former[port].frame + DNS_AT, frame + DNS_AT, 2) != 0)
		return;
	answered[port] = true;
	if (wanted[kind('b')] && len <= sizeof(out.frame[0]) && forged < most) {
		uint8_t *again = begin(len);

		memcpy(again, frame, len);
		put16(again + IP_AT + 4, MARK);
		seal(again, len);
		sent[kind('b')]++;
		forged++;
		flush();
	}
	if (wanted[kind('l')] && later_last - later_first < LATER) {
		later[later_last % LATER].at = now() + LATE_NS;
		later[later_last++ % LATER].q = former[port];
	}
}

static void saw(const uint8_t *f, size_t len)
{
	if (len < DNS_AT + HEADER || f[12] != 8 || f[13] || f[IP_AT] != 0x45 || f[IP_AT + 9] != 17)
		return;
	len = len < IP_AT + get16(f + IP_AT + 2) ? len : IP_AT + get16(f + IP_AT + 2);       /* without padding */
	if (get16(f + UDP_AT + 2) == 53 && !memcmp(f + IP_AT + 16, &server, 4) && len <= QUERY_MAX &&
	    question_len(f + DNS_AT, len - DNS_AT)) {
		struct query q = { .len = (uint16_t)len };

		memcpy(q.frame, f, len);
		saw_query(&q);
	} else if (get16(f + UDP_AT) == 53 && !memcmp(f + IP_AT + 12, &server, 4))
		saw_answer(f, len);
}

static void send_late(void)
{
	while (later_first != later_last && later[later_first % LATER].at <= now())
		forge(kind('l'), &later[later_first++ % LATER].q, copies);
	flush();
}

/* --- sockets and the command line -------------------------------------------------------------------------- */
static int packet_socket(const char *link, unsigned protocol)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol),
					.sll_ifindex = (int)if_nametoindex(link) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), room = 1 << 26;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)))
		die(link, strerror(errno));
	return fd;
}

/* All but its own frames. Of all queries, one in 65,536 has their identification. */
static int listening(const char *link)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP_AT + 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(server), 3, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, IP_AT + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
	};
	const struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	int fd = packet_socket(link, ETH_P_ALL);

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		die("filter", strerror(errno));
	return fd;
}

static void enter(const char *netns)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(netns, strerror(errno));
	close(fd);
}

static int read_options(int argc, char **argv)
{
	const char *link = NULL, *by = NULL, *netns = NULL, *letters = "pisfdxlbo";
	int option, fd;

	while ((option = getopt(argc, argv, "l:s:o:n:i:k:c:m:")) != -1)
		switch (option) {
		case 'l': link = optarg; break;
		case 's': server = inet_addr(optarg); break;
		case 'o': other = inet_addr(optarg); break;
		case 'n': netns = optarg; break;
		case 'i': by = optarg; break;
		case 'k': letters = optarg; break;
		case 'c': copies = (unsigned)atoi(optarg); break;
		case 'm': most = strtoull(optarg, NULL, 10); break;
		default: exit(2);
		}
	if (!link || !by || !netns || !server)
		die("usage", "-l LINK -s SERVER -o OTHER -n NETNS -i LINK");
	for (unsigned k = 0; k < KINDS; k++)
		wanted[k] = strchr(letters, kinds[k].letter);
	fd = listening(link);
	enter(netns);
	out.fd = packet_socket(by, 0);
	return fd;
}

static void report(void)
{
	for (unsigned k = 0; k < KINDS; k++)
		printf("%s %lu\n", kinds[k].name, (unsigned long)sent[k]);
	printf("queries %lu\n", (unsigned long)queries);
	for (unsigned i = 0; i < 65536; i++) {
		if (ports[i])
			printf("at-port %u %lu\n", i, (unsigned long)ports[i]);
		if (ids[i])
			printf("with-id %u %lu\n", i, (unsigned long)ids[i]);
	}
}

int main(int argc, char **argv)
{
	struct sigaction on_end = { .sa_handler = end };
	struct pollfd p = { .fd = read_options(argc, argv), .events = POLLIN };
	static uint8_t frame[2048];

	former = calloc(65536, sizeof(*former));
	sigaction(SIGTERM, &on_end, NULL);
	puts("ready");
	fflush(stdout);
	while (!over) {
		if (poll(&p, 1, later_first == later_last ? 100 : 1) > 0) {
			ssize_t n = recv(p.fd, frame, sizeof(frame), MSG_DONTWAIT);

			if (n > 0)
				saw(frame, (size_t)n);
		}
		send_late();
	}
	report();
	return 0;
}

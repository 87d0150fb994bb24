/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS to the collector of dnstap messages, by the context that Unbound has made for its own connection (dnstap-tls-*). */
#include "config.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include "hydns_daemon.h"

#if defined(USE_DNSTAP) && defined(HAVE_SSL)
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include "daemon/daemon.h"
#include "dnstap/dnstap.h"
#include "dnstap/dtstream.h"
#include "util/log.h"
#include "util/net_help.h"

struct tls_context {
	SSL_CTX* ssl;
	char* server_name; /* NULL: any */
	int use_sni;
};

static void context_free(void* context)
{
	struct tls_context* c = (struct tls_context*)context;

	SSL_CTX_free(c->ssl);
	free(c->server_name);
	free(c);
}

/* Of the thread that Unbound writes by, which a reload ends before the plugin's. */
static void* context_of(const void* of)
{
	const struct dt_io_thread* dtio = (const struct dt_io_thread*)of;
	struct tls_context* c = (struct tls_context*)calloc(1, sizeof(*c));

	if(!c)
		return NULL;
	c->use_sni = dtio->tls_use_sni;
	if(dtio->ssl_ctx && SSL_CTX_up_ref((SSL_CTX*)dtio->ssl_ctx))
		c->ssl = (SSL_CTX*)dtio->ssl_ctx;
	if(dtio->tls_server_name)
		c->server_name = strdup(dtio->tls_server_name);
	if(!c->ssl || (dtio->tls_server_name && !c->server_name)) {
		context_free(c);
		return NULL;
	}
	return c;
}

static void* session_open(void* context, int fd)
{
	struct tls_context* c = (struct tls_context*)context;
	SSL* ssl = (SSL*)outgoing_ssl_fd(c->ssl, fd);

	if(ssl && !set_auth_name_on_ssl(ssl, c->server_name, c->use_sni)) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}

/* errno of a session that can't go on. */
static int why(const SSL* ssl, int error)
{
	long verified = SSL_get_verify_result(ssl);

	if((SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) && verified != X509_V_OK) {
		verbose(VERB_OPS, "hydns: the certificate of the dnstap collector: %s", X509_verify_cert_error_string(verified));
		return EKEYREJECTED;
	}
	if(error == SSL_ERROR_SYSCALL)
		return errno ? errno : ECONNRESET;
	log_crypto_err_io_code("hydns: TLS with the dnstap collector", error, ERR_get_error());
	return EPROTO;
}

/* What a call has come to that moved no octet. */
static ssize_t no_octet(const SSL* ssl, int result, short* awaited)
{
	int error = SSL_get_error(ssl, result);

	if(error == SSL_ERROR_ZERO_RETURN)
		return 0;
	if(error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		*awaited = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		errno = EAGAIN;
	} else {
		errno = why(ssl, error);
	}
	return -1;
}

static int most(size_t len)
{
	return len > INT_MAX ? INT_MAX : (int)len;
}

static ssize_t session_read(void* session, void* octets, size_t len, short* awaited)
{
	int n;

	ERR_clear_error();
	errno = 0;
	n = SSL_read((SSL*)session, octets, most(len));
	return n > 0 ? n : no_octet((SSL*)session, n, awaited);
}

static ssize_t session_write(void* session, const void* octets, size_t len, short* awaited)
{
	ssize_t n;

	ERR_clear_error();
	errno = 0;
	n = SSL_write((SSL*)session, octets, most(len));
	if(n <= 0)
		n = no_octet((SSL*)session, (int)n, awaited);
	if(n == 0) {
		errno = EPIPE;
		n = -1;
	}
	return n;
}

static void session_close(void* session)
{
	ERR_clear_error();
	(void)SSL_shutdown((SSL*)session);
	SSL_free((SSL*)session);
}

void hydns_tls_options(struct daemon* daemon, struct hydns_dnstap_options* o)
{
	static const struct hydns_dnstap_tls tls = {
		.context = context_of, .context_free = context_free, .open = session_open, .read = session_read,
		.write = session_write, .close = session_close,
	};

	o->tls = &tls;
	o->tls_context = daemon->dtenv ? daemon->dtenv->dtio : NULL;
}

#else
void hydns_tls_options(struct daemon* daemon, struct hydns_dnstap_options* o)
{
	(void)daemon; /* Unbound has refused dnstap-tls */
	(void)o;
}
#endif

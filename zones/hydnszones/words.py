# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Labels that resemble those of real names in look and length.

Second-level labels are pronounceable words of syllables; their length is drawn from a log-normal law
(median 9.5 octets, 90 % between 5 and 18), the shape that registered names have. Host labels are a mix of
the labels everybody uses, words, and what machines make up (numbers, hexadecimal tokens).
"""

ONSETS = ("b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br",
          "ch", "cl", "cr", "dr", "fl", "fr", "gr", "pl", "pr", "qu", "sh", "sk", "sl", "sp", "st", "th",
          "tr", "")
NUCLEI = ("a", "e", "i", "o", "u", "a", "e", "i", "o", "ai", "ea", "ee", "io", "ou", "y")
CODAS = ("", "", "", "", "n", "r", "s", "l", "t", "m", "x", "nd", "st", "ck", "ng", "rt")

COMMON_HOSTS = ("mail", "api", "cdn", "img", "static", "m", "shop", "blog", "login", "app", "dev", "assets",
                "media", "news", "support", "docs", "auth", "video", "search", "account", "images", "smtp",
                "imap", "pop", "webmail", "vpn", "remote", "portal", "status", "help", "forum", "store",
                "beta", "stage", "test", "data", "events", "analytics", "track", "ads", "push", "ws", "edge",
                "files", "download", "update", "git", "autodiscover", "calendar", "pay")

LENGTH_MU, LENGTH_SIGMA = 2.25, 0.38    # of ln(octets)
LABEL_SHORTEST, LABEL_LONGEST = 3, 40


def word(rng, length):
    """A pronounceable word of exactly `length` letters."""
    text = ""
    while len(text) < length:
        text += rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS)
    return text[:length]


def domain_label(rng):
    length = round(rng.lognormvariate(LENGTH_MU, LENGTH_SIGMA))
    length = max(LABEL_SHORTEST, min(LABEL_LONGEST, length))
    if length >= 9 and rng.random() < 0.12:
        left = rng.randint(3, length - 4)
        return word(rng, left) + "-" + word(rng, length - left - 1)
    if rng.random() < 0.06:
        return word(rng, length - 1) + rng.choice("1234567890")
    return word(rng, length)


def token(rng, length):
    return "".join(rng.choices("0123456789abcdef", k=length))


def host_label(rng):
    """One host name below a domain: one to three labels."""
    kind = rng.random()
    if kind < 0.18:
        return rng.choice(COMMON_HOSTS)
    if kind < 0.36:
        return f"{rng.choice(COMMON_HOSTS)}{rng.randint(1, 99)}"
    if kind < 0.62:
        return word(rng, max(3, min(20, round(rng.lognormvariate(1.95, 0.35)))))
    if kind < 0.76:
        return f"{rng.choice(COMMON_HOSTS)}-{word(rng, rng.randint(3, 10))}"
    if kind < 0.86:
        return token(rng, rng.choice((8, 12, 16, 32)))
    if kind < 0.96:
        return f"{rng.choice(COMMON_HOSTS)}.{word(rng, rng.randint(2, 9))}"
    return f"{token(rng, 12)}.{rng.choice(COMMON_HOSTS)}.{word(rng, rng.randint(3, 8))}"

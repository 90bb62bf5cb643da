/* One HTTP/1.1 response in a buffer: whether it is complete, where its body lies, whether it is a 200.
 * Owns parsing only, not sockets. Supports Content-Length and chunked bodies. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct response {
    size_t total; /* bytes of the whole response */
    const char *body;
    size_t body_len; /* of a chunked body: with its chunk lines */
    bool ok;         /* status 200 */
};

enum parse { PARSE_MORE, PARSE_DONE, PARSE_BAD };

/* Value of a header (lower-case name with its colon) in the head, or NULL. */
static const char *header_value(const char *head, size_t head_len, const char *name) {
    size_t name_len = strlen(name);
    const char *end = head + head_len;
    const char *line = head;
    while (line < end) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        if (eol == NULL) return NULL;
        if ((size_t)(eol - line) > name_len && strncasecmp(line, name, name_len) == 0) {
            const char *value = line + name_len;
            while (*value == ' ') value++;
            return value;
        }
        line = eol + 1;
    }
    return NULL;
}

/* Length of a chunked body including the last chunk, 0 while incomplete, (size_t)-1 when malformed. */
static size_t chunked_length(const char *body, size_t have) {
    size_t at = 0;
    for (;;) {
        const char *eol = memchr(body + at, '\n', have - at);
        if (eol == NULL) return 0;
        char *after;
        unsigned long size = strtoul(body + at, &after, 16);
        if (after == body + at) return (size_t)-1;
        at = (size_t)(eol - body) + 1;
        if (size > have || size + 2 > have - at) return 0;
        at += size + 2;
        if (size == 0) return at;
    }
}

/* The buffer must be NUL-terminated at buf[len]. */
static enum parse parse_response(const char *buf, size_t len, struct response *out) {
    const char *split = memmem(buf, len, "\r\n\r\n", 4);
    if (split == NULL) return PARSE_MORE;
    if (len < 12 || memcmp(buf, "HTTP/1.1 ", 9) != 0) return PARSE_BAD;
    size_t head_len = (size_t)(split - buf) + 2;
    out->ok = memcmp(buf + 9, "200", 3) == 0;
    out->body = split + 4;
    size_t have = len - head_len - 2;
    const char *value = header_value(buf, head_len, "content-length:");
    if (value != NULL) {
        out->body_len = strtoul(value, NULL, 10);
        if (have < out->body_len) return PARSE_MORE;
    } else {
        value = header_value(buf, head_len, "transfer-encoding:");
        if (value == NULL || strncasecmp(value, "chunked", 7) != 0) return PARSE_BAD;
        out->body_len = chunked_length(out->body, have);
        if (out->body_len == 0) return PARSE_MORE;
        if (out->body_len == (size_t)-1) return PARSE_BAD;
    }
    out->total = head_len + 2 + out->body_len;
    return PARSE_DONE;
}

#endif

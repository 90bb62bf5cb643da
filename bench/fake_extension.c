/* The fake extension: a WebSocket client that answers every request of the hub immediately.
 *
 *   fake_extension PORT SECRET BROWSER_ID ORIGIN OPENING_FILE (TEXT RESULT)...
 *
 * A request gets the first RESULT whose TEXT it contains. OPENING_FILE holds the messages sent right after the handshake,
 * one per line. ORIGIN may be empty. Once the handshake is done it prints "connected". Ends with status 0 when the hub closes the connection, 1 on anything it cannot parse. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER (16 << 20) /* over the hub's largest message */
#define PING_MS 20000

static int sock;
static char *in, *out;
static size_t in_len, out_len;
static char **results; /* pairs of TEXT and RESULT, then NULL */

static void fatal(const char *what) {
    fprintf(stderr, "fake extension: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static void flush_out(void) {
    for (size_t at = 0; at < out_len;) {
        ssize_t n = send(sock, out + at, out_len - at, MSG_NOSIGNAL);
        if (n <= 0) fatal("cannot send");
        at += (size_t)n;
    }
    out_len = 0;
}

/* Queue one frame; clients must mask, so a fixed key is used. */
static void queue(unsigned char opcode, const char *data, size_t len) {
    static const unsigned char mask[4] = {0x5a, 0xc3, 0x17, 0x88};
    if (out_len + len + 14 > BUFFER) flush_out();
    unsigned char *at = (unsigned char *)out + out_len;
    *at++ = 0x80 | opcode;
    if (len < 126) {
        *at++ = (unsigned char)(0x80 | len);
    } else if (len < 65536) {
        *at++ = 0x80 | 126;
        *at++ = (unsigned char)(len >> 8);
        *at++ = (unsigned char)len;
    } else {
        *at++ = 0x80 | 127;
        for (int shift = 56; shift >= 0; shift -= 8) *at++ = (unsigned char)((uint64_t)len >> shift);
    }
    memcpy(at, mask, 4);
    at += 4;
    for (size_t i = 0; i < len; i++) at[i] = (unsigned char)data[i] ^ mask[i & 3];
    out_len = (size_t)(at - (unsigned char *)out) + len;
}

static void queue_text(const char *text) { queue(1, text, strlen(text)); }

/* A request has an integer id and gets a result; a ping notification gets a pong; other notifications nothing.
 * A quote inside a JSON string is escaped, so `"id":` is a key wherever it stands. */
static void on_text(const char *text, size_t len) {
    static char answer[65536];
    const char *id = memmem(text, len, "\"id\":", 5);
    if (id == NULL) {
        if (memmem(text, len, "\"method\":\"ping\"", 15)) queue_text("{\"jsonrpc\":\"2.0\",\"method\":\"pong\",\"params\":{}}");
        return;
    }
    id += 5;
    while (*id == ' ') id++;
    size_t digits = strspn(id, "0123456789");
    if (digits == 0) return;
    char **found = results;
    while (found[2] != NULL && memmem(text, len, found[0], strlen(found[0])) == NULL) found += 2;
    const char *result = found[1];
    size_t result_len = strlen(result);
    int head = snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":", (int)digits, id);
    if ((size_t)head + result_len + 1 > sizeof answer) fatal("a result is too large");
    memcpy(answer + head, result, result_len);
    answer[(size_t)head + result_len] = '}';
    queue(1, answer, (size_t)head + result_len + 1);
}

/* Read one frame at `at`; returns its length, or 0 while it is incomplete. */
static size_t take_frame(char *at, size_t have) {
    const unsigned char *head = (unsigned char *)at;
    if (have < 2) return 0;
    uint64_t len = head[1] & 0x7f;
    size_t start = 2;
    if (len == 126) {
        if (have < 4) return 0;
        len = (uint64_t)head[2] << 8 | head[3];
        start = 4;
    } else if (len == 127) {
        if (have < 10) return 0;
        len = 0;
        for (int i = 2; i < 10; i++) len = len << 8 | head[i];
        start = 10;
    }
    if (len > BUFFER - 16) fatal("a frame is too large");
    if (have < start + len) return 0;
    char *data = at + start;
    switch (head[0]) {
    case 0x81: on_text(data, (size_t)len); break;
    case 0x89: queue(10, data, (size_t)len); break;
    case 0x8a: break;
    case 0x88: exit(0);
    default: errno = 0; fatal("a frame of a kind not expected (fragmented, binary or compressed)");
    }
    return start + (size_t)len;
}

static void handshake(const char *port, const char *secret, const char *browser, const char *origin) {
    char origin_line[256] = "";
    if (*origin) snprintf(origin_line, sizeof origin_line, "Origin: %s\r\n", origin);
    out_len = (size_t)snprintf(out, BUFFER,
                               "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               "Sec-WebSocket-Key: dGFiaHViLWJlbmNoLWtleQ==\r\nSec-WebSocket-Version: 13\r\n"
                               "Sec-WebSocket-Protocol: tabhub, %s, %s\r\n%s\r\n",
                               port, secret, browser, origin_line);
    flush_out();
    char *split = NULL;
    while (split == NULL) {
        ssize_t n = recv(sock, in + in_len, BUFFER - in_len, 0);
        if (n <= 0) fatal("the connection ended during the handshake");
        in_len += (size_t)n;
        in[in_len] = '\0';
        split = strstr(in, "\r\n\r\n");
    }
    if (strncmp(in, "HTTP/1.1 101", 12) != 0) {
        errno = 0;
        *split = '\0';
        fatal(in);
    }
    in_len -= (size_t)(split + 4 - in);
    memmove(in, split + 4, in_len);
}

static void queue_opening(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) fatal(path);
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, file)) > 0;) queue(1, line, (size_t)(line[n - 1] == '\n' ? n - 1 : n));
    free(line);
    fclose(file);
}

static void drain(void) {
    size_t at = 0;
    for (size_t n; (n = take_frame(in + at, in_len - at)) > 0; at += n) {}
    in_len -= at;
    memmove(in, in + at, in_len);
    flush_out();
}

int main(int argc, char **argv) {
    if (argc < 8 || argc % 2 != 0) {
        fprintf(stderr, "usage: fake_extension PORT SECRET BROWSER_ID ORIGIN OPENING_FILE (TEXT RESULT)...\n");
        return 2;
    }
    results = argv + 6;
    in = malloc(BUFFER + 1);
    out = malloc(BUFFER + 1);
    if (in == NULL || out == NULL) fatal("memory");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sock = socket(AF_INET, SOCK_STREAM, 0);
    if (sock < 0 || connect(sock, (struct sockaddr *)&to, sizeof to) != 0) fatal("cannot connect");
    int one = 1;
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    handshake(argv[1], argv[2], argv[3], argv[4]);
    queue_opening(argv[5]);
    drain();
    puts("connected");
    fflush(stdout);
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    for (;;) {
        int n = poll(&ready, 1, PING_MS);
        if (n < 0 && errno != EINTR) fatal("poll");
        if (n == 0) {
            queue_text("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{}}");
            flush_out();
        }
        if (n <= 0) continue;
        ssize_t got = recv(sock, in + in_len, BUFFER - in_len, 0);
        if (got == 0) return 0;
        if (got < 0) fatal("the connection ended");
        in_len += (size_t)got;
        in[in_len] = '\0';
        drain();
    }
}

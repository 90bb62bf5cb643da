/* Load on WebSockets: N agents in a closed loop, one request each at a time, and the browser that answers them.
 *
 *   relay_load -p PORT -c AGENTS -d SECONDS -m MARKER [-b PORT_OF_THE_BROWSER -t TOKEN [-w MICROSECONDS]]
 *
 * With -b and -t it speaks a relay's protocol: a browser connects to that port, the agents to theirs, and each is connected
 * to it. Without them it sends the same requests to an echo. Every answer must have the id of its request and MARKER.
 * -w  how long the browser takes for messages that arrive together; this process does nothing else meanwhile
 * Prints one JSON object; the first wrong answer ends it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (1 << 18)
#define TICK_NS 100 /* latencies are kept in ticks, so 32 bits hold seven minutes */
#define RESULT "{\"tabId\":42,\"url\":\"https://example.com/\"}"

struct conn {
    int fd;
    bool browser;
    uint64_t number, started;
    size_t have, queued;
    char *in, *out;
};

static const char *marker;
static useconds_t work;
static uint32_t *latencies;
static size_t done, room;

static void fatal(const char *what, const char *detail, size_t len) {
    fprintf(stderr, "relay_load: %s%s%s: %.*s\n", what, errno ? ": " : "", errno ? strerror(errno) : "", (int)len, detail);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void record(uint64_t ns) {
    if (done == room) {
        room = room ? room * 2 : 1 << 18;
        latencies = realloc(latencies, room * sizeof *latencies);
        if (latencies == NULL) fatal("memory", "", 0);
    }
    latencies[done++] = (uint32_t)(ns / TICK_NS);
}

static void flush_out(struct conn *c) {
    for (size_t at = 0; at < c->queued;) {
        ssize_t n = send(c->fd, c->out + at, c->queued - at, MSG_NOSIGNAL);
        if (n <= 0) fatal("cannot send", "", 0);
        at += (size_t)n;
    }
    c->queued = 0;
}

/* Queue one frame, masked with zeros, which leaves it as it is. */
static void queue(struct conn *c, unsigned char opcode, const char *data, size_t len) {
    if (len > 65535 || c->queued + len + 8 > BUFFER) fatal("more to send than there is room for", data, 40);
    unsigned char *at = (unsigned char *)c->out + c->queued;
    *at++ = 0x80 | opcode;
    *at++ = (unsigned char)(0x80 | (len < 126 ? len : 126));
    if (len >= 126) {
        *at++ = (unsigned char)(len >> 8);
        *at++ = (unsigned char)len;
    }
    memset(at, 0, 4);
    memcpy(at + 4, data, len);
    c->queued = (size_t)(at + 4 - (unsigned char *)c->out) + len;
}

/* The frame at `at`: its length including its header, or 0 while it is incomplete. */
static size_t frame_at(const char *at, size_t have, const char **data, size_t *len) {
    const unsigned char *head = (const unsigned char *)at;
    if (have < 2) return 0;
    size_t start = 2;
    *len = head[1] & 0x7f;
    if (*len == 126) {
        if (have < 4) return 0;
        *len = (size_t)head[2] << 8 | head[3];
        start = 4;
    } else if (*len == 127) fatal("a frame is too large", at, 2);
    *data = at + start;
    return have < start + *len ? 0 : start + *len;
}

static void start_request(struct conn *c) {
    static char text[256];
    int len = snprintf(text, sizeof text,
                       "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
                       ",\"method\":\"createTab\",\"params\":{\"url\":\"https://example.com/\",\"stealth\":true}}",
                       ++c->number);
    queue(c, 1, text, (size_t)len);
    c->started = now_ns();
    flush_out(c);
}

static void on_text(struct conn *c, const char *text, size_t len, bool more) {
    static char answer[1024];
    const char *id = memmem(text, len, "\"id\":", 5);
    if (id == NULL) return; /* a notification */
    if (!c->browser) {
        if (strtoull(id + 5, NULL, 10) != c->number || memmem(text, len, marker, strlen(marker)) == NULL)
            fatal("not the answer", text, len);
        record(now_ns() - c->started);
        if (more) start_request(c);
        return;
    }
    const char *end = memchr(id + 6, '"', len - (size_t)(id + 6 - text));
    if (id[5] != '"' || end == NULL || end - id > 400) fatal("not a request of a relay", text, len);
    int size = snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":" RESULT "}",
                        (int)(end - id - 4), id + 5);
    queue(c, 1, answer, (size_t)size);
}

static void receive(struct conn *c) {
    ssize_t n = recv(c->fd, c->in + c->have, BUFFER - c->have, 0);
    if (n <= 0) fatal("the connection ended", c->in, c->have);
    c->have += (size_t)n;
    c->in[c->have] = '\0';
}

static void take(struct conn *c, bool more) {
    const char *data;
    size_t at = 0, len;
    for (size_t n; (n = frame_at(c->in + at, c->have - at, &data, &len)) > 0; at += n) {
        if ((unsigned char)c->in[at] == 0x81) on_text(c, data, len, more);
        else if ((unsigned char)c->in[at] == 0x89) queue(c, 10, data, len);
        else fatal("a frame that was not expected", data, len);
    }
    c->have -= at;
    memmove(c->in, c->in + at, c->have);
    if (c->queued && work) usleep(work);
    if (c->queued) flush_out(c);
}

/* Wait for a message that contains this; others are skipped. */
static char *awaited(struct conn *c, const char *what) {
    static char text[BUFFER];
    const char *data;
    for (;;) {
        size_t len, n = frame_at(c->in, c->have, &data, &len);
        if (n == 0) {
            receive(c);
            continue;
        }
        memcpy(text, data, len);
        text[len] = '\0';
        c->have -= n;
        memmove(c->in, c->in + n, c->have);
        if (strstr(text, "\"error\"")) fatal("refused", text, len);
        if (strstr(text, what)) return text;
    }
}

static void say(struct conn *c, const char *form, const char *value) {
    static char text[16384];
    int len = snprintf(text, sizeof text, form, value);
    queue(c, 1, text, (size_t)len);
    flush_out(c);
}

static void open_conn(struct conn *c, int port, const char *path) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->in = malloc(BUFFER + 1);
    c->out = malloc(BUFFER);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->in == NULL || c->out == NULL || c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        fatal("cannot connect", path, strlen(path));
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->queued = (size_t)snprintf(c->out, BUFFER,
                                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Key: dGFiaHViLWJlbmNoLWtleQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                                 path, port);
    flush_out(c);
    char *split = NULL;
    while (split == NULL) {
        receive(c);
        split = strstr(c->in, "\r\n\r\n");
    }
    if (strncmp(c->in, "HTTP/1.1 101", 12) != 0) fatal("no WebSocket", c->in, c->have);
    c->have -= (size_t)(split + 4 - c->in);
    memmove(c->in, split + 4, c->have);
}

/* The extension_id that the relay assigned to the browser. */
static char *open_browser(struct conn *c, int port, const char *token) {
    open_conn(c, port, "/extension");
    c->browser = true;
    awaited(c, "\"proxy:1\"");
    say(c, "{\"jsonrpc\":\"2.0\",\"id\":\"proxy:1\",\"result\":{\"name\":\"Bench\",\"accessToken\":\"%s\"}}", token);
    char *id = strdup(strstr(awaited(c, "\"authenticated\""), "\"ext-") + 1);
    *strchr(id, '"') = '\0';
    return id;
}

static void open_agent(struct conn *c, int port, const char *token, const char *extension) {
    open_conn(c, port, extension ? "/mcp" : "/");
    c->number = 100;
    if (extension == NULL) return;
    say(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mcp_handshake\",\"params\":{\"accessToken\":\"%s\"}}", token);
    awaited(c, "\"id\":1,");
    say(c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"connect\",\"params\":{\"extension_id\":\"%s\"}}", extension);
    awaited(c, "\"id\":2,");
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(double q) {
    size_t at = (size_t)(q * (double)done);
    return done ? latencies[at < done ? at : done - 1] * (double)TICK_NS / 1000.0 : 0;
}

static double cpu_seconds(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    int port = 0, agents = 0, browser_port = 0;
    double seconds = 0;
    const char *token = NULL;
    for (int option; (option = getopt(argc, argv, "p:c:d:m:b:t:w:")) != -1;) {
        if (option == 'p') port = atoi(optarg);
        else if (option == 'c') agents = atoi(optarg);
        else if (option == 'd') seconds = atof(optarg);
        else if (option == 'm') marker = optarg;
        else if (option == 'b') browser_port = atoi(optarg);
        else if (option == 't') token = optarg;
        else if (option == 'w') work = (useconds_t)atoi(optarg);
        else return 2;
    }
    if (port == 0 || agents < 1 || seconds <= 0 || marker == NULL || (browser_port != 0) != (token != NULL)) {
        fprintf(stderr, "usage: relay_load -p PORT -c AGENTS -d SECONDS -m MARKER [-b PORT -t TOKEN [-w MICROSECONDS]]\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1000); /* else `work` would be 50 us longer than it says */
    int count = agents + (token != NULL), poll = epoll_create1(0);
    struct conn *conns = calloc((size_t)count, sizeof *conns);
    struct epoll_event *events = calloc((size_t)count, sizeof *events);
    if (conns == NULL || events == NULL || poll < 0) fatal("start", "", 0);
    char *extension = token ? open_browser(&conns[agents], browser_port, token) : NULL;
    for (int i = 0; i < agents; i++) open_agent(&conns[i], port, token, extension);
    for (int i = 0; i < count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &e);
    }
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 2; /* whoever measures has looked at the server's clock */
    uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), now = begin;
    double cpu = cpu_seconds();
    for (int i = 0; i < agents; i++) start_request(&conns[i]);
    while (now < end) {
        int n = epoll_wait(poll, events, count, 100);
        if (n < 0 && errno != EINTR) fatal("epoll_wait", "", 0);
        now = now_ns();
        for (int i = 0; i < n; i++) {
            receive(events[i].data.ptr);
            take(events[i].data.ptr, now < end);
        }
    }
    double took = (double)(now - begin) / 1e9;
    qsort(latencies, done, sizeof *latencies, by_size);
    printf("{\"calls\":%zu,\"seconds\":%.4f,\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_seconds\":%.4f}\n", done,
           took, (double)done / took, quantile_us(0.5), quantile_us(0.99), cpu_seconds() - cpu);
    return 0;
}

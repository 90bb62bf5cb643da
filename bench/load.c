/* Load generator: N keep-alive connections in a closed loop, repeating the same request for a fixed time.
 *
 *   load -p PORT -c CONNECTIONS -d SECONDS -r REQUEST_FILE -m MARKER [-i PLACEHOLDER [-k]]
 *
 * -m  every body must contain MARKER, and every status must be 200
 * -i  a run of digits in the request that is replaced by a new number of the same length each time (a JSON-RPC id)
 * -k  every body must contain the number of its request
 * Prints one JSON object; a wrong response or a closed connection is an error, and the first one is shown. */
#define _GNU_SOURCE
#include "response.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (1 << 20)
#define MAX_ERRORS 1000
#define TICK_NS 100 /* latencies are kept in ticks, so 32 bits hold seven minutes */

struct conn {
    int fd;
    size_t sent; /* bytes of the request already written; the whole length when waiting for the answer */
    uint64_t started;
    uint64_t number;
    size_t have;
    char *buf;
};

static struct {
    int port, connections, epoll;
    double seconds;
    const char *marker, *placeholder;
    bool check_number;
    char *request;
    size_t request_len, number_at, number_len;
} setup;

static uint64_t next_number, errors;
static uint32_t *latencies;
static size_t done, room;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fatal(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void count_error(const char *what, const char *detail, size_t detail_len) {
    if (errors++ == 0) fprintf(stderr, "load: %s: %.*s\n", what, (int)(detail_len > 2000 ? 2000 : detail_len), detail);
}

static void record(uint64_t ns) {
    if (done == room) {
        room = room ? room * 2 : 1 << 18;
        latencies = realloc(latencies, room * sizeof *latencies);
        if (latencies == NULL) fatal("memory");
    }
    latencies[done++] = (uint32_t)(ns / TICK_NS);
}

static void watch(struct conn *c, int op, uint32_t events) {
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (epoll_ctl(setup.epoll, op, c->fd, &e) != 0) fatal("epoll_ctl");
}

static void open_conn(struct conn *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)setup.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0) fatal("socket");
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) fatal("cannot connect");
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
    c->have = 0;
}

/* Write what is left of the request; a full socket buffer waits for EPOLLOUT. False when the connection is closed. */
static bool send_rest(struct conn *c) {
    size_t before = c->sent;
    ssize_t n = send(c->fd, setup.request + c->sent, setup.request_len - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
        count_error("cannot send", strerror(errno), 64);
        return false;
    }
    if (n > 0) c->sent += (size_t)n;
    if (c->sent < setup.request_len) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    else if (before != 0) watch(c, EPOLL_CTL_MOD, EPOLLIN);
    return true;
}

static void write_number(uint64_t number) {
    for (size_t i = setup.number_len; i-- > 0; number /= 10) setup.request[setup.number_at + i] = (char)('0' + number % 10);
}

static bool start_request(struct conn *c) {
    if (setup.placeholder != NULL) {
        c->number = next_number++;
        write_number(c->number);
    }
    c->sent = 0;
    c->started = now_ns();
    return send_rest(c);
}

static void check(const struct conn *c, const struct response *r) {
    char number[24];
    int digits = snprintf(number, sizeof number, "%" PRIu64, c->number);
    if (!r->ok) count_error("the status is not 200", c->buf, r->total);
    else if (memmem(r->body, r->body_len, setup.marker, strlen(setup.marker)) == NULL)
        count_error("the body lacks the marker", c->buf, r->total);
    else if (setup.check_number && memmem(r->body, r->body_len, number, (size_t)digits) == NULL)
        count_error("the body is the answer to another request", c->buf, r->total);
    else record(now_ns() - c->started);
}

/* Read what there is; start the next request after each answer. False when the connection must be opened again. */
static bool readable(struct conn *c, uint64_t end) {
    ssize_t n = recv(c->fd, c->buf + c->have, BUFFER - c->have, 0);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) {
        count_error("the connection ended", "", 0);
        return false;
    }
    c->have += (size_t)n;
    c->buf[c->have] = '\0';
    struct response r;
    switch (parse_response(c->buf, c->have, &r)) {
    case PARSE_MORE:
        if (c->have == BUFFER) break;
        return true;
    case PARSE_DONE:
        if (r.total != c->have) break;
        check(c, &r);
        c->have = 0;
        return now_ns() >= end || start_request(c);
    case PARSE_BAD:
        break;
    }
    count_error("not a response that can be read", c->buf, c->have);
    return false;
}

static void again(struct conn *c) {
    close(c->fd);
    open_conn(c);
    start_request(c);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(double q) {
    if (done == 0) return 0;
    size_t at = (size_t)(q * (double)done);
    return latencies[at < done ? at : done - 1] * (double)TICK_NS / 1000.0;
}

static void report(double seconds) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    if (done > 0) qsort(latencies, done, sizeof *latencies, by_size);
    printf("{\"requests\":%zu,\"errors\":%" PRIu64 ",\"seconds\":%.4f,\"rate\":%.1f,\"p50_us\":%.1f,\"p90_us\":%.1f,"
           "\"p99_us\":%.1f,\"max_us\":%.1f,\"cpu_seconds\":%.4f}\n",
           done, errors, seconds, (double)done / seconds, quantile_us(0.5), quantile_us(0.9), quantile_us(0.99),
           quantile_us(1.0), cpu);
}

static void read_request(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fatal(path);
    setup.request = malloc(BUFFER + 1);
    setup.request_len = fread(setup.request, 1, BUFFER, file);
    setup.request[setup.request_len] = '\0';
    fclose(file);
    if (setup.placeholder == NULL) return;
    const char *found = strstr(setup.request, setup.placeholder);
    if (found == NULL) {
        errno = EINVAL;
        fatal("the placeholder is not in the request");
    }
    setup.number_at = (size_t)(found - setup.request);
    setup.number_len = strlen(setup.placeholder);
    next_number = strtoull(setup.placeholder, NULL, 10);
}

int main(int argc, char **argv) {
    const char *path = NULL;
    for (int option; (option = getopt(argc, argv, "p:c:d:r:m:i:k")) != -1;) {
        if (option == 'p') setup.port = atoi(optarg);
        else if (option == 'c') setup.connections = atoi(optarg);
        else if (option == 'd') setup.seconds = atof(optarg);
        else if (option == 'r') path = optarg;
        else if (option == 'm') setup.marker = optarg;
        else if (option == 'i') setup.placeholder = optarg;
        else if (option == 'k') setup.check_number = true;
        else return 2;
    }
    if (setup.port == 0 || setup.connections < 1 || setup.seconds <= 0 || path == NULL || setup.marker == NULL) {
        fprintf(stderr, "usage: load -p PORT -c CONNECTIONS -d SECONDS -r FILE -m MARKER [-i DIGITS [-k]]\n");
        return 2;
    }
    read_request(path);
    setup.epoll = epoll_create1(0);
    struct conn *conns = calloc((size_t)setup.connections, sizeof *conns);
    struct epoll_event *events = calloc((size_t)setup.connections, sizeof *events);
    if (setup.epoll < 0 || conns == NULL || events == NULL) fatal("start");
    for (int i = 0; i < setup.connections; i++) {
        conns[i].buf = malloc(BUFFER + 1);
        if (conns[i].buf == NULL) fatal("memory");
        open_conn(&conns[i]);
    }
    uint64_t begin = now_ns(), end = begin + (uint64_t)(setup.seconds * 1e9);
    for (int i = 0; i < setup.connections; i++) start_request(&conns[i]);
    while (now_ns() < end && errors < MAX_ERRORS) {
        int n = epoll_wait(setup.epoll, events, setup.connections, 100);
        if (n < 0 && errno != EINTR) fatal("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            bool alive = true;
            if ((events[i].events & EPOLLOUT) && c->sent < setup.request_len) {
                write_number(c->number);
                alive = send_rest(c);
            }
            if (alive && (events[i].events & ~(uint32_t)EPOLLOUT)) alive = readable(c, end);
            if (!alive) again(c);
        }
    }
    report((double)(now_ns() - begin) / 1e9);
    return errors == 0 && done > 0 ? 0 : 1;
}

/* The trivial HTTP server that the generator itself is measured against: one fixed response to every request.
 *
 *   echo MARKER        prints its port, then serves until it is terminated
 *
 * It relies on the generator's closed loop: one recv() returns one request. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    char answer[512];
    int answer_len = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                              strlen(argv[1]), argv[1]);
    struct sockaddr_in at = {.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t at_len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    if (listener < 0 || poll < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &at_len) != 0) {
        perror("echo");
        return 2;
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    char buf[65536];
    for (;;) {
        int n = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int one = 1;
                event.data.fd = accept(listener, NULL, NULL);
                if (event.data.fd < 0) continue;
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (recv(fd, buf, sizeof buf, 0) <= 0 || send(fd, answer, (size_t)answer_len, MSG_NOSIGNAL) < 0) {
                close(fd);
            }
        }
    }
}

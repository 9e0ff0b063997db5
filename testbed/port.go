package testbed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// listenError says who has the port when it is taken.
func (h *host) listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		if _, port, e := net.SplitHostPort(address); e == nil {
			if n, e := strconv.Atoi(port); e == nil {
				if owner := h.portOwner(n); owner != "" {
					return fmt.Errorf("testbed: listen on host %s: %w (by %s)", h.name, err, owner)
				}
			}
		}
	}
	return fmt.Errorf("testbed: listen on host %s: %w", h.name, err)
}

var (
	inUse    = regexp.MustCompile(`(?i)address (already )?in use|port .*in use`)
	portText = regexp.MustCompile(`:(\d{1,5})\b`)
)

// portHint names the owner of a port when the log's end says one is in use.
func (p *process) portHint() string {
	tail := logTail(p.log, tailBytes, tailLines)
	for line := range strings.Lines(tail) {
		if !inUse.MatchString(line) {
			continue
		}
		for _, m := range portText.FindAllStringSubmatch(line, -1) {
			port, _ := strconv.Atoi(m[1])
			if owner := p.host.portOwner(port); owner != "" {
				return fmt.Sprintf("; port %d is in use by %s", port, owner)
			}
		}
		return "; a port it wants is in use"
	}
	return ""
}

// portOwner names the process that listens on a TCP port of the host: "nginx
// (pid 12)". Empty when none does or the kernel does not say.
func (h *host) portOwner(port int) string {
	var inodes map[string]bool
	_ = inNamespace(h.ns, func() error {
		inodes = listeners(port)
		return nil
	})
	if len(inodes) == 0 {
		return ""
	}
	for pid, s := range scan() {
		if holds(pid, inodes) {
			return fmt.Sprintf("%s (pid %d)", s.comm, pid)
		}
	}
	return ""
}

// holds reports whether a process has one of the sockets open.
func holds(pid int, sockets map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if l, err := os.Readlink(dir + fd.Name()); err == nil && sockets[l] {
			return true
		}
	}
	return false
}

// listeners are the sockets, as /proc/PID/fd shows them, that listen on a TCP
// port in the calling thread's namespace.
func listeners(port int) map[string]bool {
	const stateListen = "0A"
	out := map[string]bool{}
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != stateListen || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				continue
			}
			out["socket:["+f[9]+"]"] = true
		}
	}
	return out
}

package deluge

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// listening are the addresses, IPv4, of the sockets of a process that listen
// (TCP) or are bound (UDP); "[::]" for each of IPv6.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	inodes := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	for _, f := range files {
		to, _ := os.Readlink(f) // closed meanwhile
		if in, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(in, "]")] = true
		}
	}
	var all []string
	for _, table := range []string{"tcp", "udp", "tcp6", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		must(t, err)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 10 || !inodes[f[9]] || strings.HasPrefix(table, "tcp") && f[3] != "0A" {
				continue
			}
			at, port, _ := strings.Cut(f[1], ":")
			n, _ := strconv.ParseUint(port, 16, 16)
			ip, err := hex.DecodeString(at)
			if err != nil || len(ip) != 4 {
				all = append(all, "[::]")
				continue
			}
			all = append(all, fmt.Sprintf("%d.%d.%d.%d:%d", ip[3], ip[2], ip[1], ip[0], n))
		}
	}
	return all
}

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Environment is what the machine and the hosts' settings were: enough to judge
// a number by, nothing secret. Settings of the hosts have keys "host.…" (all
// hosts are set alike, the first is read).
func (t *Testbed) Environment() map[string]string {
	env := here{t}.Environment()
	t.mu.Lock()
	mode, hosts := t.mode, slices.Concat(t.hosts, t.apart)
	var remote []Host
	for _, h := range t.remote {
		remote = append(remote, h)
		env["testbed.hosts"] = "agents"
	}
	t.mu.Unlock()
	machines := 1
	for _, h := range OneOnEach(remote) {
		if m := h.Machine(); m.Name() != "" {
			machines++
			for k, v := range m.Environment() {
				env[k+"@"+m.Name()] = v
			}
		}
	}
	env["testbed.machines"] = strconv.Itoa(machines)
	env["testbed.namespaces"] = strconv.FormatBool(mode.Namespaces)
	env["testbed.emulator"] = mode.Emulator
	if mode.Why != "" {
		env["testbed.why"] = mode.Why
	}
	env["testbed.uid"] = strconv.Itoa(outerUID())
	if len(hosts) == 0 {
		return env
	}
	h := hosts[0]
	read := func() error {
		for _, key := range recordedSysctls {
			if v, err := readSysctl(key); err == nil {
				env["host."+key] = v
			}
		}
		return nil
	}
	_ = h.keeper.do(read)
	for _, s := range hostSysctls() {
		// Only what the namespace would not take is worth a line of its own.
		if got, ok := env["host."+s.key]; ok && mode.Namespaces && got != s.value && !t.shape.sets(s.key) {
			env["host.refused."+s.key] = fmt.Sprintf("wanted %s, has %s", s.value, got)
		}
	}
	for k, v := range t.shape.environment() {
		env[k] = v
	}
	return env
}

// Environment implements Machine.
func (here) Environment() map[string]string {
	env := map[string]string{}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		env["kernel"] = unix.ByteSliceToString(u.Release[:])
		env["kernel.version"] = unix.ByteSliceToString(u.Version[:])
		env["cpu.architecture"] = unix.ByteSliceToString(u.Machine[:])
	}
	for _, key := range []string{"net.ipv4.tcp_mem", "net.core.rmem_max", "net.core.wmem_max",
		"net.core.netdev_max_backlog", "net.ipv4.tcp_congestion_control"} {
		if v, err := readSysctl(key); err == nil {
			env["machine."+key] = v
		}
	}
	env["go"] = runtime.Version()
	env["cpu.count"] = strconv.Itoa(runtime.NumCPU())
	env["cpu.model"] = ""
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if all, err := fs.CPUInfo(); err == nil && len(all) > 0 {
			env["cpu.model"] = all[0].ModelName
			if slices.Contains(all[0].Flags, "hypervisor") {
				env["cpu.virtual"] = "true"
			}
		}
	}
	if g := governors(); g != "" {
		env["cpu.governor"] = g
	}
	for key, file := range map[string]string{
		"clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"load":        "/proc/loadavg",
		"cpu.smt":     "/sys/devices/system/cpu/smt/active",
		"cpu.noturbo": "/sys/devices/system/cpu/intel_pstate/no_turbo",
	} {
		if v := readLine(file); v != "" {
			env[key] = v
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			name, rest, _ := strings.Cut(line, ":")
			switch name {
			case "MemTotal", "MemAvailable", "SwapTotal":
				env["memory."+name] = strings.TrimSpace(rest)
			}
		}
	}
	if os := osRelease(); os != "" {
		env["os"] = os
	}
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) == nil {
		env["limit.files"] = strconv.FormatUint(r.Cur, 10)
	}
	if p := readLine("/proc/pressure/cpu"); p != "" {
		env["pressure.cpu"] = p
	}
	return env
}

// outerUID is the user's ID outside the user namespace that Enter made.
func outerUID() int {
	uid := os.Geteuid()
	for _, m := range idMap("/proc/self/uid_map") {
		if uid >= m.ContainerID && uid < m.ContainerID+m.Size {
			return m.HostID + uid - m.ContainerID
		}
	}
	return uid
}

func readLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// governors are the distinct frequency governors; empty where there are none,
// as in most virtual machines.
func governors() string {
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	var all []string
	for _, f := range files {
		if g := readLine(f); g != "" && !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return strings.Join(all, ", ")
}

func osRelease() string {
	b, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

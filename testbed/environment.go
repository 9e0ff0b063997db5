package testbed

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Environment describes the machine and the hosts' settings, as far as they matter for
// judging results. It contains no secrets. Settings of hosts have keys "host.…"; they are
// read from the first host, as all have the same.
func (t *Testbed) Environment() map[string]string {
	env := here{t}.Environment()
	t.mu.Lock()
	hosts, remote := slices.Concat(t.hosts, t.apart), t.remote
	t.mu.Unlock()
	machines := 1
	for _, h := range OneOnEach(remote) {
		if m := h.Machine(); m.Name() != "" && h.Lost() == nil { // a lost one was replaced
			machines++
			for k, v := range m.Environment() {
				env[k+"@"+m.Name()] = v
			}
		}
	}
	env["testbed.machines"] = strconv.Itoa(machines)
	env["testbed.namespaces"] = strconv.FormatBool(t.mode.Namespaces)
	env["testbed.emulator"] = t.mode.Emulator
	if t.mode.Why != "" {
		env["testbed.why"] = t.mode.Why
	}
	if len(hosts) == 0 {
		return env
	}
	h := hosts[0]
	_ = h.keeper.do(func() error {
		for _, key := range recordedSysctls {
			if v := readSysctl(key); v != "" {
				env["host."+key] = v
			}
		}
		return nil
	})
	if c := t.shapedNow().Congestion; c != "" && t.mode.Namespaces {
		env["link.congestion"] = c
	}
	return env
}

// Environment implements Machine.
func (here) Environment() map[string]string {
	env := map[string]string{"go": runtime.Version(), "cpu.count": strconv.Itoa(runtime.NumCPU()), "cpu.model": ""}
	set := func(key, value string) {
		if value != "" {
			env[key] = value
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		set("kernel", unix.ByteSliceToString(u.Release[:]))
		set("kernel.version", unix.ByteSliceToString(u.Version[:]))
		set("cpu.architecture", unix.ByteSliceToString(u.Machine[:]))
	}
	for _, key := range []string{"net.ipv4.tcp_mem", "net.core.rmem_max", "net.core.wmem_max",
		"net.core.netdev_max_backlog", "net.ipv4.tcp_congestion_control"} {
		set("machine."+key, readSysctl(key))
	}
	if all, err := procFS().CPUInfo(); err == nil && len(all) > 0 {
		env["cpu.model"] = all[0].ModelName
		if slices.Contains(all[0].Flags, "hypervisor") {
			env["cpu.virtual"] = "true"
		}
	}
	set("cpu.governor", governors())
	for key, file := range map[string]string{
		"clocksource":  clockSource,
		"load":         "/proc/loadavg",
		"cpu.smt":      "/sys/devices/system/cpu/smt/active",
		"cpu.noturbo":  "/sys/devices/system/cpu/intel_pstate/no_turbo",
		"pressure.cpu": "/proc/pressure/cpu",
	} {
		set(key, readLine(file))
	}
	memory := settings("/proc/meminfo", ":")
	for _, name := range []string{"MemTotal", "MemAvailable", "SwapTotal"} {
		set("memory."+name, memory[name])
	}
	set("os", strings.Trim(settings("/etc/os-release", "=")["PRETTY_NAME"], `"`))
	return env
}

const clockSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// settings maps the part of each line before the separator to the part after it.
func settings(file, separator string) map[string]string {
	b, _ := os.ReadFile(file)
	all := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, separator)
		all[name] = strings.TrimSpace(value)
	}
	return all
}

// readLine returns the first line of a file with single spaces; empty if it cannot be read.
func readLine(file string) string {
	b, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.Join(strings.Fields(line), " ")
}

// governors returns the distinct CPU frequency governors; empty if there are none, as in
// most virtual machines.
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

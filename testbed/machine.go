package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// here is the machine that this program runs on.
type here struct{ t *Testbed }

// Here returns the machine that this program runs on. Without a testbed it creates no RAM
// disks.
func Here() Machine { return here{} }

// Name implements Machine.
func (here) Name() string { return "" }

// CPUs implements Machine.
func (here) CPUs() int { return runtime.NumCPU() }

// Filesystem is the file system of a directory.
type Filesystem struct {
	Free   float64 // bytes available to an ordinary user; NaN if unlimited
	Memory bool    // its files are in memory
}

// Filesystem implements Machine.
func (here) Filesystem(dir string) (f Filesystem, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return f, fmt.Errorf("testbed: the file system of %s: %w", dir, err)
	}
	f.Memory = s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC
	f.Free = float64(s.Bavail) * float64(s.Bsize)
	if s.Blocks == 0 { // a tmpfs without a limit
		f.Free = math.NaN()
	}
	return f, nil
}

// IOPressure implements Machine.
func (here) IOPressure() float64 {
	p, err := procFS().PSIStatsForResource("io")
	if err != nil || p.Some == nil {
		return math.NaN()
	}
	return float64(p.Some.Total) / 1e6
}

// RAMReserve is the available memory, in bytes, that RAM disks leave free: with less, the
// machine might swap or kill processes during a trial.
const RAMReserve = 256 << 20

// RAMDisk is a directory in memory.
type RAMDisk struct {
	Path string
	// Remove frees its memory, except for files that a process still has open.
	Remove func() error
}

// RAMDisk implements Machine with a tmpfs of that size, which root or a user with a mount
// namespace may mount.
func (m here) RAMDisk(name string, size int64) (d RAMDisk, err error) {
	if m.t == nil {
		return d, errors.New("testbed: RAM disk: there is no testbed to remove it")
	}
	free, err := m.AvailableMemory()
	if err != nil {
		return d, err
	}
	if float64(size) > free-RAMReserve {
		return d, fmt.Errorf("a RAM disk of %s needs %s of memory with what is left for everything else, %s are "+
			"available: end other programs, use a machine with more memory, make what is stored smaller, or leave the "+
			"RAM disk out", words.Bytes(float64(size)), words.Bytes(float64(size)+RAMReserve), words.Bytes(free))
	}
	dir, err := m.t.Scratch("ram-" + name)
	if err != nil {
		return d, err
	}
	options := fmt.Sprintf("size=%d,mode=0700", size)
	// Without noswap (Linux 6.4, real root only) a RAM disk may be swapped out.
	err = unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options+",noswap")
	if err != nil {
		err = unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err != nil {
		return d, errors.Join(fmt.Errorf("testbed: mount a RAM disk on %s: %w; run as root, or allow user namespaces",
			dir, err), removeMount(dir))
	}
	return RAMDisk{dir, func() error { return removeMount(dir) }}, nil
}

// removeMount removes a directory and any mount on it.
func removeMount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	switch err {
	case nil, unix.EINVAL, unix.EPERM, unix.ENOENT: // not mounted, or we may not unmount it
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("testbed: unmount %s: %w", dir, err)
}

// groupsOf returns the directories below root of the control group (version 2) in a /proc/PID/cgroup and of the
// groups around it, as each of them may have limits. In a container only its own group is visible; directories
// that do not exist have no limits.
func groupsOf(root, own string) (dirs []string) {
	for line := range strings.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for dir := filepath.Join(root, path); ok && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ourGroups returns the control groups of this process.
func ourGroups() []string {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return groupsOf("/sys/fs/cgroup", string(own))
}

// groupNumber returns the last word of a group's file, or of one line of it; NaN if it is not a number, such as
// "max" where there is no limit.
func groupNumber(dir, file, line string) float64 {
	b, err := os.ReadFile(filepath.Join(dir, file))
	text := "\n" + string(b)
	if line != "" {
		_, text, _ = strings.Cut(text, "\n"+line+" ")
		text, _, _ = strings.Cut(text, "\n")
	}
	if words := strings.Fields(text); err == nil && len(words) > 0 {
		if v, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
			return v
		}
	}
	return math.NaN()
}

// AvailableMemory implements Machine: the kernel's MemAvailable (which includes most of the
// page cache) or what our control groups leave, whichever is less.
func (here) AvailableMemory() (bytes float64, err error) {
	m, err := procFS().Meminfo()
	if err == nil && m.MemAvailableBytes == nil {
		err = errors.New("the kernel does not report it")
	}
	if err != nil {
		return 0, fmt.Errorf("testbed: available memory: %w", err)
	}
	return min(float64(*m.MemAvailableBytes), memoryLeft(ourGroups())), nil
}

// memoryLeft returns what the tightest of the groups leaves of its limit; infinite without a limit.
// Cached pages of files do not count as used: the kernel drops them when it needs memory.
func memoryLeft(groups []string) float64 {
	left := math.Inf(1)
	for _, dir := range groups {
		free := groupNumber(dir, "memory.max", "") - groupNumber(dir, "memory.current", "")
		for _, pages := range []string{"active_file", "inactive_file"} {
			if n := groupNumber(dir, "memory.stat", pages); !math.IsNaN(n) {
				free += n
			}
		}
		if !math.IsNaN(free) {
			left = min(left, max(0, free))
		}
	}
	return left
}

// ThrottledSample describes the control group of plimsoll and its processes, if it has a CPU
// limit: CPU is the length, in seconds, of the scheduler's periods in which the limit stopped
// runnable tasks. The kernel's throttled time differs: it sums the waits of all CPUs.
const ThrottledSample = "throttled"

// throttled sums the length of the throttled periods of groups; NaN if none has a limit.
func throttled(groups []string) float64 {
	sum := math.NaN()
	for _, dir := range groups {
		if !(groupNumber(dir, "cpu.stat", "nr_periods") > 0) { // no limit
			continue
		}
		period := groupNumber(dir, "cpu.max", "") / 1e6
		if !(period > 0) {
			period = 0.1 // the kernel's default
		}
		if held := groupNumber(dir, "cpu.stat", "nr_throttled") * period; math.IsNaN(sum) {
			sum = held
		} else {
			sum += held
		}
	}
	return sum
}

// Environment describes the machine and the hosts' settings, as far as they matter for
// judging results. It contains no secrets. Settings of hosts have keys "host.…"; they are
// read from the first host, as all have the same.
func (t *Testbed) Environment() map[string]string {
	env := here{t}.Environment()
	t.mu.Lock()
	hosts, remote := slices.Concat(t.hosts, t.apart), t.remote
	t.mu.Unlock()
	machines := 1
	for _, h := range OnePerMachine(remote) {
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

// Problem is something that affects a run, and what to do about it.
type Problem struct {
	Name     string `json:"name"` // "namespaces", "netem", "user", …: as used in an experiment's `skip`
	What     string `json:"what"`
	Hint     string `json:"hint,omitempty"`
	Blocking bool   `json:"blocking"` // the run would fail or be wrong; otherwise only worse than possible
	Here     bool   `json:"-"`        // only on this machine or now: elsewhere or later the run can start
}

const (
	wantMemory   = 1 << 30 // bytes that should be available
	busyInterval = time.Second
)

// Problems implements Machine.
func (here) Problems(opt Options) []Problem {
	_, _, missing := opt.emulation()
	return slices.Concat(missing, memoryProblems(), clockProblems())
}

// emulation returns the mode of a testbed with these options on this machine, whether our
// own emulator works, and what is missing. It changes nothing.
func (opt Options) emulation() (mode Mode, own bool, missing []Problem) {
	none := func(why string) { mode.Emulator, mode.Why = "none", "links are not emulated: "+why }
	if opt.Real {
		mode.Real = true
		none("they are those between the machines")
		return mode, own, missing
	}
	if opt.Plain {
		none("the run asked for plain hosts, without network namespaces")
		return mode, own, missing
	}
	asked := opt.Emulate == link.NetemDiscipline || opt.Emulate == link.Own
	ns, err := newNamespace()
	if err != nil {
		none("this machine gives us no network namespaces (" + err.Error() + ")")
		if !mayMakeNamespaces() && tryUserNamespace() == nil {
			return mode, own, nil // a run uses a user namespace
		}
		return mode, own, []Problem{{Name: "namespaces", Blocking: asked, Hint: userNamespaceHint(),
			What: "no network namespaces: hosts are loopback addresses and links are not emulated (" +
				err.Error() + ")"}}
	}
	_ = ns.Close()
	if mode.Namespaces = true; opt.Emulate == "none" {
		none("the run asked for none")
		return mode, own, missing
	}
	var why []string
	for _, name := range []string{link.NetemDiscipline, link.Own} { // the preferred one first
		err := link.Works(name)
		if err == nil {
			own = own || name == link.Own
			if mode.Emulator == "" && (!asked || opt.Emulate == name) {
				mode.Emulator = name
			}
			continue
		}
		why = append(why, name+": "+err.Error())
		missing = append(missing, Problem{Name: name, Blocking: opt.Emulate == name,
			What: name + " does not work here: " + err.Error(), Hint: emulatorHints[name]})
	}
	if mode.Emulator == "" {
		none("neither netem nor our emulator works here (" + strings.Join(why, "; ") + ")")
		if !asked {
			missing = append(missing, Problem{Name: "emulator", Hint: "see the two above: either one is enough",
				What: "links cannot be emulated: neither netem nor our emulator works here"})
		}
	}
	return mode, own, missing
}

var emulatorHints = map[string]string{
	link.NetemDiscipline: "modprobe sch_netem, or install the kernel's extra modules (linux-modules-extra on Ubuntu, " +
		"kernel-modules-extra on Fedora); the emulator \"user\" does not need it",
	link.Own: "the kernel needs veth pairs and packet sockets (modprobe veth af_packet); some sandboxes have none",
}

func memoryProblems() []Problem {
	free, err := here{}.AvailableMemory()
	switch {
	case err != nil:
		return []Problem{{Name: "proc", Blocking: true, What: "processes cannot be observed: " + err.Error(),
			Hint: "mount -t proc proc /proc"}}
	case free >= wantMemory:
		return nil
	}
	return []Problem{{Name: "memory", What: words.Bytes(free) + " of memory available: systems may be measured while " +
		"the machine swaps or kills", Hint: "end other programs, or use a machine with more"}}
}

func clockProblems() (all []Problem) {
	if c := readLine(clockSource); c == "hpet" || c == "acpi_pm" || c == "jiffies" {
		all = append(all, Problem{Name: "clock", What: "the kernel's clock source is " + c +
			": reading the time is slow and shows in every latency", Hint: "echo tsc > " + clockSource +
			", if the machine has a stable one"})
	}
	if g := governors(); g != "" && g != "performance" {
		all = append(all, Problem{Name: "governor", What: "the CPU frequency governor is " + g +
			": speed changes with load and heat", Hint: "cpupower frequency-set -g performance"})
	}
	return all
}

// Busy watches this machine for a second. If others use more than a share of its CPU,
// counted as during a trial (see [OthersSample]), it says so; empty: they do not.
func Busy(ctx context.Context, limit float64) string {
	var b box
	before := scan()
	b.poll(before, map[int]bool{})
	begun := time.Now()
	if !timing.Pause(ctx, busyInterval) {
		return ""
	}
	after := scan()
	b.poll(after, map[int]bool{})
	share := min(1, b.others/time.Since(begun).Seconds()/float64(runtime.NumCPU()))
	if share <= limit {
		return ""
	}
	return fmt.Sprintf("the machine is busy: others use %.0f %% of its CPU%s", 100*share, busiest(before, after))
}

// busiest names the process that used most CPU between two scans. Not by stat.cpu, which is as of now.
func busiest(before, after map[int]stat) (worst string) {
	most := uint(0)
	for pid, s := range after {
		was, there := before[pid]
		d := s.UTime + s.STime - was.UTime - was.STime
		if there && was.Starttime == s.Starttime && d > most && pid != os.Getpid() {
			most, worst = d, fmt.Sprintf(", most by %s (pid %d)", s.Comm, pid)
		}
	}
	return worst
}

// ProblemNames returns all names that a [Problem] may have.
func ProblemNames() []string {
	return []string{"namespaces", link.NetemDiscipline, link.Own, "emulator", "proc", "memory", "clock", "governor",
		"busy"}
}

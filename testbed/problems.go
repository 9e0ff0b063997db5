package testbed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Severity says what a problem means for a run.
type Severity string

const (
	Fatal   Severity = "error"   // a run cannot start, or its results would mean nothing
	Warning Severity = "warning" // a run works, but less well or less truly
	Note    Severity = "note"    // good to know
)

// Problem is something about this machine that a run suffers from, and what to
// do about it.
type Problem struct {
	Name     string   `json:"name"` // "namespaces", "netem", "tun", …: what an experiment's `skip` names
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Hint     string   `json:"hint,omitempty"`
}

// What a machine needs for a run that nothing but the systems limits.
const (
	wantMemory   = 1 << 30 // available
	busyInterval = time.Second
)

// Problems implements Machine.
func (here) Problems(opt Options) []Problem {
	var all []Problem
	add := func(p ...Problem) { all = append(all, p...) }
	_, _, missing := opt.emulation()
	add(missing...)
	add(memoryProblems()...)
	add(clockProblems()...)
	return all
}

// emulation is what a testbed with these options does on this machine, whether the
// emulator "tun" works, and what is missing. It changes nothing.
func (opt Options) emulation() (mode Mode, tun bool, missing []Problem) {
	none := func(why string) { mode.Emulator, mode.Why = "none", "links are not emulated: "+why }
	if opt.Real {
		mode.Real = true
		none("they are those between the machines")
		return mode, tun, missing
	}
	if opt.Plain {
		none("the run asked for plain hosts, without network namespaces")
		return mode, tun, missing
	}
	asked, severity := opt.Emulate == "netem" || opt.Emulate == "tun", Warning
	if asked {
		severity = Fatal
	}
	ns, err := newNamespace()
	if err != nil {
		none("this machine gives us no network namespaces (" + err.Error() + ")")
		p := Problem{"namespaces", severity, "no network namespaces: hosts are loopback addresses and links are not " +
			"emulated (" +
			err.Error() + ")", userNamespaceHint()}
		if !mayMakeNamespaces() && tryUserNamespace() == nil {
			p = Problem{"namespaces", Note, "no right to make network namespaces: runs use a user namespace", ""}
		}
		return mode, tun, []Problem{p}
	}
	_ = ns.Close()
	if mode.Namespaces = true; opt.Emulate == "none" {
		none("the run asked for none")
		return mode, tun, missing
	}
	var why []string
	for _, a := range link.Available() { // the preferred one first
		if a.OK {
			tun = tun || a.Emulator == "tun"
			if mode.Emulator == "" && (!asked || opt.Emulate == a.Emulator) {
				mode.Emulator = a.Emulator
			}
			continue
		}
		why = append(why, a.Emulator+": "+a.Why)
		p := Problem{a.Emulator, Note, a.Emulator + " does not work here: " + a.Why, emulatorHint(a.Emulator)}
		if opt.Emulate == a.Emulator {
			p.Severity = Fatal
		}
		missing = append(missing, p)
	}
	if mode.Emulator == "" {
		none("neither netem nor TUN works here (" + strings.Join(why, "; ") + ")")
		if !asked {
			missing = append(missing, Problem{"emulator", Warning, "links cannot be emulated: neither netem nor TUN " +
				"works here",
				"see the two above: either one is enough"})
		}
	}
	return mode, tun, missing
}

func emulatorHint(name string) string {
	if name == "netem" {
		return "modprobe sch_netem, or install the kernel's extra modules (linux-modules-extra on Ubuntu, " +
			"kernel-modules-extra on Fedora); the TUN emulator does without"
	}
	info, err := os.Stat("/dev/net/tun")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "modprobe tun; in a container, give it the device: --device /dev/net/tun"
	case err == nil && info.Mode().Perm()&0o006 != 0o006:
		return "chmod 666 /dev/net/tun lets ordinary users have TUN devices in their own namespaces, as most " +
			"distributions do"
	}
	return "in a container, give it the device: --device /dev/net/tun"
}

func memoryProblems() []Problem {
	free, err := here{}.AvailableMemory()
	switch {
	case err != nil:
		return []Problem{{"proc", Fatal, "processes cannot be observed: " + err.Error(), "mount -t proc proc /proc"}}
	case free >= wantMemory:
		return nil
	}
	return []Problem{{"memory", Warning, words.Bytes(free) + " of memory available: systems may be measured while the " +
		"machine swaps or kills", "end other programs, or use a machine with more"}}
}

func clockProblems() []Problem {
	var out []Problem
	if c := readLine("/sys/devices/system/clocksource/clocksource0/current_clocksource"); c == "hpet" ||
		c == "acpi_pm" || c == "jiffies" {
		out = append(out, Problem{"clock", Warning, "the kernel's clock source is " + c +
			": reading the time is slow and shows in every latency",
			"echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if the machine has a " +
				"stable one"})
	}
	if g := governors(); g != "" && g != "performance" {
		out = append(out, Problem{"governor", Note, "the CPU frequency governor is " + g +
			": speed changes with load and heat", "cpupower frequency-set -g performance"})
	}
	return out
}

// Busy implements Machine.
func (here) Busy(ctx context.Context, limit float64) string {
	var b box
	before := scan()
	b.poll(before, map[int]bool{})
	begun := time.Now()
	select {
	case <-ctx.Done():
		return ""
	case <-time.After(busyInterval):
	}
	after := scan()
	b.poll(after, map[int]bool{})
	share := min(1, b.others/time.Since(begun).Seconds()/float64(runtime.NumCPU()))
	if share <= limit {
		return ""
	}
	what := fmt.Sprintf("the machine is busy: others use %.0f %% of its CPU", 100*share)
	most, worst := 0.0, ""
	for pid, s := range after {
		if d := s.cpu() - before[pid].cpu(); d > most && before[pid].birth == s.birth && pid != os.Getpid() {
			most, worst = d, fmt.Sprintf(", most by %s (pid %d)", s.comm, pid)
		}
	}
	return what + worst
}

// ProblemNames are all names that a [Problem] may have.
func ProblemNames() []string {
	return []string{"namespaces", "netem", "tun", "emulator", "proc", "memory", "clock", "governor", "busy"}
}

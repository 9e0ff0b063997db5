package testbed

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

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

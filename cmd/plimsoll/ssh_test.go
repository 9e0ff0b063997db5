package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// sshMachines are machines with real OpenSSH servers: network namespaces that a bridge joins,
// each with files of its own below /mnt, and another from where plimsoll is started.
type sshMachines struct {
	t     *testing.T
	from  testbed.Host
	dirs  []string // what each has below /mnt, as seen from here
	below string   // where runs are on each: no other test's
	list  string   // HOSTS.yaml
	known string
	n     int // commands so far
}

// machinesRTT is between any two machines, as over a longer cable.
const machinesRTT = 6 * time.Millisecond

// machineConfig has a cipher that costs little.
const machineConfig = `ListenAddress %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
Ciphers aes128-gcm@openssh.com
`

func newSSHMachines(t *testing.T, n int, opt testbed.Options) *sshMachines {
	slow(t)
	t.Parallel()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("OpenSSH's server is not installed: ", err)
	}
	if err := exec.Command("unshare", "--mount", "--net", "mount", "--bind", t.TempDir(), "/mnt").Run(); err != nil {
		t.Skip("no namespaces for mounts and networks here: ", err)
	}
	bed, hosts := systemtest.Bed(t, opt, n+1)
	dir := t.TempDir()
	m := &sshMachines{t: t, from: hosts[0], list: filepath.Join(dir, "hosts.yaml"),
		known: filepath.Join(dir, "known_hosts"), below: "/mnt/" + filepath.Base(filepath.Dir(dir))}
	must(t, os.MkdirAll("/run/sshd", 0o755))
	user := writeSSHKey(t, filepath.Join(dir, "id"))
	authorized := filepath.Join(dir, "authorized_keys")
	must(t, os.WriteFile(authorized, ssh.MarshalAuthorizedKey(user), 0o600))
	list := fmt.Sprintf("user: root\nkey: %s\nknown_hosts: %s\ndir: %s\nhosts:\n", filepath.Join(dir, "id"), m.known,
		m.below)
	known := ""
	machines, way := hosts[1:], map[string]link.Params{}
	for _, h := range machines {
		way[h.Addr().String()] = link.Params{Delay: machinesRTT / 2}
	}
	must(t, bed.Shape(t.Context(), testbed.ShapeSpec{Topology: link.Topology{Up: way}}))
	for i, h := range machines {
		own := filepath.Join(dir, h.Name())
		m.dirs = append(m.dirs, filepath.Join(own, filepath.Base(m.below)))
		must(t, os.MkdirAll(m.dirs[i], 0o755))
		key := writeSSHKey(t, own+"_key")
		config, at := own+"_config", net.JoinHostPort(h.Addr().String(), "22")
		must(t, os.WriteFile(config, fmt.Appendf(nil, machineConfig, at, own+"_key", authorized), 0o600))
		_, err := h.Start(t.Context(), testbed.Command{
			Name: h.Name() + "-sshd", Role: "system",
			Args: []string{"unshare", "--mount", "sh", "-c",
				"mount --bind " + own + " /mnt && exec " + sshd + " -D -e -f " + config},
			Ready: func(ctx context.Context) error {
				c, err := m.from.Dial(ctx, "tcp", at)
				if err == nil {
					c.Close()
				}
				return err
			},
		})
		must(t, err)
		known += knownhosts.Line([]string{h.Addr().String()}, key) + "\n"
		list += fmt.Sprintf("- {name: box%d, ssh: %q, zone: z%d}\n", i, h.Addr().String(), i)
	}
	must(t, os.WriteFile(m.list, []byte(list), 0o600))
	must(t, os.WriteFile(m.known, []byte(known), 0o600))
	return m
}

func writeSSHKey(t *testing.T, path string) ssh.PublicKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "test")
	must(t, err)
	must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	public, err := ssh.NewPublicKey(key.Public())
	must(t, err)
	return public
}

// start starts plimsoll where the machines are reached from.
func (m *sshMachines) start(args ...string) testbed.Process {
	m.t.Helper()
	m.n++
	p, err := m.from.Start(m.t.Context(), testbed.Command{
		Name: fmt.Sprintf("plimsoll-%d", m.n), Role: "system", Dir: m.t.TempDir(),
		Args: append([]string{os.Args[0]}, args...), Env: []string{"PLIMSOLL_TEST_MAIN=1"},
	})
	must(m.t, err)
	return p
}

func (m *sshMachines) said(p testbed.Process) string {
	b, _ := os.ReadFile(p.LogPath())
	return string(b)
}

func (m *sshMachines) await(p testbed.Process, text string) {
	m.t.Helper()
	await(m.t, func() string { return m.said(p) }, text)
}

// end waits for the end of plimsoll, which must have one of these statuses.
func (m *sshMachines) end(p testbed.Process, want ...ui.Code) string {
	m.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(3 * time.Minute):
		_ = p.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		m.t.Fatalf("plimsoll hangs:\n%s", m.said(p))
	}
	var status ui.Code
	if err := p.Err(); err != nil {
		_, text, _ := strings.Cut(err.Error(), "exit status ")
		_, err = fmt.Sscan(strings.TrimRight(strings.Fields(text)[0], ";"), &status)
		must(m.t, err)
	}
	if !slices.Contains(want, status) {
		m.t.Fatalf("it ended with status %d, want %v:\n%s", status, want, m.said(p))
	}
	return m.said(p)
}

// clean makes sure that nothing is left on any machine: no file and no process.
func (m *sshMachines) clean() {
	m.t.Helper()
	for _, dir := range m.dirs {
		if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
			m.t.Errorf("left on a machine: %v", left)
		}
	}
	// What was killed may still be ending.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := m.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("processes are left: %v", left)
		}
	}
}

// processes are those of runs on the machines.
func (m *sshMachines) processes() map[int]string {
	return processes(func(_, line string) bool { return strings.HasPrefix(line, m.below+"/plimsoll-r") })
}

// kill sends SIGKILL to the process of a run whose command line has this in it.
func (m *sshMachines) kill(part string) {
	m.t.Helper()
	for pid, line := range m.processes() {
		if strings.Contains(line, part) {
			must(m.t, syscall.Kill(pid, syscall.SIGKILL))
			return
		}
	}
	m.t.Fatalf("no process with %q", part)
}

func (m *sshMachines) experiment(yaml string) string {
	file := filepath.Join(m.t.TempDir(), "experiment.yaml")
	must(m.t, os.WriteFile(file, []byte(yaml+"\nlimits: {others: none, machine: none}\n"), 0o644))
	return file
}

// compare runs an experiment on the machines and on this one: the same must come of it.
// It returns the run's directory and its links.
func (m *sshMachines) compare(yaml string, args ...string) (there string, links []record.LinkCheck) {
	m.t.Helper()
	file := m.experiment(yaml)
	there, here := filepath.Join(m.t.TempDir(), "there"), filepath.Join(m.t.TempDir(), "here")
	m.end(m.start(append(over(m.list, file, "--out", there), args...)...), 0, ui.CodeInvalid) // on a busy machine
	m.clean()
	m.end(m.start("run", file, "--out", here, "--keep-going"), 0, ui.CodeInvalid)
	if diff := cmp.Diff(strings.Join(resultsOf(m.t, here), ""), strings.Join(resultsOf(m.t, there), "")); diff != "" {
		m.t.Errorf("on other machines (+) the record differs:\n%s", diff)
	}
	links, err := readRun(m.t, there).Links()
	must(m.t, err)
	if len(links) == 0 {
		m.t.Error("no link was measured")
	}
	return there, links
}

// over are the arguments of a run on the machines of a list.
func over(list string, args ...string) []string {
	return append([]string{"run", "--on", "ssh:" + list, "--keep-going"}, args...)
}

const swarmOverSSH = `
scenario: disseminate
systems: [bittorrent]
data: {size: 2MiB}
disseminate: {nodes: 2, seeders: 1}
warmup: 0
repetitions: `

// What runs on machines that are reached by ssh records what a run here does. Nothing of it
// stays there.
func TestRunOverSSH(t *testing.T) {
	m := newSSHMachines(t, 4, testbed.Options{})
	t.Run("retrieve", func(t *testing.T) {
		m.t = t
		there, links := m.compare(`
scenario: retrieve
systems: [static, {name: static-https, use: static, with: {tls: true}, override: {connections: fresh}}]
data: {objects: 2, size: 1MiB}
retrieve: {concurrency: 3, requests: 12}
repetitions: 1
warmup: 0`, "--clients", "3")
		rtt := machinesRTT.Seconds()
		for _, l := range links {
			if l.RTT <= rtt || l.RTT > 5*rtt || l.Rate <= 0 || !l.OK || l.Emulator != record.RealLink {
				t.Errorf("link %+v", l)
			}
		}
		for _, client := range engine.GeneratorHosts(3) {
			if !slices.ContainsFunc(links, func(l record.LinkCheck) bool { return l.To == client }) {
				t.Errorf("no link of %s: %+v", client, links)
			}
		}
		for _, want := range []string{`"machine.zone@box1":"z1"`, `"kernel@box1"`} {
			if env := readRun(t, there).Meta()["environment"]; !strings.Contains(env, want) {
				t.Errorf("no %s in %s", want, env)
			}
		}
	})
	// What asks for links gets them, whatever is between the machines, and as on one machine.
	for emulator, kind := range map[string]string{"auto": record.MeshLink, "netem": record.KernelMeshLink} {
		t.Run("links by "+emulator, func(t *testing.T) {
			m.t = t
			text := swarmOverSSH + "1\nlink: {rate: 20Mbit, delay: 10ms, emulator: " + emulator + "}\n"
			if emulator == "netem" && link.Works(link.NetemDiscipline) != nil { // the first machine says so
				p := m.start(over(m.list, m.experiment(text), "--out", filepath.Join(t.TempDir(), "run"))...)
				if said := m.end(p, 1); !strings.Contains(said, "box0: start the agent") ||
					!strings.Contains(said, "the kernel has no netem") ||
					!strings.Contains(said, "modprobe sch_netem") {
					t.Errorf("it said:\n%s", said)
				}
				m.clean()
				return
			}
			_, links := m.compare(text)
			for _, l := range links {
				// a busy machine may be slower
				if l.Emulator != kind || l.RTT < 19e-3 || l.Rate > 1.05*l.WantRate {
					t.Errorf("link %+v", l)
				}
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		m.t = t
		m.refuses()
	})
}

// A run on other machines outlives its launcher, its engine and an agent.
func TestRunOverSSHKilled(t *testing.T) {
	m := newSSHMachines(t, 4, testbed.Options{})
	dir := filepath.Join(t.TempDir(), "run")
	file := m.experiment(swarmOverSSH + "8\nlink: {rate: 50Mbit, delay: 5ms}")
	p := m.start(over(m.list, file, "--out", dir)...)
	m.await(p, "block 2 of 8")
	must(t, p.Signal(syscall.SIGKILL)) // the launcher: the run goes on without it
	<-p.Done()
	p = m.start("resume", dir, "--keep-going")
	m.await(p, "block 3 of 8")
	m.kill("node run engine")
	m.end(p, 1)
	m.clean()
	p = m.start("resume", dir, "--keep-going")
	m.await(p, "block ") // which, depends on how far it came meanwhile
	must(t, p.Signal(syscall.SIGINT))
	m.kill("--name box1") // an agent that ends meanwhile is no failure
	m.end(p, ui.CodeInterrupted)
	m.clean()
	p = m.start("resume", dir, "--keep-going")
	m.await(p, "block ")
	m.kill("--name box1") // an agent, and with it its emulator
	if said := m.end(p, 0, ui.CodeIncomplete, ui.CodeInvalid); !strings.Contains(said,
		"is on another machine now") {
		t.Errorf("it said:\n%s", said)
	}
	m.clean()
	p = m.start("resume", dir, "--keep-going")
	m.end(p, 0, ui.CodeInvalid)
	m.clean()
	// One trial may have ended with the machine, and one came after the restart on the other.
	if lost := trialsOf(t, dir, 8); lost > 2 {
		t.Errorf("%d trials are invalid:\n%s", lost, m.said(p))
	}
}

// Machines that are reached at IPv6 addresses alone run what others do, and links between them are emulated.
func TestRunOverSSHWithIPv6(t *testing.T) {
	m := newSSHMachines(t, 3, testbed.Options{IPv6: true})
	for _, link := range []string{"", "link: {rate: 20Mbit, delay: 10ms}"} {
		dir, file := filepath.Join(t.TempDir(), "run"), m.experiment(swarmOverSSH+"1\n"+link)
		m.end(m.start(over(m.list, file, "--out", dir)...), 0, ui.CodeInvalid)
		m.clean()
		if invalid := trialsOf(t, dir, 1); invalid > 0 {
			t.Errorf("links %q: %d trials are invalid", link, invalid)
		}
	}
}

// refuses: machines with another key, too few of them, and links that they cannot have.
func (m *sshMachines) refuses() {
	t := m.t
	other := filepath.Join(t.TempDir(), "known_hosts")
	lines := strings.SplitAfter(string(mustRead(t, m.known)), "\n")
	host, _, _ := strings.Cut(lines[1], " ")
	_, key, _ := strings.Cut(lines[0], " ")
	must(t, os.WriteFile(other, []byte(lines[0]+host+" "+key+lines[2]), 0o600))
	list := filepath.Join(t.TempDir(), "hosts.yaml")
	text := strings.ReplaceAll(string(mustRead(t, m.list)), m.known, other)
	must(t, os.WriteFile(list, []byte(text), 0o600))
	for _, c := range []struct{ list, set, want string }{
		{list, "disseminate.nodes=2", "key in " + other + ":2"},
		{m.list, "disseminate.nodes=8", "needs 9 machines"},
		{m.list, "link.ipv6=true", "links on one machine"},
		{m.list, "systems=[{use: deluge, with: {binary: /none}}]", "/none"}, // seen on the machines
	} {
		dir := filepath.Join(t.TempDir(), "run")
		p := m.start(over(c.list, m.experiment(swarmOverSSH+"2"), "--set", c.set, "--out", dir)...)
		if said := m.end(p, ui.CodePreconditions); !strings.Contains(said, c.want) {
			t.Errorf("it said:\n%s", said)
		}
		m.clean()
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// resultsOf are the trials of a run with their outcomes, and the bytes of operations.
func resultsOf(t *testing.T, dir string) []string {
	r := readRun(t, dir)
	facts := []string{string(r.Plan())}
	for _, trial := range r.trials {
		facts = append(facts, fmt.Sprintln(trial.Cell, trial.Block, trial.State, trial.Outcomes, trial.Bytes,
			trial.Error))
	}
	slices.Sort(facts)
	return facts
}

// trialsOf makes sure that all trials were executed, and counts those that are invalid for
// another reason than a busy machine.
func trialsOf(t *testing.T, dir string, want int) (invalid int) {
	blocks := map[int]bool{}
	for _, trial := range readRun(t, dir).trials {
		if trial.State == record.Done {
			blocks[trial.Block] = true
		}
		if slices.ContainsFunc(trial.Invalid, func(why string) bool {
			return why != record.ReasonEmulatorLate && why != record.ReasonLinkOff
		}) {
			t.Logf("trial %d is invalid: %v", trial.ID, trial.Invalid)
			invalid++
		}
	}
	if len(blocks) != want {
		t.Errorf("%d blocks were executed, want %d", len(blocks), want)
	}
	return invalid
}

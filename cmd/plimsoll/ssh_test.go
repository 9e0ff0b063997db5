package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// sshMachines are machines with real OpenSSH servers: network namespaces that a bridge joins,
// each with files of its own below /mnt, and another from where plimsoll is started.
type sshMachines struct {
	t     *testing.T
	from  testbed.Host
	dirs  []string // what each has below /mnt, as seen from here
	list  string   // HOSTS.yaml
	known string
	n     int // commands so far
}

const machineConfig = `ListenAddress %s:22
HostKey %s
AuthorizedKeysFile %s
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
`

func newSSHMachines(t *testing.T, n int) *sshMachines {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("OpenSSH's server is not installed: ", err)
	}
	if err := exec.Command("unshare", "--mount", "--net", "mount", "--bind", t.TempDir(), "/mnt").Run(); err != nil {
		t.Skip("no namespaces for mounts and networks here: ", err)
	}
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Emulate: "none"})
	check(t, err)
	t.Cleanup(func() { check(t, bed.Close(context.Background())) })
	dir := t.TempDir()
	m := &sshMachines{t: t, list: filepath.Join(dir, "hosts.yaml"), known: filepath.Join(dir, "known_hosts")}
	m.from, err = bed.AddHost(t.Context(), "launcher")
	check(t, err)
	check(t, os.MkdirAll("/run/sshd", 0o755))
	user := writeSSHKey(t, filepath.Join(dir, "id"))
	authorized := filepath.Join(dir, "authorized_keys")
	check(t, os.WriteFile(authorized, ssh.MarshalAuthorizedKey(user), 0o600))
	list := fmt.Sprintf("user: root\nkey: %s\nknown_hosts: %s\ndir: /mnt\nhosts:\n", filepath.Join(dir, "id"), m.known)
	known := ""
	for i := range n {
		h, err := bed.AddHost(t.Context(), fmt.Sprintf("machine%d", i))
		check(t, err)
		own := filepath.Join(dir, h.Name())
		check(t, os.Mkdir(own, 0o755))
		m.dirs = append(m.dirs, own)
		key := writeSSHKey(t, own+"_key")
		config := own + "_config"
		check(t, os.WriteFile(config, fmt.Appendf(nil, machineConfig, h.Addr(), own+"_key", authorized), 0o600))
		_, err = h.Start(t.Context(), testbed.Command{
			Name: h.Name() + "-sshd", Role: "system",
			Args: []string{"unshare", "--mount", "sh", "-c", "mount --bind " + own + " /mnt && exec " + sshd + " -D -e -f " + config},
			Ready: func(ctx context.Context) error {
				c, err := m.from.Dial(ctx, "tcp", h.Addr().String()+":22")
				if err == nil {
					c.Close()
				}
				return err
			},
		})
		check(t, err)
		known += knownhosts.Line([]string{h.Addr().String()}, key) + "\n"
		list += fmt.Sprintf("- {name: box%d, ssh: %s, zone: z%d}\n", i, h.Addr(), i)
	}
	check(t, os.WriteFile(m.list, []byte(list), 0o600))
	check(t, os.WriteFile(m.known, []byte(known), 0o600))
	return m
}

func writeSSHKey(t *testing.T, path string) ssh.PublicKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(key, "test")
	check(t, err)
	check(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	public, err := ssh.NewPublicKey(key.Public())
	check(t, err)
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
	check(m.t, err)
	return p
}

func (m *sshMachines) said(p testbed.Process) string {
	b, _ := os.ReadFile(p.LogPath())
	return string(b)
}

func (m *sshMachines) await(p testbed.Process, text string) {
	m.t.Helper()
	for range 1200 {
		if strings.Contains(m.said(p), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	m.t.Fatalf("plimsoll never said %q:\n%s", text, m.said(p))
}

// end waits for the end of plimsoll, which must have this status.
func (m *sshMachines) end(p testbed.Process, want ui.Code) string {
	m.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(3 * time.Minute):
		_ = p.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		m.t.Fatalf("plimsoll hangs:\n%s", m.said(p))
	}
	status := "<nil>"
	if err := p.Err(); err != nil {
		status = err.Error()
	}
	if (want == 0) != (p.Err() == nil) || want != 0 && !strings.Contains(status, fmt.Sprintf("exit status %d", want)) {
		m.t.Fatalf("it ended with %s, want status %d:\n%s", status, want, m.said(p))
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
	if left := processesOf("/mnt/plimsoll-r"); len(left) > 0 {
		m.t.Errorf("processes are left: %v", left)
	}
}

// processesOf are the command lines of processes that begin with this, by their ids.
func processesOf(program string) map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		var pid int
		line, _ := os.ReadFile(file)
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && strings.HasPrefix(string(line), program) {
			all[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return all
}

func (m *sshMachines) experiment(yaml string) string {
	file := filepath.Join(m.t.TempDir(), "experiment.yaml")
	check(m.t, os.WriteFile(file, []byte(yaml+"\nlimits: {others: none, machine: none}\n"), 0o644))
	return file
}

// A run on three machines makes the record that one machine makes: the same trials with the
// same outcomes and bytes, of each machine what others used, and links as they are.
func TestRunOverSSH(t *testing.T) {
	m := newSSHMachines(t, 3)
	swarm := m.experiment(`
scenario: disseminate
systems: [bittorrent]
data: {size: 2MiB}
disseminate: {nodes: 2, seeders: 1}
repetitions: 2
warmup: 0`)
	dir := filepath.Join(t.TempDir(), "run")
	said := m.end(m.start("run", swarm, "--on", "ssh:"+m.list, "--out", dir, "--keep-going"), 0)
	t.Log(said)
	m.clean()
}

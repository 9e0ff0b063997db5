// Package ssh provides machines from a list, reached by the user's ssh. It copies the program to
// each of them, and leaves nothing after the run.
package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Place is a list of machines. Unset options are as the user has configured ssh.
type Place struct {
	User       string `yaml:"user"`
	Key        string `yaml:"key"`         // file
	KnownHosts string `yaml:"known_hosts"` // file
	Dir        string `yaml:"dir"`         // where runs keep their files, on all machines; empty: /var/tmp
	Hosts      []host `yaml:"hosts"`
}

type host struct {
	Name    string `yaml:"name"`    // empty: SSH
	SSH     string `yaml:"ssh"`     // name or address, as reached from this machine
	Address string `yaml:"address"` // as reached by the other machines; empty: SSH
	Zone    string `yaml:"zone"`

	addr netip.Addr
}

// Open reads a list; it makes no connections.
func Open(file string) (*Place, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &Place{}
	if err = yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(p); err == nil {
		err = p.fill()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// fill sets defaults.
func (p *Place) fill() error {
	p.Dir = cmp.Or(p.Dir, "/var/tmp")
	if !filepath.IsAbs(p.Dir) || strings.ContainsFunc(p.Dir, func(r rune) bool { return r <= ' ' || r == '\'' }) {
		return fmt.Errorf("dir: %q: want an absolute path without spaces and quotes", p.Dir)
	}
	if len(p.Hosts) == 0 {
		return errors.New("hosts: there are none")
	}
	seen := map[string]bool{}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if err := h.fill(); err != nil {
			return fmt.Errorf("hosts[%d]: %w", i, err)
		}
		if seen[h.Name] || seen[h.addr.String()] {
			return fmt.Errorf("hosts[%d]: %s (%s) is in the list twice; a machine runs one agent", i, h.Name, h.addr)
		}
		seen[h.Name], seen[h.addr.String()] = true, true
	}
	return nil
}

func (h *host) fill() error {
	if h.SSH == "" {
		return errors.New("ssh: is missing: the name or address to log in to")
	}
	h.Name, h.Address = cmp.Or(h.Name, h.SSH), cmp.Or(h.Address, h.SSH)
	ip, err := net.ResolveIPAddr("ip", h.Address)
	if err != nil {
		return fmt.Errorf("address: %w; say at which one the other machines reach it", err)
	}
	addr, _ := netip.AddrFromSlice(ip.IP)
	h.addr = addr.Unmap().WithZone(ip.Zone)
	return nil
}

// login returns the arguments of ssh for a host. With them ssh never prompts, accepts no unknown
// host key, and ignores other session settings in the user's configuration.
func (p *Place) login(h *host) []string {
	args := strings.Fields("-T -a -x -S none -o BatchMode=yes -o StrictHostKeyChecking=yes -o LogLevel=ERROR " +
		"-o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=2 -o ClearAllForwardings=yes " +
		"-o RemoteCommand=none")
	if p.KnownHosts != "" {
		args = append(args, "-o", `UserKnownHostsFile="`+p.KnownHosts+`"`)
	}
	if p.Key != "" {
		args = append(args, "-o", "IdentitiesOnly=yes", "-i", p.Key)
	}
	if p.User != "" {
		args = append(args, "-l", p.User)
	}
	return append(args, "--", h.SSH)
}

// Check implements remote.Place: it logs in to each machine that a run would use.
func (p *Place) Check(ctx context.Context, want remote.Spec) (all []engine.Problem) {
	if have := len(p.Hosts); have < want.Machines {
		return []engine.Problem{{
			Name: "machines", Blocking: true,
			What: fmt.Sprintf("the plan needs %d machines, one for the client and one for each node of its largest "+
				"system, and the list has %d", want.Machines, have),
			Hint: "name more, or say fewer nodes (disseminate.nodes, sync.peers)",
		}}
	}
	hosts := p.Hosts[:want.Machines]
	all = p.refused(ctx, hosts, "uname -s -m", func(got string) error {
		if !strings.HasPrefix(got, "Linux ") {
			return fmt.Errorf("it runs %s, and agents are for Linux", got)
		}
		return nil
	}, engine.Problem{Name: "machines",
		Hint: "`ssh` must connect without a prompt: its host key is known, and it accepts one of your keys"})
	if len(all) > 0 || !want.Netem {
		return all
	}
	return p.refused(ctx, hosts, lacking, func(got string) error {
		if got != "" {
			return fmt.Errorf("link.emulator: netem needs on it %s", strings.Join(strings.Fields(got), ", "))
		}
		return nil
	}, engine.Problem{Name: "links",
		Hint: "log in as root (user:), install the kernel's extra modules (linux-modules-extra on Ubuntu, " +
			"kernel-modules-extra on Fedora), or say --set link.emulator=user"})
}

// refused runs a command on all hosts, and returns a problem of this kind for each host that fails
// or gives a wrong answer.
func (p *Place) refused(
	ctx context.Context, hosts []host, question string, wrong func(got string) error, kind engine.Problem,
) (all []engine.Problem) {
	for _, err := range p.each(hosts, func(_ int, h *host) error {
		got, err := p.ask(ctx, h, question, nil)
		return cmp.Or(err, wrong(got))
	}) {
		if err != nil {
			kind.What, kind.Blocking = err.Error(), true
			all = append(all, kind)
		}
	}
	return all
}

// lacking is a script that prints what a machine lacks for netem between machines. Modules that are
// not loaded count if they exist, because they are loaded on demand; without a list of modules, the
// agent will report a missing one.
const lacking = `test "$(id -u)" = 0 || echo root
at=/lib/modules/$(uname -r)
for m in sch_netem sch_tbf vxlan; do
	test -d /sys/module/$m || test ! -e $at/modules.dep || cat $at/modules.dep $at/modules.builtin | grep -q "/$m[.]ko" ||
		echo $m
done`

// each calls do for all hosts concurrently, and returns the errors in their order.
func (p *Place) each(hosts []host, do func(i int, h *host) error) []error {
	return testbed.AtOnce(len(hosts), func(i int) error {
		if err := do(i, &hosts[i]); err != nil {
			return fmt.Errorf("%s: %w", hosts[i].Name, err)
		}
		return nil
	})
}

func (p *Place) dir(run string) string { return path.Join(p.Dir, "plimsoll-"+run) }

// Create implements remote.Place.
func (p *Place) Create(ctx context.Context, spec remote.Spec) (ready []remote.Machine, err error) {
	hosts := p.Hosts // those beyond the required number are spares
	machines, emulator := make([]remote.Machine, len(hosts)), link.Own
	if spec.Netem {
		emulator = link.NetemDiscipline
	}
	for i, err := range p.each(hosts, func(i int, h *host) (err error) {
		m := p.machine(h, spec.Run)
		if spec.Emulate {
			m.Number = i + 1
		}
		if err = p.copyBinary(ctx, h, m.Dir, spec.Binary); err == nil {
			m.Agent, err = p.startAgent(ctx, h, m, emulator, spec.Credentials)
		}
		machines[i] = m
		return err
	}) {
		if err == nil {
			ready = append(ready, machines[i])
		} else if i < spec.Machines {
			return nil, err
		}
	}
	return ready, nil
}

func (p *Place) machine(h *host, run string) remote.Machine {
	return remote.Machine{Name: h.Name, Zone: h.Zone, Addr: h.addr, Dir: p.dir(run)}
}

func (p *Place) copyBinary(ctx context.Context, h *host, dir, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	script := "set -e; umask 077; mkdir -p DIR; cat > DIR/plimsoll; chmod 700 DIR/plimsoll"
	if _, err := p.ask(ctx, h, strings.ReplaceAll(script, "DIR", suggest.Command(dir)), f); err != nil {
		return fmt.Errorf("copy the program to %s: %w", dir, err)
	}
	return nil
}

// startAgent starts the agent of a machine and returns the address on which it listens.
func (p *Place) startAgent(
	ctx context.Context, h *host, m remote.Machine, emulator string, credentials agent.Credentials,
) (at netip.AddrPort, err error) {
	out, err := p.ask(ctx, h, command(m, "node", "run", "start-agent", "--dir", m.Dir,
		"--", "--name", m.Name, "--address", m.Addr.String(),
		"--index", strconv.Itoa(m.Number-1), "--emulator", emulator, "--listen",
		"tcp:"+net.JoinHostPort(m.Addr.String(), "0")),
		bytes.NewReader(credentials.Encoded()))
	if err != nil {
		return at, fmt.Errorf("start the agent: %w", err)
	}
	return netip.ParseAddrPort(out)
}

// Find implements remote.Place. The first machine has the run's record; without it nothing is left.
func (p *Place) Find(ctx context.Context, run string, first remote.Machine) ([]remote.Machine, error) {
	h := p.host(first.Name)
	if h == nil || p.dir(run) != first.Dir {
		return nil, fmt.Errorf("the run is on %s in %s, and the list of hosts no longer has that: restore it, "+
			"then resume", first.Name, first.Dir)
	}
	script := "if test -x DIR/plimsoll; then echo there; elif test -e DIR; then test -x DIR; else echo gone; fi"
	said, err := p.ask(ctx, h, strings.ReplaceAll(script, "DIR", suggest.Command(first.Dir)), nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: look for the run in %s: %w", h.Name, first.Dir, err)
	case said != "there":
		return nil, fmt.Errorf("%s: %w", h.Name, remote.ErrGone)
	}
	return []remote.Machine{p.machine(h, run)}, nil
}

// host returns the host with a name, or nil.
func (p *Place) host(name string) *host {
	if i := slices.IndexFunc(p.Hosts, func(h host) bool { return h.Name == name }); i >= 0 {
		return &p.Hosts[i]
	}
	return nil
}

// Exec implements remote.Place.
func (p *Place) Exec(ctx context.Context, on remote.Machine, args []string, in io.Reader, out io.Writer) error {
	h := p.host(on.Name)
	if h == nil {
		return fmt.Errorf("the list has no host %s", on.Name)
	}
	if err := p.shell(ctx, h, command(on, args...), in, out); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// command returns the shell command that runs plimsoll on a machine.
func command(on remote.Machine, args ...string) string {
	return "exec " + suggest.Command(append([]string{path.Join(on.Dir, "plimsoll")}, args...)...)
}

// Delete implements remote.Place.
func (p *Place) Delete(ctx context.Context, run string) error {
	script := "test ! -x DIR/plimsoll || DIR/plimsoll node run end --dir DIR; ended=$?; rm -rf DIR && exit $ended"
	return errors.Join(p.each(p.Hosts, func(_ int, h *host) error {
		_, err := p.ask(ctx, h, strings.ReplaceAll(script, "DIR", suggest.Command(p.dir(run))), nil)
		return err
	})...)
}

// ask returns the output of a shell command on a machine.
func (p *Place) ask(ctx context.Context, h *host, command string, in io.Reader) (string, error) {
	var out strings.Builder
	err := p.shell(ctx, h, command, in, &out)
	return strings.TrimSpace(out.String()), err
}

const (
	// noConnection is the exit status of ssh if it failed itself; otherwise ssh returns the
	// command's.
	noConnection = 255
	// outputTime limits how long the output of a command may take to be read after it has ended.
	outputTime = time.Minute
)

// shell runs a shell command on a machine. Errors include its standard error.
func (p *Place) shell(ctx context.Context, h *host, command string, in io.Reader, out io.Writer) error {
	var said strings.Builder
	c := exec.CommandContext(ctx, "ssh", append(p.login(h), suggest.Command("sh", "-c", command))...)
	c.Stdin, c.Stdout, c.Stderr, c.WaitDelay = in, out, &said, outputTime
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // protects it from Ctrl-C
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() == noConnection:
		err = errors.New("no connection by ssh")
	}
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

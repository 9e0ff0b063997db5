package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const (
	connectTime = 15 * time.Second
	// A connection on which nothing comes back for so long is taken for dead.
	aliveEvery = 15 * time.Second
	prefix     = "plimsoll-" // of a run's directory on a machine
)

// Place is the machines of a list.
type Place struct {
	list *list

	mu      sync.Mutex
	clients map[string]*ssh.Client // by the host's name
}

var _ remote.Place = (*Place)(nil)

// Open reads a list; it reaches nothing.
func Open(file string) (*Place, error) {
	l, err := readList(file)
	if err != nil {
		return nil, err
	}
	return &Place{list: l, clients: map[string]*ssh.Client{}}, nil
}

// Check implements remote.Place: it logs in to each machine that a run would have.
func (p *Place) Check(ctx context.Context, machines int) (all []testbed.Problem) {
	if have := len(p.list.Hosts); have < machines {
		return []testbed.Problem{{
			Name: "machines", Severity: testbed.Fatal,
			What: fmt.Sprintf("the plan needs %d machines, one for the client and one for each node of its largest "+
				"system, and the list has %d", machines, have),
			Hint: "name more, or say fewer nodes (disseminate.nodes, sync.peers)",
		}}
	}
	for _, err := range p.each(p.list.Hosts[:machines], func(h *host) error {
		var out bytes.Buffer
		err := p.shell(ctx, h, "uname -s -m", nil, &out, io.Discard)
		if got := strings.TrimSpace(out.String()); err == nil && !strings.HasPrefix(got, "Linux ") {
			err = fmt.Errorf("it runs %s, and agents are for Linux", got)
		}
		return err
	}) {
		all = append(all, testbed.Problem{Name: "machines", Severity: testbed.Fatal, What: err.Error(),
			Hint: "it must be reached by ssh without a password"})
	}
	return all
}

// each does something on all hosts at once.
func (p *Place) each(hosts []host, do func(*host) error) (failed []error) {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() { errs[i] = do(&hosts[i]) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", hosts[i].Name, err))
		}
	}
	return failed
}

func (p *Place) dir(run string) string { return path.Join(p.list.Dir, prefix+run) }

// Create implements remote.Place.
func (p *Place) Create(ctx context.Context, spec remote.Spec) ([]remote.Machine, error) {
	if len(p.list.Hosts) < spec.Machines {
		return nil, fmt.Errorf("the list has %d hosts, and %d are needed", len(p.list.Hosts), spec.Machines)
	}
	var credentials bytes.Buffer
	if err := gob.NewEncoder(&credentials).Encode(spec.Credentials); err != nil {
		return nil, err
	}
	hosts := p.list.Hosts // those beyond the number are there to take the place of one that is lost
	machines, errs := make([]remote.Machine, len(hosts)), make([]error, len(hosts))
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() {
			machines[i] = p.machine(&hosts[i], spec.Run)
			if spec.Emulate {
				machines[i].Number = i + 1
			}
			if errs[i] = p.copyBinary(ctx, &hosts[i], p.dir(spec.Run), spec.Binary); errs[i] == nil {
				machines[i].Agent, errs[i] = p.startAgent(ctx, machines[i], credentials.Bytes())
			}
		})
	}
	wg.Wait()
	var ready []remote.Machine
	for i, err := range errs {
		if err == nil {
			ready = append(ready, machines[i])
		} else if i < spec.Machines {
			return nil, fmt.Errorf("%s: %w", hosts[i].Name, err)
		}
	}
	return ready, nil
}

func (p *Place) machine(h *host, run string) remote.Machine {
	return remote.Machine{Name: h.Name, Zone: h.Zone, Addr: h.addr, Dir: p.dir(run)}
}

// copyBinary copies the program and makes sure that it arrived as it is here.
func (p *Place) copyBinary(ctx context.Context, h *host, dir, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var out, said bytes.Buffer
	sum := sha256.New()
	script := "set -e; umask 077; mkdir -p DIR; cat > DIR/plimsoll; chmod 700 DIR/plimsoll; sha256sum DIR/plimsoll"
	script = strings.ReplaceAll(script, "DIR", quote(dir))
	if err := p.shell(ctx, h, script, io.TeeReader(f, sum), &out, &said); err != nil {
		return fmt.Errorf("copy the program to %s: %w: %s", dir, err, strings.TrimSpace(said.String()))
	}
	sent := hex.EncodeToString(sum.Sum(nil))
	if got, _, _ := strings.Cut(out.String(), " "); got != sent {
		return fmt.Errorf("the program arrived in %s with SHA-256 %q, and was sent with %s", dir, got, sent)
	}
	return nil
}

// startAgent starts the agent of a machine and gives the address where it listens.
func (p *Place) startAgent(ctx context.Context, m remote.Machine, credentials []byte) (at netip.AddrPort, err error) {
	var out, said bytes.Buffer
	args := []string{"node", "run", "start-agent", "--dir", m.Dir, fmt.Sprintf("--emulate=%t", m.Number > 0), "--",
		"--name", m.Name, "--address", m.Addr.String(), "--index", strconv.Itoa(m.Number - 1),
		"--listen", "tcp:" + net.JoinHostPort(m.Addr.String(), "0")}
	if err := p.Exec(ctx, m, args, bytes.NewReader(credentials), &out, &said); err != nil {
		return at, fmt.Errorf("start the agent: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return netip.ParseAddrPort(strings.TrimSpace(out.String()))
}

// Find implements remote.Place. The first machine has what a run recorded: without it nothing
// is left.
func (p *Place) Find(ctx context.Context, run string, first remote.Machine) ([]remote.Machine, error) {
	at := slices.IndexFunc(p.list.Hosts, func(h host) bool { return h.Name == first.Name })
	if at < 0 || p.dir(run) != first.Dir {
		return nil, fmt.Errorf("the run is on %s in %s, and the list of hosts no longer has that: restore it, "+
			"then resume", first.Name, first.Dir)
	}
	h := &p.list.Hosts[at]
	script := fmt.Sprintf("test -x DIR/plimsoll && exit 0; test ! -e DIR || test -x DIR && exit %d; exit 1", goneStatus)
	err := p.shell(ctx, h, strings.ReplaceAll(script, "DIR", quote(first.Dir)), nil, io.Discard, io.Discard)
	var status *ssh.ExitError
	if errors.As(err, &status) && status.ExitStatus() == goneStatus {
		return nil, fmt.Errorf("%s: %w", h.Name, remote.ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: look for the run in %s: %w", h.Name, first.Dir, err)
	}
	return []remote.Machine{p.machine(h, run)}, nil
}

// goneStatus is the shell's when a machine has nothing of a run, which no other failure has.
const goneStatus = 66

// Exec implements remote.Place.
func (p *Place) Exec(ctx context.Context, on remote.Machine, args []string, in io.Reader, out, errOut io.Writer) error {
	for i := range p.list.Hosts {
		h := &p.list.Hosts[i]
		if h.Name != on.Name {
			continue
		}
		words := []string{"exec", quote(path.Join(on.Dir, "plimsoll"))}
		for _, a := range args {
			words = append(words, quote(a))
		}
		err := p.shell(ctx, h, strings.Join(words, " "), in, out, errOut)
		var status *ssh.ExitError
		if errors.As(err, &status) {
			return &remote.ExitError{On: h.Name, Status: status.ExitStatus()}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		return nil
	}
	return fmt.Errorf("the list has no host %s", on.Name)
}

// Delete implements remote.Place.
func (p *Place) Delete(ctx context.Context, run string) error {
	script := "test ! -x DIR/plimsoll || DIR/plimsoll node run end --dir DIR; rm -rf DIR"
	return errors.Join(p.each(p.list.Hosts, func(h *host) error {
		var said bytes.Buffer
		err := p.shell(ctx, h, strings.ReplaceAll(script, "DIR", quote(p.dir(run))), nil, io.Discard, &said)
		if text := strings.TrimSpace(said.String()); err == nil && text != "" {
			err = errors.New(text)
		}
		return err
	})...)
}

// shell has a machine's shell do something.
func (p *Place) shell(ctx context.Context, h *host, command string, in io.Reader, out, errOut io.Writer) error {
	c, err := p.client(ctx, h)
	if err != nil {
		return err
	}
	s, err := c.NewSession()
	if err != nil { // it has died since
		p.forget(h, c)
		if c, err = p.client(ctx, h); err != nil {
			return err
		}
		if s, err = c.NewSession(); err != nil {
			return err
		}
	}
	defer s.Close()
	s.Stdin, s.Stdout, s.Stderr = in, out, errOut
	if err := s.Start("sh -c " + quote(command)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Wait(); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// client is the connection to a host, made when it is first needed and again when it broke.
func (p *Place) client(ctx context.Context, h *host) (*ssh.Client, error) {
	p.mu.Lock()
	c := p.clients[h.Name]
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	config, err := p.list.config(h)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: connectTime}).DialContext(ctx, "tcp", h.at())
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(connectTime))
	session, channels, requests, err := ssh.NewClientConn(conn, h.at(), config)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("log in as %s: %w", h.User, err)
	}
	_ = conn.SetDeadline(time.Time{})
	c = ssh.NewClient(session, channels, requests)
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.clients[h.Name]; other != nil {
		c.Close()
		return other, nil
	}
	p.clients[h.Name] = c
	go p.stayAlive(h, c)
	return c, nil
}

func (p *Place) forget(h *host, c *ssh.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients[h.Name] == c {
		delete(p.clients, h.Name)
	}
	c.Close()
}

// stayAlive closes a connection on which nothing comes back.
func (p *Place) stayAlive(h *host, c *ssh.Client) {
	defer p.forget(h, c)
	for {
		answered := make(chan error, 1)
		go func() {
			_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case err := <-answered:
			if err != nil {
				return
			}
		case <-time.After(aliveEvery):
			return
		}
		time.Sleep(aliveEvery)
	}
}

// quote makes a word of the shell of any text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

package tahoe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const clientLabel = "client-1"

// readyTimeout is long enough for daemons that start together on a busy machine: each takes about a
// second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

// start starts the grid and the client, waits until the client is connected to all storage nodes, and
// stores the object for health probes.
func (s *started) start(ctx context.Context, d system.Deployment, bin string) error {
	dir := disk.Of(d, d.Client, clientLabel)
	if err := s.startServers(ctx, d, bin, dir); err != nil {
		return err
	}
	port, err := d.Client.Port(ctx, 0)
	if err != nil {
		return err
	}
	s.base.Host = system.JoinPort(d.Client, port)
	if err = makeDirectory(ctx, dir, s.fill(clientConfig, clientLabel, d.Client.Addr(), port)); err != nil {
		return err
	}
	if s.proc, err = d.Client.Start(ctx, command(bin, dir.Path, clientLabel, func(ctx context.Context) error {
		return s.joined(ctx, s.config)
	})); err != nil {
		return err
	}
	s.alive, _ = member.WhileAlive(context.Background(), s.Processes()...)
	s.probe, err = s.Put(ctx, "probe", int64(len(probeContent)), strings.NewReader(probeContent))
	return err
}

// startServers starts all storage nodes concurrently, and gives the client in dir the list of them.
func (s *started) startServers(ctx context.Context, d system.Deployment, bin string, client disk.Dir) error {
	ports, err := member.Ports(ctx, d.Hosts[0], nil, s.nodes)
	if err != nil {
		return err
	}
	announced := make([]announcement, s.nodes)
	if err := group.Each(ports, func(i, port int) (err error) {
		s.dirs[i] = disk.Of(d, d.Hosts[0], fmt.Sprintf("storage-%d", i+1))
		s.procs[i], announced[i], err = startStorage(ctx, d.Hosts[0], bin, s.dirs[i], port, s.config)
		return err
	}); err != nil {
		return err
	}
	private := client.Sub("private")
	return errors.Join(private.Files.MkdirAll(private.Path, 0o700),
		private.Files.Write(ctx, private.Sub("servers.yaml").Path, 0o600, strings.NewReader(s.serversYAML(announced))))
}

func startStorage(ctx context.Context, h testbed.Host, bin string, dir disk.Dir, port int, c config) (testbed.Process,
	announcement, error) {
	label := filepath.Base(dir.Path)
	if err := makeDirectory(ctx, dir, c.fill(storageConfig, label, h.Addr(), port)); err != nil {
		return nil, announcement{}, err
	}
	var a announcement
	address := system.JoinPort(h, port)
	p, err := h.Start(ctx, command(bin, dir.Path, label, func(ctx context.Context) error {
		var err error
		if a, err = announced(dir, address); err != nil {
			return err
		}
		conn, err := h.Dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}))
	return p, a, err
}

// command runs the node in dir in the foreground; it ends when its standard input is closed, so it
// does not outlive this process.
func command(bin, dir, label string, ready func(context.Context) error) testbed.Command {
	return testbed.Command{
		Name: name + "/" + label, Role: "system", Dir: dir,
		Args:  []string{bin, "run", dir},
		Ready: ready, ReadyTimeout: readyTimeout,
	}
}

// stop stops processes concurrently, except those that were not started.
func stop(ctx context.Context, all ...testbed.Process) error {
	return group.Each(all, func(_ int, p testbed.Process) error {
		if p == nil {
			return nil
		}
		return p.Stop(ctx)
	})
}

// config is the shape of a started grid.
type config struct {
	nodes                int
	needed, happy, total int
	protocol             string // to the storage nodes: "gbs", "foolscap"
}

func parseConfig(opt system.Options) (config, error) {
	number := func(name string) int { return int(opt.Int(name)) }
	c := config{nodes: number("nodes"), needed: number("needed"), happy: number("happy"), total: number("total"),
		protocol: opt["protocol"]}
	if c.needed > c.total {
		return c, fmt.Errorf("tahoe: %d shares are needed and only %d are stored: make `needed` at most `total`",
			c.needed, c.total)
	}
	if c.happy == 0 {
		c.happy = min(c.total, c.nodes)
	}
	if c.happy > min(c.total, c.nodes) {
		return c, fmt.Errorf("tahoe: a put cannot reach %d of %d storage nodes with %d shares: make `happy` at most "+
			"`nodes` and `total`", c.happy, c.nodes, c.total)
	}
	return c, nil
}

// Configurations: a storage node listens for clients; a client, which accepts no shares, serves the
// web API.
var (
	//go:embed storage.cfg
	storageConfig string
	//go:embed client.cfg
	clientConfig string
)

// fill fills in one of the configurations for a node that listens at host and port. A storage node
// advertises the address HINT; ENDPOINT is Twisted's description, in which a colon ends a field.
func (c config) fill(text, nickname string, host netip.Addr, port int) string {
	endpoint := fmt.Sprintf("tcp:%d:interface=%s", port, strings.ReplaceAll(host.String(), ":", `\:`))
	hint := "tcp:" + netip.AddrPortFrom(host, uint16(port)).String()
	return strings.NewReplacer("NICKNAME", nickname, "ENDPOINT", endpoint, "HINT", hint,
		"NEEDED", strconv.Itoa(c.needed), "HAPPY", strconv.Itoa(c.happy), "TOTAL", strconv.Itoa(c.total),
		"FOOLSCAP", strconv.FormatBool(c.protocol == "foolscap")).Replace(text)
}

// serversYAML returns the list of storage nodes that replaces an introducer. JSON strings are valid
// YAML strings.
func (c config) serversYAML(all []announcement) string {
	var b strings.Builder
	b.WriteString("storage:\n")
	for i, a := range all {
		fmt.Fprintf(&b, "  v0-%s:\n    ann:\n      nickname: storage-%d\n      anonymous-storage-FURL: %q\n      "+
			"permutation-seed-base32: %q\n",
			a.key, i+1, a.furl, a.key)
		if c.protocol == "gbs" {
			fmt.Fprintf(&b, "      anonymous-storage-NURLs: [%q]\n", a.nurl)
		}
	}
	return b.String()
}

// configFile is the name of the configuration file in a node's directory.
const configFile = "tahoe.cfg"

// runningFile is where a running node stores its process id.
const runningFile = "running.process"

// makeDirectory makes a node's directory, like `tahoe create-node` but without its second of CPU
// time. An existing directory is kept, except for the node's old address and for the process id of a
// killed node: Tahoe would take whatever process has that id now, say after a reboot, for the node.
// Nodes started by Plimsoll do not outlive it.
func makeDirectory(ctx context.Context, dir disk.Dir, config string) error {
	return errors.Join(
		dir.Files.RemoveAll(dir.Sub(runningFile).Path),
		dir.Files.RemoveAll(dir.Sub(furlFile).Path),
		dir.Files.MkdirAll(dir.Sub("private").Path, 0o700),
		dir.Files.Write(ctx, dir.Sub("tahoe-client.tac").Path, 0o644, strings.NewReader("")),
		dir.Files.Write(ctx, dir.Sub(configFile).Path, 0o600, strings.NewReader(config)),
	)
}

// announcement is what clients need to know about a storage node. An introducer would distribute
// it; no single file of the node contains all of it.
type announcement struct {
	key  string // public key without its prefix; also permutes the servers
	furl string // Foolscap
	nurl string // Great Black Swamp
}

// furlFile is where a storage node writes its address.
const furlFile = "private/storage.furl"

// announced reads the announcement from the files that a storage node wrote when it began to listen
// at address, host:port.
func announced(dir disk.Dir, address string) (announcement, error) {
	pub, err := dir.Files.ReadFile(dir.Sub("node.pubkey").Path)
	furl, err2 := dir.Files.ReadFile(dir.Sub(furlFile).Path)
	cert, err3 := dir.Files.ReadFile(dir.Sub("private/node.pem").Path)
	if err := cmp.Or(err, err2, err3); err != nil {
		return announcement{}, err
	}
	a := announcement{furl: strings.TrimSpace(string(furl))}
	var ok bool
	if a.key, ok = strings.CutPrefix(strings.TrimSpace(string(pub)), "pub-v0-"); !ok || a.key == "" {
		return a, fmt.Errorf("%s: no key of version 0 in it", dir.Sub("node.pubkey").Path)
	}
	a.nurl, err = nurl(cert, a.furl, address)
	return a, err
}

// nurl returns pb://SPKI@HOST:PORT/SWISSNUM#v=1, as specified in docs/specifications/url.rst of
// Tahoe-LAFS: SPKI is the base64url encoding, without padding, of the SHA-256 of the certificate's
// SubjectPublicKeyInfo, and the swiss number is taken from the furl.
func nurl(certificate []byte, furl, address string) (string, error) {
	slash := strings.LastIndexByte(furl, '/')
	if !strings.HasPrefix(furl, "pb://") || slash < len("pb://") || slash+1 == len(furl) {
		return "", fmt.Errorf("%q is not a furl", furl)
	}
	pair, err := tls.X509KeyPair(certificate, certificate) // the key is in the same file
	if err != nil {
		return "", fmt.Errorf("node.pem: %w", err)
	}
	spki := sha256.Sum256(pair.Leaf.RawSubjectPublicKeyInfo)
	return "pb://" + base64.RawURLEncoding.EncodeToString(spki[:]) + "@" + address + furl[slash:] + "#v=1", nil
}

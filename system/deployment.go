package system

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Mark returns the prefix of the names of objects that a run stores in an attached system; it is
// empty if the run may not write to one. The prefix has 50 bits, either random or derived from the
// run's random id, so no foreign object begins with it: a put never replaces a foreign object, and
// remains of a failed put can be removed without a query before each put during the measurement.
// All sessions of a run use the same prefix, so a later one finds objects of an earlier one by
// name. Without a run, each call returns a new prefix.
func (d Deployment) Mark() string {
	switch {
	case !d.Write:
		return ""
	case d.Run == "":
		return rand.Text()[:10] + "-"
	}
	sum := sha256.Sum256([]byte("plimsoll mark of run " + d.Run))
	return base32.StdEncoding.EncodeToString(sum[:])[:10] + "-"
}

// Begin starts or attaches to the system, with the defaults of its options filled in. Errors begin
// with the system's name.
func Begin(ctx context.Context, s System, mode Mode, d Deployment) (_ Cluster, err error) {
	info := s.Info()
	if d.Options, err = info.Fill(d.Options); err != nil {
		return nil, err
	}
	if key := info.Attaching(d.Options); key != "" && mode == Start {
		return nil, fmt.Errorf("%s: option %q is for mode: attach", info.Name, key)
	}
	starter, starts := s.(Starter)
	attacher, attaches := s.(Attacher)
	var c Cluster
	switch {
	case mode == Start && starts:
		if err = info.confined(append(slices.Clone(d.Hosts), d.Client)); err == nil {
			c, err = starter.Start(ctx, d)
		}
	case mode == Attach && attaches:
		c, err = attacher.Attach(ctx, d)
	default:
		err = fmt.Errorf("it has no mode %s", mode)
	}
	if err != nil {
		return nil, info.named(err)
	}
	return c, nil
}

// confined returns an error if a host shares the network of a local or remote machine, and the
// system's programs would send traffic beyond the run's network.
func (i Info) confined(hosts []testbed.Host) error {
	for _, h := range hosts {
		if i.ReachesOut != "" && !testbed.Emulated(h.Addr()) {
			return fmt.Errorf("host %s has no network namespace of its own, and %s: permit network namespaces "+
				"(`plimsoll doctor` says how), on other machines ask for a link, or attach to a running node", h.Name(),
				i.ReachesOut)
		}
	}
	return nil
}

// named returns err, prefixed with the system's name unless it already is.
func (i Info) named(err error) error {
	if strings.HasPrefix(err.Error(), i.Name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", i.Name, err)
}

// RestartDeployment starts a deployment again on its directory, with the same data under the same refs, no
// matter how it ended. The directory and the addresses of the hosts must be those passed to Start.
func RestartDeployment(ctx context.Context, s System, d Deployment) (Cluster, error) {
	h := d.Hosts[0]
	if _, err := testbed.Stat(h.Files(), filepath.Join(d.DirOf(h), s.Info().Kept)); err != nil {
		return nil, fmt.Errorf("%s: no deployment to go on with: %w", s.Info().Name, err)
	}
	return Begin(ctx, s, Start, d)
}

// Check reports what is missing to use the system with these options.
func Check(ctx context.Context, s System, opt Options) []Problem {
	full, err := s.Info().Fill(opt)
	if err != nil {
		return WrongOptions(s.Info().Name, err)
	}
	return s.Check(ctx, full)
}

// Node returns the command that runs an embedded system: `plimsoll node NAME ARG…`.
func (d Deployment) Node(name string, args ...string) ([]string, error) {
	self := d.Self
	if len(self) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("%s: find our own executable: %w", name, err)
		}
		self = []string{exe}
	}
	return slices.Concat(self, []string{"node", name}, args), nil
}

// Port returns the TCP port that option "port" requests, or a free one on h. It fails if the port
// is in use, with a clearer error than those of the various daemons.
func (d Deployment) Port(ctx context.Context, h testbed.Host) (int, error) {
	want := int(d.Options.Int("port"))
	port, err := h.Port(ctx, want)
	if err != nil && want > 0 {
		return 0, fmt.Errorf("port in use: %s on host %s: %w; choose another `port`, or leave it out for a free one",
			JoinPort(h, want), h.Name(), err)
	}
	return port, err
}

// JoinPort returns host:port at which others reach h.
func JoinPort(h testbed.Host, port int) string {
	return netip.AddrPortFrom(h.Addr(), uint16(port)).String()
}

// DirOf returns the directory of a host for all files of the deployment. No two hosts share a
// directory.
func (d Deployment) DirOf(h testbed.Host) string { return filepath.Join(d.Dir, h.Name()) }

// Program finds a program of the system called name: the program that the option, image or
// environment variable specifies, otherwise the first of try that exists in the image installed for
// the system, in PATH, or as a path. With option "image", the value of the option is looked up in
// the image.
func Program(name string, opt Options, option, env string, try ...string) (string, error) {
	if ref := opt[ImageName]; ref != "" {
		if opt[option] != "" {
			try = []string{opt[option]}
		}
		return inImage(name, try, func(s image.Store) (image.Image, error) { return s.Find(ref) })
	}
	by, path := "option `"+option+"`", opt[option]
	if path == "" {
		by, path = env, os.Getenv(env)
	}
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w", name, by, err)
		}
		return filepath.Abs(found)
	}
	if _, err := image.Default(); err == nil { // otherwise there is no directory for images
		path, err := inImage(name, try, func(s image.Store) (image.Image, error) { return s.Installed(name) })
		if !errors.Is(err, image.ErrAbsent) {
			return path, err
		}
	}
	for _, program := range try {
		if path, err := exec.LookPath(program); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s: not found in PATH: %s", name, strings.Join(try, ", "))
}

func inImage(name string, try []string, find func(image.Store) (image.Image, error)) (path string, err error) {
	store, err := image.Default()
	if err == nil {
		var i image.Image
		if i, err = find(store); err == nil {
			path, err = i.Program(try...)
		}
	}
	if errors.Is(err, image.ErrAbsent) {
		err = fmt.Errorf("%w: run with --pull to bring it", err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return path, nil
}

// ImageName is the option of all systems whose program can come from a container image.
const ImageName = "image"

// versionTime limits the version query of a program: a cold start of Python takes seconds on a busy
// machine.
const versionTime = time.Minute

// Output returns the output of a short-lived program, such as its version.
func Output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// CheckProgram runs a program with args that make it print its version, and returns an error unless the
// output contains want: otherwise it is not the system's program.
func CheckProgram(ctx context.Context, name, program, want string, args ...string) error {
	out, err := Output(ctx, program, args...)
	if strings.Contains(out, want) {
		return nil
	}
	err = cmp.Or(err, fmt.Errorf("it says %.60q", out))
	return fmt.Errorf("%s: %s is not the program of this system: `%s %s`: %w", name, program, program,
		strings.Join(args, " "), err)
}

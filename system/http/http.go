package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/listfile"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// System implements system.System.
type System struct{}

var (
	_ system.System     = System{}
	_ system.Provider   = (*node)(nil)
	_ system.HTTPServer = (*node)(nil)
	_ system.Healther   = (*node)(nil)
	_ system.Ranger     = (*node)(nil)
)

// Check implements system.System.
func (s System) Check(_ context.Context, opt system.Options) []system.Problem {
	if _, err := s.node(opt); err != nil {
		return []system.Problem{{What: err.Error(), Hint: "mend the `with:` of system http in the experiment file"}}
	}
	return nil
}

// Start implements system.System.
func (System) Start(context.Context, system.Deployment) (system.Cluster, error) {
	return nil, errors.New("http: cannot be started, only attached to (mode: attach)")
}

// Attach implements system.System. It asks the first object for its size, so
// that a server which cannot be reached is told at once.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	n, err := s.node(d.Options)
	if err != nil {
		return nil, err
	}
	if n.client, err = web.New(name, d.Client.Dial, n.target(nil)); err != nil {
		return nil, err
	}
	_, noRange, head, err := n.size(ctx, n.entries[0])
	if err != nil {
		n.client.Close()
		return nil, err
	}
	server := head.Get("Server")
	if server == "" {
		server = "unknown (the server sends no Server header)"
	}
	identity := map[string]string{"version": server, "ranges": fmt.Sprint(!noRange), "objects": fmt.Sprint(len(n.entries))}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) { return n, nil })
}

// node reads and checks the options.
func (s System) node(opt system.Options) (*node, error) {
	opt, err := s.Info().Fill(opt)
	if err != nil {
		return nil, err
	}
	n := &node{ca: opt["ca"], insecure: opt.Bool("insecure"), header: http.Header{}, urls: map[system.Ref]*url.URL{}}
	if n.ca != "" {
		if _, err := os.Stat(n.ca); err != nil {
			return nil, fmt.Errorf("http: option \"ca\": %w", err)
		}
	}
	if n.entries, err = listfile.Parse(strings.NewReader(strings.Join(opt.Strings("urls"), "\n")+"\n"), "option \"urls\"", "url"); err != nil && opt["urls"] != "" {
		return nil, fmt.Errorf("http: %w", err)
	}
	if opt["list"] != "" {
		listed, err := listfile.Read(opt["list"], "url")
		if err != nil {
			return nil, fmt.Errorf("http: option \"list\": %w", err)
		}
		n.entries = append(n.entries, listed...)
	}
	if len(n.entries) == 0 {
		return nil, errors.New("http: give URLs of objects in option \"urls\" or a file with them in option \"list\"")
	}
	for _, e := range n.entries {
		u, err := url.Parse(e.What)
		if err != nil {
			return nil, fmt.Errorf("http: %w", err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("http: %q is not an absolute http or https URL", e.What)
		}
		u.Fragment = "" // is never sent
		n.urls[system.Ref(e.What)] = u
	}
	for _, h := range opt.Strings("header_env") {
		key, env, ok := strings.Cut(h, "=")
		if !ok || key == "" || env == "" {
			return nil, fmt.Errorf("http: option \"header_env\": want HEADER=NAME-OF-VARIABLE, not %q", h)
		}
		value, set := os.LookupEnv(env)
		if !set {
			return nil, fmt.Errorf("http: option \"header_env\": the environment has no variable %s", env)
		}
		n.header.Add(key, value)
	}
	return n, nil
}

// node is a set of URLs, which may be on several servers.
type node struct {
	entries  []listfile.Entry
	urls     map[system.Ref]*url.URL
	header   http.Header
	ca       string
	insecure bool
	client   *web.Client
}

func (n *node) target(u *url.URL) system.HTTPTarget {
	return system.HTTPTarget{URL: u, Header: n.header, CAFile: n.ca, Insecure: n.insecure}
}

// Target implements system.HTTPServer.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	u, ok := n.urls[ref]
	if !ok {
		return system.HTTPTarget{}, fmt.Errorf("http: %s is not among the URLs of the experiment: %w", ref, system.ErrNotFound)
	}
	t := n.target(u)
	t.Header = t.Header.Clone()
	return t, nil
}

// Objects implements system.Provider. Every object is asked for its size and
// whether it is served in ranges; what a list says otherwise is an error.
func (n *node) Objects(ctx context.Context) ([]system.Object, error) {
	var out []system.Object
	for _, e := range n.entries {
		size, noRange, _, err := n.size(ctx, e)
		if err != nil {
			return nil, err
		}
		o := e.Object()
		o.Size, o.NoRange = size, noRange
		out = append(out, o)
	}
	return out, nil
}

func (n *node) size(ctx context.Context, e listfile.Entry) (size int64, noRange bool, head http.Header, err error) {
	size, noRange, head, err = n.client.Size(ctx, n.target(n.urls[system.Ref(e.What)]))
	if err == nil && size < 0 {
		size = e.Size
	}
	if err == nil && e.Size >= 0 && size != e.Size {
		err = fmt.Errorf("http: %s has %d bytes, the list says %d", e.What, size, e.Size)
	}
	return size, noRange, head, err
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.client.Get(ctx, t, w)
}

// GetRange implements system.Ranger.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.client.GetRange(ctx, t, off, count, w)
}

// Put implements system.Node: a URL alone says nothing of how to write.
func (n *node) Put(context.Context, string, int64, io.Reader) (system.Ref, error) {
	return "", fmt.Errorf("http: put: %w", system.ErrReadOnly)
}

// Health implements system.Healther: the first object's head, over a new connection.
func (n *node) Health(ctx context.Context) error {
	return n.client.Alive(ctx, n.target(n.urls[system.Ref(n.entries[0].What)]))
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process { return nil }

// Stop implements group.Node.
func (n *node) Stop(context.Context) error { n.client.Close(); return nil }

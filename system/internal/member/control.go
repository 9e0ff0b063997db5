package member

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// answer limits the time for an answer that requires no work and normally takes milliseconds.
const answer = 30 * time.Second

// Controlled is a process with an HTTP API that is called from its own host.
type Controlled struct {
	Process
	Control string      // address of the API
	Header  http.Header // of every call
	Local   *web.Client
	d       system.Deployment
	env     []string // added to the environment of RunNode: KEY=VALUE
}

// NewControlled finds a port for the API on the host, different from taken. It starts nothing.
func NewControlled(ctx context.Context, d system.Deployment, name string, h testbed.Host, label string,
	taken int) (*Controlled, error) {
	ports, err := Ports(ctx, h, []int{taken}, 1)
	if err != nil {
		return nil, err
	}
	c := &Controlled{Process: Process{System: name, Label: name + "/" + label, Host: h}, d: d,
		Control: system.JoinPort(h, ports[0])}
	c.Local = web.Patient(name, h.Dial) // a publication is answered only once it is served
	return c, nil
}

// RunNode starts the process of this binary, `plimsoll node NAME CONFIG`, and waits until it is
// ready. It stops a running process first.
func (c *Controlled) RunNode(ctx context.Context, config any) error {
	command, err := c.d.Node(c.System, Argument(config))
	if err != nil {
		return err
	}
	return c.Run(ctx, testbed.Command{Args: command, Dir: c.d.DirOf(c.Host), Ready: c.Ready, Env: c.env})
}

// Ports returns n free ports of a host, all different and none in taken: the kernel may return the
// same port twice.
func Ports(ctx context.Context, h testbed.Host, taken []int, n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		p, err := h.Port(ctx, 0)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(taken, p) && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// URL returns the URL of path in the API.
func (c *Controlled) URL(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: c.Control, Path: path}
}

// Call makes a request that requires no work. Status 404 returns system.ErrNotFound. If the process
// has ended, the error reports that.
func (c *Controlled) Call(ctx context.Context, method, path string, in, out any) error {
	err := c.Ask(ctx, method, path, in, out)
	if gone := c.Alive(); err != nil && gone != nil {
		return gone
	}
	return err
}

// Ask is Call for a process that may still be starting.
func (c *Controlled) Ask(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	err := c.Local.JSON(ctx, method, c.URL(path), c.Header, in, out)
	if web.Status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}

// Health implements system.Healther.
func (c *Controlled) Health(ctx context.Context) error {
	return c.Call(ctx, http.MethodGet, HealthPath, nil, nil)
}

// Ready is Health for a process that is starting.
func (c *Controlled) Ready(ctx context.Context) error {
	return c.Ask(ctx, http.MethodGet, HealthPath, nil, nil)
}

// Stop shuts the process down cleanly; it may be called again.
func (c *Controlled) Stop(ctx context.Context) error {
	c.Local.Close()
	return c.Process.Stop(ctx)
}

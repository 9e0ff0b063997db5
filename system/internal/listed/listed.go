// Package listed is the node of systems that are attached by a list of existing objects: it reads
// and never writes.
package listed

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// CommonTarget parses the shared options and returns the target of every object, without its URL.
func CommonTarget(name string, opt system.Options) (system.HTTPTarget, error) {
	t := system.HTTPTarget{Header: http.Header{}, CAFile: opt["ca"], Insecure: opt.Bool("insecure")}
	if env := opt["headers"]; env != "" {
		lines, set := os.LookupEnv(env)
		if !set {
			return t, fmt.Errorf("%s: option \"headers\": the environment variable %s is not set", name, env)
		}
		for line := range strings.Lines(lines) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
			if !ok || key == "" { // the line may be the secret, so it is not printed
				return t, fmt.Errorf("%s: option \"headers\": the variable %s has a line that is not `Name: value`",
					name, env)
			}
			t.Header.Add(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	return t, nil
}

// Node is the server of the listed objects.
type Node struct {
	Name       string
	Entries    []Entry                                           // at least one
	Targets    map[system.Ref]system.HTTPTarget                  // of each entry
	Size       func(listed, served int64) (system.Object, error) // compares sizes; nil: they must be equal
	web.Reader                                                   // after Connect
}

// Connect prepares the node and requests the size of the first object, so that an unreachable
// server is reported at once. It returns its identity, which the header of the answer may complete.
func (n *Node) Connect(ctx context.Context, client testbed.Host) (id map[string]string, head http.Header, err error) {
	if n.Reader, err = web.NewReader(n.Name, client.Dial, n.Targets[system.Ref(n.Entries[0].What)],
		n.Target); err != nil {
		return nil, nil, err
	}
	first, head, err := n.object(ctx, n.Entries[0])
	if err != nil {
		n.Client.Close()
	}
	return map[string]string{"ranges": fmt.Sprint(!first.NoRange), "objects": fmt.Sprint(len(n.Entries))}, head, err
}

// Target implements system.HTTPServer.
func (n *Node) Target(ref system.Ref) (system.HTTPTarget, error) {
	t, ok := n.Targets[ref]
	if !ok {
		return system.HTTPTarget{}, fmt.Errorf("%s: %q is not in the list: %w", n.Name, ref, system.ErrNotFound)
	}
	t.Header = t.Header.Clone()
	return t, nil
}

// Objects implements system.Provider. It requests each object's size and whether ranges are served;
// a contradicting list is an error.
func (n *Node) Objects(ctx context.Context) ([]system.Object, error) {
	var out []system.Object
	for _, e := range n.Entries {
		o, _, err := n.object(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (n *Node) object(ctx context.Context, e Entry) (system.Object, http.Header, error) {
	o := e.Object()
	served, head, err := n.Client.Size(ctx, n.Targets[o.Ref])
	if err != nil {
		return o, nil, err
	}
	o.NoRange, o.Moved = served.NoRange, served.Moved
	switch {
	case served.Size < 0: // only the size in the list is known
	case n.Size != nil:
		judged, err := n.Size(e.Size, served.Size)
		if err != nil {
			return o, nil, fmt.Errorf("%s: %s: %w", n.Name, e.What, err)
		}
		o.Size, o.Payload = judged.Size, judged.Payload
	case e.Size >= 0 && e.Size != served.Size:
		return o, nil, fmt.Errorf("%s: %s has %d bytes, the list says %d", n.Name, e.What, served.Size, e.Size)
	default:
		o.Size = served.Size
	}
	return o, head, nil
}

// Health implements system.Healther with a byte of the first object, over a new connection.
func (n *Node) Health(ctx context.Context) error {
	if _, _, err := n.Client.Fresh().Size(ctx, n.Targets[system.Ref(n.Entries[0].What)]); err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	return nil
}

// Processes implements system.Node.
func (n *Node) Processes() []testbed.Process { return nil }

// Endpoints implements system.Endpointer.
func (n *Node) Endpoints() []string {
	seen := map[string]bool{}
	for _, t := range n.Targets {
		seen[web.HostPort(t.URL)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Stop implements group.Node.
func (n *Node) Stop(context.Context) error {
	n.Client.Close()
	return nil
}

// Entry is a line of a list of existing objects: "WHAT [SIZE [SHA256]]", with "-" for unknown
// values and '#' comments.
type Entry struct {
	What   string
	Size   int64  // -1: unknown
	SHA256 string // lower-case hex; empty: unknown
}

// Object returns the entry as a stored object.
func (e Entry) Object() system.Object {
	return system.Object{Name: e.What, Ref: system.Ref(e.What), Size: e.Size, SHA256: e.SHA256}
}

// Read parses the file at path; what names the first column in errors.
func Read(path, what string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f, path, what)
}

// Parse is Read from r; name is the file name for errors. All invalid lines are reported.
func Parse(r io.Reader, name, what string) ([]Entry, error) {
	var out []Entry
	var errs []error
	seen := map[string]int{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(" "+lines.Text(), " #") // a URL may contain a '#'
		e, err := parseLine(line, what)
		if first := seen[e.What]; err == nil && e.What != "" && first > 0 {
			err = fmt.Errorf("the same %s as on line %d", what, first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, n, err))
		} else if e.What != "" {
			out, seen[e.What] = append(out, e), n
		}
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, fmt.Errorf("%s: no %s in it; write one per line: %s [SIZE [SHA256]]", name, what,
			strings.ToUpper(what)))
	}
	return out, errors.Join(errs...)
}

func parseLine(line, what string) (Entry, error) {
	e := Entry{Size: -1}
	f := strings.Fields(line)
	if len(f) == 0 {
		return e, nil
	}
	if e.What = f[0]; len(f) > 3 {
		return e, fmt.Errorf("%d columns; want %s [SIZE [SHA256]]", len(f), strings.ToUpper(what))
	}
	if len(f) > 1 && f[1] != "-" {
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 {
			return e, fmt.Errorf("size %q is not a number of bytes (or - when it is not known)", f[1])
		}
		e.Size = n
	}
	if len(f) > 2 && f[2] != "-" {
		e.SHA256 = strings.ToLower(f[2])
		if b, err := hex.DecodeString(e.SHA256); err != nil || len(b) != 32 {
			return e, fmt.Errorf("sha256 %q is not 64 hexadecimal digits (or - when it is not known)", f[2])
		}
	}
	return e, nil
}

package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// dialect is the base path of the REST interface, which changed with the name of the system.
type dialect string

const (
	logos dialect = "/api/storage/v1" // Logos Storage
	codex dialect = "/api/codex/v1"   // Codex
)

func (d dialect) String() string {
	return map[dialect]string{logos: "Logos Storage", codex: "Codex"}[d]
}

// api is the REST interface of one node. The connection is closed after every answer.
type api struct {
	daemon.Access
	quiet time.Duration // time without a new block after which a fetch counts as given up
	dialect
}

// url returns the URL of a path below the dialect's base.
func (a *api) url(path string, query url.Values) *url.URL {
	u := *a.At
	u.Path, u.RawQuery = string(a.dialect)+path, query.Encode()
	return &u
}

// open requests a path; the caller reads the answer.
func (a *api) open(ctx context.Context, path string) (*http.Response, error) {
	resp, err := a.Web.Open(ctx, web.Call{Method: http.MethodGet, URL: a.url(path, nil)})
	return resp, classify(path, err)
}

func classify(path string, err error) error {
	switch status := web.Status(err); {
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %w", err, system.ErrNotFound)
	case status == http.StatusBadRequest && strings.HasPrefix(path, "/data/"):
		return fmt.Errorf("%w: %w", err, system.ErrBadRef)
	}
	return err
}

// text makes a request whose answer is a short text.
func (a *api) text(ctx context.Context, path string, query url.Values, call web.Call) (string, error) {
	call.URL = a.url(path, query)
	b, err := a.Web.Call(ctx, call)
	return strings.TrimSpace(string(b)), classify(path, err)
}

func (a *api) json(ctx context.Context, path string, out any) error {
	return classify(path, a.Web.JSON(ctx, http.MethodGet, a.url(path, nil), nil, nil, out))
}

// info is a node's description of itself.
type info struct {
	ID      string   `json:"id"`
	Addrs   []string `json:"addrs"`
	Codex   *build   `json:"codex"`
	Storage *build   `json:"storage"`
}

type build struct{ Version, Revision string }

func (i info) version() string {
	b := cmp.Or(i.Codex, i.Storage, &build{Version: "unknown"})
	return b.Version + " (" + b.Revision + ")"
}

func (a *api) info(ctx context.Context) (i info, err error) {
	err = a.json(ctx, "/debug/info", &i)
	return i, err
}

// Version implements daemon.API.
func (a *api) Version(ctx context.Context) (string, error) {
	i, err := a.info(ctx)
	return i.version(), err
}

// Ping implements daemon.API. The first answer shows the node's dialect.
func (a *api) Ping(ctx context.Context) (err error) {
	if a.dialect != "" {
		_, err = a.space(ctx)
		return err
	}
	for _, a.dialect = range []dialect{logos, codex} {
		if _, err = a.info(ctx); err == nil || !errors.Is(err, system.ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("codex: %s speaks neither %s nor %s; is it the address of the REST interface (--api-port)?",
		a.At.Host, codex, logos)
}

// manifest describes an object.
type manifest struct {
	CID      string
	Manifest struct {
		DatasetSize json.Number `json:"datasetSize"`
		Filename    *string     `json:"filename"`
	}
}

func (m manifest) size() (int64, error) {
	size, err := m.Manifest.DatasetSize.Int64()
	if err != nil {
		err = fmt.Errorf("codex: manifest of %s: datasetSize %q: %w", m.CID, m.Manifest.DatasetSize, system.ErrAnswer)
	}
	return size, err
}

func (a *api) list(ctx context.Context) ([]manifest, error) {
	var l struct{ Content []manifest }
	err := a.json(ctx, "/data", &l)
	return l.Content, err
}

// space is a node's use of its quota, in blocks of 64 KiB and in bytes.
type space struct {
	TotalBlocks                                       int64
	QuotaMaxBytes, QuotaUsedBytes, QuotaReservedBytes int64
}

const blockSize = 64 << 10

func (s space) full() bool {
	return s.QuotaUsedBytes+s.QuotaReservedBytes+blockSize > s.QuotaMaxBytes
}

func (a *api) space(ctx context.Context) (s space, err error) {
	err = a.json(ctx, "/space", &s)
	return s, err
}

// Used implements daemon.API.
func (a *api) Used(ctx context.Context) (int64, error) {
	s, err := a.space(ctx)
	return s.QuotaUsedBytes, err
}

// Address implements daemon.API. It returns a multiaddress with the node's id.
func (a *api) Address(ctx context.Context) (string, error) {
	i, err := a.info(ctx)
	if err != nil {
		return "", err
	}
	if i.ID == "" || len(i.Addrs) == 0 {
		return "", fmt.Errorf("codex: GET /debug/info on %s: it has no id or no address", a.At.Host)
	}
	return i.Addrs[0] + "/p2p/" + i.ID, nil
}

// record returns the address by which other nodes find this one in the DHT.
func (a *api) record(ctx context.Context) (string, error) {
	return a.text(ctx, "/spr", nil, web.Call{Method: http.MethodGet, Header: http.Header{"Accept": {"text/plain"}}})
}

// Connect implements daemon.API. The node accepts any address if it is already connected to the
// peer.
func (a *api) Connect(ctx context.Context, address string) error {
	addr, id, _ := strings.Cut(address, "/p2p/")
	_, err := a.text(ctx, "/connect/"+url.PathEscape(id), url.Values{"addrs": {addr}}, web.Call{Method: http.MethodGet})
	return err
}

// Remove implements daemon.API for an object and its blocks. The node does not report whether the
// object existed.
func (a *api) Remove(ctx context.Context, ref system.Ref) error {
	_, err := a.text(ctx, data(ref), nil, web.Call{Method: http.MethodDelete})
	return err
}

// Local implements daemon.API. The node answers a request for local data at once: it begins to send
// as soon as it has the manifest.
func (a *api) Local(ctx context.Context, ref system.Ref) (*http.Response, error) {
	return a.open(ctx, data(ref))
}

// Apart implements daemon.API. It returns all peers, because Connect to a connected peer is
// harmless.
func (a *api) Apart(_ context.Context, peers []string) ([]string, error) { return peers, nil }

// Part implements daemon.API. It does nothing, because nodes keep their connections.
func (a *api) Part(context.Context) error { return nil }

// Count implements daemon.API from the number of blocks in the store: both dialects report no other
// counter.
func (a *api) Count(ctx context.Context) (member.Counts, error) {
	s, err := a.space(ctx)
	return member.Counts{Received: -1, Sent: -1, Held: s.TotalBlocks * blockSize, Peers: -1}, err
}

// Fetch implements daemon.API. The node continues a fetch in any case, and does not report when it
// has given up.
func (a *api) Fetch(ctx context.Context, t *member.Content) error {
	if err := a.request(ctx, t); err != nil {
		return err
	}
	for last := int64(-1); t.State().Verified != last; {
		last = t.State().Verified
		if !timing.Pause(ctx, a.quiet) {
			return ctx.Err()
		}
		now, err := a.Count(ctx)
		if err != nil {
			return err
		}
		if t.SetHeld(now); t.State().Complete {
			return nil
		}
	}
	return fmt.Errorf("codex: no block for %v; asked again", a.quiet)
}

// manifestWithin limits the time until the manifest of a fetch must arrive; then it counts as not
// found.
const manifestWithin = 40 * time.Second

// request starts a fetch. The answer is the manifest, or never arrives.
func (a *api) request(ctx context.Context, t *member.Content) error {
	wait := min(a.quiet, manifestWithin)
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	path := data(t.Ref) + "/network"
	m := manifest{CID: string(t.Ref)}
	err := classify(path, a.Web.JSON(within, http.MethodPost, a.url(path, nil), nil, nil, &m))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("codex: no manifest of %s for %v", t.Ref, wait)
	}
	if err != nil {
		return err
	}
	size, err := m.size()
	if err == nil {
		t.SetSize(size, blockSize) // the manifest takes one block
	}
	return err
}

// Store implements daemon.API.
func (a *api) Store(ctx context.Context, name string, size int64, body io.Reader) (system.Ref, error) {
	text, err := a.text(ctx, "/data", nil, web.Call{
		Method: http.MethodPost, Body: body, Size: size,
		Header: http.Header{
			"Content-Type":        {"application/octet-stream"},
			"Content-Disposition": {"attachment; filename=" + strconv.Quote(fileName(name))},
		},
	})
	if err != nil {
		return "", a.orQuota(ctx, err)
	}
	ref := system.Ref(text) // in the base used by the node
	if err := valid(ref); err != nil {
		return "", fmt.Errorf("codex: POST /data on %s: the answer is no CID: %w", a.At.Host, err)
	}
	return ref, nil
}

// orQuota recognizes an upload that failed because the quota is full, which appears as "Unable to
// store block" or as a connection that breaks during the upload.
func (a *api) orQuota(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	s, spaceErr := a.space(ctx)
	if spaceErr != nil || !s.full() {
		return err
	}
	return fmt.Errorf("%w; %d of %d bytes are used, also by what was not stored whole, which is in no list: %w", err,
		s.QuotaUsedBytes, s.QuotaMaxBytes, system.ErrQuota)
}

// onWindows matches what is invalid on Windows in a file name: devices, and dots that end it or
// precede others.
var onWindows = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)|\.\.+|\.$`)

// fileName is disk.FileName without what the node refuses, wherever it runs.
func fileName(name string) string {
	return onWindows.ReplaceAllStringFunc(disk.FileName(name), func(bad string) string {
		return "=" + strings.ReplaceAll(fmt.Sprintf("% X", bad), " ", "=")
	})
}

func data(ref system.Ref) string { return "/data/" + string(ref) }

// valid rejects refs that a path cannot contain or would interpret differently.
func valid(ref system.Ref) error { return member.CID(name, ref) }

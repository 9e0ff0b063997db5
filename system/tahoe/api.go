package tahoe

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// ask fetches a page or a document of the web API.
func (n *node) ask(ctx context.Context, path, query string) ([]byte, error) {
	return n.client.Call(ctx, web.Call{Method: http.MethodGet, URL: n.at(path, query).URL})
}

// server is a storage node as reported by a client.
type server struct {
	Nickname string `json:"nickname"`
	Status   string `json:"connection_status"`
	Version  string `json:"version"` // "tahoe-lafs/1.20.0"
}

// protocol returns the protocol of the connection: "gbs", "foolscap", or "" without a connection.
func (s server) protocol() string {
	switch {
	case strings.HasPrefix(s.Status, "Connected to "): // "Connected to tcp:10.0.0.1:1234 via tcp"
		return "foolscap"
	case strings.HasPrefix(s.Status, "connected"):
		return "gbs"
	}
	return ""
}

// servers asks the client for the storage nodes it knows.
func (n *node) servers(ctx context.Context) ([]server, error) {
	var answer struct {
		Servers []server `json:"servers"`
	}
	err := n.client.JSON(ctx, http.MethodGet, n.at("/", "t=json").URL, nil, nil, &answer)
	return answer.Servers, err
}

// connected returns the number of storage nodes to which the client is connected, and the
// protocols.
func connected(all []server) (n int, protocols map[string]bool) {
	protocols = map[string]bool{}
	for _, s := range all {
		if p := s.protocol(); p != "" {
			n++
			protocols[p] = true
		}
	}
	return n, protocols
}

// joined returns nil once the client is connected to all storage nodes over the requested protocol.
func (n *node) joined(ctx context.Context, c config) error {
	all, err := n.servers(ctx)
	if err != nil {
		return err
	}
	have, protocols := connected(all)
	if len(all) != c.nodes || have != c.nodes {
		var missing []string
		for _, s := range all {
			if s.protocol() == "" {
				status, _, _ := strings.Cut(s.Status, "\n") // the first line of a traceback
				missing = append(missing, fmt.Sprintf("%s: %s", s.Nickname, status))
			}
		}
		return fmt.Errorf("tahoe: %s reaches %d of %d storage nodes (%s)", n.name, have, c.nodes,
			strings.Join(missing, "; "))
	}
	if len(protocols) != 1 || !protocols[c.protocol] {
		return fmt.Errorf("tahoe: %s talks to the storage nodes by %v, not by %s as asked", n.name, protocols,
			c.protocol)
	}
	return nil
}

// full matches a part of an UploadUnhappinessError. A storage node also counts as full for an
// object of which it has incomplete shares: those of an interrupted upload, which it drops 30
// minutes after their last byte.
var full = regexp.MustCompile(`of which (\d+) placed none due to the server being full`)

// noneFound ends a NoSharesError if no storage node had a share; otherwise the error names the
// failure of a share.
const noneFound = "Last failure: None"

// explain maps the error of an operation to the errors that callers distinguish, and adds which
// daemon has ended, if any.
//
// Tahoe-LAFS answers 410 both if it finds too few shares and if it finds none; the text contains
// the names of its exceptions.
func (n *node) explain(ctx context.Context, doing string, err error) error {
	var s *web.StatusError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("gave up waiting for the client's answer: %w", err)
	case !errors.As(err, &s): // no answer
	case strings.Contains(s.Text, "UploadUnhappinessError"):
		if m := full.FindStringSubmatch(s.Text); m != nil && m[1] != "0" {
			err = fmt.Errorf("%w, or an upload of the same bytes that was cut off still holds the place, for up to 30 "+
				"minutes: %s", system.ErrQuota, message(s))
		} else {
			err = fmt.Errorf("%s: %w", message(s), system.ErrTooFew)
		}
	// NoSharesError with a failure: shares exist, but none is valid, because they are damaged or
	// belong to another cap.
	case strings.Contains(s.Text, "NotEnoughSharesError"), strings.Contains(s.Text, "NotEnoughServersError"),
		strings.Contains(s.Text, "NoSharesError") && !strings.Contains(s.Text, noneFound):
		err = fmt.Errorf("%s: %w", message(s), system.ErrTooFew)
	case strings.Contains(s.Text, "NoSharesError"), strings.Contains(s.Text, "UnrecoverableFileError"):
		err = n.absent(ctx, errors.New(message(s)))
	}
	return member.Explain(n.alive, fmt.Errorf("tahoe: %s: %w", doing, err))
}

// absent adds to err that the object does not exist or, if storage nodes that may have it are not
// connected, that there are too few.
func (n *node) absent(ctx context.Context, err error) error {
	all, ask := n.servers(ctx)
	if ask != nil {
		return fmt.Errorf("%w; %w", err, ask)
	}
	have, _ := connected(all)
	if have < len(all) || have == 0 || n.alive != nil && n.alive.Err() != nil {
		return fmt.Errorf("%w (%d of %d storage nodes are connected): %w", err, have, len(all), system.ErrTooFew)
	}
	return fmt.Errorf("%w: %w", err, system.ErrNotFound)
}

// message returns the relevant part of an error: of a traceback, which may be HTML, the line with
// the exception.
func message(s *web.StatusError) string {
	said := ""
	for line := range strings.Lines(s.Text) {
		line = strings.TrimSpace(line)
		if exception.MatchString(line) || said == "" {
			said = line
		}
	}
	said = html.UnescapeString(markup.ReplaceAllString(said, ""))
	if len(said) > 600 {
		said = said[:600] + "…"
	}
	return fmt.Sprintf("status %d: %s", s.Status, said)
}

// Errors are text or an HTML page, whatever format was requested.
var markup = regexp.MustCompile(`<[a-z/][^<>]*>`)

var exception = regexp.MustCompile(`(Error|Exception)\b.*:`)

// capability is the information in a cap itself.
type capability struct {
	kind   string // "CHK", "LIT", "SSK", "MDMF-RO", "DIR2", …
	size   int64  // bytes; -1: only the servers know
	needed int    // shares; 0: not in the cap
}

func (c capability) directory() bool { return strings.HasPrefix(c.kind, "DIR2") }

// literal reports whether the cap contains the object itself, whose bytes never leave the client.
func (c capability) literal() bool { return c.kind == "LIT" }

// mutable reports whether content can be written to the cap.
func (c capability) mutable() bool { return c.kind == "SSK" || c.kind == "MDMF" }

var (
	chkCap     = regexp.MustCompile(`^CHK:[a-z2-7]{26}:[a-z2-7]{52}:(\d+):(\d+):(\d+)$`)
	litCap     = regexp.MustCompile(`^LIT:([a-z2-7]*)$`)
	mutableCap = regexp.MustCompile(`^((?:SSK|MDMF|DIR2|DIR2-MDMF)(?:-RO)?):[a-z2-7]{26}:[a-z2-7]{52}(?::\d+)*$`)
)

// parseCap parses a cap of a file or of a mutable directory. Anything else returns ErrBadRef.
func parseCap(ref system.Ref) (capability, error) {
	bad := fmt.Errorf("tahoe: %q is not a cap of a file or directory: %w", ref, system.ErrBadRef)
	rest, ok := strings.CutPrefix(string(ref), "URI:")
	if !ok {
		return capability{}, bad
	}
	if m := chkCap.FindStringSubmatch(rest); m != nil {
		k, err := strconv.Atoi(m[1])
		size, err2 := strconv.ParseInt(m[3], 10, 64)
		if err != nil || err2 != nil {
			return capability{}, bad
		}
		return capability{"CHK", size, k}, nil
	}
	if m := litCap.FindStringSubmatch(rest); m != nil {
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(m[1]))
		if err != nil || slices.Contains([]int{1, 3, 6}, len(m[1])%8) { // impossible lengths of encoded bytes
			return capability{}, bad
		}
		return capability{"LIT", int64(len(b)), 0}, nil
	}
	if m := mutableCap.FindStringSubmatch(rest); m != nil {
		return capability{m[1], -1, 0}, nil
	}
	return capability{}, bad
}

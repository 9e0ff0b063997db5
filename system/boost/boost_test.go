package boost

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// contents is more than one chunk, and less than half of its piece is padding.
const contents = 700_000

func TestConformance(t *testing.T) {
	p := newPiece(t, contents)
	for name, line := range map[string]string{
		"piece":                  p.cid.String(),
		"piece with its size":    fmt.Sprintf("%s %d %s", p.cid, len(p.car), sum(p.car)),
		"piece with served size": fmt.Sprintf("%s %d %s", p.cid, len(p.filled), sum(p.filled)),
		"car":                    fmt.Sprintf("%s - %s", p.root, sum(p.car)),
		"car with its size":      fmt.Sprintf("%s %d %s", p.root, len(p.car), sum(p.car)),
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Attach: func(t *testing.T) (system.Options, func()) {
				s := boosterHTTP(t, p)
				format, _, _ := strings.Cut(name, " ")
				return system.Options{"url": s.URL, "list": list(t, line), "format": format}, s.Close
			}})
		})
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func list(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pieces")
	must(t, os.WriteFile(path, []byte(lines+"\n"), 0o600))
	return path
}

func TestPayloadAndPadding(t *testing.T) {
	p := newPiece(t, contents)
	s := boosterHTTP(t, p)
	opt := system.Options{"url": s.URL, "list": list(t, fmt.Sprintf("%s %d", p.cid, len(p.car)))}
	c, err := systemtest.Attach(t, System{}, opt, false)
	must(t, err)
	if got := c.Identity()["version"]; got != "booster-http 0.3.0" {
		t.Errorf("version %q", got)
	}
	n := c.Nodes()[0].(system.Getter)
	o, err := n.(system.Provider).Objects(t.Context())
	if err != nil || o[0].Size != int64(len(p.filled)) || o[0].Payload != int64(len(p.car)) || o[0].NoRange {
		t.Errorf("objects %+v, %v; want %d bytes, of them %d payload", o, err, len(p.filled), len(p.car))
	}
	// The whole object is the piece: its commitment can be verified.
	var got bytes.Buffer
	must(t, n.Get(t.Context(), o[0].Ref, &got))
	var h commp.Hash
	h.Write(got.Bytes())
	if id, _ := h.Piece(); id != p.cid {
		t.Errorf("the piece's commitment is %s, want %s", id, p.cid)
	}
	// A range beyond the served end, as requested by a grid over the padded size.
	padded := int64(len(p.filled)) * 128 / 127
	err = n.(system.Ranger).GetRange(t.Context(), o[0].Ref, padded-100, 100, io.Discard)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "416") {
		t.Errorf("range in the Fr32 padding: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	p := newPiece(t, 1000)
	s := boosterHTTP(t, p)
	unknown := newPiece(t, 2000).cid
	for want, opt := range map[string]system.Options{
		`option "url" is required`:  {"list": list(t, p.cid.String())},
		`option "list" is required`: {"url": s.URL},
		"not the base URL":          {"url": "host:7777", "list": list(t, p.cid.String())},
		"is not a CID":              {"url": s.URL, "list": list(t, "piece1")},
		"status 404":                {"url": s.URL, "list": list(t, unknown.String())},
		"not the padded size": {"url": s.URL,
			"list": list(t, fmt.Sprintf("%s %d", p.cid, len(p.filled)*128/127))},
		`one of piece, car, raw`: {"url": s.URL, "list": list(t, p.cid.String()), "format": "file"},
		"connection refused":     {"url": "http://127.0.0.1:1", "list": list(t, p.cid.String())},
		"no such file":           {"url": s.URL, "list": "/none"},
	} {
		if _, err := systemtest.Attach(t, System{}, opt, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options %v: error %v, want one with %q", opt, err, want)
		}
	}
}

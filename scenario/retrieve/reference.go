package retrieve

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/internal/redirect"
	"github.com/plimsoll-project/plimsoll/system"
)

// reference is a copy of something of unknown content, to compare with.
type reference struct {
	path   string
	size   int64
	checks string // the note that says how it was checked
}

// WrongBytesError says that what a server sent before anything was measured cannot be right.
type WrongBytesError struct{ what string }

func wrongBytes(format string, args ...any) error {
	return &WrongBytesError{fmt.Sprintf(format, args...)}
}

func (e *WrongBytesError) Error() string { return "wrong bytes: " + e.what }

// Hint implements the interface that the terminal asks for hints.
func (e *WrongBytesError) Hint() string {
	return "the server, or the list of its objects, is wrong: compare with a copy that you trust before you measure this server"
}

// referenceCopy fetches an object from its URL once, before anything is
// measured. wantHash, when not empty, is the SHA-256 of the object's payload.
func (r *runner) referenceCopy(ctx context.Context, o object, target system.HTTPTarget, wantHash string) (reference, error) {
	fail := func(err error) (reference, error) {
		return reference{}, fmt.Errorf("%s: reference copy of %s: %w", r.site.Use.Name, o.name, err)
	}
	r.site.Say(fmt.Sprintf("%s: fetching a reference copy of %s", r.site.Use.Name, o.name))
	begun := time.Now()
	path := r.referencePath()
	f, err := os.Create(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	sum := &prefixHash{Hash: sha256.New(), left: o.payload, all: o.payload == 0}
	into := []io.Writer{f, sum}
	piece, isPiece := commp.Parse(target.URL.Path)
	isPiece = isPiece && target.Encoded == ""
	var commitment commp.Hash
	if isPiece {
		into = append(into, &commitment)
	}
	n, err := r.fetch(ctx, target, nil, io.MultiWriter(into...))
	if err != nil {
		return fail(err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if wantHash != "" && !strings.EqualFold(wantHash, got) {
		return fail(wrongBytes("it has SHA-256 %s, its list says %s", got, wantHash))
	}
	if target.Encoded == "" && o.size >= 0 && o.size != n {
		return fail(fmt.Errorf("it is said to have %d bytes, %d came", o.size, n))
	}
	checks, how := noteFullCopy, ""
	switch {
	case isPiece && !commitment.Is(piece):
		is, _ := commitment.Piece()
		return fail(wrongBytes("its piece commitment (CommP) is %s, or that of these bytes and zeros", is))
	case isPiece:
		checks, how = noteCommP, ", its piece commitment (CommP) is that of its name"
	case target.Encoded == "":
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fail(err)
		}
		blocks, why, err := carBlocks(f, func(cid.Cid) {})
		if err != nil {
			return fail(err)
		}
		if why == "" && blocks > 0 {
			checks, how = noteBlocks, fmt.Sprintf(", a CAR whose %d blocks agree with their CIDs", blocks)
		}
	}
	what := fmt.Sprintf("%s: %s, %d bytes, sha256 %s%s", r.site.Use.Name, o.name, n, got, how)
	r.site.Event("phase", "reference copy", what, time.Since(begun))
	return reference{path, n, checks}, f.Close()
}

// fetch reads a target, or a part of it, from the client's host, as the load generator
// will.
func (r *runner) fetch(ctx context.Context, target system.HTTPTarget, part *part, w io.Writer) (int64, error) {
	transport := &http.Transport{DialContext: r.site.Client.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: target.Insecure}, DisableCompression: true}
	defer transport.CloseIdleConnections()
	if target.CAFile != "" {
		pem, err := os.ReadFile(target.CAFile)
		if err != nil {
			return 0, err
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
	if err != nil {
		return 0, err
	}
	for name, values := range target.Header {
		req.Header[name] = values
	}
	req.Header.Set("Accept-Encoding", "identity")
	want, inRange := http.StatusOK, ""
	if part != nil {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", part.off, part.off+part.length-1))
		want, inRange = http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/", part.off, part.off+part.length-1)
	}
	do := transport.RoundTrip
	if target.Follow {
		do = func(req *http.Request) (*http.Response, error) {
			resp, _, err := redirect.Do(req, target.Header, transport.RoundTrip)
			return resp, err
		}
	}
	resp, err := do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return 0, fmt.Errorf("the server answers %s", resp.Status)
	}
	if got := resp.Header.Get("Content-Range"); part != nil && got != inRange+strconv.FormatInt(part.of, 10) && got != inRange+"*" {
		return 0, fmt.Errorf("asked for %s%d, the server sends Content-Range %q", inRange, part.of, got)
	}
	body := io.Reader(resp.Body)
	if part != nil {
		body = io.LimitReader(body, part.length)
	}
	n, err := io.Copy(w, body)
	if err == nil && (resp.ContentLength >= 0 && n != resp.ContentLength || part != nil && n != part.length) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// prefixHash hashes the first bytes only, or all.
type prefixHash struct {
	hash.Hash
	left int64
	all  bool
}

func (h *prefixHash) Write(p []byte) (int, error) {
	part := p
	if !h.all {
		part = p[:min(int64(len(p)), h.left)]
		h.left -= int64(len(part))
	}
	h.Hash.Write(part)
	return len(p), nil
}

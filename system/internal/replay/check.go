package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// compared lists the headers that change the meaning of a request. They must be as recorded, and
// absent if they were not recorded; User-Agent may be present anyway.
var compared = []string{"Range", "If-None-Match", "Accept", "Cache-Control", "Origin", "Content-Disposition",
	"Content-Type", "User-Agent"}

// maxText limits request bodies that are compared as text.
const maxText = 16 << 20

// check compares a request with its recorded exchange.
func (s *Server) check(e Exchange, r *http.Request) error {
	for _, h := range compared {
		want, got := e.Header.Get(h), r.Header.Get(h)
		if h == "Content-Type" {
			want, got = mediaType(want), mediaType(got)
		}
		if want != got && (want != "" || h != "User-Agent") {
			return fmt.Errorf("has header %s %q, recorded was %q", h, got, want)
		}
	}
	if e.Header.Get("Authorization") != "" {
		switch user, password, ok := r.BasicAuth(); {
		case !ok:
			return fmt.Errorf("has no login, recorded was %q", e.Header.Get("Authorization"))
		case s.login != nil && [2]string{user, password} != *s.login:
			return fmt.Errorf("logs in as %q with another password than the test's", user)
		}
	}
	if e.Answer.End == Early || e.Answer.End == Refused {
		return nil // the server did not read the whole body
	}
	return s.checkBody(e.Body, r)
}

func (s *Server) checkBody(want Body, r *http.Request) error {
	switch {
	case want.File != "":
		form, err := r.MultipartReader()
		if err != nil {
			return fmt.Errorf("has no multipart body (%w), recorded was one with the file %q", err, want.File)
		}
		file, err := form.NextPart()
		if err != nil {
			return fmt.Errorf("first part of its body: %w", err)
		}
		if err := s.checkSum(want, file); err != nil {
			return err
		}
		if _, err := form.NextPart(); err != io.EOF {
			return fmt.Errorf("sends more than one file (%v)", err)
		}
		return nil
	case want.SHA256 != "":
		return s.checkSum(want, r.Body)
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxText))
	if err != nil {
		return fmt.Errorf("read its body: %w", err)
	}
	kind := mediaType(r.Header.Get("Content-Type"))
	if canonical(want.Text, kind) != canonical(string(b), kind) {
		return fmt.Errorf("has the body\n\t%s\nrecorded was\n\t%s", b, want.Text)
	}
	return nil
}

func (s *Server) checkSum(want Body, r io.Reader) error {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return fmt.Errorf("read its body: %w", err)
	}
	is, recorded := hex.EncodeToString(h.Sum(nil)), want.SHA256
	if other, ok := s.contents[recorded]; ok {
		recorded = Sum(other)
	}
	if n != want.Bytes || is != recorded {
		return fmt.Errorf("sends %d bytes, SHA-256 %s; recorded were %d bytes, %s", n, is, want.Bytes, recorded)
	}
	return nil
}

// canonical returns a body in a canonical form, because the fields of forms and JSON objects have
// no order.
func canonical(text, kind string) string {
	switch kind {
	case "application/x-www-form-urlencoded":
		if query, err := url.ParseQuery(text); err == nil {
			return query.Encode()
		}
	case "application/json":
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // keeps numbers exact
		if d.Decode(&v) == nil {
			sorted, _ := json.Marshal(v) // decoded JSON can be encoded
			return string(sorted)
		}
	}
	return text
}

func mediaType(s string) string {
	kind, _, _ := mime.ParseMediaType(s)
	return kind
}

package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"strings"
)

// compared are the headers of a request that change its meaning: they must be
// there as recorded, and not when they were not.
var compared = []string{"Range", "If-None-Match", "Accept", "Cache-Control", "Origin", "Content-Disposition", "Content-Type"}

// maxText bounds request bodies that are compared as text.
const maxText = 16 << 20

// check compares a request with the exchange that it was found to belong to.
func (s *Server) check(e Exchange, r *http.Request) error {
	for _, h := range compared {
		if s.ignore[h] {
			continue
		}
		want, got := e.Header.Get(h), r.Header.Get(h)
		if h == "Content-Type" {
			want, got = mediaType(want), mediaType(got)
		}
		if want != got {
			return fmt.Errorf("step %q: %s has header %s %q, recorded was %q", e.Step, keyOf(r), h, got, want)
		}
	}
	if want := e.Header.Get("User-Agent"); want == "Sia-Agent" && r.UserAgent() != want { // else it is the recorder's
		return fmt.Errorf("step %q: %s has header User-Agent %q, recorded was %q", e.Step, keyOf(r), r.UserAgent(), want)
	}
	if err := s.checkLogin(e, r); err != nil {
		return fmt.Errorf("step %q: %s: %w", e.Step, keyOf(r), err)
	}
	if e.Answer.End == Early || e.Answer.End == Refused {
		return nil // not all of the body was taken
	}
	if err := s.checkBody(e, r); err != nil {
		return fmt.Errorf("step %q: %s: %w", e.Step, keyOf(r), err)
	}
	return nil
}

func (s *Server) checkLogin(e Exchange, r *http.Request) error {
	if e.Header.Get("Authorization") == "" || s.ignore["Authorization"] {
		return nil
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return fmt.Errorf("has no login, recorded was %q", e.Header.Get("Authorization"))
	}
	if s.login != nil && (user != s.login[0] || password != s.login[1]) {
		return fmt.Errorf("logs in as %q with another password than the test's", user)
	}
	return nil
}

func (s *Server) checkBody(e Exchange, r *http.Request) error {
	want := e.Body
	if want.File != nil {
		return s.checkFile(*want.File, r)
	}
	if want.Opaque && !sameBoundary(e, r) {
		return nil // another boundary, another hash
	}
	if want.Opaque {
		n, sum, err := digest(r.Body)
		if err != nil {
			return fmt.Errorf("read its body: %w", err)
		}
		if n != want.Bytes || sum != s.contents.sum(want.SHA256) {
			return fmt.Errorf("has a body of %d bytes, SHA-256 %s; recorded were %d bytes, %s", n, sum, want.Bytes, s.contents.sum(want.SHA256))
		}
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxText))
	if err != nil {
		return fmt.Errorf("read its body: %w", err)
	}
	if !sameText(want.Text, string(b), mediaType(r.Header.Get("Content-Type"))) {
		return fmt.Errorf("has the body\n\t%s\nrecorded was\n\t%s", b, want.Text)
	}
	return nil
}

func (s *Server) checkFile(want File, r *http.Request) error {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return fmt.Errorf("has no multipart body (Content-Type %q), recorded was one with the file %q", r.Header.Get("Content-Type"), want.Name)
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	part, err := parts.NextPart()
	if err != nil {
		return fmt.Errorf("first part of its body: %w", err)
	}
	n, sum, err := digest(part)
	if err != nil {
		return fmt.Errorf("first part of its body: %w", err)
	}
	if n != want.Bytes || sum != s.contents.sum(want.SHA256) {
		return fmt.Errorf("sends a file of %d bytes, SHA-256 %s; recorded were %d bytes, %s", n, sum, want.Bytes, s.contents.sum(want.SHA256))
	}
	if _, err := parts.NextPart(); err != io.EOF {
		return fmt.Errorf("sends more than one file (%v)", err)
	}
	return nil
}

// sameBoundary is false for a form with another boundary than recorded, which
// is the client's choice.
func sameBoundary(e Exchange, r *http.Request) bool {
	_, want, err1 := mime.ParseMediaType(e.Header.Get("Content-Type"))
	_, got, err2 := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err1 != nil || err2 != nil || want["boundary"] == got["boundary"]
}

func digest(r io.Reader) (n int64, sum string, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// sameText compares what a body means: fields of a form and of JSON have no order.
func sameText(want, got, kind string) bool {
	if want == got {
		return true
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		w, err1 := url.ParseQuery(want)
		g, err2 := url.ParseQuery(got)
		return err1 == nil && err2 == nil && reflect.DeepEqual(w, g)
	case "application/json":
		w, err1 := number(want)
		g, err2 := number(got)
		return err1 == nil && err2 == nil && reflect.DeepEqual(w, g)
	}
	return false
}

// number parses JSON and keeps numbers exact.
func number(s string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func mediaType(s string) string {
	kind, _, _ := strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// Package replay serves recorded exchanges of real daemons to the tests of
// their clients. It is strict: a request that was not recorded, one in the
// wrong place, another body, or a recorded step that was not asked for fails the
// test. Answers come as they were recorded: status, headers, trailers, bodies
// that stop or are cut, JSON null; only the milliseconds are not copied.
//
// A recording is a file of JSON lines, each an [Exchange].
package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"testing"
)

// Exchange is one request and what came back.
type Exchange struct {
	Step   string      `json:"step"` // what the call was for; several exchanges may share it
	Node   string      `json:"node"` // which process was asked; empty when the recording does not say
	Method string      `json:"method"`
	Path   string      `json:"path"` // as it was sent, escapes included
	Query  url.Values  `json:"query"`
	Header http.Header `json:"header"` // of the request: those that matter
	Body   Body        `json:"body"`   // of the request
	Answer Answer      `json:"answer"`

	// Repeat lets a request like this come again until the next exchange is
	// asked for: the last answer is given again, as to a client that polls.
	Repeat bool `json:"-"`
	// Optional exchanges need not be asked for.
	Optional bool `json:"-"`
}

// Answer is what came back.
type Answer struct {
	Status  int         `json:"status"` // 0: the connection ended without an answer, or none came
	Header  http.Header `json:"header"`
	Body    Body        `json:"body"`
	Trailer http.Header `json:"trailer"`
	End     End         `json:"end"`
}

// End is how an answer ends.
type End string

const (
	Whole End = "" // as it should
	// the connection is reset before an answer, also where it was refused: the server is there
	Refused End = "refused"
	Stalled End = "stalled" // nothing more comes: the client must give up
	Cut     End = "cut"     // the connection ends within the body
	// the answer came while the client was still sending: the rest of its body is not read
	Early End = "early"
)

// Body is a body as it was recorded: its text, or its length and hash, for which
// options of Serve give the bytes.
type Body struct {
	Text   string `json:"text"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	File   string `json:"file"` // length and hash are those of the file of this name in a multipart form
}

// Load reads a recording.
func Load(t testing.TB, path string) (all []Exchange) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	for d.More() {
		var e Exchange
		if err := d.Decode(&e); err != nil {
			t.Fatalf("replay: %s: after %d exchanges: %v", path, len(all), err)
		}
		all = append(all, e)
	}
	return all
}

// Steps selects the exchanges of the named steps, in the order of the names;
// those that share a name stay in their order. It panics when there are none.
func Steps(rec []Exchange, names ...string) (out []Exchange) {
	for _, name := range names {
		out = append(out, those(rec, name, func(e Exchange) string { return e.Step })...)
	}
	return out
}

// Of selects the exchanges with one node. It panics when there are none.
func Of(rec []Exchange, node string) []Exchange {
	return those(rec, node, func(e Exchange) string { return e.Node })
}

func those(rec []Exchange, name string, of func(Exchange) string) []Exchange {
	out := slices.DeleteFunc(slices.Clone(rec), func(e Exchange) bool { return of(e) != name })
	if len(out) == 0 {
		panic(fmt.Sprintf("replay: the recording has no exchange of %q", name))
	}
	return out
}

// Poll makes a sequence of states of rec: of equal answers in a row one stays.
// Each state is given at least once; the last may be asked for again.
func Poll(rec []Exchange) []Exchange {
	out := slices.CompactFunc(slices.Clone(rec), func(a, b Exchange) bool {
		return a.key() == b.key() && a.Answer.Status == b.Answer.Status && a.Answer.Body == b.Answer.Body
	})
	for i := range out {
		out[i].Repeat = true
	}
	return out
}

// Optional is rec when the client may leave it out, or ask as often as it likes.
func Optional(rec []Exchange) []Exchange {
	out := slices.Clone(rec)
	for i := range out {
		out[i].Optional, out[i].Repeat = true, true
	}
	return out
}

// Chain puts sequences one after another.
func Chain(parts ...[]Exchange) []Exchange { return slices.Concat(parts...) }

// JSON is e with another answer, of which v is the JSON: for states that were
// not recorded.
func (e Exchange) JSON(status int, v any) Exchange {
	text, err := json.Marshal(v)
	if err != nil {
		panic("replay: " + err.Error())
	}
	e.Answer = Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: Body{Text: string(text)}}
	return e
}

func (e Exchange) key() string { return key(e.Method, e.Path, e.Query) }

func key(method, path string, query url.Values) string {
	k := method + " " + path
	if len(query) > 0 {
		k += "?" + query.Encode()
	}
	return k
}

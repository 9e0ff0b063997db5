// Package replay serves recorded exchanges of real daemons to the tests of their clients. It is
// strict: a test fails on a request that was not recorded, is out of order or has a different body,
// and on a recorded step that was not requested. Answers are as recorded: status, headers,
// trailers, bodies that stall or are cut, JSON null. Only the timing is not reproduced.
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

// Exchange is one request and its answer.
type Exchange struct {
	Step   string      `json:"step"` // purpose of the request; several exchanges may share it
	Node   string      `json:"node"` // process that got the request; empty if it was not recorded
	Method string      `json:"method"`
	Path   string      `json:"path"` // as sent, with escapes
	Query  url.Values  `json:"query"`
	Header http.Header `json:"header"` // relevant headers of the request
	Body   Body        `json:"body"`   // of the request
	Answer Answer      `json:"answer"`

	// Repeat allows the same request again until the next exchange is requested. The last answer is
	// then repeated, as for a client that polls.
	Repeat bool `json:"-"`
	// Optional exchanges need not be requested.
	Optional bool `json:"-"`
}

// Answer is a recorded answer.
type Answer struct {
	Status  int         `json:"status"` // 0: the connection ended without an answer, or no answer came
	Header  http.Header `json:"header"`
	Body    Body        `json:"body"`
	Trailer http.Header `json:"trailer"`
	End     End         `json:"end"`
}

// End is how an answer ends.
type End string

const (
	Whole End = "" // regular end
	// the connection is reset before an answer; also used for refused connections, since this
	// server listens
	Refused End = "refused"
	Stalled End = "stalled" // nothing more arrives: the client must give up
	Cut     End = "cut"     // the connection ends within the body
	// the answer came while the client was still sending; the rest of the request's body is not
	// read
	Early End = "early"
)

// Body is a recorded body: its text, or its length and hash. For the latter, options of Serve
// supply the bytes.
type Body struct {
	Text   string `json:"text"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	File   string `json:"file"` // name of the file in a multipart form that length and hash describe
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

// Steps returns the exchanges of the named steps, in the order of the names. Exchanges with the
// same name keep their order. It panics if a step has none.
func Steps(rec []Exchange, names ...string) (out []Exchange) {
	for _, name := range names {
		out = append(out, those(rec, name, func(e Exchange) string { return e.Step })...)
	}
	return out
}

// Of returns the exchanges with one node. It panics if there are none.
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

// Poll returns rec as a sequence of states: of consecutive equal answers, only one remains. Each
// state must be requested at least once, and may be requested again until the next one.
func Poll(rec []Exchange) []Exchange {
	out := slices.CompactFunc(slices.Clone(rec), func(a, b Exchange) bool {
		return a.key() == b.key() && a.Answer.Status == b.Answer.Status && a.Answer.Body == b.Answer.Body
	})
	for i := range out {
		out[i].Repeat = true
	}
	return out
}

// Optional returns rec with exchanges that the client may omit or repeat at will.
func Optional(rec []Exchange) []Exchange {
	out := slices.Clone(rec)
	for i := range out {
		out[i].Optional, out[i].Repeat = true, true
	}
	return out
}

// Chain concatenates sequences.
func Chain(parts ...[]Exchange) []Exchange { return slices.Concat(parts...) }

// JSON returns e with another answer, the JSON of v, for states that were not recorded.
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

// Package replay serves recorded exchanges of real daemons to the tests of
// their clients. It is strict: a request that was not recorded, one in the
// wrong place, another body, or a recorded step that was not asked for fails the
// test. Answers come as they were recorded: status, headers, trailers, bodies
// that stop or are cut, JSON null, endings that lack their last line; only the
// milliseconds are not copied.
//
// A recording is a file of JSON lines, one exchange a line, in one of two
// dialects: headers in lower case with a parsed body and a query as object
// (codex, siad, renterd), or with everything as text (kubo, frisbii).
package replay

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// Exchange is one request and what came back.
type Exchange struct {
	Step   string // what the call was for; several exchanges may share it
	Node   string // which process was asked; empty when the recording does not say
	Note   string
	Method string
	Path   string // as it was sent, escapes included
	Query  url.Values
	Header http.Header // of the request: those that matter
	Body   Body        // of the request
	Answer Answer

	// Repeat lets a request like this come again until the next exchange is
	// asked for: the last answer is given again, as to a client that polls.
	Repeat bool
	// Optional exchanges need not be asked for.
	Optional bool

	missing string // why there is no such exchange
}

// Answer is what came back.
type Answer struct {
	Status  int // 0: the connection ended without an answer, or none came
	Header  http.Header
	Body    Body
	Trailer http.Header
	End     End
}

// End is how an answer ends.
type End int

const (
	Whole     End = iota // as it should
	Refused              // the connection is reset before an answer, also where it was refused: the server is there
	Stalled              // nothing more comes: the client must give up
	Cut                  // the connection ends within the body
	NoLastRow            // chunked, and ends with "0\r\n" but without the empty line after it
	Early                // the answer came while the client was still sending: the rest of its body is not read
)

// Body is a body as it was recorded.
type Body struct {
	Text string // when it was kept as text
	JSON bool   // Text is JSON, of which only the meaning is known

	// When it was not kept: its length and hash; the bytes come from options
	// of Serve.
	Opaque bool
	Bytes  int64
	SHA256 string

	// When it is a multipart form, the file in it: the boundary is the client's choice.
	File *File
}

// File is a file in a multipart form.
type File struct {
	Name   string
	Bytes  int64
	SHA256 string
}

// Steps selects the exchanges of the named steps, in the order of the names;
// those that share a name stay in their order.
func Steps(rec []Exchange, names ...string) []Exchange {
	var out []Exchange
	for _, name := range names {
		before := len(out)
		for _, e := range rec {
			if e.Step == name {
				out = append(out, e)
			}
		}
		if len(out) == before {
			out = append(out, Exchange{Step: name, missing: "the recording has no step of this name"})
		}
	}
	return out
}

// Of selects the exchanges with one node.
func Of(rec []Exchange, node string) []Exchange {
	var out []Exchange
	for _, e := range rec {
		if e.Node == node {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		out = append(out, Exchange{Step: node, missing: "the recording has no node of this name"})
	}
	return out
}

// Poll makes a sequence of states of rec: of equal answers in a row one stays.
// Each state is given at least once; the last may be asked for again.
func Poll(rec []Exchange) []Exchange {
	var out []Exchange
	for _, e := range rec {
		if len(out) > 0 {
			last := out[len(out)-1]
			if last.key() == e.key() && last.Answer.Status == e.Answer.Status && last.Answer.Body == e.Answer.Body {
				continue
			}
		}
		e.Repeat = true
		out = append(out, e)
	}
	return out
}

// Optional is rec when the client may leave it out, or ask as often as it likes.
func Optional(rec []Exchange) []Exchange {
	out := append([]Exchange{}, rec...)
	for i := range out {
		out[i].Optional, out[i].Repeat = true, true
	}
	return out
}

// Chain puts sequences one after another.
func Chain(parts ...[]Exchange) []Exchange {
	var out []Exchange
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// JSON is e with another answer, of which v is the JSON: for states that were
// not recorded.
func (e Exchange) JSON(status int, v any) Exchange {
	text, err := json.Marshal(v)
	if err != nil {
		e.missing = "its answer: " + err.Error()
	}
	e.Answer = Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: Body{Text: string(text), JSON: true}}
	return e
}

func (e Exchange) key() string {
	k := e.Method + " " + e.Path
	if len(e.Query) > 0 {
		k += "?" + e.Query.Encode()
	}
	return k
}

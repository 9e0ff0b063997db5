package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// Load reads a recording. Lines that are remarks are left out.
func Load(t testing.TB, path string) []Exchange {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	var all []Exchange
	for i, line := range bytes.Split(b, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, ok, err := parse(line)
		if err != nil {
			t.Fatalf("replay: %s:%d: %v", path, i+1, err)
		}
		if ok {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		t.Fatalf("replay: %s holds no exchange", path)
	}
	return all
}

// line is an exchange as both dialects write it.
type line struct {
	Step     string          `json:"step"`
	Node     string          `json:"node"`
	Note     json.RawMessage `json:"note"` // a remark in one dialect, "this is no exchange" in the other
	Error    string          `json:"error"`
	TimeMS   json.RawMessage `json:"t_ms"` // only the dialect with parsed bodies has it
	Request  *requestLine    `json:"request"`
	Response *responseLine   `json:"response"`
}

type requestLine struct {
	Method  string           `json:"method"`
	Path    string           `json:"path"`
	Query   query            `json:"query"`
	Headers map[string]texts `json:"headers"`
	Body    json.RawMessage  `json:"body"`
}

type responseLine struct {
	Status     int              `json:"status"`
	Headers    map[string]texts `json:"headers"`
	Body       json.RawMessage  `json:"body"`
	Trailers   map[string]texts `json:"trailers"`
	Error      string           `json:"error"`
	TimeoutMS  *int64           `json:"timeout_ms"`
	BodyIsNull bool             `json:"body_is_json_null"`
}

func parse(text []byte) (e Exchange, isExchange bool, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return e, false, err
	}
	if l.Request == nil {
		return e, false, nil
	}
	_ = json.Unmarshal(l.Note, &e.Note) // else it is the mark of a remark
	e.Step, e.Node = l.Step, l.Node
	e.Method, e.Path = l.Request.Method, l.Request.Path
	e.Query, e.Header = url.Values(l.Request.Query), header(l.Request.Headers)
	if e.Body, err = body(l.Request.Body, ""); err != nil {
		return e, false, fmt.Errorf("request body: %w", err)
	}
	if l.Response == nil {
		l.Response = &responseLine{}
	}
	r := l.Response
	e.Answer.Header, e.Answer.Trailer = header(r.Headers), header(r.Trailers)
	// The recorder of the text dialect asked for the end of each connection;
	// in the other it was the daemon's wish.
	if e.Header.Get("Connection") == "close" {
		e.Answer.Header.Del("Connection")
	}
	kind := ""
	if len(l.TimeMS) > 0 {
		kind = e.Answer.Header.Get("Content-Type")
	}
	if e.Answer.Body, err = body(r.Body, kind); err != nil {
		return e, false, fmt.Errorf("response body: %w", err)
	}
	if r.BodyIsNull {
		e.Answer.Body = Body{Text: "null", JSON: true}
	}
	e.Answer.Status = r.Status
	e.Answer.End, err = end(l)
	return e, true, err
}

// end is how the answer ended, from what the recorder wrote of it.
func end(l line) (End, error) {
	said := l.Error + l.Response.Error
	switch {
	case strings.Contains(said, "while sending the body"):
		return Early, nil
	case said == "truncated in trailers":
		return NoLastRow, nil
	case strings.HasPrefix(said, "truncated"):
		return Cut, nil
	case l.Response.TimeoutMS != nil, strings.Contains(said, "deadline"), said == "client aborted":
		return Stalled, nil
	case l.Response.Status == 0:
		return Refused, nil
	case said != "":
		return Whole, fmt.Errorf("an error that we do not know how to replay: %q", said)
	}
	return Whole, nil
}

// query is an object, a query string or null.
type query url.Values

func (q *query) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		values, err := url.ParseQuery(text)
		*q = query(values)
		return err
	}
	var m map[string]texts
	err := json.Unmarshal(raw, &m)
	*q = query{}
	for k, v := range m {
		(*q)[k] = v
	}
	return err
}

// texts are a text, a number, a bool or a list of such.
type texts []string

func (t *texts) UnmarshalJSON(raw []byte) error {
	var list []texts
	if json.Unmarshal(raw, &list) == nil {
		*t = slices.Concat(list...)
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	*t = texts{text}
	return nil
}

func header(m map[string]texts) http.Header {
	h := http.Header{}
	for k, v := range m {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// body reads text, null, a hash, or JSON that the recorder has parsed. kind is
// the content type of the dialect that parses.
func body(raw json.RawMessage, kind string) (Body, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return Body{}, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return Body{}, err
		}
		if s != "" && isJSON(kind) && !json.Valid([]byte(s+" ")) || isJSON(kind) && isNumber(s) {
			return Body{Text: string(raw), JSON: true}, nil // the JSON was a text
		}
		return Body{Text: s}, nil
	}
	var hash struct {
		Bytes         int64   `json:"bytes"`
		SHA256        string  `json:"sha256"`
		MultipartFile *string `json:"multipart_file"`
		ContentBytes  int64   `json:"content_bytes"`
		ContentSHA256 string  `json:"content_sha256"`
	}
	if raw[0] == '{' {
		if err := json.Unmarshal(raw, &hash); err == nil && len(hash.SHA256) == 64 {
			b := Body{Opaque: true, Bytes: hash.Bytes, SHA256: hash.SHA256}
			if hash.MultipartFile != nil {
				b.File = &File{Name: *hash.MultipartFile, Bytes: hash.ContentBytes, SHA256: hash.ContentSHA256}
			}
			return b, nil
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return Body{}, err
	}
	return Body{Text: compact.String(), JSON: true}, nil
}

func isJSON(contentType string) bool {
	return strings.HasPrefix(contentType, "application/json")
}

// isNumber: amounts of money are sent as texts.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

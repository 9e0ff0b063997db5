package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// Load reads a recording. Lines that are remarks are left out.
func Load(t testing.TB, path string) []Exchange {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	defer f.Close()
	var all []Exchange
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			e, ok, err := parse(line)
			if err != nil {
				t.Fatalf("replay: %s:%d: %v", path, n, err)
			}
			if ok {
				all = append(all, e)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("replay: %s: %v", path, err)
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
	Method  string                     `json:"method"`
	Path    string                     `json:"path"`
	Query   json.RawMessage            `json:"query"`
	Headers map[string]json.RawMessage `json:"headers"`
	Body    json.RawMessage            `json:"body"`
}

type responseLine struct {
	Status     int                        `json:"status"`
	Headers    map[string]json.RawMessage `json:"headers"`
	Body       json.RawMessage            `json:"body"`
	Trailers   map[string]json.RawMessage `json:"trailers"`
	Error      string                     `json:"error"`
	TimeoutMS  *int64                     `json:"timeout_ms"`
	BodyIsNull bool                       `json:"body_is_json_null"`
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
	if e.Query, err = query(l.Request.Query); err != nil {
		return e, false, fmt.Errorf("query: %w", err)
	}
	if e.Header, err = header(l.Request.Headers); err != nil {
		return e, false, fmt.Errorf("request headers: %w", err)
	}
	if e.Body, err = body(l.Request.Body, ""); err != nil {
		return e, false, fmt.Errorf("request body: %w", err)
	}
	if l.Response == nil {
		l.Response = &responseLine{}
	}
	r := l.Response
	if e.Answer.Header, err = header(r.Headers); err != nil {
		return e, false, fmt.Errorf("response headers: %w", err)
	}
	if e.Answer.Trailer, err = header(r.Trailers); err != nil {
		return e, false, fmt.Errorf("trailers: %w", err)
	}
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

// end tells how the answer ended from what the recorder wrote of it.
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

// query reads an object, a query string or null.
func query(raw json.RawMessage) (url.Values, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return url.ParseQuery(s)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	q := url.Values{}
	for k, v := range m {
		values, err := texts(v)
		if err != nil {
			return nil, err
		}
		q[k] = values
	}
	return q, nil
}

func header(m map[string]json.RawMessage) (http.Header, error) {
	h := http.Header{}
	for k, raw := range m {
		values, err := texts(raw)
		if err != nil {
			return nil, err
		}
		h[http.CanonicalHeaderKey(k)] = values
	}
	return h, nil
}

// texts reads a text, a number, a bool or a list of such.
func texts(raw json.RawMessage) ([]string, error) {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		var out []string
		for _, one := range list {
			s, err := texts(one)
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
		}
		return out, nil
	}
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return []string{s}, err
	}
	return []string{string(raw)}, nil
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

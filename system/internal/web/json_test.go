package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// api returns a client of a server that answers with h.
func api(t *testing.T, h http.HandlerFunc) (*Client, *url.URL) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL + "/a?token=hunter2")
	must(t, err)
	c, err := New("some", (&net.Dialer{}).DialContext, system.HTTPTarget{URL: u})
	must(t, err)
	t.Cleanup(c.Close)
	return c, u
}

func TestJSONSends(t *testing.T) {
	for name, c := range map[string]struct {
		in         any
		kind, body string
	}{
		"nothing": {nil, "", ""},
		"form":    {url.Values{"b": {"2"}, "a": {"x y"}}, "application/x-www-form-urlencoded", "a=x+y&b=2"},
		"JSON":    {map[string]int{"n": 1}, "application/json", `{"n":1}`},
	} {
		client, u := api(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			user, password, _ := r.BasicAuth()
			if r.Header.Get("Content-Type") != c.kind || string(body) != c.body ||
				r.ContentLength != int64(len(c.body)) || user != "u" || password != "p" ||
				r.UserAgent() != "Some-Agent" {
				t.Errorf("%s: got %q %q, %v", name, body, r.Header, r.ContentLength)
			}
		})
		head := http.Header{"User-Agent": {"Some-Agent"}}
		(&http.Request{Header: head}).SetBasicAuth("u", "p")
		if err := client.JSON(t.Context(), "POST", u, head, c.in, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(head) != 2 {
			t.Errorf("%s: the caller's header was changed: %v", name, head)
		}
	}
}

func TestJSONAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`null`:                     "[]", // null is an empty list
		``:                         "[]",
		"  \n":                     "[]",
		`[18446744073709551615]`:   "[18446744073709551615]",
		`[1e400]`:                  "[1e400]",
		`{`:                        "error",
		`"text"`:                   "error",
		"<html>not the API</html>": "error",
	} {
		client, u := api(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) })
		out := []any{}
		err := client.JSON(t.Context(), "GET", u, nil, nil, &out)
		if want == "error" {
			if err == nil || !strings.Contains(err.Error(), "not what it should be") || strings.Contains(err.Error(),
				"hunter2") {
				t.Errorf("%q: %v", body, err)
			}
			continue
		}
		got, _ := json.Marshal(out)
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v", body, got, err)
		}
	}
}

func TestJSONStatus(t *testing.T) {
	client, u := api(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(491)
		io.WriteString(w, `{"message":"module  not\nloaded"}`)
	})
	err := client.JSON(t.Context(), "GET", u, nil, nil, nil)
	if Status(err) != 491 || !strings.HasPrefix(err.Error(), "some: GET http://") || !strings.HasSuffix(err.Error(),
		"/a: status 491: module not loaded") {
		t.Errorf("%d: %v", Status(err), err)
	}
	if Status(io.EOF) != 0 || Status(nil) != 0 {
		t.Error("a status from nowhere")
	}
	if _, err := client.Open(t.Context(), Call{Method: "GET", URL: u}); Status(err) != 491 {
		t.Errorf("open: %v", err)
	}
}

func TestJSONIsBounded(t *testing.T) {
	client, u := api(t, func(w http.ResponseWriter, r *http.Request) {
		block := bytes.Repeat([]byte(" "), 1<<20)
		for range maxJSON>>20 + 1 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	if err := client.JSON(t.Context(), "GET", u, nil, nil, nil); err == nil || !strings.Contains(err.Error(),
		"too large") {
		t.Errorf("an endless answer: %v", err)
	}
}

func TestCallStreamsExactly(t *testing.T) {
	client, u := api(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil && n != r.ContentLength {
			t.Errorf("%d bytes, %d announced", n, r.ContentLength)
		}
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		body string
		want error
	}{
		{t.Context(), "12345", nil}, {t.Context(), "1234", io.ErrUnexpectedEOF}, {t.Context(), "123456", errTooLong},
		{ended, "12345", context.Canceled},
	} {
		_, err := client.Call(c.ctx, Call{Method: "PUT", URL: u, Body: strings.NewReader(c.body), Size: 5})
		if !errors.Is(err, c.want) {
			t.Errorf("body %q: %v, want %v", c.body, err, c.want)
		}
	}
}

// TestPatientReadsAnEarlyAnswer checks that the answer of a server that stops reading the body,
// with its reason, is always received.
func TestPatientReadsAnEarlyAnswer(t *testing.T) {
	_, u := api(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		http.Error(w, "not enough hosts", http.StatusInternalServerError)
	})
	patient := Patient("some", (&net.Dialer{}).DialContext)
	defer patient.Close()
	for range 20 {
		zeros := io.LimitReader(zeros{}, 64<<20)
		_, err := patient.Call(t.Context(), Call{Method: "PUT", URL: u, Body: zeros, Size: 64 << 20})
		if Status(err) != 500 || !strings.Contains(err.Error(), "not enough hosts") {
			t.Fatalf("got %v", err)
		}
	}
}

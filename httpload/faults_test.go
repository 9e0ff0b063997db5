package httpload

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// script is what a faulty server does with one request; it returns whether the
// connection goes on.
type script func(c net.Conn, r *http.Request, data []byte) (goOn bool)

// faulty serves requests by a script, plain or over TLS.
func faulty(t testing.TB, secure bool, data []byte, s script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	scheme := "http"
	if secure {
		scheme = "https"
		h := httptest.NewUnstartedServer(nil)
		h.StartTLS()
		config := h.TLS.Clone()
		config.NextProtos = nil
		h.Close()
		l = tls.NewListener(l, config)
	}
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				for br := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(br)
					if err != nil || !s(c, r, data) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return scheme + "://" + l.Addr().String() + "/object"
}

// span is the range that a request asks for.
func span(r *http.Request, data []byte) (off, n int64) {
	var last int64
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &off, &last); err != nil {
		return 0, int64(len(data))
	}
	return off, last - off + 1
}

// answer writes a correct head, with lines added or (by an empty value) left out.
func answer(c net.Conn, r *http.Request, data []byte, change map[string]string) {
	off, n := span(r, data)
	h := map[string]string{"Content-Length": fmt.Sprint(n), "Status": "200 OK"}
	if r.Header.Get("Range") != "" {
		h["Status"] = "206 Partial Content"
		h["Content-Range"] = fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, len(data))
	}
	maps.Copy(h, change)
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n", h["Status"])
	for k, v := range h {
		if k != "Status" && v != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", k, v)
		}
	}
	c.Write([]byte(b.String() + "\r\n"))
}

func part(r *http.Request, data []byte) []byte {
	off, n := span(r, data)
	return data[off : off+n]
}

// serve answers as a healthy server does.
func serve(c net.Conn, r *http.Request, data []byte) bool {
	answer(c, r, data, nil)
	_, err := c.Write(part(r, data))
	return err == nil
}

// chunks writes p in chunks of odd sizes.
func chunks(c net.Conn, p []byte, end string) {
	for n := 1; len(p) > 0; n = n*3 + 1 {
		n = min(n, len(p))
		fmt.Fprintf(c, "%x;x=y\r\n%s\r\n", n, p[:n])
		p = p[n:]
	}
	c.Write([]byte(end))
}

func abort(c net.Conn) bool {
	type linger interface{ SetLinger(int) error }
	if s, ok := c.(*tls.Conn); ok {
		c = s.NetConn()
	}
	c.(linger).SetLinger(0)
	c.Close()
	return false
}

// wait blocks until the client gives up.
func wait(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	c.Read(make([]byte, 1))
	return false
}

type fault struct {
	name    string
	script  script
	outcome record.Outcome
	class   string
	whole   bool   // ask for the whole object
	drop    string // what the drop path says instead: "outcome/class"
	https   string // what net/http says instead
}

func faults() []fault {
	type body func([]byte) []byte // what is sent of what was asked for
	with := func(change map[string]string, of body, goOn bool) script {
		return func(c net.Conn, r *http.Request, data []byte) bool {
			answer(c, r, data, change)
			c.Write(of(part(r, data)))
			return goOn
		}
	}
	chunked := func(of body, end string, goOn bool) script {
		return func(c net.Conn, r *http.Request, data []byte) bool {
			answer(c, r, data, map[string]string{"Content-Length": "", "Transfer-Encoding": "chunked"})
			chunks(c, of(part(r, data)), end)
			return goOn
		}
	}
	all := func(p []byte) []byte { return p }
	half := func(p []byte) []byte { return p[:len(p)/2] }
	ten := func(p []byte) []byte { return p[:10] }
	none := func([]byte) []byte { return nil }
	zeros := func([]byte) []byte { return make([]byte, 100) }
	oneMore := func(p []byte) []byte { return append(bytes.Clone(p), 1) }
	flip := func(p []byte, at int) []byte {
		p = bytes.Clone(p)
		p[at] ^= 4
		return p
	}
	flipEarly := func(p []byte) []byte { return flip(p, len(p)/3) }
	flipLast := func(p []byte) []byte { return flip(p, len(p)-1) }
	text := func(s string) script {
		return func(c net.Conn, r *http.Request, _ []byte) bool { c.Write([]byte(s)); return false }
	}
	nothing := text("")
	then := func(first script, last func(net.Conn) bool) script {
		return func(c net.Conn, r *http.Request, data []byte) bool {
			first(c, r, data)
			return last(c)
		}
	}
	toEnd := map[string]string{"Content-Length": "", "Connection": "close"}
	return []fault{
		{name: "healthy", script: serve},
		{name: "truncates", script: with(nil, half, false), outcome: record.Truncated, class: classEOFBody},
		{name: "length too short", script: with(map[string]string{"Content-Length": "10"}, ten, true),
			outcome: record.Truncated, class: "content-length too short"},
		{name: "length too long", script: with(map[string]string{"Content-Length": "99999999"}, all, true),
			outcome: record.Error, class: "content-length too long"},
		{name: "ten bytes with 200 to a range", script: text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
			outcome: record.Error, class: "status 200 to a range"},
		{name: "200 with everything to a range", script: func(c net.Conn, r *http.Request, data []byte) bool {
			r.Header.Del("Range")
			return serve(c, r, data)
		}, outcome: record.Error, class: "status 200 to a range"},
		{name: "206 to a whole object", whole: true,
			script:  text("HTTP/1.1 206 X\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/1\r\n\r\n0"),
			outcome: record.Error, class: "status 206 to a whole object"},
		{name: "wrong content-range", script: with(map[string]string{"Content-Range": "bytes 1-2/3"}, all, true),
			outcome: record.Error, class: "wrong content-range"},
		{name: "wrong size in content-range", script: func(c net.Conn, r *http.Request, data []byte) bool {
			off, n := span(r, data)
			answer(c, r, data, map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", off, off+n-1,
				len(data)+1)})
			return false
		}, outcome: record.Error, class: "wrong size in content-range"},
		{name: "malformed content-range", script: with(map[string]string{"Content-Range": "bytes what"}, all, true),
			outcome: record.Error, class: "wrong content-range"},
		{name: "no content-range", script: with(map[string]string{"Content-Range": ""}, all, true),
			outcome: record.Error, class: "206 without content-range"},
		{name: "one bit wrong", script: with(nil, flipEarly, true), outcome: record.WrongBytes, class: classWrong,
			drop: "ok/"},
		{name: "last bit wrong", script: with(nil, flipLast, true), outcome: record.WrongBytes, class: classWrong,
			drop: "ok/"},
		{name: "wrong, then truncated", script: with(nil, zeros, false), outcome: record.WrongBytes, class: classWrong,
			drop: "truncated/" + classEOFBody},
		{name: "closes at once", script: nothing, outcome: record.Error, class: classEOFBefore},
		{name: "closes in the head", script: text("HTTP/1.1 206 Par"), outcome: record.Error, class: "closed in the head",
			https: "error/" + classEOFBefore},
		{name: "closes after the head", script: with(nil, none, false), outcome: record.Truncated, class: classEOFBody},
		{name: "resets before the head", script: then(nothing, abort), outcome: record.Error, class: classReset},
		{name: "stalls before the head", script: then(nothing, wait), outcome: record.Stalled, class: record.PhaseBeforeHead},
		{name: "stalls in the head", script: then(text("HTTP/1.1 206"), wait), outcome: record.Stalled, class: record.PhaseHead,
			https: "stalled/" + record.PhaseBeforeHead},
		{name: "stalls in the body", script: then(with(nil, half, true), wait), outcome: record.Stalled,
			class: record.PhaseBody},
		{name: "headers a byte at a time", script: func(c net.Conn, r *http.Request, data []byte) bool {
			for _, b := range []byte("HTTP/1.1 206 Partial Content\r\nX-Slow: " + strings.Repeat("x", 10_000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
				time.Sleep(5 * time.Millisecond)
			}
			return false
		}, outcome: record.Stalled, class: record.PhaseHead, https: "stalled/" + record.PhaseBeforeHead},
		{name: "encoding of an upload", script: with(map[string]string{"Content-Encoding": "aws-chunked"}, all, true)},
		{name: "gzip", script: with(map[string]string{"Content-Encoding": "gzip"}, all, true), outcome: record.Error,
			class: "content-encoding gzip"},
		{name: "chunked", script: chunked(all, "0\r\nTrailer: x\r\n\r\n", true)},
		{name: "chunked, one bit wrong", script: chunked(flipLast, "0\r\n\r\n", true), outcome: record.WrongBytes,
			class: classWrong, drop: "ok/"},
		{name: "chunks too short", script: chunked(half, "0\r\n\r\n", true), outcome: record.Truncated,
			class: "chunks too short", https: "truncated/" + classEOFBody},
		{name: "chunks too long", script: chunked(oneMore, "0\r\n\r\n", true), outcome: record.Error, class: classLong},
		{name: "malformed chunk", script: chunked(none, "zz\r\n", true), outcome: record.Error, class: classChunk,
			https: "error/broken body"},
		{name: "chunks end early", script: chunked(half, "", false), outcome: record.Truncated, class: classEOFBody},
		{name: "body until the end", script: with(toEnd, all, false)},
		{name: "body until the end, long", script: with(toEnd, oneMore, false), outcome: record.Error, class: classLong},
		{name: "redirect", script: text("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: " +
			"0\r\n\r\n"), outcome: record.Error, class: "redirect 302", https: "error/redirect not followed"},
		{name: "500", script: text("HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops"), outcome: record.Error,
			class: "status 500"},
		{name: "503", script: text("HTTP/1.1 503 X\r\nContent-Length: 4\r\n\r\nbusy"), outcome: record.Refused,
			class: "status 503"},
		{name: "429", script: text("HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n"), outcome: record.Refused,
			class: "status 429"},
		{name: "continues first", script: func(c net.Conn, r *http.Request, data []byte) bool {
			c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"))
			return serve(c, r, data)
		}},
		{name: "huge head", script: text("HTTP/1.1 206 X\r\nX: " + strings.Repeat("x", 2*maxHead) + "\r\n\r\n"),
			outcome: record.Error, class: errHeadTooLarge.Error()},
		{name: "not HTTP", script: text("SSH-2.0-OpenSSH_9.2\r\n\r\n"), outcome: record.Error,
			class: errMalformedHead.Error()},
		{name: "closes after each answer without saying so", script: with(nil, all, false)},
	}
}

func TestFaults(t *testing.T) {
	c := content(300_000)
	data := contentBytes(t, c)
	for _, path := range []string{"verify", "drop", "https"} {
		for _, f := range faults() {
			t.Run(path+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				url := faulty(t, path == "https", data, f.script)
				s := Spec{Objects: objectAt(url, c), Insecure: true, Concurrency: 2, Requests: 6, Range: 200_000,
					Stall: 10 * time.Second, Deadline: 10 * time.Second, Duration: 15 * time.Second}
				if f.outcome == record.Stalled {
					s.Stall, s.Concurrency = 400*time.Millisecond, 6 // wait once, not three times
				}
				if f.whole {
					s.Range = 0
				}
				want := f.outcome.String() + "/" + f.class
				switch {
				case path == "drop":
					s.Receive = "drop"
					if f.drop != "" {
						want = f.drop
					}
				case path == "https" && f.https != "":
					want = f.https
				}
				began := time.Now()
				res, got := runSpec(t, s)
				if len(got) != 6 {
					t.Errorf("%d operations, want 6", len(got))
				}
				for _, op := range got {
					if is := op.Outcome.String() + "/" + op.Class; is != want {
						t.Errorf("%s, want %s (status %d, %d bytes)", is, want, op.Status, op.Bytes)
					}
					if (op.Outcome == record.OK) != (op.Bytes == op.Length) && op.Outcome != record.WrongBytes &&
						op.Class != classLong {
						t.Errorf("%s with %d of %d bytes", op.Outcome, op.Bytes, op.Length)
					}
					if op.LastByte < op.Start {
						t.Errorf("ended before it started: %+v", op)
					}
				}
				if took := time.Since(began); took > 12*time.Second {
					t.Errorf("took %v", took)
				}
				if f.name == "chunked" && (path == "drop") != strings.Contains(res.Receive, "6 chunked") {
					t.Errorf("receive path %q", res.Receive)
				}
			})
		}
	}
}

// The window ends with the last operation, not with the pause that a connection
// makes after it because it got no answer.
func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	for _, scheme := range []string{"http", "https"} {
		objects := objectAt(scheme+"://"+l.Addr().String()+"/", content(1))
		for _, connections := range []int{1, 3} {
			s := Spec{Objects: objects, Concurrency: connections, Requests: 9}
			res, got := runSpec(t, s)
			last := int64(0)
			for _, op := range got {
				last = max(last, op.LastByte)
			}
			if res.Outcomes["refused"] != 9 || res.Classes["connection refused"] != 9 || res.Ended != last {
				t.Errorf("%s: outcomes %v, classes %v; ended at %d, the last operation at %d", scheme, res.Outcomes,
					res.Classes, res.Ended, last)
			}
		}
	}
}

// A kept connection that the server closed while it was idle costs a new
// connection, not an operation.
func TestReconnect(t *testing.T) {
	c := content(1000)
	data := contentBytes(t, c)
	for _, how := range []string{"close", "reset"} {
		served := map[string]int{}
		var mu sync.Mutex
		url := faulty(t, false, data, func(c net.Conn, r *http.Request, data []byte) bool {
			mu.Lock()
			served[c.RemoteAddr().String()]++
			second := served[c.RemoteAddr().String()] == 2
			mu.Unlock()
			if second && how == "reset" {
				return abort(c)
			}
			if second {
				return false
			}
			return serve(c, r, data)
		})
		res, _ := runSpec(t, Spec{Objects: objectAt(url, c), Concurrency: 1, Requests: 5})
		if res.Outcomes["ok"] != 5 || len(served) != 5 {
			t.Errorf("%s: outcomes %v, classes %v; %d connections served 5 requests", how, res.Outcomes, res.Classes,
				len(served))
		}
	}
}

// Failed answers with short bodies keep their connections.
func TestFailuresKeepConnections(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	dials := countConnections(s)
	s.Start()
	defer s.Close()
	for _, receive := range []string{"verify", "drop"} {
		res, _ := runSpec(t, Spec{Objects: objectAt(s.URL, content(1000)), Concurrency: 2, Requests: 20, Receive: receive})
		if n := dials.Swap(0); res.Outcomes["refused"] != 20 || n > 2 {
			t.Errorf("%s: outcomes %v, %d connections", receive, res.Outcomes, n)
		}
	}
}

// Bytes after the end of an answer belong to no answer.
func TestUnsolicitedBytes(t *testing.T) {
	c := content(100)
	data := contentBytes(t, c)
	var dials atomic.Int64
	url := faulty(t, false, data, func(c net.Conn, r *http.Request, data []byte) bool {
		dials.Add(1) // each serves one request
		one := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + string(data)
		c.Write([]byte(one + one))
		return true
	})
	for _, receive := range []string{"verify", "drop"} {
		res, _ := runSpec(t, Spec{Objects: objectAt(url, c), Concurrency: 1, Requests: 5, Receive: receive})
		if n := dials.Swap(0); res.Outcomes["ok"] != 5 || n != 5 {
			t.Errorf("%s: outcomes %v, %d requests", receive, res.Outcomes, n)
		}
	}
}

package httpload

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestParseHead(t *testing.T) {
	const ok = "HTTP/1.1 206 Partial Content\r\n"
	base := head{status: 206, length: -1}
	with := func(f func(*head)) head { h := base; f(&h); return h }
	for in, want := range map[string]head{
		ok:                              base,
		"HTTP/1.1 206\r\n":              base,
		"HTTP/1.1 206 \r\n":             base,
		"HTTP/1.0 206 x\r\n":            with(func(h *head) { h.close = true }),
		ok + "content-LENGTH: 12 \r\n":  with(func(h *head) { h.length = 12 }),
		ok + "Connection: x, Close\r\n": with(func(h *head) { h.close = true }),
		"HTTP/1.0 206 x\r\nConnection: keep-alive\r\n": base,
		ok + "Transfer-Encoding: Chunked\r\n":          with(func(h *head) { h.chunked = true }),
		ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n": with(func(h *head) {
			h.chunked, h.close = true, true
		}),
		ok + "content-range: bytes 0-9/100\r\n": with(func(h *head) { h.contentRange = "bytes 0-9/100" }),
		ok + "Content-Encoding: GZIP\r\n":       with(func(h *head) { h.encoding = "gzip" }),
		ok + "Content-Encoding: identity\r\n":   base,
		ok + "Content-Encoding: surprise\r\n":   with(func(h *head) { h.encoding = "other" }),
	} {
		b := []byte(in + "\r\n")
		if n := headEnd(b, 0); n != len(b) {
			t.Errorf("%q: the head ends at %d of %d", in, n, len(b))
		}
		if got, err := parseHead(b); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"",
		"HTTP/2.0 200 OK\r\n",
		"HTTP/1.1 20 OK\r\n",
		"HTTP/1.1 2000\r\n",
		"HTTP/1.1 099 x\r\n",
		"HTTP/1.1  200 OK\r\n",
		ok + " folded: first\r\n",
		ok + "no colon\r\n",
		ok + ": no name\r\n",
		ok + "Content-Length : 1\r\n",
		ok + "X: a\x00b\r\n",
		ok + "X: a\rb\r\n",
		ok + "Content-Length: 1\r\n 2\r\n",
		ok + "Content-Length: +1\r\n",
		ok + "Content-Length: -1\r\n",
		ok + "Content-Length:\r\n",
		ok + "Content-Length: 1\r\nContent-Length: 2\r\n",
		ok + "Content-Length: 9999999999999999999\r\n",
		ok + "Transfer-Encoding: gzip, chunked\r\n",
		ok + "X: a\r\n b\r\n",
		ok + "Content-Length: 5, 5\r\n",
	} {
		if h, err := parseHead([]byte(in + "\r\n")); err != errMalformedHead {
			t.Errorf("%q: %+v, %v", in, h, err)
		}
	}
}

// However a head is cut into pieces, its end is found, and not before it is there.
func TestHeadEndInPieces(t *testing.T) {
	for _, in := range []string{"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", "HTTP/1.1 200 OK\r\n\r\nbody"} {
		want := strings.Index(in, "body")
		for cut := 1; cut < len(in); cut++ {
			got := headEnd([]byte(in[:cut]), 0)
			if cut < want && got != 0 || cut >= want && got != want {
				t.Errorf("%q: end at %d", in[:cut], got)
			}
			if got == 0 {
				if n := headEnd([]byte(in), cut); n != want {
					t.Errorf("%q cut at %d: end at %d, want %d", in, cut, n, want)
				}
			}
		}
	}
}

// FuzzHead feeds heads to the parser and to net/http: what both accept must
// mean the same.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := headEnd(b, 0)
		if n == 0 {
			return
		}
		if n > len(b) || b[n-1] != '\n' {
			t.Fatalf("end at %d of %d", n, len(b))
		}
		h, err := parseHead(b[:n])
		if err != nil {
			return
		}
		if h.status < 100 || h.status > 999 || h.length < -1 {
			t.Fatalf("%+v", h)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), &http.Request{Method: "GET"})
		if err != nil {
			return // net/http is stricter in places
		}
		if resp.StatusCode != h.status {
			t.Errorf("status %d, net/http says %d", h.status, resp.StatusCode)
		}
		bodyless := h.status < 200 || h.status == 204 || h.status == 304
		if !bodyless && !h.chunked && resp.ContentLength != h.length {
			t.Errorf("length %d, net/http says %d", h.length, resp.ContentLength)
		}
		if h.chunked != (len(resp.TransferEncoding) > 0) && !bodyless && resp.ProtoAtLeast(1, 1) {
			t.Errorf("chunked %v, net/http says %v", h.chunked, resp.TransferEncoding)
		}
	})
}

// FuzzChunked checks that the decoder agrees with itself however the bytes are
// cut, and never runs away.
func FuzzChunked(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("a;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\nnext"), 1)
	decode := func(b []byte, step int) (out []byte, done bool, failed bool, left int) {
		var c chunkedBody
		for i := 0; i < len(b); i += step {
			piece := b[i:min(i+step, len(b))]
			for len(piece) > 0 {
				data, rest, done, err := c.next(piece)
				if err != nil {
					return out, false, true, 0
				}
				out = append(out, data...)
				if done {
					return out, true, false, len(b) - i - step + len(rest)
				}
				if len(rest) >= len(piece) {
					panic("no progress")
				}
				piece = rest
			}
		}
		return out, false, false, 0
	}
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		step = 1 + (step&0xff)%16
		all, done, failed, _ := decode(b, len(b)+1)
		cut, cutDone, cutFailed, _ := decode(b, step)
		if done != cutDone || failed != cutFailed || !bytes.Equal(all, cut) {
			t.Errorf("whole: %q %v %v; in pieces of %d: %q %v %v", all, done, failed, step, cut, cutDone, cutFailed)
		}
	})
}

// A large body has many chunks, whose framing has no bound of its own.
func TestManyChunks(t *testing.T) {
	var c chunkedBody
	got, rest := 0, []byte(strings.Repeat("1\r\nx\r\n", 40_000)+"0\r\n\r\n")
	for done := false; !done; {
		var data []byte
		var err error
		if data, rest, done, err = c.next(rest); err != nil {
			t.Fatalf("after %d chunks: %v", got, err)
		}
		got += len(data)
	}
	if got != 40_000 || len(rest) > 0 {
		t.Errorf("%d bytes, %d left", got, len(rest))
	}
}

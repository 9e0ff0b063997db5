package httpload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/redirect"
	"github.com/plimsoll-project/plimsoll/internal/trust"
	"github.com/plimsoll-project/plimsoll/record"
)

// Copy fetches the first object, or its first part bytes if part is not 0, as a trial does, and
// writes it to w. It ends when no byte comes for Stall.
func (s *Spec) Copy(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error),
	part int64, w io.Writer) (n int64, err error) {
	config, err := trust.Config(s.CAFile, s.Insecure)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(s.Stall, func() { cancel(fmt.Errorf("no byte arrived for %v (limits.stall)", s.Stall)) })
	defer stall.Stop()
	transport := &http.Transport{DialContext: dial, TLSClientConfig: config, DisableCompression: true}
	defer transport.CloseIdleConnections()
	o, r := &s.Objects[0], request{length: cmp.Or(part, -1), whole: part == 0}
	req, err := o.request(ctx, &r)
	if err != nil {
		return 0, err
	}
	resp, _, err := redirect.Do(req, o.Header, transport.RoundTrip)
	if err != nil {
		return 0, cmp.Or(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	outcome, class, length := judge(headOf(resp), &r, o.Size)
	if outcome != record.OK {
		return 0, errors.New("the server's answer: " + class)
	}
	buf := make([]byte, netBuffer)
	for err == nil && (length < 0 || n <= length) {
		var read int
		read, err = resp.Body.Read(buf)
		stall.Reset(s.Stall)
		if _, failed := w.Write(buf[:read]); failed != nil {
			return n, failed
		}
		n += int64(read)
	}
	switch {
	case err != nil && err != io.EOF:
		return n, cmp.Or(context.Cause(ctx), err)
	case length >= 0 && n != length:
		return n, fmt.Errorf("%d bytes came, not %d", n, length)
	}
	return n, nil
}

// request returns a request of a trial for the object.
func (o *Object) request(ctx context.Context, r *request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method(), o.URL, nil)
	if err == nil && r.uri != "" {
		var own *url.URL
		if own, err = url.ParseRequestURI(r.uri); err == nil {
			req.URL.Path, req.URL.RawPath, req.URL.RawQuery = own.Path, own.RawPath, own.RawQuery
		}
	}
	if err != nil {
		return nil, err
	}
	req.Host, req.Header = o.header(req.URL)
	if !r.whole {
		req.Header.Set("Range", "bytes="+string(appendSpan(nil, r)))
	}
	return req, nil
}

// headOf returns the head of an answer.
func headOf(resp *http.Response) *head {
	h := &head{status: resp.StatusCode, length: resp.ContentLength,
		contentRange: strings.Join(resp.Header.Values("Content-Range"), ""),
		encoding:     encodingName(resp.Header.Get("Content-Encoding"))}
	if resp.Request.Method == http.MethodHead {
		h.length = 0
	}
	return h
}

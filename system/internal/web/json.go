package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// maxJSON limits the size of an answer that is kept in memory. A larger one is an error; it is not
// cut. It suffices for half a million files of a siad, which take 500 bytes each.
const maxJSON = 256 << 20

// StatusError is an answer without success. Callers know the meaning of status and text in their
// system: they use errors.As and wrap the matching error (ErrAuth, …).
type StatusError struct {
	Method  string
	URL     string // without query and password
	Status  int
	Message string // text of the answer with collapsed white space, at most 1 KiB
	Text    string // answer as read, since the relevant part may be at its end
}

// Error implements error. Clients put the system's name before it.
func (e *StatusError) Error() string {
	said := e.Message
	if said != "" {
		said = ": " + said
	}
	return fmt.Sprintf("%s %s: status %d%s", e.Method, e.URL, e.Status, said)
}

// StatusCode returns Status, for callers that do not import this package.
func (e *StatusError) StatusCode() int { return e.Status }

// Status returns the status of the StatusError in err, or 0.
func Status(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// Call is a request to an API.
type Call struct {
	Method string
	URL    *url.URL
	Header http.Header
	// Size bytes of Body are streamed; nil sends no body.
	Body io.Reader
	Size int64
}

// JSON calls an API and decodes its answer into out. in is sent as JSON, as a form if it is
// url.Values, and not at all if it is nil. The JSON word null, an empty answer (204) and a nil out
// leave *out unchanged: set it to what an empty answer means. Numbers decoded into `any` are
// json.Number and keep all digits.
func (c *Client) JSON(ctx context.Context, method string, u *url.URL, header http.Header, in, out any) error {
	call := Call{Method: method, URL: u, Header: header.Clone()}
	if call.Header == nil {
		call.Header = http.Header{}
	}
	switch in := in.(type) {
	case nil:
	case url.Values:
		text := in.Encode()
		call.Body, call.Size = strings.NewReader(text), int64(len(text))
		call.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", c.name, method, public(u), err)
		}
		call.Body, call.Size = bytes.NewReader(text), int64(len(text))
		call.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.Call(ctx, call)
	if err != nil {
		return err
	}
	if text := bytes.TrimSpace(answer); out == nil || len(text) == 0 || string(text) == "null" {
		return nil // decoding null would discard a list that the caller made
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("%s: %s %s: %w: %w (it begins %q)", c.name, method, public(u), system.ErrAnswer, err,
			answer[:min(len(answer), 80)])
	}
	return nil
}

// Call makes a request and returns the answer's whole body. A status other than 2xx is a
// *StatusError. The body of the request is streamed. If it is shorter or longer than Size, the
// request fails before its last byte is sent.
func (c *Client) Call(ctx context.Context, call Call) ([]byte, error) {
	resp, err := c.Open(ctx, call)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(Bounded(resp))
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: answer: after %d bytes: %w", c.name, call.Method, public(call.URL),
			len(answer), err)
	}
	return answer, nil
}

// Open is Call, but returns the answer with its body open.
func (c *Client) Open(ctx context.Context, call Call) (*http.Response, error) {
	var body io.Reader
	if call.Body != nil {
		var err error
		if body, err = Exactly(call.Body, call.Size); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", c.name, call.Method, public(call.URL), err)
		}
	}
	resp, err := c.do(ctx, call.Method, system.HTTPTarget{URL: call.URL, Header: call.Header}, "", call.Size, body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// Bounded returns the body of an answer that is kept in memory. It fails after maxJSON.
func Bounded(answer *http.Response) io.Reader { return http.MaxBytesReader(nil, answer.Body, maxJSON) }

// refusal returns the [StatusError] of an answer.
func (c *Client) refusal(resp *http.Response) error {
	// A connection is only reused if the body is read to its end.
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	said := string(answer)
	var message struct{ Message string } // many APIs wrap the text like this
	if json.Unmarshal(answer, &message) == nil && message.Message != "" {
		said = message.Message
	}
	said = strings.Join(strings.Fields(said), " ")
	return fmt.Errorf("%s: %w", c.name, &StatusError{
		Method: resp.Request.Method, URL: public(resp.Request.URL), Status: resp.StatusCode,
		Message: said[:min(len(said), 1<<10)], Text: string(answer),
	})
}

// errTooLong means that a reader has more bytes than its size.
var errTooLong = errors.New("the reader has more bytes than the size says")

// Exactly returns a reader of exactly size bytes of r. If r ends early or has more, it fails before
// it returns the last byte, so that no wrong object is stored.
func Exactly(r io.Reader, size int64) (io.Reader, error) {
	if size < 0 {
		return nil, fmt.Errorf("a size of %d bytes", size)
	}
	e := &exactly{r: bufio.NewReader(r), left: size}
	if size == 0 && r != nil {
		return e, e.end()
	}
	return e, nil
}

type exactly struct {
	r    *bufio.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	switch {
	case e.left > 0 && err == io.EOF:
		return n, fmt.Errorf("the reader ended %d bytes early: %w", e.left, io.ErrUnexpectedEOF)
	case e.left > 0:
		return n, err
	}
	if err := e.end(); err != nil {
		return 0, err
	}
	return n, io.EOF
}

// end returns an error if there is another byte.
func (e *exactly) end() error {
	switch _, err := e.r.Peek(1); err {
	case nil:
		return errTooLong
	case io.EOF:
		return nil
	default:
		return err
	}
}

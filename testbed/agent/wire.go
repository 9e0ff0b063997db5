package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A call is one HTTP request: its arguments in gob (which supports NaN), then the caller's
// stream. The answer is an error, which may be nil, the results, and the agent's stream.
// What a call holds on the agent lives as long as the request.

// machineHeader names the machine that a call is for: another may have the address of a lost one now.
const machineHeader = "Plimsoll-Machine"

const (
	// callTimeout is the deadline of calls whose context has none.
	callTimeout = time.Minute
	// An unanswered ping ends a connection and everything that is open on it.
	pingAfter, pingTimeout = 15 * time.Second, time.Minute
)

// exchange is a call as seen by the agent.
type exchange struct {
	in  *bufio.Reader // the caller's stream
	dec *gob.Decoder
	enc *gob.Encoder
	w   http.ResponseWriter
}

func newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{in: bufio.NewReader(r.Body), w: w}
	x.dec, x.enc = gob.NewDecoder(x.in), gob.NewEncoder(x)
	return x
}

// Write streams to the caller without buffering.
func (x *exchange) Write(b []byte) (int, error) {
	n, err := x.w.Write(b)
	if err == nil {
		err = http.NewResponseController(x.w).Flush()
	}
	return n, err
}

// answer sends an error or, without one, results. It returns true if there is no error and the caller is
// still there: what is written after that is streamed.
func (x *exchange) answer(err error, results ...any) bool {
	failed := x.enc.Encode(toRemote(err)) != nil
	for _, r := range results {
		failed = failed || err == nil && x.enc.Encode(r) != nil
	}
	return err == nil && !failed
}

// errorTrailer has the error that ended the agent's stream early.
const errorTrailer = "Plimsoll-Error"

func (x *exchange) fail(err error) {
	var b bytes.Buffer
	if err != nil && gob.NewEncoder(&b).Encode(toRemote(err)) == nil {
		x.w.Header().Set(http.TrailerPrefix+errorTrailer, base64.StdEncoding.EncodeToString(b.Bytes()))
	}
}

// opened is an answered call as seen by the caller.
type opened struct {
	in   *bufio.Reader // the agent's stream
	resp *http.Response
	dec  *gob.Decoder
	end  context.CancelFunc
}

// Read implements io.Reader. The agent's stream ends with its error, if it has one.
func (o *opened) Read(b []byte) (int, error) {
	n, err := o.in.Read(b)
	return n, o.why(err)
}

// ReadByte implements io.ByteReader, so that a decoder does not read ahead.
func (o *opened) ReadByte() (byte, error) {
	b, err := o.in.ReadByte()
	return b, o.why(err)
}

func (o *opened) why(err error) error {
	if err != io.EOF {
		return err
	}
	var e remoteError
	text := strings.NewReader(o.resp.Trailer.Get(errorTrailer))
	if gob.NewDecoder(base64.NewDecoder(base64.StdEncoding, text)).Decode(&e) != nil {
		return err // the stream ended regularly
	}
	return &e
}

// Close ends the call, and what it holds on the agent.
func (o *opened) Close() error {
	o.end()
	return nil
}

// open makes a call that stays open until it is closed. The deadline of ctx applies only to
// the answer. body may be nil.
func (h *Host) open(ctx context.Context, path string, body io.Reader, args []any, results ...any) (_ *opened,
	err error) {
	if why := h.lost.Load(); why != nil {
		return nil, fmt.Errorf("agent of host %s: it is lost: %w", h.opt.Name, *why)
	}
	if ctx.Err() != nil { // the agent might execute a call that we gave up
		return nil, fmt.Errorf("agent of host %s: %s: %w", h.opt.Name, path, context.Cause(ctx))
	}
	var head bytes.Buffer
	enc := gob.NewEncoder(&head)
	for _, a := range args {
		if err := enc.Encode(a); err != nil {
			return nil, fmt.Errorf("agent: %s: %w", path, err)
		}
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			end()
		}
	}()
	answered := context.AfterFunc(ctx, end)
	var send io.Reader = &head
	if body != nil {
		send = io.MultiReader(&head, body)
	}
	req, err := http.NewRequestWithContext(life, http.MethodPost, "https://"+serverName+path, send)
	if err != nil {
		return nil, err
	}
	req.Header.Set(machineHeader, h.opt.On)
	resp, err := h.http.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		err = errors.New(resp.Status + ": " + string(bytes.TrimSpace(b)))
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // there is a machine, and no agent on it
			why := err // err is wrapped below while others read why
			h.lost.Store(&why)
		case resp == nil && ctx.Err() == nil && path != alive: // the connection broke: check for the agent
			_ = h.call(ctx, alive)
		}
		return nil, fmt.Errorf("agent of host %s: %s: %w", h.opt.Name, path, err)
	}
	o := &opened{in: bufio.NewReader(resp.Body), resp: resp, end: end}
	o.dec = gob.NewDecoder(o)
	if err = o.answer(results...); !answered() {
		return nil, fmt.Errorf("agent of host %s: %s: %w", h.opt.Name, path, context.Cause(ctx))
	}
	return o, err
}

// answer receives an answer: an error of the agent, or results.
func (o *opened) answer(results ...any) error {
	var said remoteError
	if err := o.dec.Decode(&said); err != nil {
		return fmt.Errorf("the agent's answer: %w", err)
	}
	if said.Text != "" {
		return &said
	}
	for _, r := range results {
		if err := o.dec.Decode(r); err != nil {
			return fmt.Errorf("the agent's answer: %w", err)
		}
	}
	return nil
}

// hear makes a call that ends with its answer, and receives the results. body may be nil.
func (h *Host) hear(ctx context.Context, path string, body io.Reader, args []any, results ...any) error {
	o, err := h.open(ctx, path, body, args, results...)
	if err == nil {
		_, _ = io.Copy(io.Discard, o) // to the end, so that the request ends regularly
		o.end()
	}
	return err
}

// call makes a call without results.
func (h *Host) call(ctx context.Context, path string, args ...any) error {
	return h.hear(ctx, path, nil, args)
}

// ask makes a call with one result.
func ask[A any](ctx context.Context, h *Host, path string, args ...any) (a A, err error) {
	err = h.hear(ctx, path, nil, args, &a)
	return a, err
}

// askOr returns the result, or otherwise if the call fails.
func askOr[A any](h *Host, otherwise A, path string, args ...any) A {
	if a, err := ask[A](context.Background(), h, path, args...); err == nil {
		return a
	}
	return otherwise
}

// remoteError is an error sent over the connection: its text, and what errors.Is should find in it.
type remoteError struct {
	Text    string
	Errno   syscall.Errno // errors.Is also finds the errors of package fs in it
	Classes []int         // indexes into classes
}

// classes are further errors that errors.Is should find. Both ends have the same version,
// so their order may change.
var classes = []error{
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, os.ErrProcessDone, fs.ErrNotExist,
	net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, exec.ErrNotFound, errors.ErrUnsupported,
}

// toRemote has no text if there is no error.
func toRemote(err error) *remoteError {
	if err == nil {
		return &remoteError{}
	}
	e := &remoteError{Text: err.Error()}
	errors.As(err, &e.Errno)
	for i, c := range classes {
		if errors.Is(err, c) {
			e.Classes = append(e.Classes, i)
		}
	}
	return e
}

func (e *remoteError) Error() string { return e.Text }

// Is implements the interface of errors.Is.
func (e *remoteError) Is(target error) bool {
	i := slices.Index(classes, target)
	return slices.Contains(e.Classes, i) || e.Errno != 0 && errors.Is(e.Errno, target)
}

// Credentials are the certificate and key of one end of a connection, and the only certificate that it trusts:
// that of the other end. All are in DER.
type Credentials struct{ Cert, Key, Peer []byte }

// NewCredentials creates the credentials of one run, which exist only in memory.
func NewCredentials() (engine, agents Credentials, err error) {
	if engine.Cert, engine.Key, err = newCertificate(); err == nil {
		agents.Cert, agents.Key, err = newCertificate()
	}
	if err != nil {
		err = fmt.Errorf("agent: make a certificate: %w", err)
	}
	engine.Peer, agents.Peer = agents.Cert, engine.Cert
	return engine, agents, err
}

// Encoded returns the credentials as an agent reads them.
func (c Credentials) Encoded() []byte {
	var b bytes.Buffer
	_ = gob.NewEncoder(&b).Encode(c) // writing bytes to memory cannot fail
	return b.Bytes()
}

// lifetime is the validity of certificates: longer than any run.
const lifetime = 100 * 24 * time.Hour

// serverName is the TLS server name of every agent; they are distinguished by address.
const serverName = "plimsoll-agent"

// newCertificate creates a self-signed certificate.
func newCertificate() (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if key, err = x509.MarshalECPrivateKey(k); err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), // clocks differ
		NotAfter:  time.Now().Add(lifetime),
	}
	cert, err = x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k)
	return cert, key, err
}

// config returns the TLS configuration of either end: TLS 1.3 with certificates on both sides.
func (c Credentials) config() (*tls.Config, error) {
	peer, err := x509.ParseCertificate(c.Peer)
	key, failed := x509.ParseECPrivateKey(c.Key)
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("agent: the certificate of the other end and our key: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(peer)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: serverName,
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.Cert}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

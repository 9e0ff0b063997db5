package deluge

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Kinds of messages, and limits of what is accepted: the largest answer that we
// ask for is an error with its traceback, some kilobytes.
const (
	rpcVersion  = 1
	rpcResponse = 1
	rpcError    = 2
	rpcEvent    = 3

	headSize    = 5
	maxFrame    = 4 << 20
	maxInflated = 16 << 20
)

// client speaks to one daemon over one connection, made when it is needed.
type client struct {
	dial     func(ctx context.Context) (net.Conn, error)
	tls      *tls.Config
	user     string
	password string

	turn chan struct{} // holds one token: who has it uses what follows
	conn net.Conn
	id   int64
}

func newClient(dial func(context.Context) (net.Conn, error), c *tls.Config, user, password string) *client {
	k := &client{dial: dial, tls: c, user: user, password: password, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// raised is an exception of the daemon's.
type raised struct {
	class, message string
}

func (r *raised) Error() string { return r.class + ": " + r.message }

// call asks the daemon. After an error that is not the daemon's own answer the
// connection is made anew by the next call.
func (k *client) call(ctx context.Context, method string, args ...any) (any, error) {
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	defer func() { k.turn <- struct{}{} }()
	v, err := k.calling(ctx, method, args)
	var r *raised
	if err != nil && !errors.As(err, &r) {
		k.hangUp()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return v, nil
}

func (k *client) calling(ctx context.Context, method string, args []any) (any, error) {
	if k.conn == nil {
		if err := k.login(ctx); err != nil {
			return nil, err
		}
	}
	return k.exchange(ctx, method, args, nil)
}

// login makes the connection. The kwarg client_version is not optional: without
// it Deluge calls the client incompatible.
func (k *client) login(ctx context.Context) error {
	conn, err := k.dial(ctx)
	if err != nil {
		return err
	}
	t := tls.Client(conn, k.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		return fmt.Errorf("TLS: %w", err)
	}
	k.conn = t
	level, err := k.exchange(ctx, "daemon.login", []any{k.user, k.password}, map[string]any{"client_version": "2.2.0"})
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if n, ok := level.(int64); !ok || n <= 0 {
		return fmt.Errorf("login: the level of access is %v", level)
	}
	return nil
}

func (k *client) exchange(ctx context.Context, method string, args []any, kwargs map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn := k.conn
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	k.id++
	if args == nil {
		args = []any{}
	}
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	frame, err := pack([]any{[]any{k.id, method, args, kwargs}})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	for {
		m, err := unpack(conn)
		if err != nil {
			return nil, err
		}
		v, mine, err := answer(m, k.id)
		if mine || err != nil {
			return v, err
		}
	}
}

// hangUp drops the connection, at once: a frozen daemon reads no goodbye.
func (k *client) hangUp() {
	if k.conn == nil {
		return
	}
	k.conn.SetDeadline(time.Unix(1, 0))
	k.conn.Close()
	k.conn = nil
}

// Close drops the connection; a later call makes a new one. It waits for a call
// that is on its way.
func (k *client) Close() {
	<-k.turn
	k.hangUp()
	k.turn <- struct{}{}
}

// pack makes a frame: version, length, deflated rencode.
func pack(v any) ([]byte, error) {
	body, err := encode(nil, v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(make([]byte, headSize))
	z := zlib.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	frame := b.Bytes()
	frame[0] = rpcVersion
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-headSize))
	return frame, nil
}

// unpack reads a frame.
func unpack(r io.Reader) (any, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("the daemon hung up: %w", err)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0] != rpcVersion || n > maxFrame {
		return nil, fmt.Errorf("a frame of version %d with %d bytes: %w", head[0], n, errEncoding)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("the daemon hung up in an answer: %w", err)
	}
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("inflate: %w: %w", err, errEncoding)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxInflated+1))
	if err != nil {
		return nil, fmt.Errorf("inflate: %w: %w", err, errEncoding)
	}
	if len(plain) > maxInflated {
		return nil, fmt.Errorf("a frame of %d bytes inflates to more than %d: %w", n, maxInflated, errEncoding)
	}
	return decode(plain)
}

// answer is what a message says to call id: (RESPONSE, id, value), or (ERROR, id,
// class, args, kwargs, traceback). Others are events and answers that nobody
// waits for any more.
func answer(m any, id int64) (v any, mine bool, err error) {
	l, ok := m.([]any)
	if !ok || len(l) < 2 {
		return nil, false, fmt.Errorf("a message that is no answer (%T): %w", m, errEncoding)
	}
	kind, isInt := l[0].(int64)
	if !isInt {
		return nil, false, fmt.Errorf("a message of kind %v: %w", l[0], errEncoding)
	}
	if kind == rpcEvent || l[1] != id {
		return nil, false, nil
	}
	switch {
	case kind == rpcResponse && len(l) == 3:
		return l[2], true, nil
	case kind == rpcError && len(l) == 6:
		return nil, true, exception(l)
	}
	return nil, false, fmt.Errorf("a message of kind %d with %d parts: %w", kind, len(l), errEncoding)
}

// exception is what went wrong in the daemon. What Deluge has no class for comes
// as WrappedException(message, class, traceback).
func exception(l []any) error {
	class, _ := l[2].(string)
	args, _ := l[3].([]any)
	var said []string
	for _, a := range args {
		if s, ok := a.(string); ok {
			said = append(said, s)
		}
	}
	if class == "WrappedException" && len(said) >= 2 {
		class, said = said[1], said[:1]
	}
	text := strings.Join(said, "; ")
	if len(text) > 600 {
		text = text[:600] + "…"
	}
	return &raised{class: class, message: text}
}

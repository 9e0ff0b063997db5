package sshd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// limit is how long a login may take when the caller gives it longer.
const limit = time.Minute

// Login is a server and how to get in.
type Login struct {
	Address string // host:port
	User    string
	Auth    []ssh.AuthMethod
	HostKey ssh.HostKeyCallback
}

// Session is an SSH connection with one SFTP session on it.
type Session struct {
	*sftp.Client
	conn    ssh.Conn
	gone    chan struct{} // closed with the connection
	aborted atomic.Bool
}

// Open logs in. Its error wraps ErrAuth when the server does not let us in, and
// the context's when that ended first.
func (l Login) Open(ctx context.Context, dial web.Dial, opt ...sftp.ClientOption) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tcp, err := dial(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	// The library knows no contexts: what waits on the connection ends with it.
	stop := context.AfterFunc(ctx, func() { tcp.Close() })
	defer stop()
	s, err := l.open(tcp, opt)
	if err == nil {
		return s, nil
	}
	tcp.Close()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("log in at %s: %w", l.Address, context.Cause(ctx))
	}
	return nil, fmt.Errorf("log in as %s at %s: %w", l.User, l.Address, err)
}

func (l Login) open(tcp net.Conn, opt []sftp.ClientOption) (*Session, error) {
	conf := &ssh.ClientConfig{User: l.User, Auth: l.Auth, HostKeyCallback: l.HostKey,
		HostKeyAlgorithms: l.algorithms(tcp)}
	conn, channels, requests, err := ssh.NewClientConn(tcp, l.Address, conf)
	if err != nil {
		return nil, explain(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	files, err := sftp.NewClient(client, opt...)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open an SFTP session: %w", err)
	}
	s := &Session{Client: files, conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		_ = conn.Wait()
	}()
	return s, nil
}

// explain makes of the library's words the errors that callers tell apart.
func explain(err error) error {
	var key *knownhosts.KeyError
	switch {
	case errors.As(err, &key) && len(key.Want) == 0:
		return fmt.Errorf("the server's host key is not known: %w; add it to the file of option \"known_hosts\"", err)
	case errors.As(err, &key):
		return fmt.Errorf("the server's host key is not the one in %s line %d: %w; this may be another server",
			key.Want[0].Filename, key.Want[0].Line, err)
	case strings.Contains(err.Error(), "unable to authenticate"): // it has no type
		return fmt.Errorf("%w: %w", system.ErrAuth, err)
	}
	return err
}

// algorithms are those of the host keys that we know, or nil. Else the library
// asks for the server's key of the type that it likes best, and that one may
// not be the one we know.
func (l Login) algorithms(tcp net.Conn) []string {
	var key *knownhosts.KeyError
	if !errors.As(l.HostKey(l.Address, tcp.RemoteAddr(), noKey{}), &key) {
		return nil
	}
	var out []string
	for _, k := range key.Want {
		switch t := k.Key.Type(); t {
		case ssh.KeyAlgoRSA:
			out = append(out, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512)
		default:
			out = append(out, t)
		}
	}
	return out
}

// noKey is a key that no server has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// Alive says whether the connection is open, as far as is known.
func (s *Session) Alive() bool {
	select {
	case <-s.gone:
		return false
	default:
		return !s.aborted.Load()
	}
}

// Abort closes the connection at once; what waits for an answer ends.
func (s *Session) Abort() {
	s.aborted.Store(true)
	s.conn.Close()
}

// Server is how the server calls itself.
func (s *Session) Server() string {
	return strings.TrimPrefix(string(s.conn.ServerVersion()), "SSH-2.0-")
}

// Cipher is the one that was agreed upon for sending.
func (s *Session) Cipher() string {
	if c, ok := s.conn.(ssh.AlgorithmsConnMetadata); ok {
		return c.Algorithms().Write.Cipher
	}
	return "unknown"
}

package sshd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// limit is the time limit of a login, unless the caller's context ends before.
const limit = time.Minute

// Login is a server with credentials.
type Login struct {
	Address string // host:port
	User    string
	Auth    []ssh.AuthMethod
	HostKey ssh.HostKeyCallback
}

// Session is an SSH connection with one SFTP session on it.
type Session struct {
	*sftp.Client
	Life context.Context // ends with the connection
	conn ssh.Conn
	end  context.CancelFunc
}

// Open logs in. Its error wraps ErrAuth if the server rejects the login, or the context's error if
// the context ended first.
func (l Login) Open(ctx context.Context, dial web.Dial, opt ...sftp.ClientOption) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tcp, err := dial(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	// The library does not support contexts: closing the connection ends its waits.
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
	s := &Session{Client: files, conn: conn}
	s.Life, s.end = context.WithCancel(context.Background())
	go func() {
		defer s.end()
		_ = conn.Wait()
	}()
	return s, nil
}

// explain maps the library's errors to the errors that callers distinguish.
func explain(err error) error {
	var key *knownhosts.KeyError
	switch {
	case errors.As(err, &key) && len(key.Want) == 0:
		return fmt.Errorf("the server's host key is not known: %w; add it to the file of option \"known_hosts\"", err)
	case errors.As(err, &key):
		return fmt.Errorf("the server's host key is not the one in %s line %d: %w; this may be another server",
			key.Want[0].Filename, key.Want[0].Line, err)
	case strings.Contains(err.Error(), "unable to authenticate"): // the error has no type
		return fmt.Errorf("%w: %w", system.ErrAuth, err)
	}
	return err
}

// algorithms returns the algorithms of the known host keys, or nil. Otherwise the library would
// request the server's key of its preferred type, which may not be a known one.
func (l Login) algorithms(tcp net.Conn) []string {
	other, _ := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize)) // a key that no server has
	var key *knownhosts.KeyError
	if !errors.As(l.HostKey(l.Address, tcp.RemoteAddr(), other), &key) {
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

// Alive reports whether the connection is open, as far as known.
func (s *Session) Alive() bool { return s.Life.Err() == nil }

// Abort closes the connection at once; pending requests fail.
func (s *Session) Abort() {
	s.end()
	s.conn.Close()
}

// Server returns the server's version string.
func (s *Session) Server() string {
	return strings.TrimPrefix(string(s.conn.ServerVersion()), "SSH-2.0-")
}

// Cipher returns the negotiated cipher for sending.
func (s *Session) Cipher() string {
	return s.conn.(ssh.AlgorithmsConnMetadata).Algorithms().Write.Cipher // every connection of the library has it
}

// Health implements system.Healther: the client logs in over a new connection and reads the probe.
func (s *Server) Health(ctx context.Context) error {
	if err := s.Alive(); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("%s: health probe: %w", s.System, err)
	}
	return nil
}

func (s *Server) probe(ctx context.Context) error {
	session, err := s.Login.Open(ctx, s.dial)
	if err != nil {
		return err
	}
	defer session.Abort()
	defer context.AfterFunc(ctx, session.Abort)()
	f, err := session.Open(path.Join(s.Path, disk.Probe))
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if _, err := f.WriteTo(&got); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("got %d other bytes than stored", got.Len())
	}
	return nil
}

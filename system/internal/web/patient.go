package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"
)

// Patient returns a client for uploads that are answered late or early. It waits for the answer's
// header until ctx ends, because some servers answer only after storing. If the server stops
// reading the body, it reads the answer that was already sent, with the reason. It trusts the
// system's root certificates.
func Patient(name string, dialHost Dial) *Client {
	tr := transport(dialHost, &tls.Config{})
	tr.ResponseHeaderTimeout = 0
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return answerFirst{conn}, nil
	}
	return newClient(name, tr)
}

// answerTime is how long reading an answer that has already arrived may take.
const answerTime = 250 * time.Millisecond

// answerFirst delays the error when the peer stops reading, because net/http drops the answer if it
// sees the failed write first.
type answerFirst struct{ net.Conn }

func (c answerFirst) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		time.Sleep(answerTime)
	}
	return n, err
}

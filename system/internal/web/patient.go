package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"
)

// Patient is a client for uploads that are answered late or early: it waits for an
// answer's head as long as ctx allows (some servers store first and answer
// then), and it reads an answer that came, with the reason, while the server
// stopped taking the body. It trusts the roots of the system.
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

// answerTime is how long an answer that is there already may take to be read.
const answerTime = 250 * time.Millisecond

// answerFirst reports a moment late that the peer takes no more: net/http drops
// the answer when it sees the failed write first.
type answerFirst struct{ net.Conn }

func (c answerFirst) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		time.Sleep(answerTime)
	}
	return n, err
}

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	wire "github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/remote"
)

// Channels of a command's connection: the first byte of each message.
const (
	inputChannel  = 0
	outputChannel = 1
	errorChannel  = 2
	statusChannel = 3
	endOfChannel  = 255 // the next byte says of which
)

const (
	// protocol knows the end of an input: API servers have it since Kubernetes 1.30.
	protocol = "v5.channel.k8s.io"
	// killed is the least status of a program that ended by a signal: with its container, most often.
	killed = 128
	// A connection that does not answer a ping for so long is dead.
	pingEvery, silence = 5 * time.Second, time.Minute
)

// Exec implements remote.Place.
func (c *Cluster) Exec(
	ctx context.Context, on remote.Machine, args []string, in io.Reader, out, errOut io.Writer,
) error {
	c.mu.Lock()
	where := c.pods[on]
	c.mu.Unlock()
	q := url.Values{
		"container": {containerName}, "command": append([]string{program}, args...),
		"stdin": {strconv.FormatBool(in != nil)}, "stdout": {"true"}, "stderr": {"true"},
	}
	end, err := c.exec(ctx, at(coreAPI, where.namespace, "pods", where.name, "exec")+"?"+q.Encode(), in, out, errOut)
	if err == nil && end.Status != "Success" {
		err = end
		for _, cause := range end.Details.Causes {
			code, wrong := strconv.Atoi(cause.Message)
			if cause.Reason == "ExitCode" && wrong == nil && code < killed {
				return &remote.ExitError{On: on.Name, Status: code}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("kubernetes: run %s on %s: %w", program, on.Name, err)
	}
	return nil
}

// exec carries what a command reads and writes, and returns how it ended.
func (c *Cluster) exec(ctx context.Context, path string, in io.Reader, out, errOut io.Writer) (*status, error) {
	transport, holder, err := websocket.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, r, protocol)
	if err != nil {
		return nil, explainUpgrade(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	over := make(chan struct{})
	defer close(over)
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(silence)) })
	go ping(conn, over)
	if in != nil {
		go feed(conn, in)
	}
	var end *status
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		_, b, err := conn.ReadMessage()
		switch {
		case wire.IsCloseError(err, wire.CloseNormalClosure) && end != nil: // only now: output may follow the status
			return end, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case len(b) == 0:
			continue
		}
		switch channel, b := b[0], b[1:]; channel {
		case outputChannel:
			_, err = out.Write(b)
		case errorChannel:
			_, err = errOut.Write(b)
		case statusChannel:
			if len(b) > 0 {
				end = &status{}
				err = json.Unmarshal(b, end)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// explainUpgrade adds a hint to a connection that did not become a WebSocket, unless the API server says why.
func explainUpgrade(err error) error {
	var failed *httpstream.UpgradeFailureError
	var said *apierrors.StatusError
	if !errors.As(err, &failed) || errors.As(failed.Cause, &said) {
		return err
	}
	return ui.WithHint(err, "pods are reached by WebSocket: the API server must be of Kubernetes 1.30 or newer, "+
		"and proxies on the way to it must let WebSockets pass")
}

// ping keeps a connection alive on which a command says nothing, and finds out when it is dead.
func ping(conn *wire.Conn, over <-chan struct{}) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			_ = conn.WriteControl(wire.PingMessage, nil, time.Now().Add(pingEvery)) // the reader finds out
		}
	}
}

// feed sends a command its input, and the end of that.
func feed(conn *wire.Conn, in io.Reader) {
	b := make([]byte, 32<<10)
	for {
		b[0] = inputChannel
		n, err := in.Read(b[1:])
		if n > 0 && conn.WriteMessage(wire.BinaryMessage, b[:1+n]) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			_ = conn.WriteMessage(wire.BinaryMessage, []byte{endOfChannel, inputChannel})
		} else if err != nil {
			_ = conn.Close() // half an input is not to be taken for all of it
		}
		if err != nil {
			return
		}
	}
}

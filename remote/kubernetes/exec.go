package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/plimsoll-project/plimsoll/remote"
)

// Exec implements remote.Place: by a WebSocket or, where a proxy or an old API server does not let
// one through, by SPDY.
func (c *Cluster) Exec(
	ctx context.Context, on remote.Machine, args []string, in io.Reader, out, errOut io.Writer,
) error {
	c.mu.Lock()
	at := c.pods[on]
	c.mu.Unlock()
	r := c.core.Post().Namespace(at.namespace).Resource("pods").Name(at.name).SubResource("exec").
		Param("container", container).Param("command", program).Param("stdin", strconv.FormatBool(in != nil)).
		Param("stdout", strconv.FormatBool(out != nil)).Param("stderr", strconv.FormatBool(errOut != nil))
	for _, a := range args {
		r.Param("command", a)
	}
	socket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", r.URL().String())
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", r.URL())
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err == nil {
		err = either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
	}
	var ended exec.CodeExitError
	if errors.As(err, &ended) && ended.Code < killed {
		return &remote.ExitError{On: on.Name, Status: ended.Code}
	}
	if err != nil {
		return fmt.Errorf("kubernetes: run %s on %s: %w", program, on.Name, err)
	}
	return nil
}

// killed is the least status of a program that ended by a signal: with its container, most often.
const killed = 128

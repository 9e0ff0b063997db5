package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/remote"
)

// Exec implements remote.Place.
func (c *Cluster) Exec(ctx context.Context, on remote.Machine, args []string, in io.Reader, out io.Writer) error {
	var said strings.Builder
	q := url.Values{
		"container": {containerName}, "command": append([]string{program}, args...),
		"stdin": {strconv.FormatBool(in != nil)}, "stdout": {"true"}, "stderr": {"true"},
	}
	server := c.api.Get().RequestURI(on.ID + "/exec?" + q.Encode()).URL()
	command, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, server.String())
	if err == nil {
		err = command.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &said})
	}
	if err = explainUpgrade(err); err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if err != nil {
		return fmt.Errorf("kubernetes: run %s on %s: %w", program, on.Name, err)
	}
	return nil
}

// explainUpgrade adds a hint to the error of a failed WebSocket upgrade, unless the API server gave
// a reason.
func explainUpgrade(err error) error {
	var failed *httpstream.UpgradeFailureError
	var said *apierrors.StatusError
	if !errors.As(err, &failed) || errors.As(failed.Cause, &said) {
		return err
	}
	return ui.WithHint(err, "pods are reached by WebSocket: the API server must be of Kubernetes 1.30 or newer, "+
		"and proxies on the way to it must let WebSockets pass")
}

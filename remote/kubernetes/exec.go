package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/remotecommand"

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
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if err != nil {
		return fmt.Errorf("kubernetes: run %s on %s: %w", program, on.Name, err)
	}
	return nil
}

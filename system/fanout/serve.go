package fanout

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// contentPath is where other nodes get what this one published.
const contentPath = "/content/"

// Serve implements system.Embedded: the node of `plimsoll node fanout`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node fanout", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	listen := flags.String("listen", "", "`address` of the content's server")
	dir := flags.String("dir", "", "`directory` of contents and tasks")
	from := flags.String("from", "one", "download from one seeder at a time, or from all")
	limit := flags.Int64("upload_limit", 0, "`bytes` a second; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || *listen == "" || *dir == "" || flags.NArg() > 0 {
		return errors.New("fanout: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides flags")
	}
	var listeners [2]net.Listener
	for i, address := range []string{*control, *listen} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("fanout: %w", err)
		}
		defer l.Close()
		listeners[i] = l
	}
	p := &peer{dir: *dir, self: *listen, all: *from == "all", limit: limiter(*limit), contents: map[string]*content{}}
	defer p.close()
	if err := p.resume(); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	fmt.Fprintf(stdout, "fanout: contents at http://%s%s, control at http://%s/\n", *listen, contentPath, *control)
	ended := make(chan error, len(listeners))
	for i, h := range []http.Handler{member.Handler(p), p.contentServer()} {
		srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		defer srv.Close()
		go func() { ended <- srv.Serve(listeners[i]) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("fanout: %w", err)
	}
}

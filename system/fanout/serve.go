package fanout

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	limit := flags.Int64("upload_limit", 0, "`bytes` a second; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || *listen == "" || *dir == "" || flags.NArg() > 0 {
		return errors.New("fanout: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides flags")
	}
	p := &peer{dir: *dir, kept: member.Tasks{Dir: filepath.Join(*dir, "tasks")}, self: *listen, limit: limiter(*limit), contents: map[string]*content{}}
	defer p.close()
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	// What an earlier process left.
	if err := member.Resume(p.kept, p.take); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	return member.Serve(ctx, name, stdout,
		member.Server{What: "contents", Address: *listen, Handler: p.contentServer()},
		member.Server{What: "control", Address: *control, Handler: member.Handler(p)})
}

package bittorrent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// Serve implements system.Embedded: the node of `plimsoll node bittorrent`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node bittorrent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	var c config
	flags.StringVar(&c.listen, "listen", "", "`address` for peers")
	flags.StringVar(&c.dir, "dir", "", "`directory` of contents and tasks")
	flags.StringVar(&c.transport, "transport", "tcp", "tcp, utp or both")
	flags.Int64Var(&c.piece, "piece", 256<<10, "`bytes` of a piece")
	flags.IntVar(&c.connections, "max_connections", 50, "connections of a torrent")
	flags.BoolVar(&c.encryption, "encryption", false, "encrypted peers only")
	flags.Int64Var(&c.upload, "upload_limit", 0, "`bytes` a second; 0: no limit")
	flags.Int64Var(&c.download, "download_limit", 0, "`bytes` a second; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || c.listen == "" || c.dir == "" || flags.NArg() > 0 {
		return errors.New("bittorrent: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides flags")
	}
	c.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p, err := openPeer(ctx, c)
	if err != nil {
		return fmt.Errorf("bittorrent: %w", err)
	}
	defer p.close()
	return member.Serve(ctx, name, stdout, member.Server{What: "peers at " + c.listen + ", control", Address: *control, Handler: member.Handler(p)})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

func (p *program) serveCommand() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "serve DIR",
		Short: "serve the page of a run, live while it goes on, and its metrics for Prometheus; or an index of runs",
		Args:  exactly(1, "one run directory, or a directory of them"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.serve(c.Context(), args[0], address)
		},
	}
	c.Flags().StringVar(&address, "listen", "127.0.0.1:7117", "loopback address to listen on")
	return c
}

func (p *program) serve(ctx context.Context, dir, address string) error {
	if err := loopbackOnly(address); err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	handler, where, err := servedHandler(dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return ui.WithHint(fmt.Errorf("serve: %w", err), "choose another port with --listen 127.0.0.1:PORT")
	}
	p.ui.Say("%s   (Ctrl-C ends)", strings.ReplaceAll(where, "ADDRESS", l.Addr().String()))
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		<-ctx.Done()
		done, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if srv.Shutdown(done) != nil {
			srv.Close()
		}
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// servedHandler is what a directory is served as, a run or a directory of runs,
// and the words that say where to find it.
func servedHandler(dir string) (handler http.Handler, where string, err error) {
	if n := runsIn(dir); n > 0 {
		return report.Runs(dir), fmt.Sprintf("index of %d runs: http://ADDRESS/", n), nil
	}
	r, err := openRun(dir)
	if err != nil {
		return nil, "", err
	}
	r.Close()
	return report.Live(dir), "the page: http://ADDRESS/   metrics: http://ADDRESS/metrics", nil
}

// loopbackOnly refuses addresses that others could reach: the page and the
// metrics have no password.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ui.WithHint(fmt.Errorf("--listen %s: %w", address, err), "an address looks like 127.0.0.1:7117")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return ui.WithHint(fmt.Errorf("--listen %s: only loopback addresses are served, the page has no password", address),
		"listen on 127.0.0.1 and forward the port, for instance with ssh -L")
}

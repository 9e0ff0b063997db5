package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

func (p *program) serveCommand() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "serve DIR",
		Short: "serve the page of a run, live while it goes on, and its metrics for Prometheus",
		Args:  exactly(1, "one run directory"),
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
	r, err := openRun(dir)
	if err != nil {
		return err
	}
	r.Close()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return ui.WithHint(fmt.Errorf("serve: %w", err), "choose another port with --listen 127.0.0.1:PORT")
	}
	p.ui.Say("the page: http://%s/   metrics: http://%s/metrics   (Ctrl-C ends)", l.Addr(), l.Addr())
	srv := &http.Server{
		Handler: report.Live(dir), ReadHeaderTimeout: 10 * time.Second,
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

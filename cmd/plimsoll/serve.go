package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

func (p *program) serveCommand() *cobra.Command {
	var address string
	var open bool
	wants := exactly(1, "one run directory, or a directory of them")
	c := verb("serve DIR", wants, func(c *cobra.Command, args []string) error {
		if err := loopbackOnly(address); err != nil {
			return ui.Exit(ui.CodeUsage, err)
		}
		handler := report.Live(args[0])
		where := "the page: http://ADDRESS/TOKEN\nmetrics: http://ADDRESS/metricsTOKEN"
		if n := runsIn(args[0]); n > 0 {
			handler, where = report.Runs(args[0]), fmt.Sprintf("index of %d runs: http://ADDRESS/TOKEN", n)
		} else if r, err := openRun(args[0]); err != nil {
			return err
		} else {
			r.Close()
		}
		_, stop, err := p.listen(c.Context(), handler, address, open, where+"\n(Ctrl-C ends)")
		if err != nil {
			return err
		}
		defer stop()
		<-c.Context().Done()
		return nil
	})
	c.Flags().StringVar(&address, "listen", "127.0.0.1:7117", "loopback address to listen on")
	noTokenFlag(c, &open)
	return c
}

// tokenVariable is the environment variable that may set the token, so that scrapers have a
// fixed one.
const tokenVariable = "PLIMSOLL_TOKEN"

func noTokenFlag(c *cobra.Command, open *bool) {
	c.Flags().BoolVar(open, "no-token", false, "ask for no token: every user of this machine can read what is served")
}

// listen serves handler until stop is called, for clients with a token unless open, and prints
// where, with the actual values for ADDRESS and TOKEN.
func (p *program) listen(
	ctx context.Context, handler http.Handler, address string, open bool, where string,
) (page string, stop func(), err error) {
	query := "" // appended to addresses
	if !open {
		token := cmp.Or(os.Getenv(tokenVariable), rand.Text())
		handler, query = report.WithToken(handler, token), "?token="+url.QueryEscape(token)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, ui.WithHint(fmt.Errorf("listen: %w", err),
			"choose another port with --listen 127.0.0.1:PORT")
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.ui.Say("note: %s is no longer served: %v", l.Addr(), err)
		}
	}()
	p.ui.Say("%s", strings.NewReplacer("ADDRESS", l.Addr().String(), "TOKEN", query).Replace(where))
	return "http://" + l.Addr().String() + "/" + query, func() { srv.Close() }, nil
}

// browse opens a page in the user's browser.
func (p *program) browse(page string) {
	opener := exec.Command("xdg-open", page)
	err := opener.Start()
	if err == nil {
		ended := make(chan error, 1)
		go func() { ended <- opener.Wait() }()
		select {
		case err = <-ended:
		case <-time.After(2 * time.Second): // it is the browser itself
		}
	}
	if err != nil {
		p.ui.Say("note: the page is %s; no browser was opened: %v", page, err)
	}
}

// loopbackOnly refuses addresses that other machines could reach, because the server does not
// encrypt.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ui.WithHint(fmt.Errorf("--listen %s: %w", address, err), "an address looks like 127.0.0.1:7117")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return ui.WithHint(fmt.Errorf("--listen %s: only loopback addresses are served, the page is not encrypted",
		address),
		"listen on 127.0.0.1 and forward the port, for instance with ssh -L")
}

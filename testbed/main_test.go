package testbed

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test binary serves as plimsoll (the watchdog) and as the daemons that
// the tests start; what it is comes as its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == "reaper" {
		exit(ServeReaper(context.Background(), os.Args[3:], os.Stdin))
	}
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		exit(fake(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fake is a daemon for tests.
func fake(what string, args []string) error {
	switch what {
	case "echo": // echo ADDR: a TCP echo server
		l, err := net.Listen("tcp", args[0])
		if err != nil {
			return err
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	case "exit": // exit CODE TEXT
		fmt.Fprintln(os.Stderr, args[1])
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "stubborn": // ignores what can be ignored
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
		fmt.Println("stubborn")
		time.Sleep(time.Hour)
	case "sleep":
		time.Sleep(time.Hour)
	}
	return fmt.Errorf("fake %s is unknown", what)
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// newTestbed makes a testbed that the test's end closes.
func newTestbed(t *testing.T, opt Options) *Testbed {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	opt.Log = func(s string) { t.Log(s) }
	tb, err := New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return tb
}

// needNamespaces skips where the kernel gives us no network namespaces.
func needNamespaces(t *testing.T) {
	t.Helper()
	ns, err := newNamespace()
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	_ = ns.Close()
}

func addHost(t *testing.T, tb *Testbed, name string) *host {
	t.Helper()
	h, err := tb.AddHost(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h.(*host)
}

package testbed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary serves as plimsoll (the watchdog) and as the daemons that
// the tests start; what it is comes as its arguments.
func TestMain(m *testing.M) {
	if handled, err := ServeNode(context.Background(), os.Args[1:]); handled {
		exit(err)
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
		return echo(args[0])
	case "exit": // exit CODE TEXT
		fmt.Fprintln(os.Stderr, args[1])
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "stubborn": // ignores what can be ignored, and has a child in a session of its own that does too
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
		if len(args) == 0 {
			child := exec.Command(os.Args[0], "fake", "stubborn", "child")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			child.Stdout = os.Stdout
			if err := child.Start(); err != nil {
				return err
			}
		}
		fmt.Println("stubborn")
	case "orphan": // leaves a child behind and ends
		child := exec.Command(os.Args[0], "fake", "stubborn", "child")
		if err := child.Start(); err != nil {
			return err
		}
		return nil
	case "burn": // burn CPU THREADS BYTES: keeps THREADS threads busy in a child, holds BYTES of memory
		return burn(args)
	case "swell": // swell BYTES: takes and gives back BYTES for each line of its input
		return swell(args)
	case "busy": // busy LIMIT: what Busy says of the machine
		limit, err := strconv.ParseFloat(args[0], 64)
		fmt.Println(Busy(context.Background(), limit))
		return err
	case "sleep":
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
		return nil
	case "stdin": // ends when its input does
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "parent": // parent DIR: a plimsoll with hosts and daemons, to be killed
		return parent(args[0])
	case "enter": // enter DIR: what a run does as an ordinary user
		return enterAndRun(args)
	default:
		return fmt.Errorf("fake %s is unknown", what)
	}
	time.Sleep(time.Hour)
	return nil
}

func echo(addr string) error {
	l, err := net.Listen("tcp", addr)
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
}

// swell touches so many bytes and gives them back for each line of its input.
func swell(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		if err := unix.Munmap(b); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return in.Err()
}

// burn uses CPU until its input ends, and says how much on its way out.
func burn(args []string) error {
	threads, _ := strconv.Atoi(args[0])
	bytes, _ := strconv.Atoi(args[1])
	ballast := make([]byte, bytes)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	fmt.Fprintln(os.Stderr, "holding")
	if len(args) > 2 { // as a child
		child := exec.Command(os.Args[0], "fake", "burn", args[0], args[1])
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		err := child.Run()
		runtime.KeepAlive(ballast)
		return err
	}
	for range threads {
		go func() {
			for n := 0; ; n++ {
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	fmt.Printf("%.3f\n", float64(u.Utime.Nano()+u.Stime.Nano())/1e9)
	runtime.KeepAlive(ballast)
	return nil
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
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
	must(t, err)
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
	must(t, err)
	return h.(*host)
}

// must ends a test at an error that it is not about.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

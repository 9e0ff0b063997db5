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
		fake(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func exit(err error) {
	need(err)
	os.Exit(0)
}

// need ends a fake at an error.
func need(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fake is a daemon for tests.
func fake(what string, args []string) {
	switch what {
	case "echo": // echo ADDR: a TCP echo server
		echo(args[0])
	case "listen": // listen ADDR: accepts connections, as the kernel does for it, and keeps a thread busy
		l, err := net.Listen("tcp", args[0])
		need(err)
		defer l.Close() // else it may be collected
		spin()
	case "stubborn": // ignores what can be ignored, and has a child in a session of its own that does too
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
		if len(args) == 0 {
			child := exec.Command(os.Args[0], "fake", "stubborn", "child")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			child.Stdout = os.Stdout
			need(child.Start())
		}
		fmt.Println("stubborn")
		time.Sleep(time.Hour)
	case "orphan": // leaves a child behind and ends
		need(exec.Command(os.Args[0], "fake", "stubborn", "child").Start())
	case "burn": // burn BYTES [child]: keeps a thread busy and holds BYTES of memory, itself or in a child
		burn(args)
	case "swell": // swell BYTES: takes and gives back BYTES for each line of its input
		swell(args)
	case "busy": // busy LIMIT: what Busy says of the machine
		limit, err := strconv.ParseFloat(args[0], 64)
		need(err)
		fmt.Println(Busy(context.Background(), limit))
	case "sleep":
		time.Sleep(time.Hour)
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "parent": // parent DIR: a plimsoll with hosts and daemons, to be killed
		parent(args[0])
	case "enter": // enter DIR: what a run does as an ordinary user
		enterAndRun(args)
	default:
		need(fmt.Errorf("fake %s is unknown", what))
	}
}

func echo(addr string) {
	l, err := net.Listen("tcp", addr)
	need(err)
	for {
		c, err := l.Accept()
		need(err)
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

// swell touches so many bytes and gives them back for each line of its input.
func swell(args []string) {
	n, err := strconv.Atoi(args[0])
	need(err)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		need(err)
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		need(unix.Munmap(b))
		fmt.Println("done")
	}
}

// burn uses CPU until its input ends, and says how much on its way out.
func burn(args []string) {
	bytes, _ := strconv.Atoi(args[0])
	ballast := make([]byte, bytes)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	fmt.Fprintln(os.Stderr, "holding")
	if len(args) > 1 { // in a child
		child := exec.Command(os.Args[0], "fake", "burn", args[0])
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		need(child.Run())
		runtime.KeepAlive(ballast)
		return
	}
	go spin()
	_, _ = io.Copy(io.Discard, os.Stdin)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	fmt.Printf("%.3f\n", float64(u.Utime.Nano()+u.Stime.Nano())/1e9)
	runtime.KeepAlive(ballast)
}

// spin keeps a thread busy for good.
func spin() {
	for n := 0; ; n++ {
	}
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
	t.Cleanup(func() { must(t, tb.Close(context.Background())) })
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

// twoHosts makes a testbed with hosts a and b.
func twoHosts(t *testing.T, opt Options) (tb *Testbed, a, b *host) {
	t.Helper()
	tb = newTestbed(t, opt)
	return tb, addHost(t, tb, "a"), addHost(t, tb, "b")
}

func start(t *testing.T, h *host, c Command) *process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	must(t, err)
	return p.(*process)
}

// must ends a test at an error that it is not about.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that there is an error, and that it has a word.
func wantError(t testing.TB, err error, word string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("error %v, want %q", err, word)
	}
}

package httpload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/timing"
)

const resolveTimeout = 10 * time.Second

// raw is the common state of the event loops of a trial over plain HTTP/1.1.
type raw struct {
	*trial
	ctx     context.Context
	objects []rawObject
	tick    time.Duration // interval between checks of the limits: a twentieth of the shortest limit
	open    bool          // open loop
	fresh   bool          // a connection for every request
	discard bool          // drop mode
	window  int           // initial receive window; 0: leave it to the kernel
	lowat   int           // largest number of bytes that may be ready before we are woken
	loops   []*loop

	barrier sync.WaitGroup
	release chan struct{}
	end     int64 // ns since the epoch; set before release is closed, like started
}

type rawObject struct {
	target   netip.AddrPort
	size     int64
	uri      string
	lines    []byte
	expected *expected
}

func (o *rawObject) appendRequest(b []byte, r *request) []byte {
	b = append(b, r.method()...)
	b = append(b, ' ')
	b = append(b, cmp.Or(r.uri, o.uri)...)
	b = append(b, o.lines...)
	if !r.whole {
		b = append(b, "Range: bytes="...)
		b = appendSpan(b, r)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// runRaw executes the trial and sets the part of the result that the loops know.
func runRaw(ctx context.Context, t *trial, res *Result) error {
	s := t.spec
	r := &raw{
		trial: t, ctx: ctx, release: make(chan struct{}),
		open: s.Arrivals != nil, fresh: s.Connections == connFresh, discard: s.Receive == receiveDrop,
		tick: min(max(min(s.Stall, cmp.Or(s.Deadline, s.Stall))/20, minTick), maxTick),
	}
	if err := r.resolve(); err != nil {
		return err
	}
	n := s.connections()
	r.receiveWindow(n)
	threads := min(runtime.NumCPU(), maxThreads, n)
	for i := range threads {
		l, err := newLoop(r)
		if err != nil {
			return err
		}
		l.id = i
		defer l.close()
		r.loops = append(r.loops, l)
	}
	for i := range n {
		l := r.loops[i%threads]
		l.conns = append(l.conns, &conn{fd: -1, index: int32(len(l.conns))})
	}

	r.barrier.Add(threads)
	var loops sync.WaitGroup
	for _, l := range r.loops {
		loops.Go(l.serve)
	}
	r.barrier.Wait()
	t.start()
	r.end = math.MaxInt64
	if s.Duration > 0 {
		r.end = r.started + int64(s.Duration)
	}
	t.cpuBegan = timing.SelfCPU()
	close(r.release)
	loops.Wait()
	t.cpuEnded = timing.SelfCPU()

	res.Started, res.Ended = r.started, r.started
	for _, l := range r.loops {
		if l.cut {
			res.Ended = max(res.Ended, l.ended)
		} else {
			res.Ended = max(res.Ended, l.tally.last) // not including its final wait
		}
	}
	res.Ended = max(res.Ended, r.started+r.schedule.arrivalsEnd())
	t.notStarted(r.loops[0].tally, res.Ended)
	sum := newTally(t.rec, t.link)
	for _, l := range r.loops {
		l.tally.flush(res.Ended)
		l.tally.addTo(sum)
		if took := float64(l.ended - l.began); took > 0 {
			t.busy = max(t.busy, 1-float64(l.idle)/took)
			t.delay = max(t.delay, float64(l.delay)/took)
		}
	}
	res.Receive, res.Protocol = "raw http/1.1", "http/1.1"
	t.sum = sum
	return nil
}

// resolve looks up the servers once, before the clock starts.
func (r *raw) resolve() error {
	known := map[string]netip.AddrPort{}
	for i := range r.spec.Objects {
		o := &r.spec.Objects[i]
		u, _ := url.Parse(o.URL) // see prepare
		if _, ok := known[u.Host]; !ok {
			var err error
			if known[u.Host], err = lookup(r.ctx, u); err != nil {
				return err
			}
		}
		r.objects = append(r.objects, rawObject{target: known[u.Host], size: o.Size,
			uri: u.RequestURI(), lines: o.requestLines(u, r.fresh), expected: &r.expected[i]})
	}
	return nil
}

func lookup(ctx context.Context, u *url.URL) (netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	var addrs []netip.Addr
	if err == nil {
		addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("httpload: look up the server of %s: %w", u.Redacted(), err)
	}
	return netip.AddrPortFrom(addrs[0].Unmap(), uint16(port)), nil
}

const (
	// minLong is the length of bodies from which setting the window, with two more system
	// calls per connection, pays off.
	minLong   = 1 << 20
	maxWindow = 8 << 20
	allWindow = 1 << 30 // of all connections together
	// Dropping costs only wake-ups; verifying should work on data in the CPU cache.
	dropLowat   = 2 << 20
	verifyLowat = 256 << 10
)

// receiveWindow sizes the sockets' buffers for long bodies. Raising SO_RCVLOWAT once makes
// the kernel grow the buffer to twice that size, up to half of tcp_rmem's maximum, and unlike
// SO_RCVBUF it keeps autotuning on. With a wide initial window, our receive calls do not have
// to do the work of sending, which on loopback is most of their cost; the sender's congestion
// window starts far below it in any case.
func (r *raw) receiveWindow(n int) {
	length := r.spec.Range
	for i := range r.spec.Objects {
		if r.spec.Range == 0 {
			length = max(length, r.spec.Objects[i].Size)
		}
	}
	if length >= minLong {
		r.window = min(maxWindow, allWindow/n)
	}
	r.lowat = verifyLowat
	if r.discard {
		r.lowat = dropLowat
	}
}

// The calls below are short and never block, so they bypass Go's scheduler (RawSyscall),
// which is a considerable part of the cost of a small answer.

// recv reads into b; n is 0 at the end of the stream.
func recv(fd int, b []byte) (n int, errno unix.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, unsafe.Pointer(unsafe.SliceData(b)), int64(len(b)), unix.MSG_DONTWAIT)
}

// discard lets the kernel drop up to n received bytes without copying them (MSG_TRUNC, see
// tcp(7)).
func discard(fd int, n int64) (int, unix.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, nil, min(n, 1<<30), unix.MSG_DONTWAIT|unix.MSG_TRUNC)
}

func send(fd int, b []byte) (n int, errno unix.Errno) {
	return transfer(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), int64(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// transfer is recvfrom or sendto.
func transfer(call uintptr, fd int, p unsafe.Pointer, n int64, flags uintptr) (int, unix.Errno) {
	for {
		m, _, e := unix.RawSyscall6(call, uintptr(fd), uintptr(p), uintptr(n), flags, 0, 0)
		if e != unix.EINTR {
			return int(m), e
		}
	}
}

// setLowat sets how many bytes must be ready before epoll reports a socket.
func setLowat(fd, n int) {
	v := int32(n)
	unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, uintptr(unsafe.Pointer(&v)),
		4, 0)
}

func sockopt(fd, opt int) int {
	v, size := int32(0), uint32(4)
	if _, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, uintptr(opt),
		uintptr(unsafe.Pointer(&v)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return 0
	}
	return int(v)
}

// connect starts a connection; errno is EINPROGRESS if it is not established yet.
func connect(to netip.AddrPort) (fd int, errno unix.Errno) {
	family, sa := unix.AF_INET, unix.Sockaddr(nil)
	if to.Addr().Is4() {
		sa = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	} else {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, errnoOf(err)
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return fd, errnoOf(unix.Connect(fd, sa))
}

func errnoOf(err error) unix.Errno {
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return 0
}

// epollWait waits until a socket is ready or the timeout has passed. Before Linux 5.11 the
// kernel supports only milliseconds.
func epollWait(ep int, events []unix.EpollEvent, timeout time.Duration) int {
	ts := unix.NsecToTimespec(int64(max(timeout, 0)))
	n, _, e := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if e == unix.ENOSYS {
		m, err := unix.EpollWait(ep, events, int((timeout+time.Millisecond-1)/time.Millisecond))
		n, e = uintptr(max(m, 0)), errnoOf(err)
	}
	if e != 0 {
		return 0 // EINTR; any other error would be a bug, and the limits still work
	}
	return int(n)
}

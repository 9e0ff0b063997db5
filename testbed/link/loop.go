package link

import (
	"errors"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one thread of the emulator's data path: it reads the TUN devices of its
// hosts, waits for the next departure and writes. Host i belongs to thread i mod n;
// a packet for another's host is handed over when it has left the uplink, so that
// queues and paths need no lock. Go's timers and poller are too coarse for it: it
// sleeps in epoll_pwait2 and reads and writes with raw system calls.
type loop struct {
	net   *network
	all   []*loop // every thread's, by number
	index int     // its own number
	fds   []int   // by host; -1: of another thread
	epoll int
	wake  int // eventfd: there are commands or packets
	start time.Time

	carrier   *carrier // to other machines; nil: there is none
	scheduler string

	mu       sync.Mutex
	commands []func()
	stopped  bool
	done     chan struct{}

	out      [][]event    // for other threads, until flush
	wakesAt  atomic.Int64 // when it goes on by itself; 0 while it is awake
	received atomic.Int64 // packets in the inbox
	inboxMu  sync.Mutex
	inbox    []event
	spare    []event
}

// carrierEvent is the event of datagrams from other machines, in the place of a host's number.
const carrierEvent = -2

// readsPerTurn bounds how long one host may keep the others waiting.
const readsPerTurn = 16

// newLoops makes the threads of an emulator; none runs yet.
func newLoops(o Options) ([]*loop, error) {
	all := make([]*loop, o.Threads)
	buffers, start := &pool{limit: o.Memory}, time.Now()
	for i := range all {
		l := &loop{net: newNetwork(o.Seed, buffers), all: all, index: i, start: start, done: make(chan struct{}),
			out: make([][]event, o.Threads)}
		l.net.clock = l.now
		l.net.deliver = l.write
		if o.Threads > 1 {
			l.net.forward = l.forward
		}
		if err := l.open(); err != nil {
			for _, o := range all[:i] {
				o.close()
			}
			return nil, err
		}
		all[i] = l
	}
	return all, nil
}

func (l *loop) open() (err error) {
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.epoll)
		return err
	}
	if err = l.watch(l.wake, -1); err != nil {
		l.close()
	}
	return err
}

func (l *loop) close() {
	for _, fd := range append(l.fds, l.epoll, l.wake) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (l *loop) watch(fd int, host int32) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: host})
}

// owner is the thread of a host.
func (l *loop) owner(host int32) *loop { return l.all[int(host)%len(l.all)] }

// now is the loop's clock: monotonic nanoseconds.
func (l *loop) now() int64 { return int64(time.Since(l.start)) }

var errLoopStopped = errors.New("link: the emulator has stopped")

// do runs f on the loop's thread and waits for it.
func (l *loop) do(f func()) error {
	ran := make(chan struct{})
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return errLoopStopped
	}
	l.commands = append(l.commands, func() { f(); close(ran) })
	l.mu.Unlock()
	l.rouse()
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errLoopStopped
	}
}

// rouse ends the thread's sleep.
func (l *loop) rouse() {
	one := [8]byte{1}
	unix.Write(l.wake, one[:])
}

// addHost adds a host behind a TUN descriptor, which its thread owns from now on, before
// the threads run.
func addHost(all []*loop, name string, addrs []netip.Addr, fd int) (err error) {
	for _, l := range all {
		host := l.net.add(name, addrs)
		l.fds = append(l.fds, -1)
		if l.owner(host) == l {
			l.fds[host] = fd
			err = l.watch(fd, host)
		}
	}
	return err
}

// addPeers joins the one host, behind a TUN descriptor, to those of a mesh, before the thread
// runs. Hosts have the same numbers on all machines, so that paths lose the same packets.
func (l *loop) addPeers(m *Mesh, tun, socket int) (err error) {
	if l.carrier, err = newCarrier(socket, m, l.net); err != nil {
		return err
	}
	l.net.carry = l.carrier.carry
	for i, p := range m.Peers {
		if i == m.Self {
			err = errors.Join(err, addHost([]*loop{l}, p.Host, p.Addrs, tun))
			continue
		}
		l.net.hosts[l.net.add(p.Host, p.Addrs)].away = true
		l.fds = append(l.fds, -1)
	}
	return errors.Join(err, l.watch(socket, carrierEvent))
}

// forward keeps a packet for another thread's host until flush; false: it is this thread's.
func (l *loop) forward(ev event) bool {
	to := l.owner(ev.dst).index
	if to == l.index {
		return false
	}
	l.out[to] = append(l.out[to], ev)
	return true
}

// flush hands over what forward has kept, and wakes threads that would sleep too long.
func (l *loop) flush() {
	for i, events := range l.out {
		if len(events) == 0 {
			continue
		}
		to := l.all[i]
		first := events[0].at
		for _, ev := range events {
			first = min(first, ev.at)
		}
		to.inboxMu.Lock()
		to.inbox = append(to.inbox, events...)
		to.received.Add(int64(len(events)))
		to.inboxMu.Unlock()
		clear(events)
		l.out[i] = events[:0]
		if wakes := to.wakesAt.Load(); first < wakes && to.wakesAt.CompareAndSwap(wakes, 0) {
			to.rouse()
		}
	}
}

// collect takes over what other threads have handed to this one.
func (l *loop) collect() {
	if l.received.Load() == 0 {
		return
	}
	l.inboxMu.Lock()
	events := l.inbox
	l.inbox = l.spare
	l.received.Store(0)
	l.inboxMu.Unlock()
	for _, ev := range events {
		l.net.pending.push(ev)
	}
	clear(events)
	l.spare = events[:0]
}

// stop ends run.
func (l *loop) stop() {
	l.do(func() {
		l.mu.Lock()
		l.stopped = true
		l.mu.Unlock()
	})
	<-l.done
}

func (l *loop) runCommands() {
	var b [8]byte
	unix.Read(l.wake, b[:])
	l.mu.Lock()
	cs := l.commands
	l.commands = nil
	l.mu.Unlock()
	for _, c := range cs {
		c()
	}
}

// run is the data path; it returns after stop. Its descriptors stay open: other
// threads may still wake it.
func (l *loop) run() {
	runtime.LockOSThread() // for good: the thread's scheduling is not for other goroutines
	defer close(l.done)
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread
	l.scheduler = prioritize()

	scratch := l.net.pool.get(maxPacket)
	events := make([]unix.EpollEvent, 64)
	for !l.stopped {
		l.collect()
		wakesAt := int64(math.MaxInt64)
		if next, any := l.net.advance(l.now()); any {
			wakesAt = next
		}
		for _, ev := range events[:l.sleep(events, wakesAt)] {
			if ev.Fd == carrierEvent {
				l.carrier.receive(l.now)
				continue
			}
			if ev.Fd < 0 {
				l.runCommands()
				continue
			}
			for range readsPerTurn {
				size, e := rawRead(l.fds[ev.Fd], scratch)
				if e == unix.EAGAIN {
					break
				}
				if e != 0 {
					// The device was deleted. Left in, it would be reported for ever.
					unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, l.fds[ev.Fd], nil)
					break
				}
				scratch = l.take(ev.Fd, scratch, size)
			}
			l.flush()
			l.collect()
			l.net.advance(l.now())
		}
	}
}

// sleep waits for packets and commands until wakesAt and returns the number of events.
func (l *loop) sleep(events []unix.EpollEvent, wakesAt int64) int {
	l.wakesAt.Store(wakesAt)
	defer l.wakesAt.Store(0)
	switch {
	case l.received.Load() > 0: // handed over before the others could see that it sleeps
		return epollWait(l.epoll, events, 0)
	case wakesAt == math.MaxInt64:
		return epollWait(l.epoll, events, -1)
	}
	return epollWait(l.epoll, events, max(wakesAt-l.now(), 0))
}

// take hands the size bytes just read into scratch to the network, and returns
// the buffer for the next read.
func (l *loop) take(host int32, scratch []byte, size int) []byte {
	now := l.now()
	var fresh []byte
	if size > bufferSizes[len(bufferSizes)-2] {
		if fresh = l.net.pool.get(maxPacket); fresh != nil {
			l.net.arrive(host, scratch[:size], now) // no copy
			return fresh
		}
	} else if fresh = l.net.pool.get(size); fresh != nil {
		copy(fresh, scratch[:size])
		l.net.arrive(host, fresh, now)
		return scratch
	}
	l.net.refuse(scratch[:size])
	return scratch
}

func (l *loop) write(host int32, p packet) bool {
	fd := l.fds[host]
	for {
		_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p.buf[0])), uintptr(len(p.buf)))
		if e != unix.EINTR {
			return e == 0
		}
	}
}

func (l *loop) stats() (s Stats, err error) {
	err = l.do(func() {
		s = l.net.stats()
		s.Scheduler = l.scheduler
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) == nil {
			s.CPU = time.Duration(ts.Nano())
		}
	})
	return s, err
}

// allStats is what all threads have done together.
func allStats(all []*loop) (Stats, error) {
	sum, err := all[0].stats()
	for _, l := range all[1:] {
		s, e := l.stats()
		err = errors.Join(err, e)
		sum.Merge(s)
	}
	sum.At = time.Duration(all[0].now())
	sum.Held, sum.HeldPeak, sum.HeldLimit = all[0].net.pool.usage()
	return sum, err
}

func epollWait(epoll int, events []unix.EpollEvent, ns int64) int {
	var ts *unix.Timespec
	if ns >= 0 {
		t := unix.NsecToTimespec(ns)
		ts = &t
	}
	n, _, e := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(ts)), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

func rawRead(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

package link

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is the emulator's data path: one operating-system thread that reads the
// hosts' TUN devices, waits for the next departure and writes. One thread, so
// that nothing in the network needs a lock and nothing is handed over; it carries
// some 30 Gbit/s. Go's timers and poller are too coarse for it: it sleeps in
// epoll_pwait2 and reads and writes with raw system calls.
type loop struct {
	net   *network
	fds   []int // by host
	epoll int
	wake  int // eventfd: there are commands
	start time.Time

	scheduler string
	thread    int

	mu       sync.Mutex
	commands []func()
	stopped  bool
	done     chan struct{}
}

// readsPerTurn bounds how long one host may keep the others waiting.
const readsPerTurn = 16

func newLoop(seed uint64, memory int64) (*loop, error) {
	l := &loop{net: newNetwork(seed, memory), start: time.Now(), done: make(chan struct{})}
	l.net.clock = l.now
	l.net.deliver = l.write
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.epoll)
		return nil, err
	}
	if err := l.watch(l.wake, -1); err != nil {
		unix.Close(l.epoll)
		unix.Close(l.wake)
		return nil, err
	}
	return l, nil
}

func (l *loop) watch(fd int, host int32) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: host})
}

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
	one := [8]byte{1}
	if _, err := unix.Write(l.wake, one[:]); err != nil && err != unix.EAGAIN {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errLoopStopped
	}
}

// add adds a host behind the TUN descriptor fd, which the loop owns from now on.
func (l *loop) add(name string, addrs []netip.Addr, fd int) (err error) {
	e := l.do(func() {
		if l.net.knows(name) {
			unix.Close(fd)
			err = fmt.Errorf("there is a host %s already", name)
			return
		}
		i := l.net.add(name, addrs)
		l.fds = append(l.fds, fd)
		err = l.watch(fd, i)
	})
	return errors.Join(e, err)
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

// run is the data path; it returns after stop.
func (l *loop) run() {
	runtime.LockOSThread() // for good: the thread's scheduling is not for other goroutines
	defer func() {
		for _, fd := range append(l.fds, l.epoll, l.wake) {
			unix.Close(fd)
		}
		close(l.done)
	}()
	l.thread = unix.Gettid()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread
	l.scheduler = prioritize()

	scratch := l.net.pool.get(maxPacket)
	events := make([]unix.EpollEvent, 64)
	for !l.stopped {
		timeout := int64(-1)
		if next, any := l.net.advance(l.now()); any {
			timeout = max(next-l.now(), 0)
		}
		for _, ev := range events[:epollWait(l.epoll, events, timeout)] {
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
			l.net.advance(l.now())
		}
	}
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
		s.At = time.Duration(l.now())
		s.Scheduler = l.scheduler
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) == nil {
			s.CPU = time.Duration(ts.Nano())
		}
	})
	return s, err
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

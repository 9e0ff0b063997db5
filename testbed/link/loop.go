package link

import (
	"errors"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one thread of the emulator's data path: it takes the packets of its hosts, waits
// for the next departure and sends. A packet for another's host is handed over when it has
// left the uplink, so that queues and paths need no lock. Go's timers and poller are too
// coarse for it: it sleeps in ppoll with nanoseconds.
type loop struct {
	net   *network
	all   []*loop // every thread's, by number
	index int     // its own number
	wake  int     // eventfd: there are commands or packets
	start time.Time

	packets   *packetSocket
	devices   []int         // by host; 0: of another machine
	hosts     map[int]int32 // by device
	carrier   *carrier      // to other machines; nil: there is none
	scheduler string
	woke      int64 // when it last went on

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

// atOnce bounds how many packets may arrive before those that are due leave.
const atOnce = 64

// newLoops makes the threads of an emulator, which take their packets from the descriptors
// of as many packet sockets; none runs yet.
func newLoops(o Options, sockets []int) (all []*loop, err error) {
	buffers, start := &pool{limit: o.Memory}, time.Now()
	blocks := oneRing
	if len(sockets) > 1 {
		blocks = eachRing
	}
	for i, fd := range sockets {
		l := &loop{
			net: newNetwork(o.Seed, buffers), index: i, start: start, done: make(chan struct{}),
			out: make([][]event, len(sockets)), hosts: map[int]int32{},
		}
		l.net.clock, l.net.deliver = l.now, l.deliver
		if len(sockets) > 1 {
			l.net.forward = l.forward
		}
		if l.packets, err = newPacketSocket(fd, i, len(sockets), blocks); err != nil {
			return nil, err
		}
		if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	for _, l := range all {
		l.all = all
	}
	return all, nil
}

// owner is the thread of a host.
func (l *loop) owner(host int32) *loop { return l.all[l.devices[host]%len(l.all)] }

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

// addHost adds a host behind a device, by its number, before the threads run.
func (l *loop) addHost(name string, addrs []netip.Addr, device int) {
	host := l.net.add(name, addrs)
	l.devices = append(l.devices, device)
	l.hosts[device] = host
}

// addPeers joins the one host, behind a device, to those of a mesh, before the thread
// runs. Hosts have the same numbers on all machines, so that paths lose the same packets.
func (l *loop) addPeers(m *Mesh, device, socket int) (err error) {
	if l.carrier, err = newCarrier(socket, m, l.net); err != nil {
		return err
	}
	l.net.carry = l.carrier.carry
	for i, p := range m.Peers {
		if i == m.Self {
			l.addHost(p.Host, p.Addrs, device)
			continue
		}
		l.net.hosts[l.net.add(p.Host, p.Addrs)].away = true
		l.devices = append(l.devices, 0)
	}
	return nil
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

	for !l.stopped {
		l.collect()
		more := l.packets.receive(l.now, atOnce, l.take)
		wakesAt := int64(math.MaxInt64)
		if next, any := l.net.advance(l.now()); any {
			wakesAt = next
		}
		l.flush()
		l.poll(wakesAt, more)
	}
}

// poll serves commands and other machines; unless there are more packets to read, it waits
// for any until wakesAt. While packets are on their way, others may wait a little: they are
// stamped when they arrive, and due long after. It never wakes twice within the slack.
func (l *loop) poll(wakesAt int64, more bool) {
	all := [3]unix.PollFd{{Fd: int32(l.wake)}, {Fd: -1}, {Fd: int32(l.packets.fd)}}
	for i := range all {
		all[i].Events = unix.POLLIN
	}
	fds := all[:]
	if l.carrier != nil {
		fds[1].Fd = int32(l.carrier.fd)
	}
	now := l.now()
	if l.net.patience > 0 && wakesAt < math.MaxInt64 {
		fds = fds[:2]
		wakesAt = max(min(wakesAt, now+l.net.patience), l.woke+l.net.slack)
	}
	if !more {
		l.wakesAt.Store(wakesAt)
	}
	var timeout *unix.Timespec
	if more || l.received.Load() > 0 { // handed over before the others could see that it sleeps
		timeout = &unix.Timespec{}
	} else if wakesAt < math.MaxInt64 {
		ts := unix.NsecToTimespec(max(wakesAt-now, 0))
		timeout = &ts
	}
	// Raw: the runtime's monitor would take the processor away at every call, and poll for it.
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	l.wakesAt.Store(0)
	l.woke = l.now()
	if fds[0].Revents != 0 {
		l.runCommands()
	}
	if fds[1].Revents != 0 {
		l.carrier.receive(l.now)
	}
}

// take hands a packet that a device's host sent at a time to the network.
func (l *loop) take(device int, frame []byte, at int64) {
	host, ok := l.hosts[device]
	if !ok {
		return
	}
	buf := l.net.pool.get(len(frame))
	if buf == nil {
		l.net.refuse(frame)
		return
	}
	copy(buf, frame)
	l.net.arrive(host, buf, at)
}

func (l *loop) deliver(due []event, done func(event, bool)) {
	l.packets.send(due, l.devices, done)
}

func (l *loop) stats() (s Stats, err error) {
	err = l.do(func() {
		l.net.drops[iUnread].Segments += l.packets.missed()
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

package link

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one thread of the emulator's data path: it receives the packets of its hosts, waits
// for the next departure and sends. It hands packets for the hosts of other threads over when
// they have left the uplink, so queues and paths need no lock. Go's timers and poller are too
// coarse: it sleeps in ppoll with nanosecond resolution.
type loop struct {
	net   *network
	all   []*loop // the loops of all threads, by number
	index int     // its own number
	wake  int     // eventfd: there are commands or packets
	start time.Time

	packets *packetSocket
	devices []int         // by host; 0: on another machine
	hosts   map[int]int32 // by device
	carrier *carrier      // to other machines; nil: none

	mu      sync.Mutex // guards inbox and wakesAt
	inbox   []event    // from other threads
	wakesAt int64      // when its sleep ends; 0 while it is awake

	commands chan func() // to run on the thread
	stopped  bool
	done     chan struct{}
	spare    []event // the previous inbox, for reuse
}

// receiveBatch limits how many datagrams from other machines are received before due packets are sent.
const receiveBatch = 64

// newLoops creates the loops of an emulator, which use as many packet sockets with descriptors
// from first on. None is running yet.
func newLoops(o Options, first int) (all []*loop, err error) {
	buffers, start := &pool{limit: memory}, time.Now()
	for i := range o.Threads {
		l := &loop{
			net: newNetwork(o.Seed, buffers), index: i, start: start, done: make(chan struct{}),
			commands: make(chan func(), 1), hosts: map[int]int32{},
		}
		l.net.clock, l.net.deliver = l.now, func(due []event) { l.packets.send(due, l.devices) }
		if o.Threads > 1 {
			l.net.forward = l.forward
		}
		if l.packets, err = newPacketSocket(first+i, i, o.Threads); err != nil {
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

// now is the loop's clock: monotonic nanoseconds.
func (l *loop) now() int64 { return int64(time.Since(l.start)) }

var errLoopStopped = errors.New("link: the emulator has stopped")

// do runs f on the loop's thread and waits for it.
func (l *loop) do(f func()) error {
	ran := make(chan struct{})
	select {
	case l.commands <- func() { f(); close(ran) }:
	case <-l.done:
		return errLoopStopped
	}
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

// attach adds the hosts before the threads run. The hosts of a mesh have the same numbers on all
// machines, so that paths lose the same packets.
func (l *loop) attach(q Setup, carrier int) (err error) {
	m := q.Options.Mesh
	if m == nil {
		for _, h := range q.Hosts {
			l.addHost(h)
		}
		return nil
	}
	if l.carrier, err = newCarrier(carrier, m, l.net); err != nil {
		return err
	}
	l.net.carry = l.carrier.carry
	for i, p := range m.Peers {
		h := Attached{p.Host, p.Addrs, 0}
		if i == m.Self {
			h.Device = q.Hosts[0].Device
		}
		l.addHost(h)
	}
	return nil
}

func (l *loop) addHost(h Attached) {
	host := l.net.add(h.Host, h.Addrs)
	l.devices = append(l.devices, h.Device)
	if h.Device == 0 {
		l.net.hosts[host].away = true
		return
	}
	l.hosts[h.Device] = host
}

// forward hands a packet to the thread of its destination, and wakes that thread if it would sleep too
// long; false: the destination belongs to this thread.
func (l *loop) forward(ev event) bool {
	to := l.all[l.devices[ev.dst]%len(l.all)] // see packetSocket
	if to == l {
		return false
	}
	to.mu.Lock()
	to.inbox = append(to.inbox, ev)
	wake := ev.at < to.wakesAt
	if wake {
		to.wakesAt = 0
	}
	to.mu.Unlock()
	if wake {
		to.rouse()
	}
	return true
}

// collect takes the packets that other threads have handed to this one.
func (l *loop) collect() {
	l.mu.Lock()
	events := l.inbox
	l.inbox = l.spare[:0]
	l.mu.Unlock()
	for _, ev := range events {
		l.net.pending.push(ev)
	}
	clear(events)
	l.spare = events
}

// stop ends run.
func (l *loop) stop() {
	l.do(func() { l.stopped = true })
	<-l.done
}

func (l *loop) runCommands() {
	var b [8]byte
	unix.Read(l.wake, b[:])
	for range len(l.commands) {
		(<-l.commands)()
	}
}

// run is the data path; it returns after stop. Its descriptors stay open, because other
// threads may still wake it.
func (l *loop) run() {
	runtime.LockOSThread() // never unlocked: other goroutines must not inherit the thread's scheduling
	defer close(l.done)
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread
	prioritize()

	for !l.stopped {
		l.collect()
		more := l.packets.receive(l.now, l.take)
		wakesAt := int64(math.MaxInt64)
		if next, any := l.net.advance(l.now()); any {
			wakesAt = l.net.wakesAt(next)
			more = more || next <= l.now()
		}
		l.poll(wakesAt, more)
	}
}

// poll handles commands and other machines; unless there is more to do, it waits for input
// until wakesAt. While packets are in flight, new ones may wait a little: the kernel stamps
// their arrival, and they are due much later.
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
		wakesAt = min(wakesAt, now+l.net.patience)
	}
	l.mu.Lock()
	if more = more || len(l.inbox) > 0; !more {
		l.wakesAt = wakesAt
	}
	l.mu.Unlock()
	var timeout *unix.Timespec
	if more {
		timeout = &unix.Timespec{}
	} else if wakesAt < math.MaxInt64 {
		ts := unix.NsecToTimespec(max(wakesAt-now, 0))
		timeout = &ts
	}
	// A raw call, because Go's monitor would retake the processor at every call and poll.
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	l.mu.Lock()
	l.wakesAt = 0
	l.mu.Unlock()
	if fds[0].Revents != 0 {
		l.runCommands()
	}
	if fds[1].Revents != 0 {
		l.carrier.receive(l.now)
	}
}

// take passes a packet that the host of a device sent to the network.
func (l *loop) take(device int, frame []byte, at int64) {
	if host, ok := l.hosts[device]; ok {
		l.net.arrive(host, frame, at)
	}
}

// stats returns the statistics of the thread.
func (l *loop) stats() (s Stats, err error) {
	err = l.do(func() {
		l.net.drops[DropUnread] += l.packets.missed()
		if l.carrier != nil {
			l.net.drops[DropCarrier] = l.carrier.lost()
		}
		s = l.net.stats()
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) == nil {
			s.CPU = time.Duration(ts.Nano())
		}
	})
	return s, err
}

package httpload

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
)

// A connection's state. A kept connection goes idle → head → body → idle.
const (
	closed = iota
	connecting
	idle
	awaitHead
	body       // of known length
	bodyChunks // in chunks
	bodyToEnd  // until the server closes
)

const (
	// lowatShare: 1/lowatShare of the socket's receive buffer may fill before we are
	// woken. The window is about half of the buffer.
	lowatShare = 8
	// lowatFrom is the smallest rest of a body, in bytes, for which we ask the kernel to
	// wake us less often.
	lowatFrom = 32 << 10
)

// conn is a connection slot: at most one connection and one operation at a time.
type conn struct {
	fd         int
	generation int32 // distinguishes events of this connection from those of earlier ones in the slot
	index      int32 // in loop.conns
	state      uint8
	target     netip.AddrPort
	reused     bool // it was idle before this request, so the server may have closed it
	lowat      int

	// The operation.
	busy    bool
	last    bool // the run is over: do not start another
	op      record.Op
	req     request
	at      *rawObject
	retried bool
	heard   bool  // a byte of the answer has arrived
	quiet   int64 // when the last byte arrived (of a head: when the request was sent)
	before  int64 // bytes that the link had carried at that time
	pulled  int64 // when limits last read from the socket
	partial []byte
	left    int64 // remaining body bytes; -1: unknown
	reuse   bool  // the connection may carry another request
	compare comparer
	chunks  chunkedBody
	wrong   bool // bytes differ from the object's

	// Closed loop.
	ops    int
	fails  int
	parked bool
	until  int64
}

// start begins an operation.
func (l *loop) start(c *conn, req request) {
	c.busy, c.req, c.retried, c.heard, c.wrong = true, req, false, false, false
	c.at = &l.objects[req.object]
	c.ops++
	c.op = l.newOp(&req, l.worker(int(c.index)), l.now)
	// The earliest possible start is its intended time, or when a connection became free.
	l.tally.begin(&c.op, max(c.op.Intended, l.freed))
	if c.fd >= 0 && c.target == c.at.target && c.state == idle {
		l.request(c)
		return
	}
	l.drop(c)
	l.dial(c, c.at.target)
}

// dial opens a connection for the current operation.
func (l *loop) dial(c *conn, target netip.AddrPort) {
	l.listenFrom(c)
	c.target, c.reused, c.lowat = target, false, 1
	c.generation++
	fd, errno := connect(target)
	if fd >= 0 {
		c.fd, c.state = fd, connecting
	}
	if errno == 0 || errno == unix.EINPROGRESS {
		errno = l.listen(c, unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
	}
	if errno != 0 {
		l.dialFailed(c, errno)
	}
}

func (l *loop) dialFailed(c *conn, errno unix.Errno) {
	l.drop(c)
	o, class := errnoOutcome(errno)
	l.finish(c, o, class, false)
}

// drop closes the connection of a slot.
func (l *loop) drop(c *conn) {
	if c.fd >= 0 {
		unix.Close(c.fd)
	}
	c.fd, c.state = -1, closed
}

// listen sets which events of a connection epoll reports.
func (l *loop) listen(c *conn, op int, events uint32) unix.Errno {
	ev := unix.EpollEvent{Events: events, Fd: c.index, Pad: c.generation}
	return errnoOf(unix.EpollCtl(l.ep, op, c.fd, &ev))
}

// request sends the operation's request on the slot's open connection.
func (l *loop) request(c *conn) {
	l.out = c.at.appendRequest(l.out[:0], &c.req)
	c.partial = c.partial[:0]
	c.heard, c.left, c.reuse = false, 0, false
	c.state = awaitHead
	l.listenFrom(c)
	n, errno := send(c.fd, l.out)
	switch {
	case errno == unix.EAGAIN || errno == 0 && n < len(l.out): // no request is as long as a socket's buffer
		l.finish(c, record.Cancelled, classNoBuffer, false)
	case errno != 0:
		l.connectionEnded(c, errno)
	}
}

// handle handles an epoll event of a connection.
func (l *loop) handle(c *conn, events uint32) {
	if c.state != connecting {
		l.pull(c)
		return
	}
	l.clock()
	if errno := unix.Errno(sockopt(c.fd, unix.SO_ERROR)); errno != 0 {
		l.dialFailed(c, errno)
		return
	}
	if events&unix.EPOLLOUT == 0 {
		return
	}
	l.listen(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
	if l.window > 0 {
		setLowat(c.fd, l.window)
		setLowat(c.fd, 1)
	}
	l.request(c)
}

// pull receives once from the connection and processes the data.
func (l *loop) pull(c *conn) {
	if c.fd < 0 || c.state == connecting {
		return
	}
	if c.state == body && l.discard {
		n, errno := discard(c.fd, c.left)
		l.clock()
		switch {
		case errno == unix.EAGAIN:
		case errno != 0 || n == 0:
			l.connectionEnded(c, errno)
		default:
			observe(l.tally.wait, l.now-l.ready)
			l.count(c, int64(n))
			l.proceed(c)
		}
		return
	}
	b := l.buf
	switch {
	case c.state == body:
		b = b[:min(int64(len(b)), c.left)] // never a byte of what follows
	case l.discard && c.state == awaitHead:
		b = b[:headBuffer]
	}
	n, errno := recv(c.fd, b)
	l.clock()
	if errno == unix.EAGAIN {
		return
	}
	if c.state == idle {
		// The server closed a kept connection, or sent data without a request.
		l.drop(c)
		return
	}
	if errno != 0 || n == 0 {
		l.connectionEnded(c, errno)
		return
	}
	observe(l.tally.wait, l.now-l.ready)
	b = b[:n]
	switch c.state {
	case awaitHead:
		l.takeHead(c, b)
	case bodyChunks:
		l.takeChunks(c, b)
	default:
		l.takeBody(c, b)
	}
}

// takeHead processes bytes of the head, and bytes of the body that follow it.
func (l *loop) takeHead(c *conn, b []byte) {
	c.heard = true
	seen := len(c.partial)
	if seen > 0 {
		c.partial = append(c.partial, b...)
		b = c.partial
	}
	for {
		n := headEnd(b, seen)
		if n == 0 {
			if len(b) > maxHead {
				l.finish(c, record.Error, errHeadTooLarge.Error(), false)
				return
			}
			// b may be within partial already: append moves it to the front.
			c.partial = append(c.partial[:0], b...)
			return
		}
		h, err := parseHead(b[:n])
		if err == nil && n > maxHead {
			err = errHeadTooLarge
		}
		if err != nil {
			l.finish(c, record.Error, err.Error(), false)
			return
		}
		c.op.Status = uint16(h.status)
		b, seen = b[n:], 0
		if h.status < 200 && h.status != 101 {
			continue
		}
		l.begin(c, &h, b)
		return
	}
}

// begin judges a complete head and starts with the body, whose first bytes are b.
func (l *loop) begin(c *conn, h *head, b []byte) {
	if c.req.head {
		h.chunked, h.length = false, 0
	}
	outcome, class, length := judge(h, &c.req, c.at.size)
	c.reuse = !h.close && !l.fresh
	if h.chunked {
		l.tally.chunked++
	}
	if outcome != record.OK {
		if h.status == 204 || h.status == 304 {
			h.length = 0
		}
		// The connection is kept if the body of the failed answer came with its head, as short ones do.
		l.finish(c, outcome, class, c.reuse && h.length == int64(len(b)))
		return
	}
	c.left = length
	switch {
	case h.chunked:
		c.state, c.chunks = bodyChunks, chunkedBody{}
	case h.length < 0:
		c.state, c.reuse = bodyToEnd, false
	default:
		c.state = body
	}
	if !l.discard {
		c.compare = c.at.expected.at(c.req.off)
	}
	if c.state == bodyChunks {
		l.takeChunks(c, b)
	} else if len(b) > 0 || c.left == 0 {
		l.takeBody(c, b)
	}
}

// takeBody processes bytes of a body that is not chunked.
func (l *loop) takeBody(c *conn, b []byte) {
	extra := c.left >= 0 && int64(len(b)) > c.left
	if extra {
		b = b[:c.left]
	}
	l.payload(c, b)
	switch {
	case extra && c.state == bodyToEnd:
		l.finish(c, record.Error, classLong, false)
	case extra: // more bytes came than were announced
		l.finish(c, record.OK, "", false)
	default:
		l.proceed(c)
	}
}

// takeChunks processes bytes of a chunked body.
func (l *loop) takeChunks(c *conn, b []byte) {
	for len(b) > 0 {
		data, rest, done, err := c.chunks.next(b)
		switch {
		case err != nil:
			l.finish(c, record.Error, classChunk, false)
			return
		case c.left >= 0 && int64(len(data)) > c.left:
			l.finish(c, record.Error, classLong, false)
			return
		case done && c.left > 0:
			l.finish(c, record.Truncated, "chunks too short", false)
			return
		}
		l.payload(c, data)
		if done {
			c.left = 0
			l.finish(c, record.OK, "", c.reuse && len(rest) == 0)
			return
		}
		b = rest
	}
}

// payload counts and compares bytes of the object.
func (l *loop) payload(c *conn, b []byte) {
	if len(b) == 0 {
		return
	}
	l.count(c, int64(len(b)))
	c.wrong = c.wrong || !l.discard && !c.compare.check(b)
}

func (l *loop) count(c *conn, n int64) {
	if c.op.Bytes == 0 {
		c.op.FirstByte = l.now
	}
	c.op.Bytes += n
	if c.left >= 0 {
		c.left -= n
	}
	l.link.bytes.Add(n)
	l.listenFrom(c)
}

// listenFrom restarts the stall limit.
func (l *loop) listenFrom(c *conn) { c.quiet, c.before = l.now, l.link.carried() }

// proceed finishes the operation if its body is complete, or arranges the next
// wake-up.
func (l *loop) proceed(c *conn) {
	if c.state != body {
		return // the body lasts until the server closes
	}
	if c.left == 0 {
		l.finish(c, record.OK, "", c.reuse)
		return
	}
	// Without copying, wake-ups are the cost of receiving. The threshold stays well below
	// the receive window, so that the sender never waits for us; it grows with the buffer
	// as the kernel tunes it.
	if c.left < lowatFrom && c.lowat == 1 {
		return
	}
	want := int(c.left)
	if want > c.lowat {
		most := sockopt(c.fd, unix.SO_RCVBUF) / lowatShare
		want = min(want, max(min(most, l.lowat), lowatFrom/2))
	}
	if want != c.lowat {
		setLowat(c.fd, want)
		c.lowat = want
	}
}

// connectionEnded ends an operation whose connection ended (errno 0) or broke.
func (l *loop) connectionEnded(c *conn, errno unix.Errno) {
	if !c.busy {
		l.drop(c)
		return
	}
	early := c.state == awaitHead
	if early && c.reused && !c.heard && !c.retried && !c.last &&
		(errno == 0 || errno == unix.ECONNRESET || errno == unix.EPIPE) {
		// The server closed the idle connection while our request was on its
		// way: RFC 9110 §9.2.2 lets an idempotent request be sent again.
		c.retried = true
		l.drop(c)
		l.dial(c, c.target)
		return
	}
	switch {
	case errno == unix.ECONNRESET || errno == unix.EPIPE:
		l.finish(c, record.Error, classReset, false)
	case errno != 0:
		l.finish(c, record.Error, errno.Error(), false)
	case early && !c.heard:
		l.finish(c, record.Error, classEOFBefore, false)
	case early:
		l.finish(c, record.Error, "closed in the head", false)
	case c.state == bodyToEnd && c.left <= 0:
		l.finish(c, record.OK, "", false)
	default:
		l.finish(c, record.Truncated, classEOFBody, false)
	}
}

// limits ends an operation that is past its deadline or has stalled.
func (l *loop) limits(c *conn) {
	stall := int64(l.spec.Stall)
	late := l.spec.Deadline > 0 && l.now-c.op.Start >= int64(l.spec.Deadline)
	if c.lowat > 1 && (late || l.now-max(c.quiet, c.pulled) >= stall/4) {
		// Bytes below the threshold may have arrived without a wake-up.
		c.pulled = l.now
		n := c.ops
		l.pull(c)
		if !c.busy || c.ops != n {
			return // it has ended, and another may have begun
		}
	}
	outcome := record.Stalled
	switch quiet := l.now - c.quiet; {
	case quiet < stall && !late:
		return
	case quiet < stall:
		outcome = record.Deadline
	case l.link.starved(c.before, quiet, c.req.length):
		outcome = record.Starved
	}
	l.finish(c, outcome, c.phase(), false)
}

// phase names the phase of the operation.
func (c *conn) phase() string {
	switch {
	case c.state == connecting || c.state == closed:
		return record.PhaseConnect
	case c.state != awaitHead:
		return record.PhaseBody
	case c.heard:
		return record.PhaseHead
	}
	return record.PhaseBeforeHead
}

// finish records the operation and frees the slot.
func (l *loop) finish(c *conn, o record.Outcome, class string, reuse bool) {
	if c.wrong {
		// Corruption is never hidden by another outcome.
		o, class = record.WrongBytes, classWrong
	}
	c.op.Outcome, c.op.Class, c.op.LastByte = o, class, l.now
	c.busy = false
	if o == record.OK {
		c.fails = 0
	}
	l.tally.end(&c.op, &c.req)
	if cap(c.partial) > headBuffer {
		c.partial = nil
	}
	if reuse && !c.last {
		c.state, c.reused = idle, true
		if c.lowat > 1 {
			setLowat(c.fd, 1) // or the next head never wakes us
			c.lowat = 1
		}
	} else {
		l.hangUp(c)
	}
	l.after(c)
}

// hangUp closes the connection of an operation that has ended.
func (l *loop) hangUp(c *conn) {
	if l.fresh && c.op.Outcome == record.OK {
		// We asked the server to close. If its FIN has not arrived yet, reset the connection: that
		// leaves no port in TIME_WAIT. A client with a connection per request would run out of ports.
		var one [1]byte
		if n, errno := recv(c.fd, one[:]); n != 0 || errno != 0 {
			unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		}
	}
	l.drop(c)
}

// after continues with a free slot.
func (l *loop) after(c *conn) {
	switch {
	case l.warm:
		l.live--
		c.fails = 0
	case l.open:
		l.live--
		if len(l.free) == 0 {
			l.freed = l.now
		}
		l.free = append(l.free, c)
	case c.last:
	case c.op.Status == 0 && c.op.Outcome != record.OK:
		c.parked = true
		c.until = l.now + int64(backoff(c.fails))
		c.fails++
	default:
		l.next(c)
	}
}

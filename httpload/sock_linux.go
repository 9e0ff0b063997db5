package httpload

import (
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

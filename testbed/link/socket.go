package link

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openSocket opens the packet socket with which a thread of an emulator reaches the devices
// of this network namespace. It receives no packets before it has a ring.
func openSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: open a packet socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "packets")
	enlarge(f) // for packets that the hosts have not received yet
	for _, o := range []int{unix.PACKET_VNET_HDR, unix.PACKET_IGNORE_OUTGOING} {
		if err := setsockopt(f, unix.SOL_PACKET, o, 1); err != nil {
			f.Close()
			return nil, fmt.Errorf("link: set option %d of a packet socket: %w", o, err)
		}
	}
	return f, nil
}

// The ring of a packet socket, which the kernel fills: slots of one frame each, in blocks.
const (
	slotSize  = (unix.SizeofTpacket2Hdr + 32 + maxPacket + 15) &^ 15
	blockSize = 1 << 20
	perBlock  = blockSize / slotSize
	blocks    = 32
	slots     = blocks * perBlock
)

// packetSocket is a packet socket with its ring, and the frames to send next. Its thread
// receives the frames of the devices whose numbers have the thread's remainder.
type packetSocket struct {
	fd    int
	ring  []byte
	next  int   // slot
	empty int64 // when the ring was last empty

	messages [sendBatch]message
	vectors  [sendBatch]unix.Iovec
	to       [sendBatch]unix.RawSockaddrLinklayer
}

// message is struct mmsghdr.
type message struct {
	unix.Msghdr
	sent uint32
	_    [4]byte
}

const sendBatch = 32 // frames in one call

// newPacketSocket starts a packet socket, which receives the frames of the devices whose numbers are i
// modulo n.
func newPacketSocket(fd, i, n int) (*packetSocket, error) {
	s := &packetSocket{fd: fd}
	fail := func(what string, err error) (*packetSocket, error) {
		return nil, fmt.Errorf("link: %s of a packet socket: %w", what, err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return fail("set the version", err)
	}
	r := unix.TpacketReq{Block_size: blockSize, Block_nr: blocks, Frame_size: slotSize, Frame_nr: slots}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &r); err != nil {
		return fail("make the ring", err)
	}
	var err error
	if s.ring, err = unix.Mmap(fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fail("map the ring", err)
	}
	if n > 1 { // ld ifindex; mod n; jeq i
		const ifindex = 0xfffff008 // SKF_AD_OFF + SKF_AD_IFINDEX
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: ifindex},
			{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(n)},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(i)},
			{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18},
			{Code: unix.BPF_RET | unix.BPF_K},
		}
		filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter); err != nil {
			return fail("filter the frames", err)
		}
	}
	for i := range s.messages {
		m := &s.messages[i]
		m.Name, m.Namelen = (*byte)(unsafe.Pointer(&s.to[i])), unix.SizeofSockaddrLinklayer
		m.Iov = &s.vectors[i]
		m.SetIovlen(1)
		s.to[i].Family = unix.AF_PACKET
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swapped(unix.ETH_P_ALL)}); err != nil {
		return fail("begin", err)
	}
	return s, nil
}

func swapped(v uint16) uint16 { return v<<8 | v>>8 }

// receive calls take with each frame that has arrived, its device and its arrival time by clock. It takes at
// most as many as the ring holds; more reports whether others may be waiting.
func (s *packetSocket) receive(clock func() int64, take func(index int, frame []byte, at int64)) (more bool) {
	wall := time.Now().UnixNano() // read first, so that no frame leaves too early
	when := stamps{now: clock(), last: s.empty}
	when.ahead = wall - when.now
	for range slots {
		slot := s.ring[s.next/perBlock*blockSize+s.next%perBlock*slotSize:]
		h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&slot[0]))
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			s.empty = when.now
			return false
		}
		if s.next++; s.next == slots {
			s.next = 0
		}
		from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&slot[(unix.SizeofTpacket2Hdr+15)&^15]))
		begin := int(h.Mac) - vnetLen
		at := when.came(int64(h.Sec)*1e9+int64(h.Nsec), clock)
		take(int(from.Ifindex), slot[begin:int(h.Mac)+int(h.Snaplen)], at)
		atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
	}
	s.empty = when.last
	return true
}

// stamps converts the kernel's time stamps, which are wall-clock times, to the clock of a thread.
type stamps struct {
	ahead int64 // wall clock minus the thread's clock
	now   int64 // when the thread's clock was read
	last  int64 // arrival of the previous frame, or when the ring was empty
}

// came returns when a frame arrived. The wall clock may be set meanwhile, but frames arrive in
// order, not before the ring was empty, and not in the future.
func (s *stamps) came(stamp int64, clock func() int64) int64 {
	at := stamp - s.ahead
	if at > s.now {
		s.now = clock()
	}
	s.last = min(max(at, s.last), s.now)
	return s.last
}

// send sends frames to devices and marks those that were refused.
func (s *packetSocket) send(all []event, devices []int) {
	for i := range all {
		ev := &all[i]
		s.vectors[i].Base = &ev.p.buf[0]
		s.vectors[i].SetLen(len(ev.p.buf))
		s.to[i].Ifindex = int32(devices[ev.dst])
		s.to[i].Protocol = swapped(unix.ETH_P_IP)
		if ev.p.ip()[0]>>4 == 6 {
			s.to[i].Protocol = swapped(unix.ETH_P_IPV6)
		}
	}
	for i := 0; i < len(all); {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.messages[i])),
			uintptr(len(all)-i), 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 { // the first one failed
			all[i].refused, n = true, 1
		}
		i += int(n)
	}
}

// missed returns how many frames found no free slot since the last call.
func (s *packetSocket) missed() int64 {
	if stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		return int64(stats.Drops)
	}
	return 0
}

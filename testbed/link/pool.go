package link

import (
	"sync"

	"golang.org/x/sys/unix"
)

// pool provides packet buffers of a few sizes and limits their total. They are outside
// the garbage-collected heap, so that a gigabyte in flight costs no collection. All
// threads share it: one thread receives a packet, another sends it and frees the buffer.
type pool struct {
	limit int64

	mu   sync.Mutex
	held int64 // bytes of capacity handed out
	free [len(bufferSizes)][][]byte
}

var bufferSizes = [...]int{512, 2048, 8192, 32768, maxPacket} // multiples of 8

const chunk = 1 << 20

// get returns a buffer of n bytes, or nil if that would exceed the limit or the kernel
// has no memory.
func (p *pool) get(n int) []byte {
	class := 0
	for n > bufferSizes[class] {
		class++
	}
	size := bufferSizes[class]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+int64(size) > p.limit {
		return nil
	}
	if len(p.free[class]) == 0 {
		mem, err := unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return nil
		}
		for ; len(mem) >= size; mem = mem[size:] {
			p.free[class] = append(p.free[class], mem[:size:size])
		}
	}
	last := len(p.free[class]) - 1
	b := p.free[class][last]
	p.free[class] = p.free[class][:last]
	p.held += int64(size)
	return b[:n]
}

// put frees a buffer, even if it has been shortened at its end.
func (p *pool) put(b []byte) {
	for class, size := range bufferSizes {
		if cap(b) == size {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.free[class] = append(p.free[class], b)
			p.held -= int64(size)
			return
		}
	}
}

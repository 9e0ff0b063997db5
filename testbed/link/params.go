// Package link emulates and verifies links: rate, delay, jitter, loss and queue,
// per direction and per pair of hosts. The kernel's netem does the work where
// the kernel has it; else a user-space emulator on packet sockets does.
package link

import "time"

// Params is one direction of one host's access link, or of a pair.
// The zero value is a link that is not shaped at all.
type Params struct {
	Rate   float64       // bit/s on the wire (Ethernet framing included); 0: unlimited
	Delay  time.Duration // one way
	Jitter time.Duration // uniform ±, order kept
	Loss   float64       // probability per wire segment, 0…1
	Queue  int64         // bytes; 0: one bandwidth-delay product or more, see QueueBytes
}

// Shaped reports whether p changes anything.
func (p Params) Shaped() bool { return p != Params{} }

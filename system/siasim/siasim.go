// Package siasim is a simulator of a Sia renter for tests: it is never a system
// under measurement, and nothing that it answers is a result.
//
// One model (hosts, contracts, a wallet, an uplink, files whose redundancy grows)
// is served in siad's words, as far as the adapter asks.
// What recorded exchanges show is tested with those. The model keeps exact
// accounts, has switchable faults, and Truth says what is so, for tests that hold
// the journal and the polls of a load test to it.
//
// The model's time is the process's: within a bubble of testing/synctest weeks
// pass in seconds. Host is a testbed.Host from which the simulator is reached
// over connections in memory, which such a bubble needs: a goroutine that waits
// for a real socket would keep its clock from moving on.
package siasim

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config says what is simulated. For pieces, hosts, contracts and Sector, zero
// means the main network's.
type Config struct {
	Hosts        int
	Contracts    int // with the first so many hosts
	Data, Parity int // pieces of a chunk
	Sector       int64
	Rate         float64 // of the uplink: bytes/s, padding and redundancy included
	Faults       Faults
}

const (
	Password  = "simulated" // of the API
	latency   = 2 * time.Millisecond
	blockTime = 10 * time.Minute
	height    = 300_000 // of the chain at the beginning
	period    = 12_960  // blocks
)

// Sim is a simulated renter. It is safe for concurrent use.
type Sim struct {
	conf  Config
	epoch time.Time

	mu        sync.Mutex
	now       time.Duration // since epoch, up to where the model has gone
	rand      *rand.Rand
	wallet    *big.Int
	lost      *big.Int // money that faults made vanish
	hosts     []*host
	contracts []*contract // all there ever were, in their order
	sending   []*file     // not on hosts yet, in their order
	tail      float64     // what the uplink will have carried when all files are through
	files     map[string]*file
	serial    int
	gone      int64 // sectors of files that were deleted
	events    []Event

	pipes  pipes
	server *http.Server
}

// New makes a simulator whose contracts are formed and whose clock begins now.
func New(c Config) *Sim {
	c.Hosts, c.Contracts = cmp.Or(c.Hosts, 60), cmp.Or(c.Contracts, 50)
	c.Data, c.Parity = cmp.Or(c.Data, 10), cmp.Or(c.Parity, 20)
	c.Sector = cmp.Or(c.Sector, 4<<20)
	s := &Sim{
		conf: c, epoch: time.Now(), rand: rand.New(rand.NewPCG(0, 0x51a)),
		wallet: SC(initialWallet), lost: new(big.Int), files: map[string]*file{},
	}
	for range c.Hosts {
		s.hosts = append(s.hosts, &host{})
	}
	for i := range c.Contracts {
		s.form(s.hosts[i], SC(contractFunds))
	}
	s.events = c.Faults.Events
	s.pipes = pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	s.server = &http.Server{Handler: s.Siad()}
	go func() { _ = s.server.Serve(s.pipes) }()
	return s
}

// Close ends all connections.
func (s *Sim) Close() { _ = s.server.Close() }

// lock locks the model, brought up to now. What has gone through the uplink by a
// moment at which a fault acts is stored before.
func (s *Sim) lock() (unlock func()) {
	s.mu.Lock()
	now := max(time.Since(s.epoch), s.now)
	for ; len(s.events) > 0 && s.events[0].At <= now; s.events = s.events[1:] {
		s.upload(s.events[0].At)
		s.events[0].Do(s)
	}
	s.upload(now)
	s.now = now
	return s.mu.Unlock
}

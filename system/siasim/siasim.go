// Package siasim simulates a Sia renter for tests. It is never a system under measurement, and its
// answers are never results.
//
// A model (hosts, contracts, a wallet, an uplink, files whose redundancy grows) is served through
// as much of siad's API as the adapter uses. Tests of details that recorded exchanges cover use
// those instead. The model keeps exact accounts and has switchable faults. Truth returns its actual
// state, with which tests compare the journal and the polls of a load test.
//
// The model's time is the process's: in a bubble of testing/synctest, weeks pass in seconds. Host
// is a testbed.Host that reaches the simulator over connections in memory, which such a bubble
// needs: a goroutine that waits for a real socket would stop the bubble's clock.
package siasim

import (
	"cmp"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config configures a simulation. Zero pieces, hosts, contracts and Sector mean the values of the
// main network.
type Config struct {
	Hosts        int
	Contracts    int // each with another host
	Data, Parity int // pieces per chunk
	Sector       int64
	Rate         float64 // of the uplink, in bytes/s, including padding and redundancy
	Faults       Faults
}

const (
	Password  = "simulated" // for the API
	latency   = 2 * time.Millisecond
	blockTime = 10 * time.Minute
	height    = 300_000 // of the chain at the start
	period    = 12_960  // in blocks
)

// Sim is a simulated renter. It is safe for concurrent use.
type Sim struct {
	conf  Config
	epoch time.Time

	mu        sync.Mutex
	now       time.Duration // time since epoch that the model has reached
	wallet    *big.Int
	lost      *big.Int    // money that vanished through faults
	contracts []*contract // in order
	sending   []*file     // not completely on hosts yet, in order
	tail      float64     // bytes that the uplink will have carried when all files are through
	files     map[string]*file
	serial    int
	gone      int64 // sectors of deleted files
	events    []Event

	pipes  pipes
	server *http.Server
}

// New starts a simulator with formed contracts. Its clock starts now.
func New(c Config) *Sim {
	c.Hosts, c.Contracts = cmp.Or(c.Hosts, 60), cmp.Or(c.Contracts, 50)
	c.Data, c.Parity = cmp.Or(c.Data, 10), cmp.Or(c.Parity, 20)
	c.Sector = cmp.Or(c.Sector, 4<<20)
	s := &Sim{
		conf: c, epoch: time.Now(), wallet: SC(initialWallet), lost: new(big.Int), files: map[string]*file{},
	}
	for range c.Contracts {
		s.form(SC(contractFunds))
	}
	s.events = c.Faults.Events
	s.pipes = pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	s.server = &http.Server{Handler: s.Siad()}
	go func() { _ = s.server.Serve(s.pipes) }()
	return s
}

// Close closes all connections.
func (s *Sim) Close() { _ = s.server.Close() }

// lock locks the model and advances it to now. Data that pass the uplink until a fault acts are
// stored before it does.
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

// Truth is the actual state, whatever the API reports. Money is in hastings.
type Truth struct {
	Total   *big.Int // of all contracts
	Missing *big.Int // in neither the wallet nor contracts nor lost through faults; the model is wrong unless it is 0

	Absolute int64 // bytes uploaded for existing files, including padding and redundancy
	Sent     int64 // the same for all files that ever existed
}

// Truth returns the current state.
func (s *Sim) Truth() Truth {
	defer s.lock()()
	t := Truth{Total: new(big.Int), Sent: s.gone * s.conf.Sector}
	for _, c := range s.contracts {
		t.Total.Add(t.Total, c.total())
	}
	t.Missing = new(big.Int).Sub(SC(initialWallet), s.wallet)
	t.Missing.Sub(t.Missing, t.Total).Sub(t.Missing, s.lost)
	for _, f := range s.files {
		t.Absolute += int64(f.placed) * s.conf.Sector
	}
	t.Sent += t.Absolute
	return t
}

// Stored describes the content of an object.
type Stored struct {
	Size   int64
	SHA256 string // lower-case hex
}

// Stored returns all objects whose content is complete, by path.
func (s *Sim) Stored() map[string]Stored {
	defer s.lock()()
	all := map[string]Stored{}
	for path, f := range s.files {
		if !f.incomplete {
			all[path] = Stored{f.size, f.sum}
		}
	}
	return all
}

// Faults are the simulated faults. Times are since the simulator's start.
type Faults struct {
	Events []Event // in chronological order

	Down      Window // the daemon is restarting: connections are refused
	HTML      Window // every answer is a web page, with status 200
	Underflow Window // counters are negative: unsigned ones near 2^64, money with a minus sign
	Stall     Window // nothing is uploaded
	Full      Window // no host accepts another sector, and no contract is good for uploads
	Swallow   Window // uploads are answered 204 but stored nowhere
}

// Window is a period of time, without an end if For is 0. The zero Window never occurs.
type Window struct {
	From, For time.Duration
}

// passed returns how much of a window lies before a time.
func (w Window) passed(at time.Duration) time.Duration {
	switch {
	case w == Window{} || at < w.From:
		return 0
	case w.For == 0:
		return at - w.From
	}
	return min(at-w.From, w.For)
}

// has reports whether a fault is active.
func (s *Sim) has(w Window) bool {
	return w != Window{} && s.now >= w.From && (w.For == 0 || s.now < w.From+w.For)
}

// Event is a fault that acts at one time. The model calls Do, which is one of the functions below.
type Event struct {
	At time.Duration
	Do func(*Sim)
}

// Vanish removes money from the wallet that goes nowhere.
func Vanish(amount *big.Int) func(*Sim) {
	return func(s *Sim) {
		s.wallet.Sub(s.wallet, amount)
		s.lost.Add(s.lost, amount)
	}
}

// Overfund forms contracts with hosts that had none, with this amount in total.
func Overfund(amount *big.Int) func(*Sim) {
	return func(s *Sim) {
		spare := s.conf.Hosts - len(s.contracts)
		for range spare {
			s.form(new(big.Int).Quo(amount, big.NewInt(int64(spare))))
		}
	}
}

// Package siasim is a simulator of a Sia renter for tests: it is never a system
// under measurement, and nothing that it answers is a result.
//
// One model (a chain, hosts, contracts, a wallet, an uplink, files whose
// redundancy grows) is served in two dialects, siad's and renterd's, whose
// statuses, headers, bodies and oddities are those of recorded exchanges. The
// model keeps exact accounts, knows what its switchable faults did and when, and
// tells it (Truth), so that what a report finds can be held to it.
//
// The model's time is the process's: within a bubble of testing/synctest weeks
// pass in seconds. Host is a testbed.Host from which the simulator is reached
// over connections in memory, which such a bubble needs: a goroutine that waits
// for a real socket would keep its clock from moving on.
package siasim

import (
	"math/big"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Sim is a simulated renter. It is safe for concurrent use.
type Sim struct {
	conf  Config
	epoch time.Time

	mu       sync.Mutex
	now      time.Duration // since epoch, up to where the model has gone
	rand     *rand.Rand
	initial  *big.Int // all the money there is
	wallet   wallet
	hosts    []*host
	contract []*contract // all there ever were, in their order
	link     uplink
	jobs     []*job // not finished, in their order
	files    map[string]*file
	keep     int64 // bytes of content kept
	serial   int   // of files, contracts
	faults   Faults
	done     map[string]bool // faults of one moment that have happened
	events   []Event
	lost     *big.Int // money that faults made vanish
	gone     counts   // of files that were deleted
	renterd  renterdState

	allowance allowanceJSON
	forming   time.Duration // when contracts are formed that the allowance asks for; 0: none are

	net *network
}

// New makes a simulator whose contracts are formed and whose clock begins now.
// Zero values of c are replaced by those of Defaults.
func New(c Config) *Sim {
	c = c.filled()
	s := &Sim{
		conf: c, epoch: time.Now(), rand: rand.New(rand.NewPCG(c.Seed, 0x51a)),
		initial: new(big.Int).Set(c.Wallet), wallet: wallet{confirmed: new(big.Int).Set(c.Wallet), locked: c.Locked},
		files: map[string]*file{}, done: map[string]bool{}, lost: new(big.Int), faults: c.Faults,
	}
	s.link = uplink{bw: c.Up}
	s.allowance = newAllowance(c)
	for i := range c.Hosts {
		s.hosts = append(s.hosts, newHost(c.Seed, i))
	}
	for i := range c.Contracts {
		if i < len(s.hosts) {
			s.form(s.hosts[i], c.ContractFunds)
		}
	}
	s.wallet.settle() // they were formed long ago
	s.renterd.init(c)
	s.net = newNetwork(s)
	return s
}

// Close ends all connections and waits until their goroutines have ended, as a
// bubble of testing/synctest requires.
func (s *Sim) Close() { s.net.close() }

// Began is when its clock began.
func (s *Sim) Began() time.Time { return s.epoch }

// Siad is the API of siad.
func (s *Sim) Siad() http.Handler { return s.outer(s.siadRoutes()) }

// Renterd is the API of renterd.
func (s *Sim) Renterd() http.Handler { return s.outer(s.renterdRoutes()) }

// Switch changes the faults while the simulator runs. A moment that has passed
// already counts as now.
func (s *Sim) Switch(change func(f *Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	change(&s.faults)
	s.advance()
}

// Deposit adds money from outside to the wallet, confirmed in the next block.
func (s *Sim) Deposit(amount *big.Int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.initial.Add(s.initial, amount)
	s.wallet.receive(amount, s.nextBlock(s.now))
	s.event(s.now, "deposit", amount, "")
}

// height is the chain's height at a moment.
func (s *Sim) height(at time.Duration) int64 { return s.conf.Height + int64(at/s.conf.BlockTime) }

// nextBlock is when the block after a moment comes.
func (s *Sim) nextBlock(at time.Duration) time.Duration {
	return (at/s.conf.BlockTime + 1) * s.conf.BlockTime
}

// when is the moment at which the chain reaches a height.
func (s *Sim) when(height int64) time.Duration {
	return time.Duration(height-s.conf.Height) * s.conf.BlockTime
}

package siasim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"
)

// wallet is the renter's. Its money is confirmed + in − out: what is under way
// counts as if it had arrived.
type wallet struct {
	confirmed *big.Int
	pending   []transfer
	locked    bool
}

// transfer is a transaction that is in no block yet. It spends whole outputs,
// and gets change, as the wallet's two unconfirmed sums show.
type transfer struct {
	out, in *big.Int
	at      time.Duration // when its block comes
}

// balance is what can be spent.
func (w *wallet) balance() *big.Int {
	b := new(big.Int).Set(w.confirmed)
	for _, t := range w.pending {
		b.Add(b, t.in).Sub(b, t.out)
	}
	return b
}

// pay spends an amount, if it is there.
func (w *wallet) pay(amount *big.Int, block time.Duration) bool {
	has := w.balance()
	if has.Cmp(amount) < 0 {
		return false
	}
	out := new(big.Int).Lsh(amount, 1) // outputs are about twice what is paid
	if out.Cmp(has) > 0 {
		out = has
	}
	w.pending = append(w.pending, transfer{out: out, in: new(big.Int).Sub(out, amount), at: block})
	return true
}

// receive adds an amount that comes with a block.
func (w *wallet) receive(amount *big.Int, block time.Duration) {
	w.pending = append(w.pending, transfer{out: new(big.Int), in: new(big.Int).Set(amount), at: block})
}

// lose takes from the latest transfer what will not arrive.
func (w *wallet) lose(amount *big.Int) {
	last := &w.pending[len(w.pending)-1]
	last.in = new(big.Int).Sub(last.in, amount)
}

// confirm books the transfers whose blocks have come.
func (w *wallet) confirm(now time.Duration) {
	var left []transfer
	for _, t := range w.pending {
		if t.at > now {
			left = append(left, t)
			continue
		}
		w.confirmed.Add(w.confirmed, t.in).Sub(w.confirmed, t.out)
	}
	w.pending = left
}

// settle books all.
func (w *wallet) settle() { w.confirm(1<<63 - 1) }

func (w *wallet) unconfirmed() (out, in *big.Int) {
	out, in = new(big.Int), new(big.Int)
	for _, t := range w.pending {
		out.Add(out, t.out)
		in.Add(in, t.in)
	}
	return out, in
}

// host is a storage host.
type host struct {
	index   int
	address string
	key     []byte
	used    int64
	dead    bool // answers no one
	dropped bool // and hostdb knows
}

func newHost(seed uint64, i int) *host {
	key := sha256.Sum256(fmt.Appendf(nil, "host %d %d", seed, i))
	return &host{index: i, key: key[:], address: fmt.Sprintf("198.51.%d.%d:9982", 100+i/250, 1+i%250)}
}

func (h *host) public() string { return "ed25519:" + hex.EncodeToString(h.key) }
func (h *host) base64() string { return base64.StdEncoding.EncodeToString(h.key) }

// states of a contract, by the list of siad's that it is in.
type state int

const (
	active    state = iota
	passive         // of a host that is gone; not for uploads
	refreshed       // replaced before its end
	expired         // ended
)

// contract is one with a host. total = funds + fees + upload + storage +
// download at every moment.
type contract struct {
	id          string
	host        *host
	state       state
	start, end  int64 // heights
	funds       *big.Int
	initial     *big.Int // funds at the beginning
	fees        *big.Int
	upload      *big.Int
	storage     *big.Int
	download    *big.Int
	total       *big.Int
	size        int64
	revisions   int64
	renewedFrom string
	renewedTo   string
}

// spend moves money from the funds to a purpose, if it is there.
func (c *contract) spend(purpose, amount *big.Int) bool {
	if c.funds.Cmp(amount) < 0 {
		return false
	}
	c.funds.Sub(c.funds, amount)
	purpose.Add(purpose, amount)
	return true
}

// form makes a contract, if the wallet can pay for it.
func (s *Sim) form(h *host, funds *big.Int) *contract {
	total := new(big.Int).Add(funds, s.conf.ContractFees)
	if s.wallet.locked || !s.wallet.pay(total, s.nextBlock(s.now)) {
		return nil
	}
	s.serial++
	id := sha256.Sum256(fmt.Appendf(nil, "contract %d %d", s.conf.Seed, s.serial))
	height := s.height(s.now)
	c := &contract{
		id: hex.EncodeToString(id[:]), host: h, start: height, end: height + s.conf.Period,
		funds: new(big.Int).Set(funds), initial: new(big.Int).Set(funds), fees: new(big.Int).Set(s.conf.ContractFees),
		upload: new(big.Int), storage: new(big.Int), download: new(big.Int), total: total, revisions: 1,
	}
	s.contract = append(s.contract, c)
	return c
}

// wantContracts has those formed in the next block that the allowance asks for.
func (s *Sim) wantContracts() {
	if s.allowance.Funds.Int != nil && s.allowance.Funds.Sign() > 0 {
		s.forming = s.nextBlock(s.now)
	}
}

// formWanted forms as many as the wallet can pay for.
func (s *Sim) formWanted() {
	s.forming = 0
	for _, h := range s.hosts {
		if int64(len(s.active())) >= s.allowance.Hosts {
			return
		}
		if !h.dead && !s.contracted(h) && s.form(h, s.conf.ContractFunds) == nil {
			return
		}
	}
}

// release gives back to the wallet what a contract has not spent.
func (s *Sim) release(at time.Duration, c *contract) {
	rest := new(big.Int).Set(c.funds)
	c.funds.SetInt64(0)
	c.total.Sub(c.total, rest)
	s.wallet.receive(rest, s.nextBlock(at))
}

// renew replaces a contract by a new one with its host, of the same size.
func (s *Sim) renew(at time.Duration, c *contract, funds *big.Int) bool {
	to := s.form(c.host, funds)
	if to == nil {
		return false
	}
	to.size, to.renewedFrom, c.renewedTo = c.size, c.id, to.id
	c.state = refreshed
	s.release(at, c)
	return true
}

// endContracts ends those with a host for good: what lay there counts no more.
func (s *Sim) endContracts(at time.Duration, h *host) {
	for _, c := range s.contract {
		if c.host == h && (c.state == active || c.state == passive) {
			c.state = expired
			s.release(at, c)
		}
	}
	for _, f := range s.files {
		f.lose(h)
	}
	for _, f := range s.renterd.slabs {
		f.lose(h)
	}
	s.event(at, "redundancy falls", nil, h.address)
	for _, spare := range s.hosts { // as recorded, one that had none gets a contract
		if !spare.dead && !s.contracted(spare) {
			s.form(spare, s.conf.ContractFunds)
			return
		}
	}
}

func (f *file) lose(h *host) {
	f.lost += f.on[h.index]
	delete(f.on, h.index)
}

func (s *Sim) contracted(h *host) bool {
	for _, c := range s.contract {
		if c.host == h && c.state == active {
			return true
		}
	}
	return false
}

// active are the contracts in use.
func (s *Sim) active() []*contract {
	var all []*contract
	for _, c := range s.contract {
		if c.state == active {
			all = append(all, c)
		}
	}
	return all
}

// good are the contracts that take sectors.
func (s *Sim) good(at time.Duration) []*contract {
	if within(s.faults.Full, at) {
		return nil
	}
	var all []*contract
	for _, c := range s.contract {
		if c.state == active && !c.host.dead && c.host.used+s.conf.Sector <= s.conf.HostStorage {
			all = append(all, c)
		}
	}
	return all
}

// sectorPrice is what uploading a sector costs, and keeping it for a period.
func (s *Sim) sectorPrice() (upload, storage *big.Int) {
	sector := big.NewInt(s.conf.Sector)
	upload = new(big.Int).Mul(s.conf.Prices.Upload, sector)
	storage = new(big.Int).Mul(s.conf.Prices.Storage, sector)
	storage.Mul(storage, big.NewInt(s.conf.Period))
	return upload, storage
}

// solvent reports whether another sector could be paid for.
func (s *Sim) solvent(at time.Duration) bool {
	upload, storage := s.sectorPrice()
	price := upload.Add(upload, storage)
	good := s.good(at)
	for _, c := range good {
		if c.funds.Cmp(price) >= 0 {
			return true
		}
	}
	form := new(big.Int).Add(s.conf.ContractFunds, s.conf.ContractFees)
	return len(good) > 0 && !s.wallet.locked && s.wallet.balance().Cmp(form) >= 0
}

// store pays a host for the next sector of a file. It tells when nobody can be
// paid.
func (s *Sim) store(at time.Duration, f *file) bool {
	upload, storage := s.sectorPrice()
	price := new(big.Int).Add(upload, storage)
	ring := s.good(at)
	for i := range ring {
		c := ring[(f.serial*7+f.placed+i)%len(ring)]
		if c.funds.Cmp(price) < 0 {
			if !s.renew(at, c, s.conf.ContractFunds) {
				continue
			}
			c = s.contract[len(s.contract)-1]
		}
		if !c.spend(c.upload, upload) || !c.spend(c.storage, storage) {
			continue
		}
		c.size += s.conf.Sector
		c.revisions++
		c.host.used += s.conf.Sector
		f.placed++
		f.on[c.host.index]++
		return true
	}
	return false
}

package siasim

import (
	"fmt"
	"math/big"
)

// Amounts in thousandths of a siacoin, and prices in hastings, as they were
// recorded.
const (
	initialWallet = 10_000_000
	contractFunds = 80_000
	contractFees  = 3_459

	storagePrice  = 11_574_074_074 // of a byte and a block
	uploadPrice   = 1_000_000_000_000
	downloadPrice = 25_000_000_000_000
)

// SC is n thousandths of a siacoin in hastings.
func SC(thousandths int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(thousandths), new(big.Int).Exp(big.NewInt(10), big.NewInt(21), nil))
}

// host is a storage host.
type host struct {
	dead bool // answers no one
}

// States of a contract, by the list of siad's that it is in.
const (
	active    = "activecontracts"
	refreshed = "refreshedcontracts" // replaced before its end
	expired   = "expiredcontracts"
)

// contract is one with a host.
type contract struct {
	id    string
	host  *host
	state string
	size  int64
	money map[string]*big.Int // by the names that siad has for what it is there or was spent for
}

const (
	funds    = "renterfunds"
	upload   = "uploadspending"
	storage  = "storagespending"
	download = "downloadspending"
)

func (c *contract) total() *big.Int {
	total := new(big.Int)
	for _, part := range c.money {
		total.Add(total, part)
	}
	return total
}

// form makes a contract. The wallet is much larger than what all of them cost.
func (s *Sim) form(h *host, with *big.Int) {
	fees := SC(contractFees)
	s.wallet.Sub(s.wallet, with)
	s.wallet.Sub(s.wallet, fees)
	s.serial++
	s.contracts = append(s.contracts, &contract{
		id: fmt.Sprintf("%064x", s.serial), host: h, state: active,
		money: map[string]*big.Int{funds: new(big.Int).Set(with), "fees": fees, upload: new(big.Int),
			storage: new(big.Int), download: new(big.Int)},
	})
}

// spend moves money from the funds, which last, to a purpose.
func (c *contract) spend(purpose string, price, times int64) {
	amount := new(big.Int).Mul(big.NewInt(price), big.NewInt(times))
	c.money[funds].Sub(c.money[funds], amount)
	c.money[purpose].Add(c.money[purpose], amount)
}

// end ends a contract: the wallet gets back what it has not spent.
func (s *Sim) end(c *contract, as string) {
	c.state = as
	s.wallet.Add(s.wallet, c.money[funds])
	c.money[funds].SetInt64(0)
}

// active are the contracts in use with hosts that live.
func (s *Sim) active() (all []*contract) {
	for _, c := range s.contracts {
		if c.state == active && !c.host.dead {
			all = append(all, c)
		}
	}
	return all
}

// spare are the hosts that live and have no contract.
func (s *Sim) spare() (all []*host) {
	has := map[*host]bool{}
	for _, c := range s.active() {
		has[c.host] = true
	}
	for _, h := range s.hosts {
		if !h.dead && !has[h] {
			all = append(all, h)
		}
	}
	return all
}

// store pays a host for the next sector of a file.
func (s *Sim) store(f *file) {
	ring := s.active()
	c := ring[(f.serial*7+f.placed)%len(ring)]
	c.spend(upload, uploadPrice, s.conf.Sector)
	c.spend(storage, storagePrice*period, s.conf.Sector)
	c.size += s.conf.Sector
	f.placed++
	f.on[c.host]++
}

package siasim

import (
	"fmt"
	"math/big"
)

// Amounts in thousandths of a siacoin, and prices in hastings, as recorded from a real siad.
const (
	initialWallet = 10_000_000
	contractFunds = 80_000
	contractFees  = 3_459

	storagePrice  = 11_574_074_074 // per byte and block
	uploadPrice   = 1_000_000_000_000
	downloadPrice = 25_000_000_000_000
)

// SC returns n thousandths of a siacoin in hastings.
func SC(thousandths int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(thousandths), new(big.Int).Exp(big.NewInt(10), big.NewInt(21), nil))
}

// contract is a contract with a host.
type contract struct {
	id    string
	size  int64
	money map[string]*big.Int // by siad's names for unspent funds and for kinds of spending
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

// form makes a contract. The wallet holds much more than all contracts cost.
func (s *Sim) form(with *big.Int) {
	fees := SC(contractFees)
	s.wallet.Sub(s.wallet, with)
	s.wallet.Sub(s.wallet, fees)
	s.serial++
	s.contracts = append(s.contracts, &contract{
		id: fmt.Sprintf("%064x", s.serial),
		money: map[string]*big.Int{funds: new(big.Int).Set(with), "fees": fees, upload: new(big.Int),
			storage: new(big.Int), download: new(big.Int)},
	})
}

// spend moves money from the funds to a purpose. The funds are never exhausted.
func (c *contract) spend(purpose string, price, times int64) {
	amount := new(big.Int).Mul(big.NewInt(price), big.NewInt(times))
	c.money[funds].Sub(c.money[funds], amount)
	c.money[purpose].Add(c.money[purpose], amount)
}

// store pays a host for the next sector of a file.
func (s *Sim) store(f *file) {
	c := s.contracts[(f.serial*7+f.placed)%len(s.contracts)]
	c.spend(upload, uploadPrice, s.conf.Sector)
	c.spend(storage, storagePrice*period, s.conf.Sector)
	c.size += s.conf.Sector
	f.placed++
}

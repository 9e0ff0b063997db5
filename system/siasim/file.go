package siasim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
)

// file is an object that was put. Its sectors pass through the uplink in order: first those that
// are needed to rebuild every chunk, then, chunk by chunk, the others.
type file struct {
	path       string
	serial     int
	size       int64
	sum        string // SHA-256 of the content, lower-case hex
	content    *os.File
	incomplete bool // whether its content was cut off
	data, full int  // pieces that rebuild a chunk; pieces that were requested
	chunks     int
	begin      float64 // number of bytes that the uplink will have carried before its first byte
	placed     int     // sectors on hosts, counted and paid
}

// receive returns a file with the body's content. It does not add it to the renter.
func (s *Sim) receive(path string, r io.Reader) *file {
	f := &file{path: path, data: s.conf.Data, full: s.conf.Data + s.conf.Parity}
	hash := sha256.New()
	content, err := os.CreateTemp("", "siasim-")
	if err == nil {
		_ = os.Remove(content.Name()) // its content exists while it is open
		f.size, err = io.Copy(io.MultiWriter(content, hash), r)
	}
	f.content, f.sum, f.incomplete = content, hex.EncodeToString(hash.Sum(nil)), err != nil
	chunk := int64(f.data) * s.conf.Sector
	f.chunks = int((f.size + chunk - 1) / chunk)
	return f
}

// sectors returns the number of sectors of the completely uploaded file.
func (f *file) sectors() int { return f.chunks * f.full }

// add adds a file. If it is complete, it passes through the uplink after all others.
func (s *Sim) add(f *file) {
	s.serial++
	f.serial = s.serial
	s.files[f.path] = f
	if f.incomplete {
		return
	}
	f.begin = max(s.carried(s.now), s.tail)
	s.tail = f.begin + float64(f.sectors())*float64(s.conf.Sector)
	s.sending = append(s.sending, f)
}

// remove removes a file and cancels the rest of its upload.
func (s *Sim) remove(f *file) {
	delete(s.files, f.path)
	s.gone += int64(f.placed)
	s.sending = slices.DeleteFunc(s.sending, func(other *file) bool { return other == f })
}

// carried returns how many bytes the uplink could have carried until t.
func (s *Sim) carried(t time.Duration) float64 {
	moving := t - s.conf.Faults.Stall.passed(t) - s.conf.Faults.Full.passed(t)
	return moving.Seconds() * s.conf.Rate
}

// epsilon compensates for rounding in sums of bytes, in sectors.
const epsilon = 1e-6

// upload stores the sectors that have passed through the uplink until a time.
func (s *Sim) upload(at time.Duration) {
	carried := s.carried(at)
	s.sending = slices.DeleteFunc(s.sending, func(f *file) bool {
		through := min(int((carried-f.begin)/float64(s.conf.Sector)+epsilon), f.sectors())
		for f.placed < through {
			s.store(f)
		}
		return f.placed == f.sectors()
	})
}

// accepted waits until each chunk of a file can be rebuilt from hosts. It reports whether the file
// still exists.
func (s *Sim) accepted(ctx context.Context, f *file) bool {
	for {
		unlock := s.lock()
		there, done, down := s.files[f.path] == f, f.placed >= f.chunks*f.data, s.has(s.conf.Faults.Down)
		sector := float64(s.conf.Sector)
		left := f.begin + float64(f.chunks*f.data)*sector - s.carried(s.now)
		unlock()
		if down && done {
			panic(http.ErrAbortHandler) // the answer cannot be delivered
		}
		if done || !there {
			return there
		}
		wait := time.Duration(max(left, sector/100) / s.conf.Rate * float64(time.Second))
		if !timing.Pause(ctx, min(wait, blockTime)) {
			return false
		}
	}
}

// redundancy returns the redundancy as siad computes it: that of the worst chunk.
func (f *file) redundancy() float64 {
	switch {
	case f.incomplete:
		return 0
	case f.chunks == 0:
		return float64(f.full) / float64(f.data)
	}
	worst := max(0, f.placed-(f.chunks-1)*f.data)
	if first := f.chunks * f.data; f.placed >= first {
		worst = f.data + max(0, f.placed-first-(f.chunks-1)*(f.full-f.data))
	}
	return float64(worst) / float64(f.data)
}

// send answers with a part of a file's content and pays a host for it.
func (s *Sim) send(w http.ResponseWriter, f *file, off, length int64) {
	unlock := s.lock()
	s.contracts[0].spend(download, downloadPrice, length)
	unlock()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, io.NewSectionReader(f.content, off, length))
}

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

package siad

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// plan is what to start.
type plan struct {
	hosts        int
	data, parity int64
	hostSize     int64
	mine         bool
	wallet       string // password of all wallets; needed once
	timeout      time.Duration
}

const folderUnit = 16 << 20 // 64 sectors of the dev constants

func planOf(opt system.Options) (plan, error) {
	hosts, err1 := opt.Int("hosts")
	size, err2 := opt.Int("host_size")
	timeout, err3 := opt.Duration("start_timeout")
	if err := errors.Join(err1, err2, err3); err != nil {
		return plan{}, fmt.Errorf("siad: %w", err)
	}
	data, parity, err := sia.Pair(name, opt, "data_pieces", "parity_pieces")
	if err != nil {
		return plan{}, err
	}
	if data == 0 {
		data, parity = 1, max(hosts-1, 1)
	}
	switch {
	case hosts < 2 || hosts > 64:
		return plan{}, fmt.Errorf("siad: option \"hosts\": %d is not between 2 and 64", hosts)
	case data+parity > hosts:
		return plan{}, fmt.Errorf("siad: %d data + %d parity pieces need as many hosts, there are %d: %w", data, parity, hosts, system.ErrTooFew)
	case size < folderUnit || size%folderUnit != 0:
		return plan{}, fmt.Errorf("siad: option \"host_size\": %d is not a multiple of 16 MiB", size)
	case timeout <= 0:
		return plan{}, fmt.Errorf("siad: option \"start_timeout\": %v is not positive", timeout)
	}
	return plan{hosts: int(hosts), data: data, parity: parity, hostSize: size, mine: opt.Bool("mine"), wallet: rand.Text(), timeout: timeout}, nil
}

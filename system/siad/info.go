// Package siad stores objects on Sia hosts through a siad of the v1.5 line: one
// that runs already, or a private network of renter, miner and hosts of our own.
package siad

import "github.com/plimsoll-project/plimsoll/system"

const name = "siad"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Sia, siad v1.5: a running renter, or a private network started here",
		Modes:   []system.Mode{system.Start, system.Attach},
		Can:     []string{"put", "durable", "range", "delete", "list", "stat", "stats", "cost", "cold", "monitor"},
		Image:   "ghcr.io/siafoundation/siad:latest",
		Install: "build siad v1.5.9 with its `dev` constants and name it in option `binary` or PLIMSOLL_SIAD",
		Options: []system.Option{
			{Name: "url", Type: "string", Help: "attach: URL of the API, such as http://127.0.0.1:9980; empty when started"},
			{Name: "password", Type: "string", Secret: true, Default: "SIA_API_PASSWORD", Help: "attach: environment variable with the API password"},
			{Name: "wallet_password", Type: "string", Secret: true, Help: "attach: environment variable with the wallet's password, to unlock it when writing is allowed"},
			{Name: "path", Type: "string", Default: "plimsoll", Help: "the renter's folder of objects; empty: all files (attach, reading)"},
			{Name: "data_pieces", Type: "int", Default: "0", Help: "pieces that rebuild a chunk; 0: 1 (attached: the renter's default)"},
			{Name: "parity_pieces", Type: "int", Default: "0", Help: "further pieces; 0: `hosts` − 1 (attached: the renter's default)"},
			{Name: "hosts", Type: "int", Default: "3", Help: "start: hosts of the private network"},
			{Name: "host_size", Type: "size", Default: "1073741824", Help: "start: storage of each host, a multiple of 16 MiB"},
			{Name: "mine", Type: "bool", Default: "false", Help: "start: continue mining, which takes one core"},
			{Name: "start_timeout", Type: "duration", Default: "15m0s", Help: "start: time for the network to become ready"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of siad; empty: PLIMSOLL_SIAD, then PATH"},
		},
	}
}

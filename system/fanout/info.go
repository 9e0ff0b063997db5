// Package fanout is the raw baseline of swarms: nodes that have a content serve
// it over HTTP, the others download it from them and pass nothing on. Each node
// is a process of its own.
package fanout

import "github.com/plimsoll-project/plimsoll/system"

const name = "fanout"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:     name,
		Summary:  "embedded HTTP servers and downloads (Go net/http) that pass nothing on: the raw baseline of swarms",
		Modes:    []system.Mode{system.Start},
		Can:      []string{"spread", "restart"},
		Embedded: true,
		Baseline: true,
		// 10 MB measured, while 128 MiB went through it.
		NodeMemory: 16 << 20,
		Options: []system.Option{
			{Name: "port", Type: "int", Default: "0", Help: "TCP port; 0: a free one"},
		},
	}
}

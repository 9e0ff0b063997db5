package experiment

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Link describes the emulated link between generator and system.
type Link struct {
	// Rate on the wire, Ethernet framing included.
	Rate BitRate `json:"rate" default:"unlimited" zero:"unlimited" max:"1Tbit" label:"rate"`
	// Rate at which storage nodes send, if not link.rate.
	Up BitRate `json:"up,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"up rate"`
	// Rate at which storage nodes receive, if not link.rate.
	Down BitRate `json:"down,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"down rate"`
	// Delay one way: half the round trip.
	Delay Duration `json:"delay" default:"0s" max:"10s" label:"delay"`
	// Round trips between regions in place of delay: ibm-cloud, or a list of your own. Needs the emulator user.
	Regions Regions `json:"regions,omitempty" default:"none" zero:"none" label:"regions"`
	// Variation of the delay, uniform, to either side; packets keep their order.
	Jitter Duration `json:"jitter" default:"0s" max:"10s" label:"jitter"`
	// Probability that a segment is lost, in each direction. The estimate of plan ignores it.
	Loss Fraction `json:"loss" default:"0%" max:"90%" label:"loss"`
	// Queue before the link. auto: the bandwidth-delay product, at least 64 full segments.
	Queue Bytes `json:"queue" default:"auto" zero:"auto" label:"queue"`
	// TCP congestion control at both ends; the kernel must have it.
	Congestion string `json:"congestion" default:"cubic"`
	// Use IPv6 on the link.
	IPv6 bool `json:"ipv6" default:"false"`
	// How far the measured round trip and rate may be off before a trial is invalid; the round trip always by 1 ms,
	// by the jitter, and by the time of a ping on a slow link.
	Tolerance Fraction `json:"tolerance" default:"5%"`
	// netem: the kernel. user: our own, in user space. auto: whichever works (a rate alone: the kernel's tbf). none: no
	// emulation.
	Emulator string `json:"emulator" default:"auto" enum:"auto,netem,user,none"`
}

// RoundTrip is the round trip between two regions, or the name of a published table of round trips.
type RoundTrip struct {
	_ struct{} `short:"table"`
	// A published table, see Regions.
	Table string `json:"table,omitempty" one:"true" enum:"ibm-cloud"`
	// Two regions; or one, for its inside.
	Between []string `json:"between,omitempty" one:"true"`
	// Round trip between them.
	RTT Duration `json:"rtt,omitempty" max:"20s" needs:"between"`
}

func (t *RoundTrip) check() error {
	if n := len(t.Between); t.Table == "" && (n < 1 || n > 2 || slices.Contains(t.Between, "")) {
		return mistake("write `{between: [paris, tokyo], rtt: 240ms}`", "a round trip has one or two regions")
	}
	return nil
}

func (t RoundTrip) String() string {
	if t.Table != "" {
		return t.Table
	}
	return strings.Join(t.Between, "–") + " " + t.RTT.String()
}

// Regions are the round trips between all regions over which hosts are spread.
type Regions []RoundTrip

func (rs Regions) String() string { return joined(rs) }

func (rs *Regions) check() error {
	names, trips := rs.table()
	seen := map[[2]string]bool{}
	for _, t := range *rs {
		pair := pairOf(t.Between...)
		switch {
		case t.Table != "" && len(*rs) > 1:
			return mistake("write the table alone", "a table has all round trips")
		case seen[pair]:
			return mistake("", "two round trips of %s", strings.Join(t.Between, " and "))
		}
		seen[pair] = true
	}
	for i, a := range names {
		for _, b := range names[:i] {
			if _, is := trips[pairOf(b, a)]; !is {
				return mistake(fmt.Sprintf("add `{between: [%s, %s], rtt: 40ms}`", b, a),
					"no round trip between %s and %s", b, a)
			}
		}
	}
	return nil
}

// pairOf returns a key for two regions in either order, or for the inside of one region.
func pairOf(names ...string) (pair [2]string) {
	if len(names) > 0 {
		pair = [2]string{slices.Min(names), slices.Max(names)}
	}
	return pair
}

// table returns the regions in order, and the round trips between them.
func (rs Regions) table() (names []string, trips map[[2]string]time.Duration) {
	trips = map[[2]string]time.Duration{}
	if len(rs) == 1 && rs[0].Table != "" {
		rs = published()
	}
	for _, t := range rs {
		for _, name := range t.Between {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		trips[pairOf(t.Between...)] = t.RTT.Std()
	}
	return names, trips
}

// ibmCloud holds, in milliseconds, the average latency between IBM Cloud's regions from 3 February
// to 3 March 2024, as published in the IBM Cloud documentation (Virtual Private Cloud, "Network
// latency"); within a region, the mean of those between its three zones. We chose the order so that
// the first few regions are far from each other. Plans name the table, so it must never change.
//
//go:embed regions_ibm_cloud.txt
var ibmCloud string

// published returns the round trips of ibmCloud.
func published() (rs Regions) {
	var names []string
	for line := range strings.Lines(ibmCloud) {
		words := strings.Fields(line)
		names = append(names, words[0])
		for i, ms := range words[1:] {
			t := RoundTrip{Between: []string{names[i], words[0]}}
			if err := t.RTT.parse(ms + "ms"); err != nil {
				panic(fmt.Sprintf("experiment: round trips of %s: %v", words[0], err))
			}
			rs = append(rs, t)
		}
	}
	return rs
}

// RoundTrips returns a function for the round trip between two hosts by their indices: those of
// nodes, in order, or 0 for the client and 1 for every system. Hosts are assigned to the regions in
// turn.
func (l Link) RoundTrips() func(a, b int) time.Duration {
	names, trips := l.Regions.table()
	return func(a, b int) time.Duration {
		if len(names) == 0 {
			return 2 * l.Delay.Std()
		}
		return trips[pairOf(names[a%len(names)], names[b%len(names)])]
	}
}

// RTT returns the round trip between the client and a system, in seconds.
func (l Link) RTT() float64 { return l.RoundTrips()(0, 1).Seconds() }

// UpRate returns the rate at which a storage node sends; 0: unlimited.
func (l Link) UpRate() BitRate { return cmp.Or(l.Up, l.Rate) }

// DownRate returns the rate at which a storage node receives; 0: unlimited.
func (l Link) DownRate() BitRate { return cmp.Or(l.Down, l.Rate) }

// unlimited reports whether a storage node sends or receives without a limit.
func (l Link) unlimited() bool { return l.UpRate() == 0 || l.DownRate() == 0 }

// Shaped reports whether the link differs from the bare machine's.
func (l Link) Shaped() bool {
	return l.UpRate() != 0 || l.DownRate() != 0 || l.Queue != 0 ||
		l.Delay != 0 || l.Regions != nil || l.Jitter != 0 || l.Loss != 0
}

// ChangesLinks reports whether links of single nodes differ from the cell's, permanently or
// temporarily.
func (c *Cell) ChangesLinks() bool {
	return c.Disseminate != nil && c.Disseminate.Slow > 0 ||
		slices.ContainsFunc(c.Faults(), func(f Fault) bool { return f.Kind() != FaultCrash }) ||
		c.Sync != nil && (c.Sync.Speeds.Given() ||
			slices.ContainsFunc(c.Sync.Trouble, func(t BadPeers) bool { return t.Rate != 0 }))
}

// Key returns a text that is equal for links that are shaped alike.
func (l Link) Key() string { return fmt.Sprintf("%+v", l) }

// Stores reports whether a cell's bytes are sent to the system, over its downlink.
func (c Cell) Stores() bool {
	return c.Upload != nil || c.Overhead != nil && (c.Overhead.Operation == "fill" || Writes(c.Overhead.Operation))
}

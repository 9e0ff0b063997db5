package link

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func lateness(times ...time.Duration) Lateness {
	n := newNetwork(1, &pool{})
	for _, t := range times {
		n.departed(&event{at: -int64(t), p: sized(100, 1), refused: true}, 0)
	}
	return n.stats().Lateness
}

func TestTroubleOfLatePackets(t *testing.T) {
	const limit = 2 * time.Millisecond
	repeat := func(n int, t time.Duration) []time.Duration { return slices.Repeat([]time.Duration{t}, n) }
	for name, c := range map[string]struct {
		late []time.Duration
		want string // in the words; empty: no trouble
	}{
		"nothing sent":  {nil, ""},
		"few, one late": {append(repeat(30, 50*time.Microsecond), 5*time.Millisecond), ""},
		"few, all late": {repeat(30, 1300*time.Microsecond), " ms late (mean of 30, limit 1 ms)"},
		"few, some very late": {append(repeat(30, 50*time.Microsecond), repeat(3, 20*time.Millisecond)...),
			"mean of 33"},
		"many, less than 1 %": {append(repeat(1000, 50*time.Microsecond), repeat(9, 5*time.Millisecond)...), ""},
		"many, more than 1 %": {append(repeat(1000, 50*time.Microsecond), repeat(20, 5*time.Millisecond)...),
			" ms late (99th percentile, limit 2 ms)"},
		"many, all a little late": {repeat(1000, 1500*time.Microsecond), ""},
	} {
		got := Stats{Lateness: lateness(c.late...)}.Trouble(limit)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTroubleOfLostSegments(t *testing.T) {
	for cause, least := range map[string]int64{DropMemory: 1, DropUnread: 1, DropCarrier: 11, DropWrite: 11} {
		s := Stats{Hosts: map[string]HostStats{"a": {Sent: Count{Segments: 1e6}}},
			Drops: Drops{cause: least - 1}}
		if got := s.Trouble(time.Hour); got != "" {
			t.Errorf("%s of %d segments in a million: %q, want none", cause, least-1, got)
		}
		s.Drops[cause] = least
		if s.Trouble(time.Hour) == "" {
			t.Errorf("%s of %d segments in a million is no trouble", cause, least)
		}
	}
}

package tahoe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Accounts that a client keeps of operations, by their names in URLs. They are numbered from 0 for
// each kind; the client soon drops the oldest.
const (
	upload    = "up"
	download  = "down"
	mapupdate = "mapupdate"
	retrieve  = "retrieve"
	publish   = "publish"
)

// leaves records which accounts the latest operation left, in order.
func (n *node) leaves(accounts ...string) { n.last.Store(&accounts) }

// storing returns the accounts that a put leaves.
func storing(ref system.Ref) []string {
	if c, _ := parseCap(ref); c.literal() {
		return nil
	}
	return []string{upload}
}

// reading returns the accounts that a read of ref leaves; a literal cap leaves none.
func reading(ref system.Ref) []string {
	switch c, _ := parseCap(ref); c.kind {
	case "CHK":
		return []string{download}
	case "LIT":
		return nil
	}
	return []string{mapupdate, retrieve}
}

// Phases implements system.Phaser, from the client's status pages; accounts of the same kind are
// summed. If several operations run at once, their accounts may be confused.
func (n *node) Phases(ctx context.Context) ([]system.Phase, error) {
	last := n.last.Load()
	if last == nil || len(*last) == 0 {
		return nil, nil
	}
	kinds := *last
	index, err := n.ask(ctx, "/status", "")
	if err != nil {
		return nil, fmt.Errorf("tahoe: phases: %w", err)
	}
	latest := latestAccounts(index)
	numbers := make([]int, len(kinds))
	for i, kind := range slices.Backward(kinds) {
		numbers[i] = latest[kind]
		latest[kind]--
	}
	var all []system.Phase
	for i, kind := range kinds {
		if numbers[i] < 0 {
			return nil, fmt.Errorf("tahoe: phases: the client's status page has no %q of the latest operation", kind)
		}
		phases, err := n.account(ctx, kind, numbers[i])
		if err != nil {
			return nil, fmt.Errorf("tahoe: phases: %w", err)
		}
		for _, p := range phases {
			if k := slices.IndexFunc(all, func(a system.Phase) bool { return a.Name == p.Name }); k >= 0 {
				all[k].Took += p.Took
			} else {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

var accountLink = regexp.MustCompile(`/status/([a-z]+)-(\d+)"`)

// latestAccounts returns the highest number of each kind on the page /status, −1 for absent kinds.
func latestAccounts(page []byte) map[string]int {
	latest := map[string]int{upload: -1, download: -1, mapupdate: -1, retrieve: -1, publish: -1}
	for _, m := range accountLink.FindAllSubmatch(page, -1) {
		number, err := strconv.Atoi(string(m[2]))
		if err == nil && number > latest[string(m[1])] {
			latest[string(m[1])] = number
		}
	}
	return latest
}

// account returns the phases of one account.
func (n *node) account(ctx context.Context, kind string, number int) ([]system.Phase, error) {
	path := fmt.Sprintf("/status/%s-%d", kind, number)
	if kind == download {
		path += "/event_json"
	}
	b, err := n.ask(ctx, path, "")
	switch {
	case err != nil:
		return nil, err
	case kind == download:
		return downloadPhases(b)
	}
	return pagePhases(kind, b)
}

// timing matches `<li>Peer Selection: 44ms`, with or without a <span> around the time. The pages of
// mutable files give seconds without a unit, and "None" for phases that did not occur.
var timing = regexp.MustCompile(`<li>([A-Za-z ]+):\s*(?:<span>)?` +
	`([0-9.]+(?:e-?[0-9]+)?) ?(us|ms|s|seconds?|minutes?|hours?)?(?:</span>)?(?:\s|</li>)`)

// pagePhases returns the timings of an HTML page, in order. A literal upload has none.
func pagePhases(kind string, html []byte) (all []system.Phase, err error) {
	text := string(html)
	if _, timings, ok := strings.Cut(text, "Timings:"); ok { // "Encoding: 2 of 3" before it also begins like a timing
		text = timings
	}
	seen := map[string]bool{"File Size": true} // it has no unit either
	for _, m := range timing.FindAllStringSubmatch(text, -1) {
		if seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("time %q of %q: %w", m[2], m[1], err)
		}
		name := map[string]string{upload: "upload"}[kind]
		all = append(all, system.Phase{Name: cmp.Or(name, kind) + ": " + m[1],
			Took: time.Duration(v * float64(cmp.Or(units[strings.TrimSuffix(m[3], "s")], time.Second)))})
	}
	return all, nil
}

// units maps the units of times, without a final s; other times are in seconds.
var units = map[string]time.Duration{
	"u": time.Microsecond, "m": time.Millisecond, "minute": time.Minute, "hour": time.Hour,
}

// event is a time span in the account of a download, in seconds since 1970; an unfinished one has
// no finish.
type event struct {
	Start   float64  `json:"start_time"`
	Active  float64  `json:"active_time"`
	Finish  *float64 `json:"finish_time"`
	Decode  float64  `json:"decode_time"`
	Decrypt float64  `json:"decrypt_time"`
	Paused  float64  `json:"paused_time"`
}

// downloadPhases parses event_json. Requests run in parallel: they count from the start of the
// first to the end of the last. All other times are summed.
func downloadPhases(b []byte) ([]system.Phase, error) {
	var a struct{ DYHB, Block, Segment, Read []event }
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("account of a download: %w", err)
	}
	var read, segments, decode, decrypt, paused float64
	for _, e := range a.Read {
		if e.Finish != nil {
			read += *e.Finish - e.Start
		}
		decrypt += e.Decrypt
		paused += e.Paused
	}
	for _, e := range a.Segment {
		if e.Finish != nil && e.Active > 0 {
			segments += *e.Finish - e.Active
		}
		decode += e.Decode
	}
	var all []system.Phase
	for _, p := range []struct {
		name    string
		seconds float64
	}{
		{"read", read}, {"DYHB requests", span(a.DYHB)}, {"block requests", span(a.Block)},
		{"segments", segments}, {"decode", decode}, {"decrypt", decrypt}, {"paused", paused},
	} {
		all = append(all, system.Phase{Name: "download: " + p.name,
			Took: time.Duration(p.seconds * float64(time.Second))})
	}
	return all, nil
}

// span returns the seconds from the first start to the last finish.
func span(all []event) float64 {
	var first, last float64
	for _, e := range all {
		if first == 0 || e.Start < first {
			first = e.Start
		}
		if e.Finish != nil && *e.Finish > last {
			last = *e.Finish
		}
	}
	return max(0, last-first)
}

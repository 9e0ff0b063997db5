package report

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// TestWriteFactsRuns makes the run directories of cmd/plimsoll's facts harness
// (testdata/facts there). They are committed, so it runs only when asked to:
// PLIMSOLL_FACTS=../cmd/plimsoll/testdata/facts go test ./report -run TestWriteFactsRuns
func TestWriteFactsRuns(t *testing.T) {
	to := os.Getenv("PLIMSOLL_FACTS")
	if to == "" {
		t.Skip("PLIMSOLL_FACTS is not set: the committed runs stay as they are")
	}
	retrieve := func(s synthetic.Run) func(testing.TB) string {
		return func(t testing.TB) string {
			dir, run := s.Write(t)
			if s.Stop > 0 {
				must(t, run.Close())
			}
			return dir
		}
	}
	const small = `
scenario: retrieve
title: Facts
systems: [nginx, boxo]
baseline: nginx
link: {rate: [100Mbit, 1Gbit], delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 64], range: 1MiB, requests: 80}
repetitions: 8
limits: {deadline: 20s}
`
	const costsFile = `
scenario: overhead
systems:
  - {use: tahoe, with: {needed: 2, total: 3}}
  - sftp
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 40ms]}
data: {size: [40B, 10kB, 1MB]}
overhead: {operation: [put, get], count: 5}
repetitions: 6
`
	const syncSmall = `
scenario: sync
title: Facts
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync: {blocks: 3000, peers: [4], storage: [disk, ram], vary: {subscriber: [full, none]}}
repetitions: 6
warmup: 0
`
	load := func(change func(*loadTruth)) func(testing.TB) string {
		s := plainLoad(5)
		s.hours, s.every, s.objects = 36, 900, 400
		change(&s)
		return s.write
	}
	lost := func(c *experiment.Cell, block int, _ float64, all []leech) {
		if c.System == "boxo" && block%3 == 0 {
			all[0].outcome, all[0].class, all[0].got = record.Stalled, "no byte for 30 s", 0.4
		}
	}
	slow := synthetic.Run{File: small, Blocks: 8, Seed: 2, Own: func(_ string, n float64) float64 { return 20e6 }}
	for name, write := range map[string]func(testing.TB) string{
		"retrieve":         retrieve(synthetic.Run{File: small, Blocks: 8}),
		"retrieve-slower":  retrieve(slow),
		"retrieve-killed":  retrieve(synthetic.Run{File: small, Blocks: 8, Stop: 27}),
		"retrieve-corrupt": retrieve(synthetic.Run{File: small, Blocks: 3, WrongBytes: true}),
		"retrieve-gates": retrieve(synthetic.Run{File: small +
			"gates: ['success >= 99%', 'p50(ttfb) < 1s', 'throughput within 50% of nginx']\n", Blocks: 8}),
		"overhead":            costs{file: costsFile}.write,
		"overhead-no-link":    costs{file: costsFile, noLink: true}.write,
		"disseminate":         swarmTruth{}.write,
		"disseminate-stalled": swarmTruth{leechers: lost}.write,
		"sync":                syncTruth{file: syncSmall}.write,
		"sync-unfinished": syncTruth{file: syncSmall, node: func(c *experiment.Cell, block int, f *newcomer) {
			if is(c, "sync.storage", "ram") && block%2 == 0 {
				f.outcome, f.class, f.height = record.Deadline, "deadline", 0.7
			}
		}}.write,
		"upload":        load(func(*loadTruth) {}),
		"upload-killed": load(func(s *loadTruth) { s.downtime, s.lost = [2]float64{12, 16}, 2 }),
		"upload-leak":   load(func(s *loadTruth) { s.leakAt, s.leak = 20, 40 }),
		"collect":       load(func(s *loadTruth) { s.collect = true }),
	} {
		t.Run(name, func(t *testing.T) {
			from := write(t)
			dir := filepath.Join(to, name)
			must(t, os.RemoveAll(dir))
			must(t, os.MkdirAll(dir, 0o755))
			plan, err := os.ReadFile(filepath.Join(from, "plan.json"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "plan.json"), plan, 0o644))
			db, err := os.ReadFile(filepath.Join(from, "run.db"))
			must(t, err)
			var packed bytes.Buffer
			z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			must(t, err)
			_, err = z.Write(db)
			must(t, err)
			must(t, z.Close())
			must(t, os.WriteFile(filepath.Join(dir, "run.db.gz"), packed.Bytes(), 0o644))
		})
	}
}

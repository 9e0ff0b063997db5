package report

import (
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// nullUpload: a load test that runs evenly from its beginning to its end.
func nullUpload() nullScenario {
	return nullScenario{name: "upload", has: map[string]string{
		"ended neutral":         "it ends",
		"flat neutral":          "it is flat",
		"money-unspent neutral": "contracts are bought for more than is stored",
	}, run: func(t testing.TB, seed uint64) *input {
		n := noiseOf(seed, 0)
		s := plainLoad(seed)
		s.hours, s.every, s.objects = n.between(12, 24), 900, 80+n.rng.IntN(120)
		level := n.between(0.1, 3)
		s.latency = func(_, _, _ float64) float64 { return level * n.times() }
		// Objects come at random moments of an even rate.
		gaps := rand.New(rand.NewPCG(seed, 12))
		s.rate = func(float64) float64 { return 1 / gaps.ExpFloat64() }
		at := s.times()
		s.fixed = at
		took := n.between(1, 20)
		s.put = func(float64, float64) float64 { return took }
		plan := s.plan(t)
		in := &input{meta: siadMeta, plan: viewOf(plan), raw: []byte("{}"), name: "run-dir", trials: []record.Trial{s.trial(plan)}, events: s.events(1),
			metrics: []record.Metric{{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher, Help: "bytes per second"}},
			polls:   streams(s), jobs: func(int64) iter.Seq2[record.Job, error] { return with(s.jobs()) }}
		n.live(in, 2*time.Minute)
		return in
	}}
}

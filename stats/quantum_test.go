package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sizedLots are lots of one size each, as takes says, with a relative noise.
func sizedLots(rng *rand.Rand, sizes []float64, noise float64, takes func(s float64) float64) []Lot {
	var all []Lot
	for _, s := range sizes {
		all = append(all, Lot{Sizes: []float64{s}, Takes: takes(s) * math.Exp(noise*rng.NormFloat64())})
	}
	return all
}

func powersOfTen(from, to int) (all []float64) {
	for k := from; k <= to; k++ {
		all = append(all, math.Pow(10, float64(k)))
	}
	return all
}

func TestQuantumOfKnownSystems(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	fine := []float64{1, 10, 100, 1e3, 3e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7}
	for _, c := range []struct {
		name           string
		sizes          []float64
		noise          float64
		quantum        float64
		factor, beside float64
		q              float64
	}{
		{"blocks of a disk", fine, 0, 4096, 1, 0, 4096},
		{"blocks of a disk, with noise", fine, 0.02, 4096, 3.3, 500, 4096},
		{"blocks of a disk, powers of ten", powersOfTen(0, 7), 0.005, 4096, 1, 0, 4096},
		{"sectors of a development build", append(fine, 3e5, 7e5, 2e6), 0.01, 256 << 10, 3, 0, 256 << 10},
		{"chunks of ten sectors", []float64{1, 1e3, 1e6, 1e7, 3e7, 5e7, 1e8, 2e8, 4e8}, 0.01, 40 << 20, 3, 0, 40 << 20},
	} {
		f := Quantum(sizedLots(rng, c.sizes, c.noise, func(s float64) float64 { return c.factor * (c.quantum*math.Ceil(s/c.quantum) + c.beside) }))
		if !f.Found || math.Abs(f.Quantum.Mid/c.q-1) > 0.05 || !f.Quantum.Contains(c.q) || math.Abs(f.Factor.Mid/c.factor-1) > 0.05 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestQuantumOfManyThingsTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const q = 4 << 20
	var lots []Lot
	for range 40 {
		var l Lot
		for range 50 {
			s := math.Exp(rng.Float64()*math.Log(3e7)) + 1
			l.Sizes = append(l.Sizes, s)
			l.Takes += 3 * q * math.Ceil(s/q)
		}
		l.Takes *= 1 + 0.01*rng.NormFloat64()
		lots = append(lots, l)
	}
	if f := Quantum(lots); !f.Found || f.Quantum.Mid != q || f.Things != 2000 || math.Abs(f.Factor.Mid-3) > 0.1 {
		t.Errorf("%+v", f)
	}
}

func TestNoQuantumIsFoundOfTooFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	blocks := func(s float64) float64 { return 4096 * math.Ceil(s/4096) }
	for name, lots := range map[string][]Lot{
		"nothing":    nil,
		"five sizes": sizedLots(rng, []float64{1, 1e3, 1e4, 3e4, 1e5}, 0, blocks),
		"one size":   sizedLots(rng, []float64{1, 1, 1, 1, 1, 1, 1}, 0, blocks),
		"large ones": sizedLots(rng, []float64{1e8, 2e8, 3e8, 4e8, 5e8, 6e8, 7e8}, 0, blocks),
		"all alike":  sizedLots(rng, []float64{1, 2, 3, 4, 5, 6, 7}, 0, blocks),
	} {
		if f := Quantum(lots); f.Found || f.Why == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What goes with the size, with a constant, a noise, and hash trees, has no quantum.
func TestQuantumOfNothing(t *testing.T) {
	const runs = 600
	found := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 6 + rng.IntN(8)
		var sizes []float64
		for i := range n {
			sizes = append(sizes, math.Ceil(math.Pow(10, 7.5*(float64(i)+rng.Float64()*0.9)/float64(n))))
		}
		constant := math.Pow(10, 1+4*rng.Float64())
		tree := []float64{0, 0, 64, 500}[rng.IntN(4)]
		noise := []float64{0, 0.003, 0.02, 0.1}[rng.IntN(4)]
		lots := sizedLots(rng, sizes, noise, func(s float64) float64 {
			return 3*(s+constant) + tree*math.Ceil(math.Log2(1+s/131072))
		})
		if f := Quantum(lots); f.Found {
			found++
			t.Logf("seed %d: sizes %.0f constant %.3g tree %g noise %g: %+v", seed, sizes, constant, tree, noise, f)
		}
	}
	if found > runs/100 {
		t.Errorf("found in %d of %d", found, runs)
	}
}

// With noise, the truth is among what is not excluded, and is found mostly.
func TestQuantumCovers(t *testing.T) {
	const runs = 200
	found, covered := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 5))
		q := math.Ceil(math.Pow(10, 3.5+2.5*rng.Float64()))
		var sizes []float64
		for i := range 14 {
			sizes = append(sizes, math.Ceil(math.Pow(10, 7*(float64(i)+rng.Float64())/14)))
		}
		f := Quantum(sizedLots(rng, sizes, 0.01, func(s float64) float64 { return 2 * (q*math.Ceil(s/q) + 300) }))
		if f.Found {
			found++
			if f.Quantum.Contains(q) {
				covered++
			}
		}
	}
	if found < runs*8/10 || float64(covered) < 0.9*float64(found) {
		t.Errorf("found %d of %d, covered %d", found, runs, covered)
	}
}

// seriesLots are what is stored one after another; some of what each lot takes is
// counted with a neighbour.
func seriesLots(rng *rand.Rand, n int, takes func(s float64) float64) []Lot {
	var all []Lot
	under := 0.0
	for range n {
		var l Lot
		for range 10 {
			s := math.Ceil(math.Exp(rng.Float64() * math.Log(4e6)))
			l.Sizes = append(l.Sizes, s)
			l.Takes += takes(s)
		}
		now := rng.Float64() * takes(1e6)
		l.Takes, under = max(1, l.Takes+now-under), now
		all = append(all, l)
	}
	return all
}

func TestQuantumOfSeries(t *testing.T) {
	const runs = 200
	found, wrong := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 6))
		constant := math.Pow(10, 2+4*rng.Float64())
		if f := QuantumOfSeries(seriesLots(rng, 40, func(s float64) float64 { return 3 * (s + constant) })); f.Found {
			wrong++
			t.Logf("seed %d, constant %.3g: %+v", seed, constant, f)
		}
		if f := QuantumOfSeries(seriesLots(rng, 40, func(s float64) float64 { return 3 * max(s, constant) })); f.Found {
			wrong++
			t.Logf("seed %d, at least %.3g: %+v", seed, constant, f)
		}
		if f := QuantumOfSeries(seriesLots(rng, 40, func(s float64) float64 { return 3 * 655360 * math.Ceil(s/655360) })); f.Found && math.Abs(f.Quantum.Mid/655360-1) < 0.1 {
			found++
		}
	}
	if wrong > 2*runs/100 || found < runs/2 {
		t.Errorf("of %d: found %d, of twice as many where there is none %d", runs, found, wrong)
	}
}

// What has a least size is not rounded up, however far apart the sizes are.
func TestALeastSizeIsNoQuantum(t *testing.T) {
	const runs = 20
	for _, least := range []float64{64 << 10, 100e3, 128 << 10} {
		for _, factor := range []float64{1, 3} {
			for _, n := range []int{6, 8, 10, 14} {
				found := 0
				for seed := range uint64(runs) {
					rng := rand.New(rand.NewPCG(seed, 7))
					var sizes []float64
					for i := range n {
						sizes = append(sizes, math.Ceil(math.Pow(10, 8*float64(i)/float64(n-1))))
					}
					lots := sizedLots(rng, sizes, 0.005, func(s float64) float64 { return factor * max(s, least) })
					if f := Quantum(lots); f.Found {
						found++
						t.Logf("seed %d: %+v", seed, f)
					}
				}
				if found > 0 {
					t.Errorf("at least %g, %d sizes, factor %g: found in %d of %d", least, n, factor, found, runs)
				}
			}
		}
	}
}

// Six sizes up to two quanta are as well explained by a least size; with larger ones
// the quantum is found, and never one of which less than the size is kept.
func TestQuantumNeverKeepsLessThanTheSize(t *testing.T) {
	const runs, q = 20, 5e6
	few := []float64{1, 1e2, 1e4, 1e5, 1e6, 1e7}
	more := append([]float64{1.2e7, 1.7e7, 2.3e7}, few...)
	for _, noise := range []float64{0, 0.005} {
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 8))
			fit := func(sizes []float64, factor float64) QuantumFit {
				return Quantum(sizedLots(rng, sizes, noise, func(s float64) float64 { return factor * q * math.Ceil(s/q) }))
			}
			for _, factor := range []float64{1, 3, 0.5} {
				if f := fit(few, factor); f.Found {
					t.Errorf("few, %g times, noise %g, seed %d: %+v", factor, noise, seed, f)
				}
			}
			if f := fit(more, 1); !f.Found || !f.Quantum.Contains(q) || math.Abs(f.Quantum.Mid/q-1) > 0.1 || f.Factor.Lo < 0.9 || !f.Factor.Contains(f.Factor.Mid) || math.Abs(f.Waste.Mid-0.336) > 0.03 {
				t.Errorf("more, noise %g, seed %d: %+v", noise, seed, f)
			}
			if f := fit(more, 0.5); f.Found {
				t.Errorf("half of it, noise %g, seed %d: %+v", noise, seed, f)
			}
		}
	}
}

// Likewise with a constant beside each.
func TestALeastSizeBesideIsNoQuantum(t *testing.T) {
	const runs = 400
	found := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := 6 + rng.IntN(8)
		var sizes []float64
		for i := range n {
			sizes = append(sizes, math.Ceil(math.Pow(10, 7.5*(float64(i)+rng.Float64()*0.9)/float64(n))))
		}
		least, beside := math.Pow(10, 3+3*rng.Float64()), math.Pow(10, 1+5*rng.Float64())
		noise := []float64{0, 0.003, 0.02, 0.1}[rng.IntN(4)]
		if f := Quantum(sizedLots(rng, sizes, noise, func(s float64) float64 { return 2 * (max(s, least) + beside) })); f.Found {
			found++
			t.Logf("seed %d: sizes %.0f least %.3g beside %.3g noise %g: %+v", seed, sizes, least, beside, noise, f)
		}
	}
	if found > runs/50 {
		t.Errorf("found in %d of %d", found, runs)
	}
}

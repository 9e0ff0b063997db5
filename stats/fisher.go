package stats

// AllAmong is the one-sided p-value of Fisher's exact test for the case in which all k
// marked ones of n+others lie among the n: how likely that is when any of them may be
// marked, C(n,k)/C(n+others,k).
func AllAmong(k, n, others int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(n-i) / float64(n+others-i)
	}
	return p
}

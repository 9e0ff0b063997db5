package experiment

import "strings"

// nearest is the candidate that s is most likely a misspelling of, or "".
func nearest(s string, candidates []string) string {
	best, bestDistance := "", max(1, len(s)/3)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(s), strings.ToLower(c))
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// didYouMean is the hint for a misspelt word: the nearest candidate, or, when
// none is near, all of them as long as they are few.
func didYouMean(s string, candidates []string) string {
	if c := nearest(s, candidates); c != "" {
		return "did you mean `" + c + "`?"
	}
	if len(candidates) > 0 && len(candidates) <= 16 {
		return "known: " + strings.Join(candidates, ", ")
	}
	return ""
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, last = last, row
		row = make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(y)]
}

// Suggest is the hint for a misspelt word where the names are not the format's:
// the nearest candidate, or all of them.
func Suggest(s string, candidates []string) string {
	if c := nearest(s, candidates); c != "" {
		return "did you mean `" + c + "`?"
	}
	return "known: " + strings.Join(candidates, ", ")
}

// DidYouMean is the hint for a word that none of the candidates is.
func DidYouMean(s string, candidates []string) string { return didYouMean(s, candidates) }

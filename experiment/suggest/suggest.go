// Package suggest finds the most likely intended word for a misspelt one, and quotes commands for a
// shell.
package suggest

import "strings"

// Nearest returns the candidate of which s is most likely a misspelling, or "".
func Nearest(s string, candidates []string) string {
	best, bestDistance := "", 0
	for _, c := range candidates {
		d := distance(strings.ToLower(s), strings.ToLower(c))
		if d <= max(1, len(s)/3, len(c)/3) && d < len(c) && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean returns the hint for a misspelt word: the nearest candidate or, if none is near, all
// of them.
func DidYouMean(s string, candidates []string) string {
	if c := Nearest(s, candidates); c != "" {
		return "did you mean `" + c + "`?"
	}
	if len(candidates) == 0 {
		return ""
	}
	return "known: " + strings.Join(candidates, ", ")
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbours
// between two words (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1) // between the first i characters of a and the first j of b
	for i := range d {
		d[i] = make([]int, len(y)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			case x[i-1] == y[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j], d[i][j-1], d[i-1][j-1])
				if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
					d[i][j] = min(d[i][j], 1+d[i-2][j-2])
				}
			}
		}
	}
	return d[len(x)][len(y)]
}

// Command formats a command line for a shell.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n\"'$\\*?[]{}()<>|&;#~`!") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

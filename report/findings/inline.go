package findings

// Crossing is whether the objects of one operation cross the link.
type Crossing struct {
	Name string
	Some string // which do not, and how that was told; empty: all cross
}

// Inlined names operations on objects that do not: a time that contains no upload must
// not pass for a fast one.
func Inlined(all []Crossing) []Finding {
	f := Finding{Rule: "inline", Tone: Neutral, Title: "Some objects never cross the link",
		Text: "These operations ended before an answer could have come, or the link carried nothing to speak of. Such sizes are left out of the fits where larger ones cross, and their times are not compared with those of objects that do cross."}
	for _, c := range all {
		if c.Some != "" {
			f.Evidence = append(f.Evidence, c.Name+": "+c.Some)
		}
	}
	return withEvidence(f)
}

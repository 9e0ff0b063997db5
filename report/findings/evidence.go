package findings

// withEvidence keeps the findings that have some.
func withEvidence(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return out
}

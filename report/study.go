package report

// studySection holds the figures that the first study of this question gave for
// Tahoe-LAFS beside those of this run. They are of another machine, link and
// decade: a reader may compare their kind, not their size.
func (r *Report) studySection() Section {
	s := Section{ID: "study", Title: "Then and now",
		Words: "The first column is what the authors of Tahoe-LAFS measured with version 0.5.1 (their performance notes): three servers in a data centre, an uplink of 78 kB/s, a round trip of 14 ms, 3-of-10, a directory update with each file, and a 32-bit machine. The second is this run, on its own links and machine.",
		Table: Table{Head: []Column{{"what", false}, {"then", false}, {"here", false}}}}
	row := func(what, then, here string) {
		s.Table.Rows = append(s.Table.Rows, []Entry{{Text: what}, {Text: then}, {Text: here}})
	}
	for _, sys := range r.Systems {
		if sys.Use != "tahoe" {
			continue
		}
		var f *Fit
		for _, op := range []string{"put-dir", "put"} {
			for i := range r.Fits {
				if t := &r.Fits[i]; f == nil && t.System == sys.Name && t.Operation == op && t.model != nil {
					f = t
				}
			}
		}
		if f == nil {
			continue
		}
		name := sys.Name + ", " + r.nameOf(f)
		here := showRange(f.A.Value, f.A.Lo, f.A.Hi, "s")
		if f.Rounds.Value.Known() {
			row(name+": sequential round trips", "about 9, by counting messages", f.roundsEntry().Text+" ("+f.roundsEntry().Note+")")
			here += " without round trips; " + show(float64(f.A.Value+f.Rounds.Value*0.014), "s") + " with those of 14 ms"
		}
		row(name+": time before the bytes count", "790 ms, round trips of 14 ms included", here)
		row(name+": rate of the bytes", "23.4 kB/s on 78 kB/s", showRange(f.Rate.Value, f.Rate.Lo, f.Rate.Hi, "B/s"))
		for _, m := range r.Memory {
			if m.System == sys.Name && m.Process == "client" {
				row(sys.Name+": client's memory at rest", "24 MB", number(m.RestRSS.Value, "B").Text)
				row(sys.Name+": during one upload", "29 MB, whatever the size", number(m.One.Value, "B").Text)
			}
		}
	}
	return s
}

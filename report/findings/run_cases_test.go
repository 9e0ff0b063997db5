package findings

// runCases are of the rules that look at any run: whether to believe it, and what was
// not served.
func runCases() map[string]example {
	generator := func(cells []Spoiled) []Finding { return GeneratorBound(cells, "a faster one") }
	link := func(cells []Spoiled) []Finding { return LinkOff(cells, false) }
	some, none := []Spoiled{{"a, 1 MB", 2, 8}}, []Spoiled{{"a, 1 MB", 0, 8}}
	return map[string]example{
		"wrong-bytes":       when(WrongBytes, []Corrupt{{"a", "1 MB", 4, 1}}, []Corrupt{{"a", "1 MB", 4, 0}}),
		"not-executed":      tells(NotExecuted, []Unexecuted{{"a", "no room"}, {"b", "no room"}, {"a", "no room"}}, []Unexecuted{{"a", "no room"}, {"a", "late"}}, "a, 2 trials: no room"),
		"skipped":           tells(Skipped, []Omitted{{"a", "1 GB", 1, "it takes an hour"}}, []Omitted{{"a", "1 GB", 0, "it takes an hour"}}, "1 GB, 1 trial: it"),
		"link-not-emulated": when(NotEmulated, Links{Asked: "20 ms one way", Bare: 1}, Links{Asked: "20 ms one way"}),
		"overloaded":        when(Overloaded, []Offered{{"a, 900/s", 0.6}}, []Offered{{"a, 100/s", 0.99}}),
		"generator-bound":   when(generator, some, none),
		"link-off":          when(link, some, none),
		"box-busy":          when(BoxBusy, some, none),
		"machine-limited":   when(MachineLimited, some, none),
		"deadlines":         when(Deadlines, []Outcomes{{"a", 90, 90, 0, 10, 100, ""}}, []Outcomes{{"a", 9990, 9990, 5, 5, 10000, ""}}),
		"failures":          when(Failures, []Outcomes{{"a", 99, 100, 0, 0, 100, "refused ×1"}}, []Outcomes{{"a", 90, 90, 5, 5, 100, ""}}),
		"short-trials":      when(ShortTrials, []Looped{{"a", 30, 4}}, []Looped{{"a", 4000, 4}}),
		"not-compared":      when(NotCompared, []string{"link: late", "receive: drop (content not compared)"}, []string{"receive: verify"}),
	}
}

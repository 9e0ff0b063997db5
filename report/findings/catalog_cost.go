package findings

func costs() Group {
	in := []string{overhead}
	return Group{"What an operation costs", "The fit of A + R·RTT + B·size, memory, and the number of objects.", []Rule{
		{"model", in, []Tone{Warn}, "Operations that one line does not describe.", "What is left of the times after the fit is more than repeated trials differ by (a test at 95 %), and in some cell 10 % or more.",
			"Look at the figure of residuals for where it fails: sizes or round trips that behave differently belong in an experiment of their own."},
		{"model-near", in, []Tone{Neutral}, "Operations that one line describes nearly.", "As `model`, but less than 10 % in every cell: the fit is good to that.", ""},
		{"model-untested", in, []Tone{Neutral}, "Fits of which it is not known whether they hold.", "Too few trials of a cell, or too few cells.",
			"Repeat more, or add sizes and round trips."},
		{"no-fit", in, []Tone{Neutral}, "Operations that could not be fitted.", "Too few cells, or nothing that varies.",
			"Add sizes (data.size) and round trips (link.delay)."},
		{"inline", in, []Tone{Neutral}, "Objects that never cross the link.", "At the longest round trip the operation ended within half of it, or the link carried next to nothing of the object.",
			"Compare larger objects."},
		{"same-bytes", in, []Tone{Neutral}, "How a system compares with the baseline for the same absolute bytes.", "Whenever both have a fit: what remains is not the price of redundancy.", ""},
		{"memory-grows", in, []Tone{Warn}, "Processes whose memory grows with the size of the object.", "The interval of the slope over trials (Theil–Sen) lies above 0.1 bytes for each file byte.",
			"Store larger objects than memory holds, one and then several at once, to see where it ends."},
		{"memory-flat", in, []Tone{Good}, "Processes whose memory does not grow with the size of the object.", "The interval of the slope lies below 0.1 bytes for each file byte, or the largest object left less than that above rest.", ""},
		{"objects-slope", in, []Tone{Warn}, "Operations that take longer the more objects there are.", "The slope over trials (Theil–Sen) is above 0 at 1 %, corrected for all slopes. However small: it goes on with objects that are not stored yet.",
			"Store more objects to see whether it goes on."},
		{"objects-cut", in, []Tone{Warn}, "Trials with many objects whose times are not known.", "One trial whose median is beyond what was watched.",
			"Give operations more time (limits.deadline), or store fewer objects."},
		{"objects-flat", in, []Tone{Neutral}, "Operations that are not shown to slow down with the number of objects.", "No slope is shown; the upper end of its interval bounds it.", ""},
	}}
}

func loads() Group {
	in := []string{upload, collect}
	return Group{"How a load test goes on", "Growth over days.", []Rule{
		{"slows-down", in, []Tone{Warn}, "A load test that gets slower: the latency of the API, the time to store an object, or the bandwidth.",
			"The last quarter is worse than the first by 5 % or more, and the intervals of that change and of the slope (Theil–Sen) exclude none.",
			"See what else changed by then: load, contracts, free space. Larger objects spare files, removing old ones spares bytes."},
		{"flat", in, []Tone{Neutral}, "A load test that does not get slower.", "A change of 10 % in either direction is excluded.", ""},
		{"counter-fell", in, []Tone{Warn}, "Totals that fell although they only grow.", "By more than 0.1 %, and they stayed below: a daemon that began to count anew, or data that were lost.", "Look for restarts of the daemon at that moment."},
	}}
}

func money() Group {
	in := []string{upload, collect}
	return Group{"Money", "Laws of a wallet and its contracts.", []Rule{
		{"money-missing", in, []Tone{Bad}, "Money that left wallet and contracts and did not come back.", "Their sum, with what was under way, fell and stayed down for 30 minutes and 5 polls.", "Look for transactions of that moment in the wallet: a payment to anybody else, or money lost."},
		{"money-sum", in, []Tone{Bad}, "Spending that is not the sum of its parts.", "By more than what moved between two calls, for 30 minutes and 5 polls.", "Compare the system's own account of that moment, contract by contract."},
		{"money-unnamed", in, []Tone{Neutral}, "A little of the spending that has no purpose.", "It grows in step with the cost of data, up to 25 % of it; beyond that it is `money-sum`.", ""},
		{"money-unspent", in, []Tone{Neutral}, "Contracts that were bought and not used up.", "10 % or more of all that contracts cost.", "A smaller allowance binds less."},
		{"money-under-way", in, []Tone{Neutral}, "Money that the last polls do not account for.", "Too little time is left to tell a transaction from a loss.", "Let the test go on, or poll with the scenario collect until it is confirmed."},
		{"money-came-in", in, []Tone{Neutral}, "Money that came in.", "Their sum rose and stayed up: the system is not closed, and a loss at the same time would not be seen.", "Use a wallet that nobody pays into."},
		{"money-left", in, []Tone{Neutral}, "Contracts that took what they had used out of the account.", "Contracts were renewed or ended, and the system does not tell what those had used.", ""},
		{"money-waits", in, []Tone{Neutral}, "Money of ended contracts that had not come back.", "Contracts were renewed or ended, and what they had not used is in neither wallet nor contracts.", "Poll on with the scenario collect until it comes back."},
	}}
}

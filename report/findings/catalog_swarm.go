package findings

func swarms() Group {
	in := []string{disseminate}
	leak := func(least string) string {
		return "After the first quarter of its life it rises by 5 % and " + least + " at least (lower end of the interval), as fast in the second half of what is left as in the first; Perron and Yabu's test excludes noise and a random walk at 0.1 %, corrected for all processes."
	}
	return Group{"What is wasted", "Bytes that are sent or kept in vain, time before the first byte, and work that is not shared.", []Rule{
		{"sent-twice", []string{disseminate, syncing}, []Tone{Warn}, "Links that carried more than the content.", "The whole interval lies above 1.2 times what was wanted on the link, headers included, or above 1.1 times as payload by the system's own account: headers and acknowledgements are some 6 %.", "Move more content: what is sent twice at the end becomes a smaller share. Where it does not, ask fewer peers for the same piece at once, or wait longer before asking again."},
		{"padding", []string{overhead, upload}, []Tone{Neutral, Warn}, "The unit that objects are rounded up to, found from sizes and bytes alone.", "Steps explain what servers keep far better than a line does (by Akaike's criterion); a warning from 50 % on that is neither content nor redundancy.", "Store larger objects, or pack small ones into one before storing them; where the system has an option for its unit, or packs by itself, vary it."},
		{"start-up", nil, []Tone{Neutral}, "Cells much of whose time passes before the first byte or block.", "The whole interval of its share lies above 25 %.", "Measure larger objects (a longer chain) beside these, and compare the time before and the rate after the first byte apart."},
		{"unbalanced", []string{disseminate, syncing}, []Tone{Neutral}, "Work that several could have shared and one did.", "The whole interval of the busiest one's part lies above 1.5 times the even part.", "Look at how peers are chosen: who answers first is asked again and again. Limit what is asked of one at a time, or raise how many are asked."},
		{"leak-memory", nil, []Tone{Warn}, "Processes whose resident memory goes on growing.", leak("1 MiB"), "Let it run several times as long, then leave it idle: what falls was in use, what stays and goes on is a leak. A profile of its heap at two moments says what it holds."},
		{"leak-files", nil, []Tone{Warn}, "Processes that open more and more files.", leak("16 files"), "List what is open (/proc/PID/fd) at two moments; compare with its limit (ulimit -n), at which it will fail."},
		{"leak-threads", nil, []Tone{Warn}, "Processes that start more and more threads.", leak("16 threads"), "Dump its threads or goroutines at two moments: those that wait for ever are the leak."},
		{"no-sharing", in, []Tone{Warn}, "Leechers that pass hardly anything on.", "Seeders sent more than 90 % of all bytes to several leechers.", "See whether leechers know each other (peer exchange, tracker) and may upload."},
		{"disk-lags", in, []Tone{Neutral}, "Files that were complete on disk later than verified.", "By more than 10 % of the time of the last leecher, and two polls.", "Who needs the file adds this; a faster disk, or smaller caches, shorten it."},
	}}
}

func syncs() Group {
	in := []string{syncing}
	return Group{"What a knob buys", "How fast a fresh node comes to serve, and by what.", []Rule{
		{"best", in, []Tone{Good, Neutral}, "The configuration with the least time.", "Whenever it is not the default; good when the gain's interval at 99 %, which allows for the choice, excludes none.", "Run the best and the default again, alone, before relying on the gain."},
		{"bought", in, []Tone{Neutral}, "What each change is worth on the way from the default to the best.", "Whenever the best is not the default; shares are given when the whole gain is shown.", ""},
		{"interactions", in, []Tone{Warn}, "Knobs whose gain depends on where another stands.", "The ratio of ratios differs from 1 at 1 %, corrected for all effects that were looked at, and its interval does not lie within 5 % of it.", "Set such knobs together; measured one at a time they promise something else."},
		{"risks", in, []Tone{Warn, Neutral}, "What the best configuration costs besides time.", "Each change from the default; a warning when the gain is shown, so that there is a reason to pay the price.", "Leave out the changes that are not shown to gain."},
		{"as-good", in, []Tone{Neutral}, "Configurations that cannot be told from the best.", "Their interval of the ratio to the best includes 1.", "Prefer the one that changes least; more repetitions tell."},
		{"no-gain", in, []Tone{Neutral}, "Knobs that change nothing to speak of.", "The whole interval lies within 5 % of no change, on average over the other knobs.", "Leave them as they are."},
		{"cannot-tell", in, []Tone{Neutral}, "Effects that may be large and may be none.", "The interval includes no change and one beyond 5 %, or excludes it only without correction for their number.", "Repeat more: intervals narrow with the root of the number of repetitions."},
		{"aliases", in, []Tone{Warn}, "Effects that the design cannot tell apart.", "Not all combinations were executed.", "Add the combinations that tell them apart, or run a full design of these knobs."},
		{"search", in, []Tone{Warn}, "Best configurations that were searched for.", "The run is a search: not all was tried, and each race errs now and then.", "Run its best and the neighbours of that as a full design."},
		{"conditions", in, []Tone{Neutral}, "The time under each condition, where no knob varies.", "Whenever there are two or more conditions.", ""},
		{"shape", in, []Tone{Neutral}, "How the time goes with knobs that are numbers.", "Whenever one has several levels; a U only when both ends are shown to be worse, corrected for the number of levels.", "Add levels around the best one."},
		{"useless-peers", in, []Tone{Neutral}, "Timeouts, requests in vain, and peers that delivered nothing.", "One in the median over trials.", "Vary the timeouts and the number of peers; each request in vain is a wait."},
	}}
}

package findings

func swarms() Group {
	in := []string{disseminate}
	return Group{"How a swarm works together", "Who sends, and what is sent in vain.", []Rule{
		{"no-sharing", in, []Tone{Warn}, "Leechers that pass hardly anything on.", "Seeders sent more than 90 % of all bytes to several leechers.", "See whether leechers know each other (peer exchange, tracker) and may upload."},
		{"disk-lags", in, []Tone{Neutral}, "Files that were complete on disk later than verified.", "By more than 10 % of the time of the last leecher, and two polls.", "Who needs the file adds this; a faster disk, or smaller caches, shorten it."},
	}}
}

func syncs() Group {
	in := []string{syncing}
	return Group{"What a knob buys", "How fast a fresh node comes to serve, and by what.", []Rule{
		{"best", in, []Tone{Good, Neutral}, "The configuration with the least time.", "Whenever it is not the default; good when the gain's interval at 99 %, which allows for the choice, excludes none.", "Run the best and the default again, alone, before relying on the gain."},
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

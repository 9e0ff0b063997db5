package findings

func trust() Group {
	return Group{"Whether to believe the run", "What spoils numbers, or says what they are of.", []Rule{
		{"wrong-bytes", nil, []Tone{Bad}, "Content that was delivered whole and was not the object's; in `sync`, another chain at the right height.",
			"A single operation, in warm-up and invalid trials too: corruption is never a detail.",
			"Find the operation in run.db (outcome wrong-bytes) and the log of that trial before anything else is concluded of that system."},
		{"not-executed", nil, []Tone{Bad}, "Trials that could not run at all.", "One trial; those that a resumed run has executed since do not count.",
			"Read the processes' own words in logs/ of the run directory, mend it, and go on with `plimsoll resume`."},
		{"link-not-emulated", nil, []Tone{Bad}, "Trials on the bare machine although the plan asks for a link.", "One trial: a number of the bare machine must not pass for one of a link.",
			"`plimsoll doctor` says what this machine lacks for emulating links; or leave the link out of the experiment."},
		{"imported", []string{disseminate}, []Tone{Warn}, "Numbers that another program measured.", "The run was imported: what Plimsoll would have checked is not known.",
			"Repeat the decisive cells with Plimsoll, and compare the two."},
		{"overloaded", []string{retrieve}, []Tone{Bad}, "Open-loop cells in which requests queued because they came faster than answers.", "Less than 95 % of the offered load ended within the trial: waiting then grows with the length of the trial.",
			"Offer less (retrieve.arrivals), and find the most that is kept up with."},
		{"generator-bound", nil, []Tone{Warn}, "Trials that are invalid because the load generator was too busy or too late.", "One trial: a result about the generator is none about the system.",
			"Shape the link, use fewer nodes, or run on a machine with more CPUs."},
		{"link-off", nil, []Tone{Warn}, "Trials that are invalid because the link was not what was asked for, or its emulator was late or died.", "Beyond link.tolerance.",
			"See the table of links for what was off; a slower link, or a quieter machine, is easier to emulate."},
		{"box-busy", nil, []Tone{Warn}, "Trials that are invalid because other processes took CPU time.", "Beyond limits.others.",
			"Run again on a quiet machine before believing small differences."},
		{"harness-busy", []string{disseminate, syncing}, []Tone{Warn}, "Cells in which what measures used much of the machine.", "Plimsoll above 5 % of all CPUs, or the links' emulator above 50 %, in the median over trials.",
			"Poll less often, or use fewer nodes or slower links."},
		{"partial-faults", []string{disseminate}, []Tone{Warn}, "Cells whose trials did not all have the whole fault.", "One trial in which a fault did not come, or was not undone, before the last leecher was done.",
			"Let the fault come earlier or last for less long, or use a larger content."},
		{"start-spread", []string{disseminate}, []Tone{Warn}, "Leechers that did not start together although they were released at one barrier.", "The last began later than the first by more than 5 % of the median time.",
			"Use fewer nodes, or a larger content, of whose time the spread is less."},
		{"coarse", []string{disseminate, syncing}, []Tone{Warn}, "Times that are no finer than the polls that tell them.", "Polls lie more than 10 % of the time apart in the median; in `disseminate` also one trial with a gap above 25 % of it.",
			"Use larger contents, longer chains or slower links, or a shorter poll (disseminate.poll, sync.poll)."},
		{"partial", []string{upload, collect}, []Tone{Warn}, "Load tests that have not come to an end of their own.", "One: what is said is so far.",
			"Go on with `plimsoll resume`."},
		{"gaps", []string{upload, collect}, []Tone{Neutral}, "Polls that were left out, and calls that were not answered.", "1 % of the polls: fewer do not show in any figure.",
			"Poll less often (upload.poll, collect.every) where calls take longer than the time between polls."},
		{"absurd", []string{upload, collect}, []Tone{Neutral}, "Readings that make no sense, such as amounts below zero.", "One reading; it is in no figure and no sum.", ""},
		{"drift", []string{retrieve, overhead, disseminate}, []Tone{Warn}, "Blocks of the run that differ, and not alike for all systems: heat, caches, growth, another load.",
			"By more than 10 %, and a permutation test over the cells (for a change from the first block to the last, and for blocks that differ from the others) passes 1 %, corrected for all systems. Fewer than five blocks cannot show it.",
			"Look at the figures over time, repeat with more blocks, and leave out what warms up (warmup)."},
		{"not-compared", []string{retrieve}, []Tone{Neutral}, "Trials that let the kernel discard the bytes.", "receive: drop was asked for, or chosen: wrong content would not have been seen.",
			"Run a few repetitions with receive: verify."},
		{"skipped", nil, []Tone{Neutral}, "Cells that were left out on purpose.", "One cell or trial: it must not pass for one without a problem.",
			"Allow more time for one operation (overhead.longest) if these sizes matter."},
	}}
}

func served() Group {
	return Group{"What was not served", "What systems did not do, and what was the experiment's own doing.", []Rule{
		{"failures", []string{retrieve, overhead, upload, collect}, []Tone{Bad}, "Operations that the system refused, broke off, stalled or answered with an error.", "One operation. What the experiment's own deadline cut off is not among them.",
			"Read the system's log of such a trial; see at which concurrency or size it begins."},
		{"deadlines", []string{retrieve, overhead, upload, collect}, []Tone{Warn}, "Operations that the experiment's deadline ended while bytes still came.", "1 % of a cell's operations: a client that counts them as failures blames a healthy server.",
			"Give them more time (limits.deadline) or ask for less at once."},
		{"leechers-unfinished", []string{disseminate}, []Tone{Bad}, "Leechers that did not get everything although nothing was done to the swarm.", "One leecher.",
			"Read the logs of such a trial; where all stopped at the same share, a piece was lost with its only holder."},
		{"leechers-unfinished-faults", []string{disseminate}, []Tone{Warn}, "Leechers that did not get everything in cells with faults.", "One leecher.",
			"Compare with the same cell without the fault, and with more seeders."},
		{"never-served", []string{syncing}, []Tone{Bad}, "Fresh nodes that never came to serve although nothing was done to the trial.", "One trial; a cell with one is not called the best.",
			"Read the node's log of that trial; allow more time (limits) if it was still getting blocks."},
		{"never-served-faults", []string{syncing}, []Tone{Warn}, "Fresh nodes that never came to serve in trials with faults or useless peers.", "One trial.",
			"Compare with the same configuration without the trouble."},
		{"slow-recovery", []string{disseminate}, []Tone{Warn}, "Nodes that need longer to go on after a fault than they were disturbed for.", "The median time to the next verified byte is above the time of the outage, or nodes never went on.",
			"Look for the timers by which nodes find each other again, and vary them."},
		{"objects-failed", []string{upload}, []Tone{Bad}, "Objects that could not be stored.", "One object that failed as often as upload.retries allows.",
			"Read the errors in the table of attempts and the system's log at that time."},
		{"objects-refused", []string{upload}, []Tone{Bad}, "Objects that the system would not take.", "One object that was refused as often as upload.retries allows.",
			"See the system's own words for it: a size, a name or a budget that it does not accept."},
		{"objects-unreadable", []string{upload}, []Tone{Warn}, "Objects that were not stored because their own data could not be read.", "One object: that is no failure of the system.",
			"Mend the data set and resume."},
		{"objects-missing", []string{upload}, []Tone{Bad}, "Objects that the system had accepted and did not list, or not whole, in a later session.", "One object.",
			"Find out what happened to the daemon between the sessions; its store may not be safe with each commit."},
		{"not-durable", []string{upload}, []Tone{Warn}, "Accepted objects that were not seen at their full redundancy in time.", "One object, within upload.settle of its acceptance.",
			"Wait longer (upload.settle), and look at repairs and at the number of servers."},
		{"redundancy-fell", []string{upload, collect}, []Tone{Bad}, "Objects that were durable and no longer are.", "Seen by 2 polls in a row, until the last.",
			"Watch for longer with `plimsoll resume` or the scenario collect: it may be repaired yet."},
		{"redundancy-repaired", []string{upload, collect}, []Tone{Neutral}, "Objects that were below their redundancy for a while.", "Seen by 2 polls in a row, and by none at the end.", ""},
		{"storage-full", []string{upload, collect}, []Tone{Warn}, "A system that took objects until it had no room.", "By the system's own word.",
			"Give it more room, or take what it could hold as the result."},
		{"retried", []string{upload}, []Tone{Neutral}, "Objects that needed more than one attempt.", "One object; its time to store is that of the last attempt.", ""},
		{"adopted", []string{upload}, []Tone{Neutral}, "Objects that a session found stored and did not store again.", "One object; it is in no time.", ""},
		{"ended", []string{upload, collect}, []Tone{Neutral}, "What ended a load test, and how many sessions it took.", "Whenever one has ended.", ""},
	}}
}

func limits() Group {
	// What shows it is the same test for all limits.
	bounded := []string{retrieve, overhead, disseminate, syncing}
	shown := " One-sided test over a cell's trials at 5 %, corrected for all cells and quantities."
	return Group{"What limits", "What would have to be faster for a cell to be: the link, round trips, a CPU, a disk; or nothing that was measured.", []Rule{
		{"machine-busy", bounded, []Tone{Warn}, "Cells in which the machine's CPUs were used up, whoever used them.", "Shown to be above 85 % of all CPUs." + shown,
			"Use fewer nodes or connections, slower links, or a quieter or larger machine; limits.others makes trials invalid in which others used much of it."},
		{"cpu-bound", bounded, []Tone{Warn}, "Systems whose busiest process keeps just one CPU busy, as much as one thread can have.", "Shown to be between 0.9 and 1.1 CPUs." + shown,
			"Look at where that process spends its time (a profile), and for a setting by which it uses more than one thread."},
		{"disk-bound", bounded, []Tone{Warn}, "Cells in which somebody waited for storage most of the time.", "Shown to be more than 50 % of the time: without it a cell could be twice as fast." + shown,
			"Repeat with the store in memory or on a faster disk: if the time stays, something else waited."},
		{"compute-bound", []string{syncing}, []Tone{Neutral}, "Nodes whose time is nearly that of the same work from a local file.", "Shown to be above 85 % of the time." + shown,
			"A faster CPU or disk, or settings that change the work itself; peers and links do not help."},
		{"one-link-full", []string{disseminate}, []Tone{Neutral}, "Swarms that wait for the link of one node while all links together had more to give.", "The busiest sender's link above 85 % of its rate, and the cell below 70 % of its line." + shown,
			"More seeders, a faster link for this one, or settings by which others pass on sooner."},
		{"rtt-bound", bounded, []Tone{Neutral}, "Cells whose time is mostly round trips that follow one another.", "Shown to be more than 50 % of the time." + shown,
			"Keep connections, ask for more at once (pipelining, larger segments, more connections), or measure nearer to the server."},
		{"link-bound", bounded, []Tone{Neutral}, "Cells near the load line: a faster system would not be faster on this link.", "Shown to be above 85 % of the line, and not above 110 %, where the line is wrong." + shown,
			"Use a faster link, fewer bytes or fewer round trips; to compare systems, compare them where they are not at the line."},
		{"waiting", bounded, []Tone{Neutral}, "Cells far below the load line that nothing which was measured limits.", "Shown to be below 70 % of the line, and every quantity that was measured below its own threshold.",
			"Vary the round trip (link.delay) and the concurrency: what grows with the one waits for answers, what shrinks with the other waits for its turn."},
		{"knee", []string{retrieve, overhead}, []Tone{Warn}, "The concurrency from which on more at once is slower, by the universal scalability law.", "Four levels or more at which neither link nor generator is the limit; throughput at the highest level is shown to be below the best at 1 %, corrected for all curves.",
			"Offer no more than N* at once (a queue or a limit on connections in front of the system), and look for what all operations share: a lock, a disk, memory for each."},
		{"no-knee", []string{retrieve, overhead}, []Tone{Neutral}, "Systems of which no knee was seen.", "Four levels or more of concurrency, and no fall of throughput is shown: no promise for more at once.", "Measure with more at once, and where the link is full with a faster one."},
		{"replay-disturbed", []string{syncing}, []Tone{Warn}, "Nodes that were faster than their own work from a local file.", "1.1 times as fast: the replay was disturbed, and is no line.",
			"Run again on a quiet machine."},
		{"beyond-line", []string{retrieve, overhead, disseminate, syncing}, []Tone{Bad}, "Trials that were faster than their links can be.", "By more than the link's tolerance and 2 %: a link was not what it should be, bytes went another way, or the measurement is wrong.",
			"See the table of links, and what else connects the nodes; do not use these trials."},
		{"short-trials", []string{retrieve}, []Tone{Neutral}, "Closed-loop trials so short that what their end cuts off matters.", "Fewer than ten requests of each connection in a trial: throughput then moves in steps of a request.",
			"Make trials longer (retrieve.duration)."},
	}}
}

func differences() Group {
	return Group{"The goal", "What the scenario `disseminate` was asked to decide.", []Rule{
		{"goal-missed", []string{disseminate}, []Tone{Bad}, "Cells that are slower than the goal allows (disseminate.gate).", "The whole interval of the ratio to the baseline lies beyond the goal, or the system never came to the end.",
			"See in the figure of the spread where the time goes; `one-link-full`, `waiting` and their like say what limits."},
		{"goal-met-unfinished", []string{disseminate}, []Tone{Warn}, "Cells that meet the goal by those who got everything, while others did not.", "One leecher that did not get everything.",
			"See `leechers-unfinished` first."},
		{"goal-open", []string{disseminate}, []Tone{Neutral}, "Cells whose trials do not decide the goal.", "The goal lies within the interval, or there is no interval.",
			"Repeat more: an interval narrows with the root of the number of repetitions."},
	}}
}

package studylog

// wanted is how many trials an experiment was to have.
func (x *experiment) wanted() int { return x.config.SeederSets * x.config.Repetitions }

// blocksOf are the blocks of the trials of these experiments, which are in the
// order of their times. What systems are compared by is the data set: the same
// seeder set and repetition are the same block, whatever is missing before it.
// Several experiments of one cell follow each other. A trial whose place is taken
// or beyond what was planned gets the next one that is free.
func blocksOf(all []*experiment) map[*trial]int {
	blocks := map[*trial]int{}
	taken, from := map[cellKey]map[int]bool{}, map[cellKey]int{}
	var homeless []*trial
	keys := map[*trial]cellKey{}
	for _, x := range all {
		k := keyOf(x.config)
		if taken[k] == nil {
			taken[k] = map[int]bool{}
		}
		for _, t := range x.trials {
			keys[t] = k
			place := t.set*x.config.Repetitions + t.repetition
			if t.repetition >= x.config.Repetitions || place >= x.wanted() || taken[k][from[k]+place] {
				homeless = append(homeless, t)
				continue
			}
			blocks[t] = from[k] + place
			taken[k][blocks[t]] = true
		}
		from[k] += max(x.wanted(), len(x.trials))
	}
	for _, t := range homeless {
		block := 0
		for taken[keys[t]][block] {
			block++
		}
		blocks[t] = block
		taken[keys[t]][block] = true
	}
	return blocks
}

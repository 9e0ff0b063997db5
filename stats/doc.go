// Package stats turns the values of repeated trials into statements that hold:
// medians with exact intervals, ratios with intervals, comparisons
// that say "not significant" when nothing is. It makes no assumption about the
// shape of a distribution, since measurements of computers are skewed and
// heavy-tailed, and it knows nothing of storage. Where a model is fitted (costs,
// factorial experiments) its intervals are Student's; how often they cover
// with other noise is found by simulation, and tested.
//
// The unit of every interval is that of its values. Whatever limits a result
// (too few values, for instance) is said in its Warn, in words for the user.
package stats

// Package stats computes statistics of repeated trials: medians with exact intervals,
// ratios with intervals, and significance tests. It makes no assumption about the
// shape of a distribution, since measurements of computers are skewed and
// heavy-tailed, and it knows nothing about storage. Fitted models (costs, factorial
// experiments) have Student's intervals; their coverage under other noise is
// determined by simulation, and tested.
//
// An interval has the unit of its values. Limitations of a result, such as too few
// values, are stated in its Warn, in words for the user.
package stats

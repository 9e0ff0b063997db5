package record

import "time"

// Mark is how far one node of a swarm was when it was asked. The state told lies
// between the poll's start and its end; what it tells for the first time happened
// after Before, the start of the last poll that did not tell it yet.
//
// Not every poll leaves a mark: those do in which a further percent of the
// content was verified, anything came to an end, or trouble began.
type Mark struct {
	Node     int           // index into the trial's nodes, see DetailRole
	Before   time.Duration // start of the poll of this node whose mark this follows, since the trial's epoch; the node's start when there was none
	Start    time.Duration // of the poll that told it
	End      time.Duration
	Verified int64  // bytes of the content that the node has and has checked
	Written  int64  // bytes of them that it says are on its disk; −1: it does not tell
	Received int64  // payload bytes received, duplicates included; −1: it does not tell
	Sent     int64  // payload bytes sent; −1 likewise
	Peers    int    // connected; −1 likewise
	Complete bool   // the node says that it has all
	Trouble  string // why it cannot go on, in its own words
}

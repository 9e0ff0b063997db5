package record

// Op is one operation as seen by the load generator. All times are nanoseconds on the
// monotonic clock since the trial's epoch (Trial.Epoch).
type Op struct {
	Kind      OpKind
	Outcome   Outcome
	Status    uint16 // protocol status (HTTP), 0 when none came
	Worker    uint32 // the connection slot or virtual user
	Object    uint32 // index into the trial's objects
	Offset    int64  // first requested byte
	Length    int64  // requested bytes; −1: all, of unknown size
	Bytes     int64  // body bytes received (or sent)
	Intended  int64  // intended start by the arrival process; equals Start in a closed loop
	Start     int64  // actual start (before the dial, if it needed a fresh connection)
	FirstByte int64  // arrival of the first byte of the body; 0 if none came
	LastByte  int64  // arrival of the last byte, or when the outcome was decided
	Class     string // short class of the error ("connection reset", "status 500"); empty when ok
}

// OpKind is what an operation did.
type OpKind uint8

const (
	OpGet        OpKind = iota // a whole object
	OpRange                    // a byte range of an object
	OpPut                      // an object written
	OpStat                     // metadata only
	OpDelete                   // an object removed
	OpPutDurable               // an object written, until it has its full redundancy
	OpPutDir                   // an object written and entered into a directory
	OpUpdate                   // the content of a mutable object replaced
	OpFetch                    // content got from a swarm by one leecher, until its last verified byte
	_                          // once in runs of sync: until the node had the chain
	OpServe                    // a fresh node that gets a chain of blocks from its peers, until it can serve
	OpWarmup                   // a request that warmed up a kept connection before the window; it is not counted
	numOpKinds
)

var opKindNames = [...]string{"get", "range", "put", "stat", "delete", "put-durable", "put-dir", "update", "fetch",
	"sync", "serve", "warm-up"}

func (k OpKind) String() string {
	if int(k) < len(opKindNames) {
		return opKindNames[k]
	}
	return "unknown"
}

// receives reports whether a successful operation of the kind receives a first byte.
func (k OpKind) receives() bool {
	switch k {
	case OpPut, OpPutDurable, OpPutDir, OpDelete, OpStat:
		return false
	}
	return true
}


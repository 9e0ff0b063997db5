package workload

import "io"

// Set is a data set: objects in a fixed order, each of which can be made again
// from the set's parameters (or read again from its directory), so that no copy
// has to be kept in order to verify what a system returns.
type Set interface {
	// Len is the number of objects.
	Len() int
	// Object describes the i-th; it reads no content.
	Object(i int) Object
	// Open reads the i-th object's content.
	Open(i int) (io.ReadSeekCloser, error)
	// Check compares what is written to it with the i-th object, byte by byte:
	// Write fails at the first byte that differs or lies beyond the end, Close
	// when the object was not complete.
	Check(i int) (io.WriteCloser, error)
	// Fingerprint identifies names, sizes and, as far as it is known without
	// reading it, content: the same for two sets that are the same, in hex.
	Fingerprint() string
}

// Object is one object of a set.
type Object struct {
	Name string // with slashes; unique within the set
	Size int64  // bytes
}

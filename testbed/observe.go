package testbed

// usageMeter measures one process tree.
type usageMeter struct{}

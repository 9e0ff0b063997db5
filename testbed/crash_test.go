package testbed

import "errors"

func parent(dir string) error         { return errors.New("x") }
func enterAndRun(args []string) error { return errors.New("x") }

package siachain

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// progress is a line that a process of ours which does one thing and ends writes to
// its standard output, as JSON. The last one has the result, or the error.
type progress struct {
	Say      string           `json:",omitempty"`
	Error    string           `json:",omitempty"`
	Chain    *system.Chain    `json:",omitempty"`
	Replayed *system.Replayed `json:",omitempty"`
}

// work runs `plimsoll node sia-chain` on a host until it ends, and
// hands over what it says. When ctx ends, so does the process.
func (c *cluster) work(ctx context.Context, h testbed.Host, t task, each func(progress)) error {
	command, err := c.d.Node(name, t.flag())
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	proc, err := h.Start(ctx, testbed.Command{Name: name + "/" + t.Do, Role: "system", Args: command, Dir: c.d.DirOf(h), Stdout: w})
	if err != nil {
		return err
	}
	ended := context.AfterFunc(ctx, func() { proc.Stop(context.WithoutCancel(ctx)) })
	defer ended()
	finished, failed := false, error(nil)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var p progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			continue // a library's own words
		}
		if p.Error != "" {
			failed = errors.New(p.Error)
		}
		finished = finished || p.Chain != nil || p.Replayed != nil
		each(p)
	}
	<-proc.Done()
	if err := proc.Stop(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	case !finished:
		return fmt.Errorf("the process %s has ended (%v) without a result; see %s", proc.Name(), proc.Err(), proc.LogPath())
	}
	return nil
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// serveFirst is an agent that is the first process of its container: whatever loses its parent
// there becomes a child of it, and is a dead process for ever unless it is waited for. So the
// agent is a child itself, and its parent waits for all.
func serveFirst(ctx context.Context, args []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	c := exec.Command("/proc/self/exe", append([]string{"node", "agent"}, args...)...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.Process.Signal(s)
			case <-ctx.Done():
				_ = c.Process.Signal(syscall.SIGTERM)
				return
			}
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("agent: wait for its processes: %w", err)
		case pid == c.Process.Pid && (status.Signaled() || status.ExitStatus() != 0):
			return fmt.Errorf("agent: it ended with status %d, signal %d", status.ExitStatus(), status.Signal())
		case pid == c.Process.Pid:
			return nil
		}
	}
}

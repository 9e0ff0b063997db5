package link

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// Exec returns a Launch that runs a command, such as "plimsoll node link", in the
// caller's namespaces. It ends when the caller does, because its
// standard input closes then.
func Exec(name string, args ...string) Launch {
	return func(_ context.Context, stdin *os.File, devices []*os.File) (Process, error) {
		cmd := exec.Command(name, args...)
		cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = stdin, os.Stderr, devices
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		p := &execProcess{cmd: cmd, done: make(chan struct{})}
		go func() {
			p.err = cmd.Wait()
			close(p.done)
		}()
		return p, nil
	}
}

type execProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func (p *execProcess) Done() <-chan struct{} { return p.done }
func (p *execProcess) Err() error            { return p.err }

func (p *execProcess) Stop(context.Context) error {
	p.cmd.Process.Kill()
	<-p.done
	return nil
}

package testbed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// newNamespace creates a network namespace without a name. Only the returned descriptor
// holds it, so the kernel removes it when we die.
func newNamespace() (f *os.File, err error) {
	err = link.OnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network namespace: %w", err)
		}
		f, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return f, err
}

// inNamespace runs f on its own thread inside ns, or directly if ns is nil.
func inNamespace[T any](ns *os.File, f func() (T, error)) (result T, err error) {
	if ns == nil {
		return f()
	}
	err = link.InNamespace(int(ns.Fd()), func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// keeper is the OS thread of a host, which stays in the host's namespace while the host
// lives. Processes are forked from it: the kernel sends the parent-death signal when the
// forking THREAD ends, so it must outlive them.
type keeper struct {
	work chan func()
	quit chan struct{}
	done chan struct{}
}

var errHostClosed = errors.New("the host is closed")

func startKeeper(ns *os.File) *keeper {
	k := &keeper{work: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	link.StartThread(func() {
		defer close(k.done)
		if ns != nil && link.Enter(int(ns.Fd())) != nil { // impossible: we created it
			return
		}
		for {
			select {
			case f := <-k.work:
				f()
			case <-k.quit:
				return
			}
		}
	})
	return k
}

// do runs f on the thread. f must not block for long: everything on the host shares the
// thread.
func (k *keeper) do(f func() error) error {
	errc := make(chan error, 1)
	select {
	case k.work <- func() { errc <- f() }:
		return <-errc
	case <-k.done:
		return errHostClosed
	}
}

// stop ends the thread; later calls of do fail. It must be called only once.
func (k *keeper) stop() {
	close(k.quit)
	<-k.done
}

package link

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The client and the emulator talk JSON, a line per message, over a Unix stream
// socket that is the emulator's standard input. A request that adds a host
// carries the host's TUN descriptor beside its bytes. The first reply, number 0,
// says that the emulator is ready; every other answers one request.

type request struct {
	ID    int64      `json:"id"`
	Start *startArgs `json:"start,omitempty"`
	Add   *addArgs   `json:"add,omitempty"`
	Shape *[]edge    `json:"shape,omitempty"`
	Stats bool       `json:"stats,omitempty"`
}

type startArgs struct {
	Seed    uint64 `json:"seed"`
	Memory  int64  `json:"memory"` // bytes
	Threads int    `json:"threads"`
}

type addArgs struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs"`
}

type reply struct {
	ID    int64  `json:"id"`
	Error string `json:"error,omitempty"`
	Stats *Stats `json:"stats,omitempty"`
}

// channel is one end of the control socket.
type channel struct {
	conn *net.UnixConn
	line []byte // read, not yet consumed
	fds  []int  // received, not yet claimed
}

// newChannel uses a duplicate of f, one end of a Unix stream socket.
func newChannel(f *os.File) (*channel, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a Unix socket")
	}
	return &channel{conn: u}, nil
}

// send writes v, and with it descriptor fd unless that is negative.
func (c *channel) send(v any, fd int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	n, _, err := c.conn.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = c.conn.Write(b[n:])
	}
	return err
}

// maxLine bounds a message: statistics of some thousand paths.
const maxLine = 16 << 20

// receive reads the next message into v.
func (c *channel) receive(v any) error {
	buf := make([]byte, 64<<10)
	oob := make([]byte, unix.CmsgSpace(4*16))
	for {
		if i := bytes.IndexByte(c.line, '\n'); i >= 0 {
			err := json.Unmarshal(c.line[:i], v)
			c.line = append(c.line[:0], c.line[i+1:]...)
			return err
		}
		if len(c.line) > maxLine {
			return fmt.Errorf("message over %d bytes", maxLine)
		}
		n, oobn, _, _, err := c.conn.ReadMsgUnix(buf, oob)
		if err != nil {
			return err
		}
		if oobn > 0 {
			msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
			if err != nil {
				return err
			}
			for _, m := range msgs {
				fds, err := unix.ParseUnixRights(&m)
				if err != nil {
					return err
				}
				c.fds = append(c.fds, fds...)
			}
		}
		if n == 0 {
			return io.EOF
		}
		c.line = append(c.line, buf[:n]...)
	}
}

// claim returns the descriptor that came with the message just received.
func (c *channel) claim() (int, error) {
	if len(c.fds) == 0 {
		return -1, errors.New("no descriptor came with the request")
	}
	fd := c.fds[0]
	c.fds = c.fds[1:]
	return fd, unix.SetNonblock(fd, true)
}

func (c *channel) close() {
	c.conn.Close()
	for _, fd := range c.fds {
		unix.Close(fd)
	}
	c.fds = nil
}

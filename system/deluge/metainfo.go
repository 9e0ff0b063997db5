package deluge

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// errTorrent is a file that [torrent.file] has not written.
var errTorrent = errors.New("not a torrent of ours")

// parseTorrent reads what [torrent.file] wrote, and nothing else.
func parseTorrent(b []byte) (t torrent, err error) {
	p := parser{b: b}
	p.expect("d4:infod6:lengthi")
	t.size = p.number('e')
	p.expect("4:name")
	t.name = string(p.bytes(p.number(':')))
	p.expect("12:piece lengthi")
	t.piece = p.number('e')
	p.expect("6:pieces")
	t.hashes = p.bytes(p.number(':'))
	if p.failed || !bytes.Equal(t.file(), b) {
		return torrent{}, errTorrent
	}
	if t.piece < 1 || t.size < 1 || int64(len(t.hashes)) != (t.size+t.piece-1)/t.piece*20 {
		return torrent{}, fmt.Errorf("%d bytes of hashes for %d bytes in pieces of %d: %w", len(t.hashes), t.size, t.piece, errTorrent)
	}
	return t, nil
}

type parser struct {
	b      []byte
	failed bool
}

func (p *parser) expect(s string) {
	rest, ok := bytes.CutPrefix(p.b, []byte(s))
	p.b, p.failed = rest, p.failed || !ok
}

func (p *parser) number(end byte) int64 {
	digits, rest, _ := bytes.Cut(p.b, []byte{end})
	n, err := strconv.ParseInt(string(digits), 10, 64)
	p.b, p.failed = rest, p.failed || err != nil
	return n
}

func (p *parser) bytes(n int64) []byte {
	if n < 0 || n > int64(len(p.b)) {
		p.failed = true
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

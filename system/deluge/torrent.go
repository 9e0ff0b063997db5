package deluge

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

// torrent is a torrent of one file (BEP 3). It is private (BEP 27), so that no
// client looks for peers beyond those it is told of.
type torrent struct {
	name   string // of the file
	size   int64
	piece  int64
	hashes []byte // SHA-1 of each piece
}

// info is the dictionary whose hash names the torrent: the same for the same
// bytes, name and piece size, on every node.
func (t torrent) info() []byte {
	b := fmt.Appendf(nil, "d6:lengthi%de4:name%d:%s12:piece lengthi%de6:pieces%d:", t.size, len(t.name), t.name, t.piece, len(t.hashes))
	return append(append(b, t.hashes...), "7:privatei1ee"...)
}

// file is the content of the .torrent file: no announce, no dates.
func (t torrent) file() []byte {
	return append(append([]byte("d4:info"), t.info()...), 'e')
}

// ref is the info hash.
func (t torrent) ref() system.Ref {
	sum := sha1.Sum(t.info())
	return system.Ref(hex.EncodeToString(sum[:]))
}

// parseRef checks that ref can be a torrent's.
func parseRef(ref system.Ref) error {
	b, err := hex.DecodeString(string(ref))
	if err != nil || len(b) != sha1.Size || hex.EncodeToString(b) != string(ref) {
		return fmt.Errorf("deluge: %q is not the info hash of a torrent, 40 digits: %w", ref, system.ErrBadRef)
	}
	return nil
}

// pieces hashes what is written to it, piece by piece.
type pieces struct {
	size   int64 // of a piece
	hash   hash.Hash
	left   int64 // of the piece that is being hashed
	hashes []byte
}

func newPieces(size int64) *pieces { return &pieces{size: size, hash: sha1.New(), left: size} }

func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		k := min(int64(len(b)), p.left)
		p.hash.Write(b[:k])
		b = b[k:]
		if p.left -= k; p.left == 0 {
			p.next()
		}
	}
	return n, nil
}

func (p *pieces) next() {
	p.hashes = p.hash.Sum(p.hashes)
	p.hash.Reset()
	p.left = p.size
}

// end is the hashes of all pieces; the last one may be shorter.
func (p *pieces) end() []byte {
	if p.left < p.size {
		p.next()
	}
	return p.hashes
}

// pieceOption is the size of pieces: libtorrent wants multiples of its blocks of
// 16 KiB, other clients powers of two.
func pieceOption(opt system.Options) (int64, error) {
	n, err := opt.Int("piece")
	if err != nil {
		return 0, err
	}
	if n < 16<<10 || n > 16<<20 || n&(n-1) != 0 {
		return 0, fmt.Errorf("option \"piece\" is a power of two from 16 KiB to 16 MiB, not %s", strconv.FormatInt(n, 10))
	}
	return n, nil
}

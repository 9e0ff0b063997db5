package bittorrent

import (
	"context"
	"crypto/sha1"
	"errors"
	"io"
	"os"

	"github.com/anacrolix/torrent/bencode"
	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Publish implements member.Node. The info dictionary that it returns, bencoded,
// depends on the name, the bytes and the size of a piece alone.
func (p *peer) Publish(ctx context.Context, title string, size int64, r io.Reader) (any, error) {
	info := metainfo.Info{Name: disk.FileName(title), PieceLength: p.piece, Length: size}
	file, err := member.Receive(ctx, testbed.LocalFiles{}, p.dir, size, p.piece, r, func(piece []byte) {
		sum := sha1.Sum(piece) // BEP 3
		info.Pieces = append(info.Pieces, sum[:]...)
	})
	if err != nil {
		return nil, err
	}
	defer os.Remove(file) // fails when renamed, as it should
	b, err := bencode.Marshal(info)
	if err != nil {
		return nil, err
	}
	return b, p.seed(hashOf(b), b, info.NumPieces(), file)
}

// seed puts a file in its place and adds its torrent, unless it is complete.
func (p *peer) seed(h hash, info []byte, pieces int, file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := &held{task: task{Info: info}}
	if old, ok := p.tasks[h]; ok {
		if old.t.Complete().Bool() {
			return nil
		}
		now.From = old.From
		p.drop(h)
	}
	if err := p.kept.Save(h.HexString(), now.task); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(p.at(h, ""), 0o755), os.Rename(file, p.at(h, contentFile))); err != nil {
		return err
	}
	for i := range pieces {
		if err := p.done.Set(metainfo.PieceKey{InfoHash: h, Index: i}, true); err != nil {
			return err
		}
	}
	if err := p.add(h, now); err != nil {
		return err
	}
	p.introduce(now)
	return nil
}

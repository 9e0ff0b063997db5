package bittorrent

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/anacrolix/torrent/bencode"
	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// publish writes size bytes of r to this node's disk, hashing them on the way,
// and seeds them. The info dictionary that it returns depends on the name, the
// bytes and the size of a piece alone.
func (p *peer) publish(ctx context.Context, title string, size int64, r io.Reader) ([]byte, error) {
	if size < 1 {
		return nil, errors.New("a torrent has at least one byte")
	}
	f, err := os.CreateTemp(p.dir, ".publish-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	defer f.Close()
	info := metainfo.Info{Name: disk.FileName(title), PieceLength: p.piece, Length: size}
	buf := make([]byte, min(p.piece, size))
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		piece := buf[:min(left, p.piece)]
		if _, err := io.ReadFull(r, piece); err != nil {
			return nil, fmt.Errorf("after %d of %d bytes: %w", size-left, size, err)
		}
		if _, err := f.Write(piece); err != nil {
			return nil, err
		}
		sum := sha1.Sum(piece) // BEP 3
		info.Pieces = append(info.Pieces, sum[:]...)
		left -= int64(len(piece))
	}
	// A client that breaks off late would have published all the same.
	if n, err := r.Read(buf[:1]); n > 0 || err != nil && err != io.EOF {
		return nil, fmt.Errorf("after %d bytes: %d more: %w", size, n, err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return nil, err
	}
	b, err := bencode.Marshal(info)
	if err != nil {
		return nil, err
	}
	return b, p.seed(hashOf(b), b, info.NumPieces(), f.Name())
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
	if err := p.save(h, now); err != nil {
		return err
	}
	if err := os.Rename(file, filepath.Join(p.dir, h.HexString(), contentFile)); err != nil {
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
	p.tell(now)
	return nil
}

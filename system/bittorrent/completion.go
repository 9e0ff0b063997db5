package bittorrent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/anacrolix/torrent/metainfo"
	"github.com/anacrolix/torrent/storage"
)

// completion knows which pieces are on disk and good, for as long as the process
// lives: what an earlier one left is checked anew. Of a file that is not there
// no piece is, which needs no check.
type completion struct {
	dir string

	mu sync.Mutex
	of map[metainfo.Hash]*pieces
}

// pieces is what is known of one torrent.
type pieces struct {
	good map[int]bool
	none bool // there was no file when it was first asked for
}

var _ storage.PieceCompletion = (*completion)(nil)

// Get implements storage.PieceCompletion.
func (c *completion) Get(k metainfo.PieceKey) (storage.Completion, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.torrent(k.InfoHash)
	good, known := p.good[k.Index]
	return storage.Completion{Complete: good, Ok: known || p.none}, nil
}

// Set implements storage.PieceCompletion.
func (c *completion) Set(k metainfo.PieceKey, good bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torrent(k.InfoHash).good[k.Index] = good
	return nil
}

func (c *completion) torrent(h metainfo.Hash) *pieces {
	p, ok := c.of[h]
	if !ok {
		_, err := os.Stat(filepath.Join(c.dir, h.HexString(), contentFile))
		p = &pieces{good: map[int]bool{}, none: errors.Is(err, fs.ErrNotExist)}
		c.of[h] = p
	}
	return p
}

// forget drops what is known of a torrent.
func (c *completion) forget(h metainfo.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, h)
}

// Persistent implements storage.PieceCompletionPersistenter: nothing to sync for.
func (c *completion) Persistent() bool { return false }

// Close implements storage.PieceCompletion.
func (c *completion) Close() error { return nil }

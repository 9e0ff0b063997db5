package deluge

import (
	"errors"
	"fmt"
	"sync"

	"github.com/anacrolix/torrent/bencode"
	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
)

// torrent is a torrent of one file (BEP 3). It is private (BEP 27), so that no
// client looks for peers beyond those that are named to it.
type torrent struct {
	metainfo.Info
	file []byte // the .torrent file: no announce, no dates
	ref  system.Ref
}

// newTorrent is the same for the same bytes, name and piece size, on every node.
func newTorrent(info metainfo.Info) (t torrent, err error) {
	private := true
	info.Private = &private
	m := metainfo.MetaInfo{}
	if m.InfoBytes, err = bencode.Marshal(info); err != nil {
		return t, err
	}
	file, err := bencode.Marshal(m)
	return torrent{info, file, system.Ref(m.HashInfoBytes().HexString())}, err
}

// published are the torrents of a cluster by their refs, which its nodes hand over to
// each other out of band.
type published struct{ sync.Map }

// parseRef checks that ref can be a torrent's.
func parseRef(ref system.Ref) error {
	var h metainfo.Hash
	err := h.FromHexString(string(ref))
	if err == nil && h.HexString() != string(ref) {
		err = errors.New("hex digits in upper case")
	}
	if err != nil {
		return fmt.Errorf("deluge: %q is not the info hash of a torrent, 40 digits (%w): %w", ref, err,
			system.ErrBadRef)
	}
	return nil
}

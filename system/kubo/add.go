package kubo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// layout is how a file becomes blocks: without all of these set CIDs differ
// between versions of the daemon.
type layout struct {
	cidVersion, rawLeaves, chunk string
}

// add imports and pins a file.
func (r *rpc) add(ctx context.Context, l layout, file string, size int64, content io.Reader) (system.Ref, error) {
	body, err := web.Exactly(content, size) // or the form would end as it should behind bytes that are too many
	if err != nil {
		return "", fmt.Errorf("kubo: add: %w", err)
	}
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	if _, err := m.CreateFormFile("file", file); err != nil {
		return "", fmt.Errorf("kubo: add: %w", err)
	}
	head := form.String()
	form.Reset()
	if err := m.Close(); err != nil {
		return "", fmt.Errorf("kubo: add: %w", err)
	}
	tail := form.String()
	resp, err := r.send(ctx, "add", url.Values{
		"cid-version": {l.cidVersion}, "raw-leaves": {l.rawLeaves}, "chunker": {"size-" + l.chunk},
		"pin": {"true"}, "progress": {"false"}, "quieter": {"true"},
	}, web.Call{
		Header: http.Header{"Content-Type": {m.FormDataContentType()}},
		Size:   int64(len(head)) + size + int64(len(tail)),
		Body:   io.MultiReader(strings.NewReader(head), body, strings.NewReader(tail)),
	})
	if err != nil {
		return "", err
	}
	return r.added(resp)
}

// added reads the answer to add, of which the last line is the object.
func (r *rpc) added(resp *http.Response) (system.Ref, error) {
	var last struct{ Hash string }
	if err := r.decode("add", resp, func(d *json.Decoder) error { return d.Decode(&last) }); err != nil {
		return "", err
	}
	if _, err := cid.Decode(last.Hash); err != nil {
		return "", fmt.Errorf("kubo: add on %s: answered %q instead of a CID: %w", r.base.Host, last.Hash, err)
	}
	return system.Ref(last.Hash), nil
}

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is a bucket.
type node struct {
	at       endpoint
	client   *web.Client   // over the client's link
	s3       *minio.Client // on it
	near     *web.Client   // from the server's host to itself; attached: as client
	local    *minio.Client // on it
	proc     *testbed.Process
	attached bool
	write    bool

	mu   sync.Mutex
	ours map[system.Ref]bool // keys put here: the only ones an attached node deletes
}

// provider is a bucket that is attached to for reading: its objects were there.
type provider struct{ *node }

// Objects implements system.Provider.
func (p provider) Objects(ctx context.Context) ([]system.Object, error) { return p.List(ctx) }

// connect makes a node without asking the server anything.
func connect(e endpoint, client, local testbed.Host) (*node, error) {
	n := &node{at: e, ours: map[system.Ref]bool{}}
	var err error
	if n.client, err = web.New(name, client.Dial, n.base()); err != nil {
		return nil, err
	}
	if n.s3, err = e.dial(n.client); err != nil {
		return nil, err
	}
	if n.near, err = web.New(name, local.Dial, n.base()); err != nil {
		return nil, err
	}
	n.local, err = e.dial(n.near)
	return n, err
}

func (n *node) base() system.HTTPTarget {
	return system.HTTPTarget{URL: n.at.url, CAFile: n.at.ca, Insecure: n.at.insecure}
}

func (e endpoint) dial(c *web.Client) (*minio.Client, error) {
	creds := credentials.NewStaticV4(e.access, e.secret, "") // anonymous when empty
	m, err := minio.New(e.url.Host, &minio.Options{
		Creds: creds, Secure: e.url.Scheme == "https", Region: e.region,
		Transport:    c.HTTP().Transport,
		BucketLookup: minio.BucketLookupPath, // names of buckets need not resolve
		MaxRetries:   1,                      // a failure is a result, not something to hide
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %s: %w", e.url.Host, err)
	}
	return m, nil
}

// reachable asks for the bucket.
func (n *node) reachable(ctx context.Context) (http.Header, error) {
	if n.at.anonymous() { // who may read objects may not be allowed to ask for the bucket
		return http.Header{}, nil
	}
	u, err := n.s3.PresignHeader(ctx, http.MethodHead, n.at.bucket, "", n.at.presign, url.Values{}, nil)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	t := n.base()
	t.URL = u
	head, err := n.client.Head(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("s3: bucket %q: %w", n.at.bucket, err)
	}
	return head, nil
}

// Target implements system.HTTPServer: a presigned URL, signed for this host
// name, which a Range header does not touch.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	t := n.base()
	if !n.valid(string(ref)) {
		return t, fmt.Errorf("s3: %q is no key of ours: %w", ref, system.ErrNotFound)
	}
	if n.at.anonymous() {
		t.URL = n.at.url.JoinPath(n.at.bucket, string(ref))
		return t, nil
	}
	u, err := n.s3.PresignedGetObject(context.Background(), n.at.bucket, string(ref), n.at.presign, nil)
	if err != nil {
		return t, fmt.Errorf("s3: presign %s: %w", ref, err)
	}
	t.URL = u
	return t, nil
}

// valid keeps out keys that a URL cannot hold, or would mean another object by.
func (n *node) valid(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return key != "" && (n.attached || disk.Valid(key) == nil)
}

// Put implements system.Node.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, n.s3, name, size, r)
}

// Seed implements system.Seeder: the same PUT, from the server's own host.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, n.local, name, size, r)
}

const (
	maxSinglePut = 5 << 30 // what S3 takes in one PUT
	partSize     = 64 << 20
)

func (n *node) put(ctx context.Context, c *minio.Client, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.attached && !n.write {
		return "", fmt.Errorf("s3: put %q: %w; `allow: [write]` in the experiment file permits it", name, system.ErrReadOnly)
	}
	body, err := web.Exactly(r, size)
	if err != nil {
		return "", fmt.Errorf("s3: put %q: %w", name, err)
	}
	key := n.at.prefix + disk.FileName(name)
	_, err = c.PutObject(ctx, n.at.bucket, key, body, size, minio.PutObjectOptions{
		ContentType:      "application/octet-stream",
		DisableMultipart: size <= maxSinglePut, // or parts are held in memory
		PartSize:         partSize,
	})
	if err != nil {
		return "", fmt.Errorf("s3: put %q: %w", name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ours[system.Ref(key)] = true
	return system.Ref(key), nil
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.client.Get(ctx, t, w)
}

// GetRange implements system.Ranger.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.client.GetRange(ctx, t, off, count, w)
}

// Delete implements system.Deleter. On an attached server it deletes only what
// this node has put there.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	n.mu.Lock()
	ours := n.ours[ref]
	n.mu.Unlock()
	if n.attached && !ours {
		return fmt.Errorf("s3: delete %s: it is not ours: %w", ref, system.ErrReadOnly)
	}
	if err := n.s3.RemoveObject(ctx, n.at.bucket, string(ref), minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("s3: delete %s: %w", ref, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ours, ref)
	return nil
}

// List implements system.Lister.
func (n *node) List(ctx context.Context) ([]system.Object, error) {
	var out []system.Object
	for o := range n.s3.ListObjectsIter(ctx, n.at.bucket, minio.ListObjectsOptions{Prefix: n.at.prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, fmt.Errorf("s3: list bucket %q: %w", n.at.bucket, o.Err)
		}
		if o.Key == disk.Probe && !n.attached || strings.HasSuffix(o.Key, "/") {
			continue
		}
		out = append(out, system.Object{Name: disk.Name(strings.TrimPrefix(o.Key, n.at.prefix)), Ref: system.Ref(o.Key), Size: o.Size})
	}
	return out, nil
}

// Health implements system.Healther, over a new connection: an object of ours
// when started, the bucket when attached.
func (n *node) Health(ctx context.Context) error {
	if n.attached {
		_, err := n.reachable(ctx)
		return err
	}
	if n.proc != nil {
		select {
		case <-n.proc.Done():
			return fmt.Errorf("s3: the server process has ended (%v); see %s", n.proc.Err(), n.proc.LogPath())
		default:
		}
	}
	t, err := n.Target(disk.Probe)
	if err != nil {
		return err
	}
	return n.client.Probe(ctx, t, disk.ProbeContent)
}

// prepare makes the bucket and the probe's object.
func (n *node) prepare(ctx context.Context) error {
	if err := n.local.MakeBucket(ctx, n.at.bucket, minio.MakeBucketOptions{Region: n.at.region}); err != nil {
		var e minio.ErrorResponse
		if !errors.As(err, &e) || e.Code != "BucketAlreadyOwnedByYou" { // an earlier try, the answer to which was lost
			return fmt.Errorf("make bucket %q: %w", n.at.bucket, err)
		}
	}
	_, err := n.put(ctx, n.local, disk.Probe, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
	return err
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process {
	if n.proc == nil {
		return nil
	}
	return []*testbed.Process{n.proc}
}

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string { return []string{web.HostPort(n.at.url)} }

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	n.close()
	if n.proc == nil {
		return nil
	}
	return n.proc.Stop(ctx)
}

func (n *node) close() {
	n.client.Close()
	n.near.Close()
}

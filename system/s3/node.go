package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is a bucket.
type node struct {
	// its Reader uses the client's link; its Process is never started if attached
	member.Served
	at       endpoint
	s3       *minio.Client // uses the Reader's client
	near     *web.Client   // from the server's host to the server; attached: from the client
	local    *minio.Client // uses near
	attached bool
	// begins, after the prefix, the keys of objects that an attached node stores: it changes no
	// others; empty: it stores none
	mark string
}

// started is a bucket whose files are accessible.
type started struct {
	*node
	data, side disk.Dir // directories of objects and of their metadata
}

// Stats implements system.Stats. Extended attributes of versitygw are not part of the disk blocks.
func (s started) Stats(ctx context.Context) (system.Holdings, error) {
	h, err := disk.Usage(s.data, s.side)
	if err != nil {
		return h, fmt.Errorf("s3: %w", err)
	}
	h.Objects = 0
	err = s.data.Files.Walk(s.data.Sub(s.at.bucket).Path, func(e testbed.Entry) error {
		// Directories whose names no object can have belong to the server.
		if disk.ValidPath(e.Path) == nil && path.Base(e.Path) != disk.Probe && e.Mode.IsRegular() {
			h.Objects++
		}
		return nil
	})
	return h, err
}

// connect returns a node without contacting the server.
func connect(e endpoint, client, local testbed.Host) (*node, error) {
	n := &node{at: e}
	n.Probe = disk.Probe
	var err error
	if n.Reader, err = web.NewReader(name, client.Dial, n.base(), n.Target); err != nil {
		return nil, err
	}
	if n.s3, err = e.dial(n.Client); err != nil {
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
		BucketLookup: minio.BucketLookupPath, // bucket names need not resolve
		MaxRetries:   1,                      // a failure is a result, and must not be hidden by a retry
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %s: %w", e.url.Host, err)
	}
	return m, nil
}

// reachable requests the bucket.
func (n *node) reachable(ctx context.Context) (http.Header, error) {
	if n.at.anonymous() { // permission to read objects may not include the bucket
		return http.Header{}, nil
	}
	u, err := n.s3.PresignHeader(ctx, http.MethodHead, n.at.bucket, "", presigned, url.Values{}, nil)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	t := n.base()
	t.URL = u
	head, _, err := n.Client.Fresh().Head(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("s3: bucket %q: %w", n.at.bucket, err)
	}
	return head, nil
}

// Target implements system.HTTPServer with a presigned URL. The signature covers the host name but
// no Range header.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	t := n.base()
	if !n.valid(string(ref)) {
		return t, fmt.Errorf("s3: %q is no key of ours: %w", ref, system.ErrNotFound)
	}
	if n.at.anonymous() {
		t.URL = n.at.url.JoinPath(n.at.bucket, string(ref))
		return t, nil
	}
	u, err := n.s3.PresignedGetObject(context.Background(), n.at.bucket, string(ref), presigned, nil)
	if err != nil {
		return t, fmt.Errorf("s3: presign %s: %w", ref, err)
	}
	t.URL = u
	return t, nil
}

// valid rejects keys that a URL cannot contain or would map to another object.
func (n *node) valid(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return key != "" && !strings.HasSuffix(key, "/") && !strings.Contains(key, "\x00") &&
		(n.attached || disk.ValidPath(key) == nil)
}

// Put implements system.Store.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, n.s3, n.Named(name), size, r)
}

// Seed implements system.Seeder: the same PUT, from the server's own host.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, n.local, n.Named(name), size, r)
}

const (
	presigned    = 7 * 24 * time.Hour // validity of a URL, the maximum that S3 allows
	maxSinglePut = 5 << 30            // limit of S3 for one PUT
	partSize     = 64 << 20
)

// Named implements system.Namer.
func (n *node) Named(name string) system.Ref {
	return system.Ref(n.at.prefix + n.mark + disk.PathName(name))
}

func (n *node) put(ctx context.Context, c *minio.Client, ref system.Ref, size int64, r io.Reader) (system.Ref, error) {
	if n.attached && n.mark == "" {
		return "", fmt.Errorf("s3: put %s: %w", ref, system.ErrNotAllowed)
	}
	body, err := web.Exactly(r, size)
	if err != nil {
		return "", fmt.Errorf("s3: put %s: %w", ref, err)
	}
	_, err = c.PutObject(ctx, n.at.bucket, string(ref), body, size, minio.PutObjectOptions{
		ContentType:      "application/octet-stream",
		DisableMultipart: size <= maxSinglePut, // otherwise parts are held in memory
		PartSize:         partSize,
		// Otherwise versitygw leaves the end of an empty chunked body unread and takes it for the
		// next request of the connection.
		DisableContentSha256: size == 0,
	})
	if err != nil {
		return "", fmt.Errorf("s3: put %s: %w", ref, classified(err))
	}
	return ref, nil
}

// classified adds to a server's error the error that callers distinguish.
func classified(err error) error {
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		return err
	}
	if e.StatusCode >= 400 {
		err = fmt.Errorf("status %d: %w", e.StatusCode, err) // missing in its text
	}
	return web.Meaning(e.StatusCode, err)
}

// mayChange returns an error for foreign objects on an attached server.
func (n *node) mayChange(what string, ref system.Ref) error {
	if n.attached && (n.mark == "" || !strings.HasPrefix(string(ref), n.at.prefix+n.mark)) {
		return fmt.Errorf("s3: %s %s: it is not ours: %w", what, ref, system.ErrReadOnly)
	}
	return nil
}

// Stat implements system.Stater with StatObject, a HEAD request.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	if !n.valid(string(ref)) {
		return system.Object{}, fmt.Errorf("s3: %q is no key of ours: %w", ref, system.ErrNotFound)
	}
	o, err := n.s3.StatObject(ctx, n.at.bucket, string(ref), minio.StatObjectOptions{})
	if err != nil {
		return system.Object{}, fmt.Errorf("s3: stat %s: %w", ref, classified(err))
	}
	return n.object(o.Key, o.Size), nil
}

// Update implements system.Updater with a PUT of the same key. On an attached server it overwrites
// only objects of this run.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	if err := n.mayChange("update", ref); err != nil {
		return err
	}
	_, err := n.put(ctx, n.s3, ref, size, r)
	return err
}

// Delete implements system.Deleter. On an attached server it deletes only objects of this run.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	if err := n.mayChange("delete", ref); err != nil {
		return err
	}
	if err := n.s3.RemoveObject(ctx, n.at.bucket, string(ref), minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("s3: delete %s: %w", ref, classified(err))
	}
	return nil
}

// List implements system.Lister. In a writable attached bucket, it lists only the objects of this
// run.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	ours := minio.ListObjectsOptions{Prefix: n.at.prefix + n.mark, Recursive: true}
	for o := range n.s3.ListObjectsIter(ctx, n.at.bucket, ours) {
		if o.Err != nil {
			return fmt.Errorf("s3: list bucket %q: %w", n.at.bucket, classified(o.Err))
		}
		if o.Key == disk.Probe && !n.attached || strings.HasSuffix(o.Key, "/") {
			continue
		}
		if err := visit(n.object(o.Key, o.Size)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) object(key string, size int64) system.Object {
	name := strings.TrimPrefix(strings.TrimPrefix(key, n.at.prefix), n.mark)
	return system.Object{Name: disk.NameOfPath(name), Ref: system.Ref(key), Size: size}
}

// Health implements system.Healther, over a new connection: it checks the probe object of a started
// server, or the bucket of an attached one.
func (n *node) Health(ctx context.Context) error {
	if n.attached {
		_, err := n.reachable(ctx)
		return err
	}
	return n.Served.Health(ctx)
}

// prepare creates the bucket and the probe object.
func (n *node) prepare(ctx context.Context) error {
	if err := n.local.MakeBucket(ctx, n.at.bucket, minio.MakeBucketOptions{Region: n.at.region}); err != nil {
		var e minio.ErrorResponse
		if !errors.As(err, &e) || e.Code != "BucketAlreadyOwnedByYou" { // an earlier attempt whose answer was lost
			return fmt.Errorf("make bucket %q: %w", n.at.bucket, err)
		}
	}
	_, err := n.put(ctx, n.local, n.Named(disk.Probe), int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
	return err
}

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string { return []string{web.HostPort(n.at.url)} }

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	n.close()
	return n.Process.Stop(ctx)
}

func (n *node) close() {
	n.Client.Close()
	n.near.Close()
}

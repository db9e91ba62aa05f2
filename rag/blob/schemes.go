package blob

import (
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"
)

// openers are the buckets that there are, by scheme.
func openers() *blob.URLMux {
	m := new(blob.URLMux)
	m.RegisterBucket(memblob.Scheme, &memblob.URLOpener{})
	m.RegisterBucket(s3blob.Scheme, &s3blob.URLOpener{})
	return m
}

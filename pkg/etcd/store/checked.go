package store

import (
	"bytes"
	"fmt"
	"hash"
	"io"
)

// checked is an object's content, which is held to the checksum that the store tells of it.
type checked struct {
	io.ReadCloser
	hash hash.Hash
	want []byte
}

// check returns content as it is if there is no checksum.
func check(content io.ReadCloser, sum hash.Hash, want []byte) io.ReadCloser {
	if len(want) == 0 {
		return content
	}
	return &checked{ReadCloser: content, hash: sum, want: want}
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.hash.Write(p[:n])
	if err == io.EOF && !bytes.Equal(c.hash.Sum(nil), c.want) {
		err = fmt.Errorf("%w: the content has another checksum than the store tells", errAnswer)
	}
	return n, err
}

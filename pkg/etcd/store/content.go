package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// content is what Put reads: it ends with the context and holds the caller's reader to the size it gave. Clients of
// object stores take some errors, such as io.ErrUnexpectedEOF, for the end; none gets through to them unwrapped.
type content struct {
	ctx    context.Context
	reader io.Reader
	// size that was announced, or Unknown, and how much has been delivered of it.
	size, read int64
}

func newContent(ctx context.Context, reader io.Reader, size int64) (*content, error) {
	if size < Unknown {
		return nil, fmt.Errorf("the content cannot have %d bytes", size)
	}
	c := &content{ctx: ctx, reader: reader, size: size}
	if size == 0 {
		if err := c.end(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Read delivers the last byte that was announced only when none follows: a client that counts bytes asks for no more
// and would else be content with the beginning of something longer.
func (c *content) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fmt.Errorf("reading the content: %w", err)
	}
	if c.size == c.read {
		return 0, io.EOF
	}
	if c.size != Unknown {
		p = p[:min(int64(len(p)), c.size-c.read)]
	}
	n, err := c.reader.Read(p)
	whole := c.size == c.read+int64(n)
	switch {
	case whole && (err == nil || err == io.EOF):
		err = c.end()
	case err == io.EOF && c.size != Unknown:
		err = fmt.Errorf("the content ends after %d bytes, of %d that were announced", c.read+int64(n), c.size)
	case err != nil && err != io.EOF:
		err = fmt.Errorf("reading the content: %w", err)
	}
	if whole && err != nil && n > 0 {
		n--
	}
	c.read += int64(n)
	return n, err
}

// end returns an error if the reader has more.
func (c *content) end() error {
	var next [1]byte
	n, err := io.ReadFull(c.reader, next[:])
	if n > 0 {
		return fmt.Errorf("the content is longer than the %d bytes that were announced", c.size)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the content: %w", err)
	}
	return nil
}

package store

import (
	"context"
	"io"
)

// upload is how an object gets into a store: at once, or in parts.
type upload interface {
	// whole puts an object that has but one part.
	whole(ctx context.Context, content []byte) error
	// part puts the next part. With the last one the object appears.
	part(ctx context.Context, content []byte, last bool) error
	// abort drops the parts that were put, as well as it can.
	abort(ctx context.Context)
}

// putParts puts content by an upload.
func putParts(ctx context.Context, reader io.Reader, size int64, to upload) error {
	source, err := newContent(ctx, reader, size)
	if err != nil {
		return err
	}
	cut := newParts(source, size)
	content, last, err := cut.next()
	if err != nil {
		return err
	}
	if last {
		return to.whole(ctx, content)
	}
	for {
		if err = to.part(ctx, content, last); err != nil || last {
			break
		}
		if content, last, err = cut.next(); err != nil {
			break
		}
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		to.abort(ctx)
	}
	return err
}

// parts cuts content into pieces of partSize.
type parts struct {
	reader io.Reader
	// buffer has room for a part and the first byte of the one after it, by which the last part is known.
	buffer []byte
	held   int
}

func newParts(reader io.Reader, size int64) *parts {
	length := int64(partSize)
	if size != Unknown {
		length = min(length, size)
	}
	return &parts{reader: reader, buffer: make([]byte, length+1)}
}

// next returns a part, which is there until the next call, and whether it is the last.
func (p *parts) next() ([]byte, bool, error) {
	if p.held > 0 {
		p.buffer[0] = p.buffer[len(p.buffer)-1]
	}
	n, err := io.ReadFull(p.reader, p.buffer[p.held:])
	n += p.held
	// Errors of the content are wrapped, so these are its end.
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return p.buffer[:n], true, nil
	}
	if err != nil {
		return nil, false, err
	}
	p.held = 1
	return p.buffer[:n-1], false, nil
}

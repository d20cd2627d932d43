package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// window is the most history that compression looks at, and so what reading and writing an object take of memory,
// some times over.
const window = 4 << 20

// Writer writes an object. Its memory does not grow with the content.
type Writer struct {
	to     io.Writer
	hash   hash.Hash
	zstd   *zstd.Encoder
	sealer *sealer
	digest Digest
}

// NewWriter writes what stands before the content, which is then written to the Writer. keys may be nil.
func NewWriter(to io.Writer, header Header, keys *Keys) (*Writer, error) {
	h, err := newWireHeader(header, keys)
	if err != nil {
		return nil, fmt.Errorf("writing a backup: %w", err)
	}
	before, err := h.marshal()
	if err != nil {
		return nil, fmt.Errorf("writing a backup: %w", err)
	}
	w := &Writer{to: to, hash: sha256.New()}
	compressed := io.MultiWriter(to, w.hash)
	if _, err := compressed.Write(before); err != nil {
		return nil, err
	}
	if keys != nil {
		aead, err := objectKey(keys.ByID[keys.Current], h.Salt)
		if err != nil {
			return nil, fmt.Errorf("%w: key %q: %w", ErrKey, keys.Current, err)
		}
		w.sealer = newSealer(compressed, aead, before)
		compressed = w.sealer
	}
	w.zstd, err = zstd.NewWriter(compressed, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	return w, err
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) { return w.zstd.Write(p) }

// Close completes the object.
func (w *Writer) Close() error {
	if err := w.zstd.Close(); err != nil {
		return err
	}
	if w.sealer != nil {
		if err := w.sealer.Close(); err != nil {
			return err
		}
	}
	w.hash.Sum(w.digest[:0])
	_, err := w.to.Write(w.digest[:])
	return err
}

// Digest is the object's, once it is complete.
func (w *Writer) Digest() Digest { return w.digest }

// Reader reads an object's content. What it delivers is certain only when it has come to io.EOF: whoever acts on the
// content must be able to undo that until then.
type Reader struct {
	Header Header
	source *source
	closer io.Closer
	zstd   *zstd.Decoder
	// rest is what the decompression reads from.
	rest io.Reader
	err  error
}

// Open reads the object of a name in a store. The caller closes the reader.
func Open(ctx context.Context, s store.Store, name Name, keys *Keys) (*Reader, error) {
	body, err := s.Get(ctx, name.String())
	if err != nil {
		return nil, err
	}
	r, err := NewReader(body, keys)
	if err == nil && r.Header.String() != name.String() {
		err = fmt.Errorf("%w: it is %s", ErrDamaged, r.Header)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", name, err), body.Close())
	}
	r.closer = body
	return r, nil
}

// NewReader reads an object. Its memory does not grow with the content. keys may be nil.
func NewReader(from io.Reader, keys *Keys) (*Reader, error) {
	r := &Reader{source: newSource(from), closer: io.NopCloser(nil)}
	h, before, err := readHeader(r.source)
	if err == nil {
		r.Header, err = h.header()
	}
	if err != nil {
		return nil, r.explain(err)
	}
	if r.rest, err = keys.open(r.source, &h, before); err != nil {
		return nil, err
	}
	r.zstd, err = zstd.NewReader(r.rest, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, r.explain(err)
	}
	return r, nil
}

// open returns what decrypts the content.
func (k *Keys) open(content io.Reader, h *wireHeader, before []byte) (io.Reader, error) {
	switch {
	case h.Encryption == "" && (k == nil || k.AcceptPlain):
		return content, nil
	case h.Encryption == "":
		return nil, fmt.Errorf("%w: it is not encrypted", ErrKey)
	case k == nil || k.ByID[h.KeyID] == nil:
		return nil, fmt.Errorf("%w: it is encrypted with key %q, which is not known", ErrKey, h.KeyID)
	}
	aead, err := objectKey(k.ByID[h.KeyID], h.Salt)
	if err != nil {
		return nil, fmt.Errorf("%w: key %q: %w", ErrKey, h.KeyID, err)
	}
	return newOpener(content, aead, before), nil
}

// Read implements io.Reader. It returns io.EOF only when the digest fits.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.zstd.Read(p)
	if err == io.EOF {
		err = cmp.Or(r.finish(), io.EOF)
	} else if err != nil {
		err = r.explain(err)
	}
	r.err = err
	return n, err
}

// finish reads the object to its end, after that of the content.
func (r *Reader) finish() error {
	if n, err := io.Copy(io.Discard, r.rest); err != nil || n > 0 {
		return r.explain(cmp.Or(err, errors.New("more follows after the content")))
	}
	if r.source.digest() != r.source.sum() {
		return r.explain(errors.New("its digest does not fit"))
	}
	return nil
}

// explain tells damage from a store that cannot be read.
func (r *Reader) explain(err error) error {
	if r.source.err != nil {
		return r.source.err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// Digest is the object's; it is known once Read has returned io.EOF.
func (r *Reader) Digest() Digest { return r.source.digest() }

// Close ends the reading.
func (r *Reader) Close() error {
	r.zstd.Close()
	return r.closer.Close()
}

// source reads an object up to its digest and sums what it reads.
type source struct {
	from io.Reader
	hash hash.Hash
	// tail is what was read and not delivered: the last of it may be the digest.
	tail []byte
	end  bool
	// err is what reading ended with, other than the end.
	err error
}

func newSource(from io.Reader) *source {
	return &source{from: from, hash: sha256.New(), tail: make([]byte, 0, chunkSize)}
}

func (s *source) Read(p []byte) (int, error) {
	for len(s.tail) <= sha256.Size {
		if s.err != nil {
			return 0, s.err
		}
		if s.end {
			return 0, io.EOF
		}
		s.fill()
	}
	n := copy(p, s.tail[:len(s.tail)-sha256.Size])
	_, _ = s.hash.Write(s.tail[:n])
	s.tail = s.tail[n:]
	return n, nil
}

func (s *source) fill() {
	s.tail = append(make([]byte, 0, chunkSize), s.tail...)
	n, err := s.from.Read(s.tail[len(s.tail):cap(s.tail)])
	s.tail = s.tail[:len(s.tail)+n]
	s.end = err == io.EOF
	if err != nil && !s.end {
		// Wrapped, so that nobody takes it for the end of the content.
		s.err = fmt.Errorf("reading the object: %w", err)
	}
}

// digest is what the object ends in.
func (s *source) digest() Digest {
	var d Digest
	copy(d[:], s.tail)
	return d
}

// sum is the digest of what was read.
func (s *source) sum() Digest {
	var d Digest
	s.hash.Sum(d[:0])
	return d
}

// Save puts an object whose content is what write writes, reads it back, and returns its digest when what was read
// is what was written.
func Save(ctx context.Context, s store.Store, header Header, keys *Keys, write func(io.Writer) error) (Digest, error) {
	digest, err := upload(ctx, s, header, keys, write)
	if err != nil {
		return Digest{}, fmt.Errorf("saving %s: %w", header, err)
	}
	if err := Check(ctx, s, header.Name, digest); err != nil {
		return Digest{}, fmt.Errorf("reading back what was saved: %w", err)
	}
	return digest, nil
}

func upload(
	ctx context.Context, s store.Store, header Header, keys *Keys, write func(io.Writer) error,
) (digest Digest, err error) {
	reader, pipe := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w, err := NewWriter(pipe, header, keys)
		if err == nil {
			err = write(w)
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			digest = w.Digest()
		}
		// The store sees the end of the content only when all went well.
		_ = pipe.CloseWithError(err)
	}()
	err = s.Put(ctx, header.String(), reader, store.Unknown)
	// This ends the writing where the store has given up.
	_ = reader.Close()
	<-written
	return digest, err
}

// Check reads a stored object and compares it with its digest. It needs no keys.
func Check(ctx context.Context, s store.Store, name Name, want Digest) error {
	body, err := s.Get(ctx, name.String())
	if err != nil {
		return err
	}
	from := newSource(body)
	_, err = io.Copy(io.Discard, from)
	if got := from.digest(); err == nil && (from.sum() != want || !bytes.Equal(got[:], want[:])) {
		err = fmt.Errorf("%w: its digest is %s, not %s", ErrDamaged, from.sum(), want)
	}
	if err = errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("checking %s: %w", name, err)
	}
	return nil
}

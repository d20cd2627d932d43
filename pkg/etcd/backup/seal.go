package backup

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Content is sealed in chunks of AES-256-GCM, with a key of the object's own. A chunk's nonce is its number and a byte
// that marks the last one (the STREAM construction), so that chunks cannot be exchanged, left out or cut off; what
// stands before the content is authenticated with each.
const (
	keySize   = 32
	saltSize  = 32
	chunkSize = 64 << 10
	nonceSize = 12
	tagSize   = 16
	// keyPurpose separates keys of objects from others that may be derived from the same key.
	keyPurpose = "trellis etcd backup v1"
)

// objectKey derives an object's own key.
func objectKey(key, salt []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("a key has %d bytes, it must have %d", len(key), keySize)
	}
	own, err := hkdf.Key(sha256.New, key, salt, keyPurpose, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func chunkNonce(number uint64, last bool) []byte {
	nonce := make([]byte, nonceSize)
	binary.BigEndian.PutUint64(nonce[nonceSize-9:], number)
	if last {
		nonce[nonceSize-1] = 1
	}
	return nonce
}

// sealer encrypts what is written to it.
type sealer struct {
	to     io.Writer
	aead   cipher.AEAD
	before []byte
	number uint64
	// chunk that is not sealed yet: it may be the last.
	chunk  []byte
	sealed []byte
}

func newSealer(to io.Writer, aead cipher.AEAD, before []byte) *sealer {
	return &sealer{to: to, aead: aead, before: before, chunk: make([]byte, 0, chunkSize)}
}

func (s *sealer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if len(s.chunk) == chunkSize {
			if err := s.seal(false); err != nil {
				return written, err
			}
		}
		n := min(len(p), chunkSize-len(s.chunk))
		s.chunk = append(s.chunk, p[:n]...)
		p = p[n:]
		written += n
	}
	return written, nil
}

// Close seals the last chunk, which is empty only if there is no other.
func (s *sealer) Close() error { return s.seal(true) }

func (s *sealer) seal(last bool) error {
	s.sealed = s.aead.Seal(s.sealed[:0], chunkNonce(s.number, last), s.chunk, s.before)
	s.chunk = s.chunk[:0]
	s.number++
	_, err := s.to.Write(s.sealed)
	return err
}

// opener decrypts what a sealer wrote.
type opener struct {
	from   *bufio.Reader
	aead   cipher.AEAD
	before []byte
	number uint64
	sealed []byte
	// chunk that was decrypted and not read yet.
	chunk []byte
	done  bool
}

func newOpener(from io.Reader, aead cipher.AEAD, before []byte) *opener {
	return &opener{
		from: bufio.NewReader(from), aead: aead, before: before, sealed: make([]byte, chunkSize+tagSize),
	}
}

func (o *opener) Read(p []byte) (int, error) {
	for len(o.chunk) == 0 {
		if o.done {
			return 0, io.EOF
		}
		if err := o.open(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.chunk)
	o.chunk = o.chunk[n:]
	return n, nil
}

func (o *opener) open() error {
	n, err := io.ReadFull(o.from, o.sealed)
	if err == nil {
		_, err = o.from.Peek(1)
	}
	last := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !last {
		return err
	}
	o.chunk, err = o.aead.Open(o.sealed[:0], chunkNonce(o.number, last), o.sealed[:n], o.before)
	if err == nil && last && len(o.chunk) == 0 && o.number > 0 {
		err = errors.New("an empty chunk follows others")
	}
	if err != nil {
		return fmt.Errorf("decrypting chunk %d: %w", o.number, err)
	}
	o.number++
	o.done = last
	return nil
}

package backup

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// An object is: magic, the length of the header (4 bytes, big-endian), the header in JSON, the content, compressed and
// then perhaps encrypted, and the SHA-256 of all that.
const (
	magic     = "trellis etcd backup\n"
	maxHeader = 16 << 10
	// formatVersion is raised with any change of the format: readers refuse fields that they do not know.
	formatVersion = 1
	zstdName      = "zstd"
	cipherName    = "AES-256-GCM"
)

var (
	// ErrDamaged says that an object is not what was written, or not what its name says.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrKey says that an object cannot be decrypted with the keys at hand, or should be encrypted and is not.
	ErrKey = errors.New("the backup's key does not fit")
)

// Digest of an object: the SHA-256 that it ends in.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error { return unhex(d[:], text) }

// Header is what an object says of itself.
type Header struct {
	Name
	// ParentDigest is that of Parent; zero if there is none.
	ParentDigest Digest
}

// wireHeader is a Header as it is written.
type wireHeader struct {
	Version      int    `json:"version"`
	Kind         Kind   `json:"kind"`
	First        int64  `json:"first"`
	Last         int64  `json:"last"`
	Taken        string `json:"taken"`
	ID           ID     `json:"id"`
	Parent       ID     `json:"parent"`
	ParentDigest Digest `json:"parentDigest"`
	Compression  string `json:"compression"`
	// Encryption is empty for content that is not encrypted. KeyID says with which key it is; Salt derives the
	// object's own from that.
	Encryption string `json:"encryption,omitempty"`
	KeyID      string `json:"keyID,omitempty"`
	Salt       []byte `json:"salt,omitempty"`
}

// Keys encrypt and decrypt backups. A nil *Keys encrypts nothing.
type Keys struct {
	// Current is the ID of the key that encrypts.
	Current string
	// ByID has all keys that decrypt, of 32 bytes each.
	ByID map[string][]byte
	// AcceptPlain lets objects be read that are not encrypted. They may be those of another who can write into the
	// store.
	AcceptPlain bool
}

func newWireHeader(header Header, keys *Keys) (wireHeader, error) {
	h := wireHeader{
		Version: formatVersion, Kind: header.Kind, First: header.First, Last: header.Last,
		Taken: header.Taken.UTC().Format(time.RFC3339), ID: header.ID, Parent: header.Parent,
		ParentDigest: header.ParentDigest, Compression: zstdName,
	}
	if keys != nil {
		h.Encryption, h.KeyID, h.Salt = cipherName, keys.Current, make([]byte, saltSize)
		_, _ = rand.Read(h.Salt)
	}
	_, err := h.header()
	return h, err
}

// header checks a header and returns what it says of the object.
func (h *wireHeader) header() (Header, error) {
	taken, err := time.Parse(time.RFC3339, h.Taken)
	if err != nil {
		return Header{}, err
	}
	name := Name{
		Kind: h.Kind, First: h.First, Last: h.Last, Taken: taken.UTC(), ID: h.ID, Parent: h.Parent,
	}
	encrypted := h.Encryption == cipherName && len(h.Salt) == saltSize
	plain := h.Encryption == "" && h.KeyID == "" && len(h.Salt) == 0
	switch {
	case h.Version != formatVersion:
		return Header{}, fmt.Errorf("its format has version %d, %d is known", h.Version, formatVersion)
	case h.Compression != zstdName || (!encrypted && !plain):
		return Header{}, fmt.Errorf("compression %q and encryption %q are not known", h.Compression, h.Encryption)
	case (h.Parent == ID{}) != (h.ParentDigest == Digest{}):
		return Header{}, errors.New("it has the digest of no parent, or a parent without digest")
	}
	return Header{Name: name, ParentDigest: h.ParentDigest}, name.validate()
}

// marshal returns all that stands before the content.
func (h *wireHeader) marshal() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("the header has %d bytes, %d are allowed", len(text), maxHeader)
	}
	return append(binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text))), text...), nil
}

// readHeader reads all that stands before the content, and returns that, too.
func readHeader(r io.Reader) (wireHeader, []byte, error) {
	before := make([]byte, len(magic)+4)
	if _, err := io.ReadFull(r, before); err != nil {
		return wireHeader{}, nil, err
	}
	size := binary.BigEndian.Uint32(before[len(magic):])
	if string(before[:len(magic)]) != magic || size > maxHeader {
		return wireHeader{}, nil, errors.New("it does not begin as a backup does")
	}
	before = append(before, make([]byte, size)...)
	text := before[len(magic)+4:]
	if _, err := io.ReadFull(r, text); err != nil {
		return wireHeader{}, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var h wireHeader
	if err := decoder.Decode(&h); err != nil {
		return wireHeader{}, nil, fmt.Errorf("header: %w", err)
	}
	if decoder.InputOffset() != int64(size) {
		return wireHeader{}, nil, errors.New("more follows in the header")
	}
	return h, before, nil
}

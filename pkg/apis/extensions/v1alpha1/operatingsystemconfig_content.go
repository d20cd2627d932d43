package v1alpha1

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
)

// Decode gives the content as it is to be on the machine.
func (c *FileContentInline) Decode() ([]byte, error) {
	switch c.Encoding {
	case "":
		return []byte(c.Data), nil
	case "b64", "base64":
		return base64.StdEncoding.DecodeString(c.Data)
	case "gzip", "gz+b64", "gzip+b64", "gz", "gz+base64", "gzip+base64":
		packed, err := base64.StdEncoding.DecodeString(c.Data)
		if err != nil {
			packed = []byte(c.Data)
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	}
	return nil, fmt.Errorf("unknown encoding %q; known are none, b64 and gzip+b64", c.Encoding)
}

// Package proxyprotocol reads and writes version 2 headers of the PROXY protocol as far as Trellis uses them: to name
// the host that a client without SNI wants, in the authority TLV.
//
// It is no library's, because strangers write what it reads. It reads nothing after the header, so that the
// connection can be joined as it is, and holds no more than the header. github.com/pires/go-proxyproto v0.15.0 has
// the same bound of 4 KiB, but reads ahead through a buffer, takes text headers, UDP and UNIX sockets, too, and
// allocates many times as much for a header.
package proxyprotocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

const (
	signature = "\r\n\r\n\x00\r\nQUIT\n"

	versionAndLocal = 0x20
	versionAndProxy = 0x21

	familyUnspecified = 0x00
	familyTCP4        = 0x11
	familyTCP6        = 0x21

	typeAuthority = 0x02

	headerLength = len(signature) + 4
	// maxLength bounds what follows the fixed header; addresses and the longest host name take under 300 bytes.
	maxLength = 4096
)

// ErrInvalid says that the bytes are no PROXY protocol header of version 2.
var ErrInvalid = errors.New("not a PROXY protocol v2 header")

// Header is what Trellis uses of a header.
type Header struct {
	// Source and Destination are the addresses of the original connection; both or none are valid, of one family.
	Source, Destination netip.AddrPort
	// Authority is the host name that the client wants.
	Authority string
}

// Append appends the encoded header to b.
func (h Header) Append(b []byte) []byte {
	addresses, family := h.addresses()
	command := byte(versionAndProxy)
	if family == familyUnspecified {
		command = versionAndLocal
	}
	length := len(addresses)
	if h.Authority != "" {
		length += 3 + len(h.Authority)
	}
	b = append(b, signature...)
	b = append(b, command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, addresses...)
	if h.Authority != "" {
		b = append(b, typeAuthority)
		b = binary.BigEndian.AppendUint16(b, uint16(len(h.Authority)))
		b = append(b, h.Authority...)
	}
	return b
}

func (h Header) addresses() (encoded []byte, family byte) {
	source, destination := h.Source.Addr().Unmap(), h.Destination.Addr().Unmap()
	switch {
	case source.Is4() && destination.Is4():
		family = familyTCP4
	case source.Is6() && destination.Is6():
		family = familyTCP6
	default:
		return nil, familyUnspecified
	}
	encoded = append(encoded, source.AsSlice()...)
	encoded = append(encoded, destination.AsSlice()...)
	encoded = binary.BigEndian.AppendUint16(encoded, h.Source.Port())
	return binary.BigEndian.AppendUint16(encoded, h.Destination.Port()), family
}

// Read reads a header and nothing after it.
func Read(r io.Reader) (Header, error) {
	fixed := make([]byte, headerLength)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return Header{}, err
	}
	command, family := fixed[12], fixed[13]
	if string(fixed[:12]) != signature || command != versionAndLocal && command != versionAndProxy {
		return Header{}, ErrInvalid
	}
	length := int(binary.BigEndian.Uint16(fixed[14:]))
	if length > maxLength {
		return Header{}, fmt.Errorf("%w: %d bytes of addresses and TLVs", ErrInvalid, length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return Header{}, err
	}
	return parse(family, body)
}

func parse(family byte, body []byte) (Header, error) {
	var header Header
	n, ok := addressLength(family)
	if !ok || n > len(body) {
		return header, fmt.Errorf("%w: address family %#x with %d bytes", ErrInvalid, family, len(body))
	}
	if n > 0 {
		header.Source, header.Destination = parseAddresses(body[:n])
	}
	for tlvs := body[n:]; len(tlvs) > 0; {
		if len(tlvs) < 3 {
			return header, fmt.Errorf("%w: TLV is cut off", ErrInvalid)
		}
		kind, end := tlvs[0], 3+int(binary.BigEndian.Uint16(tlvs[1:]))
		if end > len(tlvs) {
			return header, fmt.Errorf("%w: TLV %#x is cut off", ErrInvalid, kind)
		}
		if kind == typeAuthority {
			header.Authority = strings.ToLower(string(tlvs[3:end]))
		}
		tlvs = tlvs[end:]
	}
	return header, nil
}

// addressLength returns the length of the addresses of a family. UDP and UNIX sockets make no sense here.
func addressLength(family byte) (int, bool) {
	switch family {
	case familyUnspecified:
		return 0, true
	case familyTCP4:
		return 12, true
	case familyTCP6:
		return 36, true
	default:
		return 0, false
	}
}

func parseAddresses(b []byte) (source, destination netip.AddrPort) {
	size := (len(b) - 4) / 2
	sourceIP, _ := netip.AddrFromSlice(b[:size])
	destinationIP, _ := netip.AddrFromSlice(b[size : 2*size])
	ports := b[2*size:]
	return netip.AddrPortFrom(sourceIP, binary.BigEndian.Uint16(ports)),
		netip.AddrPortFrom(destinationIP, binary.BigEndian.Uint16(ports[2:]))
}

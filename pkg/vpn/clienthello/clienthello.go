// Package clienthello reads the server name from the first message of a TLS connection without taking part in it.
// Formats: RFC 8446 §4.1.2 and §5.1, RFC 6066 §3.
//
// crypto/tls tells the name only to a server that begins a handshake, which takes many times the time and memory. What
// a stranger may make the gateway hold is bounded here.
package clienthello

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	recordTypeAlert     = 21
	recordTypeHandshake = 22
	messageClientHello  = 1
	extensionServerName = 0
	nameTypeHost        = 0

	recordHeaderLength  = 5
	messageHeaderLength = 4
	maxRecordLength     = 1 << 14
	// maxMessageLength bounds what a client may make the gateway hold; hellos with post-quantum keys take about 1.8 KB.
	maxMessageLength = 1 << 14
	// maxRecords bounds into how many records a hello may be split.
	maxRecords = 32
	// firstRead is how much room a hello gets before any of it came.
	firstRead = 2 << 10
)

// ErrNotTLS says that the bytes are no TLS ClientHello.
var ErrNotTLS = errors.New("not a TLS ClientHello")

// ErrNoServerName says that the ClientHello is fine but names no server.
var ErrNoServerName = errors.New("the TLS ClientHello names no server (SNI)")

// Read reads a ClientHello from r, and returns its server name in lower case and every byte that was read, also when it
// fails. What it holds grows with what came, not with what the client announces, to about maxMessageLength.
func Read(r io.Reader) (serverName string, read []byte, err error) {
	read = make([]byte, 0, firstRead)
	var records []span
	for range maxRecords {
		if read, err = readRecord(r, read, records); err != nil {
			return "", read, err
		}
		records = append(records, span{end(records) + recordHeaderLength, len(read)})
		complete, err := isComplete(read, records)
		if err != nil {
			return "", read, err
		}
		if complete {
			serverName, err := Parse(join(read, records, len(read)))
			return serverName, read, err
		}
	}
	return "", read, fmt.Errorf("%w: split into more than %d records", ErrNotTLS, maxRecords)
}

// span is where the content of a record lies in what was read.
type span struct{ from, to int }

// end is where the last record ends.
func end(records []span) int {
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].to
}

// join returns the first n bytes of the message that is spread over records, without copying it when it lies in one.
func join(read []byte, records []span, n int) []byte {
	message := read[records[0].from:records[0].to:records[0].to]
	for _, record := range records[1:] {
		if len(message) >= n {
			break
		}
		message = append(message, read[record.from:record.to]...)
	}
	return message[:min(n, len(message))]
}

// lengthOf is the length of the message so far.
func lengthOf(records []span) (n int) {
	for _, record := range records {
		n += record.to - record.from
	}
	return n
}

// readRecord appends one handshake record to buf, in which records lie already.
func readRecord(r io.Reader, buf []byte, records []span) ([]byte, error) {
	buf, err := readN(r, buf, recordHeaderLength)
	if err != nil {
		return buf, err
	}
	header := buf[len(buf)-recordHeaderLength:]
	length := int(binary.BigEndian.Uint16(header[3:]))
	if header[0] != recordTypeHandshake || header[1] != 3 || length == 0 || length > maxRecordLength {
		return buf, fmt.Errorf("%w: record header % x", ErrNotTLS, header)
	}
	if sum := lengthOf(records) + length; sum > messageHeaderLength+maxMessageLength {
		return buf, fmt.Errorf("%w: records of %d bytes", ErrNotTLS, sum)
	}
	return readN(r, buf, length)
}

// readN appends n bytes to buf, which grows as they come.
func readN(r io.Reader, buf []byte, n int) ([]byte, error) {
	for n > 0 {
		buf = slices.Grow(buf, 1)
		room := min(n, cap(buf)-len(buf))
		got, err := io.ReadFull(r, buf[len(buf):len(buf)+room])
		buf = buf[:len(buf)+got]
		if err != nil {
			return buf, err
		}
		n -= room
	}
	return buf, nil
}

// isComplete says whether records hold the whole ClientHello.
func isComplete(read []byte, records []span) (bool, error) {
	header := join(read, records, messageHeaderLength)
	if header[0] != messageClientHello {
		return false, fmt.Errorf("%w: handshake message of type %d", ErrNotTLS, header[0])
	}
	if len(header) < messageHeaderLength {
		return false, nil
	}
	length := messageLength(header)
	if length > maxMessageLength {
		return false, fmt.Errorf("%w: message of %d bytes", ErrNotTLS, length)
	}
	return lengthOf(records) >= messageHeaderLength+length, nil
}

func messageLength(message []byte) int {
	return int(message[1])<<16 | int(message[2])<<8 | int(message[3])
}

// Parse returns the server name of a complete ClientHello message in lower case.
func Parse(message []byte) (string, error) {
	s := scanner(message)
	header, ok := s.bytes(messageHeaderLength)
	if !ok || header[0] != messageClientHello {
		return "", ErrNotTLS
	}
	body, ok := s.bytes(messageLength(header))
	if !ok {
		return "", ErrNotTLS
	}
	extensions, ok := extensionsOf(scanner(body))
	if !ok {
		return "", ErrNotTLS
	}
	return serverNameOf(extensions)
}

// extensionsOf skips what comes before the extensions. A hello may end without any.
func extensionsOf(s scanner) (scanner, bool) {
	const versionAndRandom = 2 + 32
	if _, ok := s.bytes(versionAndRandom); !ok {
		return nil, false
	}
	if _, ok := s.vector8(); !ok { // session id
		return nil, false
	}
	if _, ok := s.vector16(); !ok { // cipher suites
		return nil, false
	}
	if _, ok := s.vector8(); !ok { // compression methods
		return nil, false
	}
	if len(s) == 0 {
		return nil, true
	}
	extensions, ok := s.vector16()
	return extensions, ok && len(s) == 0
}

func serverNameOf(extensions scanner) (string, error) {
	for len(extensions) > 0 {
		kind, ok := extensions.uint16()
		if !ok {
			return "", ErrNotTLS
		}
		data, ok := extensions.vector16()
		if !ok {
			return "", ErrNotTLS
		}
		if kind == extensionServerName {
			return hostNameOf(data)
		}
	}
	return "", ErrNoServerName
}

func hostNameOf(data scanner) (string, error) {
	list, ok := data.vector16()
	if !ok || len(data) != 0 {
		return "", ErrNotTLS
	}
	for len(list) > 0 {
		kind, ok := list.bytes(1)
		if !ok {
			return "", ErrNotTLS
		}
		name, ok := list.vector16()
		if !ok {
			return "", ErrNotTLS
		}
		if kind[0] == nameTypeHost {
			return normalize(string(name))
		}
	}
	return "", ErrNoServerName
}

func normalize(name string) (string, error) {
	if name == "" || len(name) > 255 || strings.HasSuffix(name, ".") {
		return "", fmt.Errorf("%w: server name %q", ErrNotTLS, name)
	}
	return strings.ToLower(name), nil
}

// scanner consumes length-prefixed fields from the front of a message.
type scanner []byte

func (s *scanner) bytes(n int) (scanner, bool) {
	if n > len(*s) {
		return nil, false
	}
	head := (*s)[:n]
	*s = (*s)[n:]
	return head, true
}

func (s *scanner) uint16() (uint16, bool) {
	b, ok := s.bytes(2)
	if !ok {
		return 0, false
	}
	return binary.BigEndian.Uint16(b), true
}

func (s *scanner) vector8() (scanner, bool) {
	length, ok := s.bytes(1)
	if !ok {
		return nil, false
	}
	return s.bytes(int(length[0]))
}

func (s *scanner) vector16() (scanner, bool) {
	length, ok := s.uint16()
	if !ok {
		return nil, false
	}
	return s.bytes(int(length))
}

// Alert descriptions of RFC 8446 §6.
const (
	AlertDecodeError      = 50
	AlertInternalError    = 80
	AlertUnrecognizedName = 112
)

// Alert returns a record with a fatal alert.
func Alert(description byte) []byte {
	const fatal = 2
	return []byte{recordTypeAlert, 3, 1, 0, 2, fatal, description}
}

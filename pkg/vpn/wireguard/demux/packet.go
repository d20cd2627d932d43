package demux

import (
	"encoding/binary"

	"golang.org/x/crypto/blake2s"
)

// The messages of WireGuard (https://www.wireguard.com/protocol/): a type, three zero bytes, and indexes by which the
// receiver finds its session. All numbers are little-endian.
const (
	typeInitiation  = 1
	typeResponse    = 2
	typeCookieReply = 3
	typeTransport   = 4

	lengthInitiation  = 148
	lengthResponse    = 92
	lengthCookieReply = 64
	minTransport      = 32

	offsetSender            = 4
	offsetReceiver          = 4
	offsetResponseReceiver  = 8
	offsetInitiationMAC1    = 116
	lengthMAC1              = 16
	labelMAC1               = "mac1----"
	maxTransport            = 1<<16 - 1
	handshakeIndexByteCount = 4
)

// kindOf returns the type of a well-formed message and 0 for anything else.
func kindOf(packet []byte) byte {
	if len(packet) < minTransport || packet[1]|packet[2]|packet[3] != 0 {
		return 0
	}
	n := len(packet)
	switch kind := packet[0]; {
	case kind == typeInitiation && n == lengthInitiation,
		kind == typeResponse && n == lengthResponse,
		kind == typeCookieReply && n == lengthCookieReply,
		kind == typeTransport && n <= maxTransport:
		return kind
	}
	return 0
}

func indexAt(packet []byte, offset int) uint32 {
	return binary.LittleEndian.Uint32(packet[offset : offset+handshakeIndexByteCount])
}

// receiverOf returns the index by which the receiver of a message that is no initiation knows its session.
func receiverOf(kind byte, packet []byte) uint32 {
	if kind == typeResponse {
		return indexAt(packet, offsetResponseReceiver)
	}
	return indexAt(packet, offsetReceiver)
}

// mac1Key is the key with which initiators authenticate messages to the owner of a public key.
func mac1Key(publicKey [32]byte) [blake2s.Size]byte {
	return blake2s.Sum256(append([]byte(labelMAC1), publicKey[:]...))
}

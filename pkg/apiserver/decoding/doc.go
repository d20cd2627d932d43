// Package decoding bounds what it costs to read a request. The cost of decoding, of patching and above all of tracking
// managed fields grows with the number of values in a body, at times with its square, not with its size: a mebibyte of
// empty objects keeps a server busy for half a minute. So every body for the garden's kinds is counted by a scan that
// keeps nothing, before anything else looks at it, and refused when it holds more than anybody needs. The scans
// understand JSON, YAML and protobuf.
//
// What the values mean is checked later, by validation of each kind.
package decoding

// Package growth decides how a fleet gets more machines for what waits for room, and how it gives them back: a pure
// function of what waits, what is there, the limits and the time. It knows no API; who calls it reads and writes.
package growth

// Package interpreter knows what the objects of a fleet mean: how many replicas they want and what those need, how a
// member's share is written, what a member keeps for itself, what of a status is collected, how the statuses of all
// members add up, when an object is healthy, and what it refers to.
//
// An Interpreter is asked. The first that has an answer for an operation on a kind gives it: the fleet's
// ResourceInterpreterCustomizations (package script), its webhooks (package webhook), and then what is built in here:
// the table of well-known kinds of others (thirdparty.go) and the one of Kubernetes itself (kinds.go). Both tables are
// data and pure functions; kinds that nobody knows are treated alike.
package interpreter

// Package capacity keeps account of what the nodes of a member have free: an Account counts nodes and pods as they come
// and go and keeps only what it needs of them (TestMemory says how much that may be), Follow feeds it from a cluster,
// and a Report is what a Cluster's status tells of it. What members say is checked: nodes that claim what cannot be are
// left out.
//
// Follow lists and watches by itself: a reflector of client-go has all pages of a list in memory before it hands them
// on. Here a page is counted and dropped, and a cluster that is too large is known to be so before it is read to its
// end.
package capacity

// Package failover decides what happens to objects when clusters or copies fail: when a copy has to leave a cluster,
// when an old copy may be removed, and when and how an object returns. Everything is a function of plain data and a
// time that is passed in; reading and writing is done by pkg/federation/controllers/failover.
package failover

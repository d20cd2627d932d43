// Package controllers runs a fleet: it turns policies and objects into bindings, decides where they go, writes Works
// for the member clusters, applies these there, and brings the status back.
//
//	policy + object ──propagation──▶ binding ──scheduling──▶ binding.spec.clusters
//	       ▲                                                        │ works
//	       │ status                                                 ▼
//	       └──────────── binding.status ◀──────────── Work ◀──execution──▶ member
//
// Every step reads what it needs from the fleet's API and can be repeated, so that the process may die at any point.
// What is still to be removed is held by finalizers: a member's object by its Work, Works by their binding, and
// everything in a member by its Cluster.
//
// The steps of that picture are here, and what members' agents share with them. What has a subject of its own, such as
// failover, scaling or rollouts, is in the packages below.
package controllers

// Package apiserver is the garden's own API server: the groups core, security, seedmanagement and operations of
// gardener.cloud, served behind the aggregation layer of the garden's kube-apiserver and stored in the garden's etcd.
//
// decoding bounds what bodies of requests cost, registry says how each kind is stored and served, admission what is
// refused or completed, kubeconfig issues access to shoots, workloadidentity tokens for infrastructures, registration
// makes the objects with which the garden's kube-apiserver finds this server. What runs afterwards on accepted objects
// lives elsewhere: pkg/controllermanager, pkg/scheduler and pkg/gardenlet.
package apiserver

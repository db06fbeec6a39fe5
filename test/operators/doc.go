// Package operators runs the tests of a project that use envtest, unchanged, against
// kube-apiserver and etcd and against testcluster, and compares the results.
package operators

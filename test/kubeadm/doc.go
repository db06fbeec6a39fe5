// Package kubeadm has the test of a kubeadm cluster whose kubelet is this project's node: kubeadm init, join,
// upgrade and reset on two machines that are namespaces of this one. `bash .ci/run kubeadm` runs it.
package kubeadm

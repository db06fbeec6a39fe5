// Package adopt changes a node over from a real kubelet to this repository's, and back,
// with the same configuration, root directory and runtime: no container may be restarted,
// and no exit may be lost.
//
//	for v in v1.34.4 v1.35.4 v1.36.3 v1.37.2; do bash hack/kubelet.sh $v; done
//	bash .ci/run adopt
//
// KUBEPARTS_KUBELETS=v1.36.3,v1.37.2 limits the versions, KUBEPARTS_ADOPT_CORPUS=probes the
// files of test/compare/corpus, KUBEPARTS_ADOPT_PODS=plain those of testdata/pods.
package adopt

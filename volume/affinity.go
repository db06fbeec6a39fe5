package volume

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// checkNodeAffinity returns an error if the node does not match the node affinity of pv.
func checkNodeAffinity(pv *v1.PersistentVolume, node *v1.Node) error {
	if node == nil || pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	terms, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required)
	if err != nil {
		return fmt.Errorf("node affinity of PV %s: %w", pv.Name, err)
	}
	if !terms.Match(node) {
		return errors.New("no matching NodeSelectorTerms")
	}
	return nil
}

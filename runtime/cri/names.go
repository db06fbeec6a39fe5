package cri

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// checkNames rejects a pod whose UID or names are empty or not valid in paths. The API server
// rejects such pods; other sources may not.
func checkNames(pod *v1.Pod) error {
	uid := string(pod.UID)
	if !isPathElement(uid) || strings.Contains(uid, "_") { // the separator in the names of log directories
		return fmt.Errorf("cri: pod UID %q is not valid in a path", uid)
	}
	if name := pod.Namespace + "_" + pod.Name; pod.Namespace == "" || pod.Name == "" || !isPathElement(name) {
		return fmt.Errorf("cri: pod %q of namespace %q: name is not valid in a path", pod.Name, pod.Namespace)
	}
	check := func(name string) error {
		if isPathElement(name) {
			return nil
		}
		return fmt.Errorf("cri: pod %s/%s: container name %q is not valid in a path", pod.Namespace, pod.Name, name)
	}
	for c := range podspec.AllContainers(pod) {
		if err := check(c.Name); err != nil {
			return err
		}
	}
	return nil
}

// isPathElement reports whether name is a single path element.
func isPathElement(name string) bool {
	return name != "" && name != "." && filepath.IsLocal(name) && !strings.ContainsAny(name, "/\\\x00")
}

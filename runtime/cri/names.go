package cri

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// checkNames rejects a pod whose UID or names are not valid in paths. The API server
// rejects such pods; other sources may not.
func checkNames(pod *v1.Pod) error {
	uid := string(pod.UID)
	if !isPathElement(uid) || strings.Contains(uid, "_") { // the separator in the names of log directories
		return fmt.Errorf("cri: pod UID %q is not valid in a path", uid)
	}
	if name := pod.Namespace + "_" + pod.Name; !isPathElement(name) {
		return fmt.Errorf("cri: pod %q of namespace %q: name is not valid in a path", pod.Name, pod.Namespace)
	}
	check := func(name string) error {
		if isPathElement(name) {
			return nil
		}
		return fmt.Errorf("cri: pod %s/%s: container name %q is not valid in a path", pod.Namespace, pod.Name, name)
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if err := check(list[i].Name); err != nil {
				return err
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if err := check(pod.Spec.EphemeralContainers[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// isPathElement reports whether name is a single path element.
func isPathElement(name string) bool {
	return name != "" && name != "." && filepath.IsLocal(name) && !strings.ContainsAny(name, "/\\\x00")
}

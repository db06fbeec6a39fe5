package cri

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// checkNames refuses a pod whose UID or names lead out of the directories that
// are made of them. An API server lets no such pod through; a manifest or another
// source may.
func checkNames(pod *v1.Pod) error {
	uid := string(pod.UID)
	if !plain(uid) || strings.Contains(uid, "_") { // which ends the name in that of a log directory (rt-134)
		return fmt.Errorf("cri: the pod's UID %q can't be part of a path", uid)
	}
	if name := pod.Namespace + "_" + pod.Name; !plain(name) {
		return fmt.Errorf("cri: pod %q of namespace %q: its name can't be part of a path", pod.Name, pod.Namespace)
	}
	check := func(name string) error {
		if plain(name) {
			return nil
		}
		return fmt.Errorf("cri: pod %s/%s: the container name %q can't be part of a path", pod.Namespace, pod.Name, name)
	}
	for c := range podspec.AllContainers(pod) {
		if err := check(c.Name); err != nil {
			return err
		}
	}
	return nil
}

// plain reports whether name is that of a file or directory, and leads nowhere
// else.
func plain(name string) bool {
	return name != "" && name != "." && filepath.IsLocal(name) && !strings.ContainsAny(name, "/\\\x00")
}

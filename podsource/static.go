package podsource

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// Static is [manifest.Static] with the options of files, for programs that embed a
// manifest. Errors name the origin.
func Static(data []byte, nodeName, origin string) (*v1.Pod, error) {
	pod, err := manifest.Static(data, nodeName, origin, manifest.StaticOptions{})
	if err != nil {
		return nil, fmt.Errorf("podsource: %s: %w", origin, err)
	}
	return pod, nil
}

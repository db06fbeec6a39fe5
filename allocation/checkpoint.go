package allocation

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// podCheckpoint is the checkpoint of a pod: its allocated resources, and the data that is necessary to
// count them before a source has delivered the pod.
type podCheckpoint struct {
	UID       types.UID       `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Overhead  v1.ResourceList `json:"overhead,omitempty"`
	Priority  *int32          `json:"priority,omitempty"`

	// Sidecars and Regular name the containers of the pod in their order.
	Sidecars []string `json:"sidecars,omitempty"`
	Regular  []string `json:"regular,omitempty"`

	Allocated podResources `json:"allocated"`

	// PodLevel are the applied pod-level resources, which the runtime does not report.
	PodLevel *v1.ResourceRequirements `json:"podLevel,omitempty"`
}

func newPodCheckpoint(pod *v1.Pod, allocated podResources, podLevel *v1.ResourceRequirements) podCheckpoint {
	r := podCheckpoint{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
		Overhead: pod.Spec.Overhead, Priority: pod.Spec.Priority,
		Allocated: allocated, PodLevel: podLevel,
	}
	for c := range resizable(&v1.PodSpec{InitContainers: pod.Spec.InitContainers}, false) {
		r.Sidecars = append(r.Sidecars, c.Name)
	}
	for i := range pod.Spec.Containers {
		r.Regular = append(r.Regular, pod.Spec.Containers[i].Name)
	}
	return r
}

// pod returns a pod with the data of the checkpoint.
func (r *podCheckpoint) pod() *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: r.UID, Namespace: r.Namespace, Name: r.Name},
		Spec:       v1.PodSpec{Overhead: r.Overhead, Priority: r.Priority, Resources: r.Allocated.Pod},
	}
	for _, name := range r.Sidecars {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{
			Name: name, Resources: r.Allocated.Containers[name], RestartPolicy: new(v1.ContainerRestartPolicyAlways),
		})
	}
	for _, name := range r.Regular {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: r.Allocated.Containers[name]})
	}
	return pod
}

const checkpointSuffix = ".json"

// fileName returns the file name of a pod's checkpoint: its UID, or a hash if that is no file name.
func fileName(uid types.UID) string {
	plain := len(uid) > 0 && len(uid) <= 128 && strings.Trim(string(uid), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
	if plain {
		return string(uid) + checkpointSuffix
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(uid))
	return "uid." + hex.EncodeToString(h.Sum(nil)) + checkpointSuffix
}

// readCheckpoints returns the checkpoints in dir, and an error for each corrupt one. It deletes temporary
// files of interrupted writes.
func readCheckpoints(dir string) (checkpoints []podCheckpoint, corrupt []error, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("allocation: read directory: %w", err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), checkpointSuffix+checkpoint.Temporary) {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
		if filepath.Ext(f.Name()) != checkpointSuffix {
			continue // another file
		}
		r, err := readCheckpoint(dir, f.Name())
		if err != nil {
			corrupt = append(corrupt, err)
			continue
		}
		checkpoints = append(checkpoints, r)
	}
	return checkpoints, corrupt, nil
}

func readCheckpoint(dir, name string) (podCheckpoint, error) {
	var r podCheckpoint
	path := filepath.Join(dir, name)
	if err := checkpoint.Read(path, &r); err != nil {
		return podCheckpoint{}, fmt.Errorf("allocation: %w", err)
	}
	if fileName(r.UID) != name {
		return podCheckpoint{}, fmt.Errorf("allocation: read %s: file name does not match pod UID %q", path, r.UID)
	}
	return r, nil
}
